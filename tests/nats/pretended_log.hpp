#pragma once
/// A log of messages in memory that loses answers, refuses, or loses messages, as a test says; several writers may share it.

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

    std::string name() const override { return "pretended"; }
    std::size_t message_bytes_max() const override { return message_bytes_; }
    std::optional<State> state() override {
        if (!messages_.is_made) return std::nullopt;
        return State{messages_.there.empty() ? messages_.last + 1 : messages_.there.begin()->first, messages_.last, messages_.there.size()};
    }
    void create() override { messages_.is_made = true; }
    std::optional<std::uint64_t> append(std::span<const std::byte> head, std::span<const std::byte> body, std::uint64_t after) override {
        const Fate what = fate ? fate() : Fate::works;
        if (what == Fate::away || !messages_.is_made) throw Error(errc::unreachable, "pretended", "it is away");
        const bool fits = after == messages_.last;
        if (fits) {
            std::vector<std::byte> bytes(head.begin(), head.end());
            bytes.insert(bytes.end(), body.begin(), body.end());
            messages_.there.emplace(++messages_.last, std::move(bytes));
        }
        if (what == Fate::loses_answer) throw Error(errc::unreachable, "pretended", "the answer is lost");
        return fits ? std::optional(messages_.last) : std::nullopt;
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

private:
    Messages& messages_;
    const std::size_t message_bytes_;
};

}  // namespace taiyen::nats::test
