#include "nats/frame_parts.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include <taiyen/base/error.hpp>

namespace taiyen::nats {
namespace {

constexpr std::size_t read_ahead = 16;  // messages
constexpr std::size_t in_flight = 16;   // messages
constexpr unsigned tries_max = 8;
constexpr std::size_t frame_bytes_max = std::size_t{1} << 31U;  // twice what a frame may have (src/replicate/FORMAT.md): who reads it looks closely

std::mt19937_64 seeded_by_chance() {
    std::random_device source;
    std::seed_seq seeds{source(), source(), source(), source()};
    return std::mt19937_64(seeds);
}

/// Whether they are parts of one attempt, the second one right behind the first one.
bool follows(const PartHead& before, const PartHead& head) {
    return head.number == before.number && head.attempt == before.attempt && head.parts == before.parts && head.part == before.part + 1;
}

}  // namespace

FrameParts::FrameParts(MessageLog& log, std::chrono::milliseconds look_every) : log_(log), look_every_(look_every), attempts_(seeded_by_chance()) {}

class FrameParts::Runs {
public:
    enum class State { goes_on, whole, is_void };
    State add(std::uint64_t sequence, const PartHead& head) {
        const bool continues = before_.parts != 0 && head.part != 0 && follows(before_, head) && sequence == at_ + 1;
        if (head.part != 0 && !continues) {
            before_ = {};
            return State::is_void;
        }
        before_ = head;
        at_ = sequence;
        if (head.part == 0) begin_ = sequence;
        if (head.part + 1 != head.parts) return State::goes_on;
        before_ = {};
        return State::whole;
    }
    /// Of the run that the newest message belongs to.
    std::uint64_t begin() const { return begin_; }

private:
    PartHead before_{};
    std::uint64_t at_ = 0;
    std::uint64_t begin_ = 0;
};

PartHead FrameParts::head_of(const Message& message) const {
    PartHead head{};
    if (message.bytes.size() >= sizeof head) std::memcpy(&head, message.bytes.data(), sizeof head);
    if (head.number == 0 || head.part >= head.parts)
        throw Error(
            errc::corrupt, log_.name(),
            "message " + std::to_string(message.sequence) + " is no part of a frame: somebody else publishes there; replicate to another name");
    return head;
}

void FrameParts::throw_not_found(std::uint64_t number) const {
    throw Error(errc::not_found, log_.name(), "frame " + std::to_string(number) + " is not there: it was trimmed, or lost");
}

/// Of those read in advance.
std::optional<Message> FrameParts::kept(std::uint64_t sequence) {
    while (!waiting_.empty() && waiting_.front().sequence < sequence) waiting_.pop_front();
    if (waiting_.empty() || waiting_.front().sequence != sequence) return std::nullopt;
    Message message = std::move(waiting_.front());
    waiting_.pop_front();
    return message;
}

std::optional<Message> FrameParts::next(std::uint64_t sequence, std::uint64_t last) {
    if (auto message = kept(sequence)) return message;
    waiting_.clear();
    for (; sequence <= last; ++sequence)
        if (auto message = log_.get(sequence)) return message;
    return std::nullopt;
}

/// From behind: the newest run that is whole.
FrameParts::End FrameParts::find_end(const MessageLog::State& state) {
    End end{state.last, 0, 0};
    if (state.messages == 0) return end;
    std::uint64_t wanted = 0;  // parts in front of the message that was looked at last, if its run goes on there
    PartHead behind{};
    for (std::uint64_t sequence = state.last; sequence >= state.first && sequence != 0; --sequence) {
        const auto message = log_.get(sequence);
        if (!message) {
            wanted = 0;
            continue;
        }
        const PartHead head = head_of(*message);
        const bool goes_on = wanted != 0 && follows(head, behind);
        if (!goes_on && head.part + 1 != head.parts) {
            wanted = 0;
            continue;
        }
        if (head.part == 0) return {state.last, head.number, sequence};
        wanted = head.part;
        behind = head;
    }
    return end;
}

const FrameParts::End& FrameParts::end() {
    const std::optional<MessageLog::State> state = log_.state();
    looked_ = std::chrono::steady_clock::now();
    if (end_ && (!state || state->last < end_->sequence)) {
        // What was read in advance may be gone, and its numbers given again.
        waiting_.clear();
        after_read_ = {};
        first_sequence_ = 0;
    }
    if (!state || state->last == 0) return *(end_ = End{});
    if (state->messages != 0 && (state->first != first_message_ || first_sequence_ == 0)) {
        first_number_ = 1;
        first_sequence_ = 0;
        Runs runs;
        for (std::uint64_t sequence = state->first; first_sequence_ == 0; ++sequence) {
            const auto message = next(sequence, state->last);
            if (!message) break;
            sequence = message->sequence;
            const PartHead head = head_of(*message);
            if (runs.add(sequence, head) != Runs::State::whole) continue;
            first_number_ = head.number;
            first_sequence_ = runs.begin();
        }
        first_message_ = state->first;
    }
    if (!end_ || end_->sequence != state->last || end_->begin < state->first) end_ = find_end(*state);
    return *end_;
}

ReplicationTarget::Range FrameParts::range() {
    const End& now = end();
    return now.number == 0 ? ReplicationTarget::Range{} : ReplicationTarget::Range{std::min(first_number_, now.number), now.number};
}

bool FrameParts::append(std::uint64_t number, std::span<const std::byte> frame) {
    for (unsigned tries = 0; tries < tries_max; ++tries) {
        if (!end_ || std::chrono::steady_clock::now() - looked_ >= look_every_) end();
        if (number <= end_->number) {
            try {
                return std::ranges::equal(read(number), frame);
            } catch (const Error& error) {
                if (error.code() != errc::not_found) throw;
                return false;
            }
        }
        if (number != end_->number + 1) {
            // What others have appended, or an engine has lost.
            if (tries != 0) return false;
            end_.reset();
            continue;
        }
        End now{end_->sequence, number, 0};
        end_.reset();
        if (number == 1 && now.sequence == 0) log_.create();
        const std::size_t part_bytes_max = log_.message_bytes_max() - sizeof(PartHead);
        const std::uint64_t parts = std::max<std::uint64_t>(1, (frame.size() + part_bytes_max - 1) / part_bytes_max);
        const std::uint64_t part_bytes = (frame.size() + parts - 1) / parts;  // a small rest costs the server as much as a large message
        const std::uint64_t attempt = attempts_();
        std::uint64_t part = 0;
        while (part < parts) {
            // One alone where several were refused: their numbers may have been others than those that were expected.
            const std::uint64_t count = tries == 0 ? std::min<std::uint64_t>(parts - part, in_flight) : 1;
            std::array<PartHead, in_flight> heads{};
            std::array<MessageLog::Outgoing, in_flight> messages;
            for (std::uint64_t i = 0; i < count; ++i) {
                const std::uint64_t begin = (part + i) * part_bytes;
                heads[i] = {number, attempt, static_cast<std::uint32_t>(part + i), static_cast<std::uint32_t>(parts)};
                messages[i] = {std::as_bytes(std::span(heads).subspan(i, 1)), frame.subspan(begin, std::min(part_bytes, frame.size() - begin))};
            }
            const auto placed = log_.append(std::span(messages).first(count), now.sequence);
            if (!placed) break;
            now.sequence = placed->last;
            if (part == 0) now.begin = placed->first;
            part += count;
        }
        if (part == parts) {
            end_ = now;
            return true;
        }
    }
    throw Error(errc::busy, log_.name(), "others append there all the time; end them, or replicate to another name");
}

std::uint64_t FrameParts::find(std::uint64_t number) {
    const End& now = end();
    if (number > now.number || number < first_number_) throw_not_found(number);
    // Whether the first frame that begins there or behind it, and is whole, has a lower number: then `sequence` is its last message. What is void says nothing.
    const auto is_before = [&](std::uint64_t& sequence) {
        Runs runs;
        for (std::uint64_t at = sequence;; ++at) {
            const auto message = next(at, now.sequence);
            if (!message) return false;
            at = message->sequence;
            const PartHead head = head_of(*message);
            if (runs.add(at, head) != Runs::State::whole) continue;
            sequence = at;
            return head.number < number;
        }
    };
    // The first message of a frame of that number or a later one lies in [low, high]: each frame has a message at least, and nearly all have one, so it lies near `high`.
    std::uint64_t low = first_sequence_;
    std::uint64_t high = now.begin - std::min(now.begin - low, now.number - number);
    for (std::uint64_t step = 1; low < high; step *= 2) {
        std::uint64_t at = high - std::min(step, high - low);
        const std::uint64_t asked = at;
        if (is_before(at)) {
            low = at + 1;
            break;
        }
        high = asked;
    }
    while (low < high) {
        std::uint64_t at = low + (high - low) / 2;
        const std::uint64_t asked = at;
        if (is_before(at))
            low = at + 1;
        else
            high = asked;
    }
    return low;
}

std::vector<std::byte> FrameParts::read(std::uint64_t number) {
    if (after_read_.number == number) {
        try {
            return read_at(number, after_read_.sequence, true);
        } catch (const Error& error) {
            if (error.code() != errc::not_found) throw;
        }
        waiting_.clear();
        end_.reset();  // what an engine has lost was appended again, elsewhere
    }
    return read_at(number, find(number), false);
}

/// `is_next`: one frame after the other is read, so many messages are asked for at a time.
std::vector<std::byte> FrameParts::read_at(std::uint64_t number, std::uint64_t sequence, bool is_next) {
    std::uint64_t last = end_ ? end_->sequence : 0;
    if (sequence > last) last = end().sequence;
    after_read_ = {};
    std::vector<std::byte> frame;
    Runs runs;
    for (;; ++sequence) {
        if (is_next && waiting_.empty() && last >= sequence + 2)
            for (Message& message : log_.get_many(sequence, read_ahead)) waiting_.push_back(std::move(message));
        const auto message = next(sequence, last);
        if (!message) throw_not_found(number);
        sequence = message->sequence;
        const PartHead head = head_of(*message);
        const Runs::State state = runs.add(sequence, head);
        if (head.number > number && state == Runs::State::whole) throw_not_found(number);
        if (head.number != number || state == Runs::State::is_void) continue;
        if (head.part == 0) frame.clear();
        if (frame.size() + message->bytes.size() > frame_bytes_max)
            throw Error(errc::corrupt, log_.name(), "frame " + std::to_string(number) + " is damaged: it has no end; restore what comes before it");
        frame.insert(frame.end(), message->bytes.begin() + sizeof head, message->bytes.end());
        if (state == Runs::State::whole) {
            after_read_ = {number + 1, sequence + 1};
            return frame;
        }
    }
}

void FrameParts::trim(std::uint64_t first) {
    const ReplicationTarget::Range there = range();
    if (there.empty() || first <= there.first) return;
    log_.trim(find(first));
}

}  // namespace taiyen::nats
