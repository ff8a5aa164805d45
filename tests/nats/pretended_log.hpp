#pragma once
/// A log of messages in memory that loses answers, refuses, or loses messages, as a test says; several writers may share it.

#include <algorithm>
#include <functional>
#include <map>

#include <taiyen/base/error.hpp>

#include "nats/message_log.hpp"

namespace taiyen::nats::test {

/// What all writers see.
struct Messages {
    std::map<std::uint64_t, std::vector<std::byte>> there;
    std::uint64_t last = 0;
    bool is_made = false;
    std::uint64_t asked = 0;  ///< single messages
};

class PretendedLog final : public MessageLog {
public:
    enum class Fate { works, away, loses_answer };
    PretendedLog(Messages& messages, std::size_t message_bytes) : messages_(messages), message_bytes_(message_bytes) {}

    /// Asked at each append; empty: it works.
    std::function<Fate()> fate;

    /// Behind each message; empty: nothing happens there.
    std::function<void()> before_next;

    std::string name() const override { return "pretended"; }
    std::size_t message_bytes_max() const override { return message_bytes_; }
    std::optional<State> state() override {
        if (!messages_.is_made) return std::nullopt;
        return State{messages_.there.empty() ? messages_.last + 1 : messages_.there.begin()->first, messages_.last, messages_.there.size()};
    }
    void create() override { messages_.is_made = true; }
    /// One after the other, as they arrive: an answer that is lost, or one that is away, ends it for those behind, too.
    std::optional<Placed> append(std::span<const Outgoing> outgoing, std::uint64_t after) override {
        largest_flight = std::max(largest_flight, outgoing.size());
        Placed placed;
        for (const Outgoing& message : outgoing) {
            const auto sequence = append_one(message, after);
            if (!sequence) return std::nullopt;
            if (placed.first == 0) placed.first = *sequence;
            placed.last = *sequence;
            after = *sequence;
        }
        return placed;
    }
    std::optional<Message> get(std::uint64_t sequence) override {
        ++messages_.asked;
        const auto found = messages_.there.find(sequence);
        return found == messages_.there.end() ? std::nullopt : std::optional(Message{sequence, found->second});
    }
    std::vector<Message> get_many(std::uint64_t sequence, std::size_t count) override {
        std::vector<Message> found;
        for (auto at = messages_.there.lower_bound(sequence); at != messages_.there.end() && found.size() < count; ++at)
            found.push_back({at->first, at->second});
        return found;
    }
    void trim(std::uint64_t first) override { messages_.there.erase(messages_.there.begin(), messages_.there.lower_bound(first)); }

    std::size_t largest_flight = 0;  ///< messages that were appended with one call

private:
    std::optional<std::uint64_t> append_one(const Outgoing& message, std::uint64_t after) {
        const Fate what = fate ? fate() : Fate::works;
        if (what == Fate::away || !messages_.is_made) throw Error(errc::unreachable, "pretended", "it is away");
        std::optional<std::uint64_t> sequence;
        if (after == messages_.last) {
            std::vector<std::byte> bytes(message.head.begin(), message.head.end());
            bytes.insert(bytes.end(), message.body.begin(), message.body.end());
            sequence = ++messages_.last;
            messages_.there.emplace(*sequence, std::move(bytes));
        }
        if (what == Fate::loses_answer) throw Error(errc::unreachable, "pretended", "the answer is lost");
        if (before_next) before_next();
        return sequence;
    }

    Messages& messages_;
    const std::size_t message_bytes_;
};

}  // namespace taiyen::nats::test
