#pragma once
/// MessageLog: what frames are kept in, as an engine has it: messages of bounded size, numbered upwards, the numbers never used again; one is appended only behind the message that its writer knows as the last.
/// Thread rule: external lock.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace taiyen::nats {

struct Message {
    std::uint64_t sequence = 0;
    std::vector<std::byte> bytes;
};

class MessageLog {
public:
    struct State {
        std::uint64_t first = 1;     ///< oldest message, if there are any
        std::uint64_t last = 0;      ///< newest message that there ever was; it may be gone
        std::uint64_t messages = 0;  ///< how many there are
    };

    MessageLog() = default;
    MessageLog(const MessageLog&) = delete;
    MessageLog& operator=(const MessageLog&) = delete;
    virtual ~MessageLog() = default;

    virtual std::string name() const = 0;
    /// Largest message.
    virtual std::size_t message_bytes_max() const = 0;
    /// Nothing: the log isn't made yet.
    virtual std::optional<State> state() = 0;
    /// Makes it, if it isn't there.
    virtual void create() = 0;
    /// A message that is appended: two pieces.
    struct Outgoing {
        std::span<const std::byte> head;
        std::span<const std::byte> body;
    };
    /// Numbers of those that were appended.
    struct Placed {
        std::uint64_t first = 0;
        std::uint64_t last = 0;
    };
    /// Appends them, the first one if `after` is the newest one's number, each of the others if the one before it is the newest. Nothing: one wasn't, and so none behind it is there.
    /// Throws: Error: which of them are there is not known.
    virtual std::optional<Placed> append(std::span<const Outgoing> messages, std::uint64_t after) = 0;
    /// Nothing: it is not there.
    virtual std::optional<Message> get(std::uint64_t sequence) = 0;
    /// Up to `count` messages from that one on, in order, those that are there; empty: none is.
    virtual std::vector<Message> get_many(std::uint64_t sequence, std::size_t count) = 0;
    /// Messages before that one go.
    virtual void trim(std::uint64_t first) = 0;
};

}  // namespace taiyen::nats
