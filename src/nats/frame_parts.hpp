#pragma once
/// FrameParts: numbered frames of any size in a log of messages of bounded size.
///
/// (P1) A frame is a run of messages that follow each other, part 0 to the last one. It is there once the last one is. A run that breaks off is void, whatever its number: it hides nothing, and says nothing
///      of where other frames are. Whoever was to go on appends the whole frame again.
/// (P2) Parts of two attempts never make a frame together, whatever a server has put behind each other.
/// (P3) What isn't known for certain, after a failure or where others append, is asked again; and now and then that the newest frame is still there.
/// Thread rule: external lock.

#include <chrono>
#include <deque>
#include <optional>
#include <random>

#include <taiyen/replicate/replication_target.hpp>

#include "nats/message_log.hpp"

namespace taiyen::nats {

/// What stands in front of each message. Little endian.
struct PartHead {
    std::uint64_t number;   ///< of the frame
    std::uint64_t attempt;  ///< random: which time it is appended, by whom
    std::uint32_t part;     ///< from 0
    std::uint32_t parts;    ///< how many the frame has
};
static_assert(sizeof(PartHead) == 24);

class FrameParts {
public:
    /// `look_every`: so long a writer believes what it knows of the end.
    explicit FrameParts(MessageLog& log, std::chrono::milliseconds look_every = std::chrono::seconds(1));

    // As ReplicationTarget has them.
    ReplicationTarget::Range range();
    bool append(std::uint64_t number, std::span<const std::byte> frame);
    std::vector<std::byte> read(std::uint64_t number);
    void trim(std::uint64_t first);

private:
    struct End {
        std::uint64_t sequence = 0;  ///< of the newest message
        std::uint64_t number = 0;    ///< of the newest frame that is whole; 0: there is none
        std::uint64_t begin = 0;     ///< its first message
    };
    /// Throws: Error{corrupt}: the message is no part of a frame.
    PartHead head_of(const Message& message) const;
    /// The message, or the first one behind it, up to `last`.
    std::optional<Message> next(std::uint64_t sequence, std::uint64_t last);
    std::optional<Message> kept(std::uint64_t sequence);
    End find_end(const MessageLog::State& state);
    const End& end();
    /// Where the messages of that frame begin, void ones among them. Throws: Error{not_found}.
    std::uint64_t find(std::uint64_t number);
    std::vector<std::byte> read_at(std::uint64_t number, std::uint64_t sequence, bool is_next);
    [[noreturn]] void throw_not_found(std::uint64_t number) const;
    /// The messages from one on, as runs: what part is next, and whether a run that has begun is whole.
    class Runs;

    MessageLog& log_;
    const std::chrono::milliseconds look_every_;
    std::mt19937_64 attempts_;
    std::optional<End> end_;  ///< nothing: it is to be looked for
    std::chrono::steady_clock::time_point looked_;
    std::uint64_t first_message_ = 0;
    std::uint64_t first_sequence_ = 0;  ///< where the first frame begins that is whole; 0: not known
    std::uint64_t first_number_ = 1;
    struct Place {
        std::uint64_t number = 0;
        std::uint64_t sequence = 0;
    };
    Place after_read_;             ///< where the frame behind the one that was read last begins
    std::deque<Message> waiting_;  ///< read in advance, in order
};

}  // namespace taiyen::nats
