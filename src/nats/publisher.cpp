#include "nats/publisher.hpp"

#include <algorithm>
#include <charconv>
#include <utility>
#include <vector>

#include <taiyen/base/error.hpp>

#include "nats/client.hpp"

namespace taiyen::nats {
namespace {

/// Servers of version 2.11 and newer have two codes for it.
constexpr int wrong_last_sequence = JSStreamWrongLastSequenceErr;
constexpr int wrong_last_sequence_constant = 10164;

/// Between two looks at whether the connection is still the same.
constexpr std::chrono::milliseconds slice{100};

using StatisticsPointer = std::unique_ptr<natsStatistics, Destroy<natsStatistics, natsStatistics_Destroy>>;

std::string_view behind(std::string_view text, std::string_view key) {
    const std::size_t at = text.find(key);
    return at == std::string_view::npos ? std::string_view() : text.substr(at + key.size());
}

template <class Number>
Number number_behind(std::string_view text, std::string_view key) {
    std::string_view digits = behind(text, key);
    while (digits.starts_with(' ')) digits.remove_prefix(1);
    Number found = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), found);
    return found;
}

}  // namespace

Answer answer_of(std::string_view json) {
    Answer answer;
    const std::string_view error = behind(json, "\"error\":");
    if (error.empty()) {
        answer.sequence = number_behind<std::uint64_t>(json, "\"seq\":");
        return answer;
    }
    answer.code = number_behind<int>(error, "\"err_code\":");
    std::string_view text = behind(error, "\"description\":");
    text = behind(text, "\"");
    answer.description = text.substr(0, text.find('"'));
    return answer;
}

Publisher::Publisher(natsConnection* connection, std::string name, std::string stream, std::string subject, std::chrono::milliseconds timeout)
    : connection_(connection), name_(std::move(name)), stream_(std::move(stream)), subject_(std::move(subject)), timeout_(timeout) {
    natsInbox* inbox = nullptr;
    require(natsInbox_Create(&inbox), name_);
    inbox_ = inbox;
    natsInbox_Destroy(inbox);
    require(natsConnection_SubscribeSync(&answers_, connection_, (inbox_ + ".>").c_str()), name_);
}

Publisher::~Publisher() {
    (void)natsSubscription_Unsubscribe(answers_);
    natsSubscription_Destroy(answers_);
}

std::uint64_t Publisher::reconnections() const {
    natsStatistics* made = nullptr;
    require(natsStatistics_Create(&made), name_);
    const StatisticsPointer statistics(made);
    uint64_t count = 0;
    require(natsConnection_GetStats(connection_, made), name_);
    require(natsStatistics_GetCounts(made, nullptr, nullptr, nullptr, nullptr, &count), name_);
    return count;
}

void Publisher::send(const MessageLog::Outgoing& message, std::uint64_t after, const std::string& reply) {
    std::vector<std::byte> bytes(message.head.size() + message.body.size());
    std::ranges::copy(message.head, bytes.begin());
    std::ranges::copy(message.body, bytes.begin() + static_cast<std::ptrdiff_t>(message.head.size()));
    natsMsg* made = nullptr;
    require(natsMsg_Create(&made, subject_.c_str(), reply.c_str(), reinterpret_cast<const char*>(bytes.data()), static_cast<int>(bytes.size())),
            name_);
    const MessagePointer owned(made);
    // Set by hand: libnats leaves out an expected 0.
    require(natsMsgHeader_Set(made, "Nats-Expected-Last-Sequence", std::to_string(after).c_str()), name_);
    require(natsMsgHeader_Set(made, "Nats-Expected-Stream", stream_.c_str()), name_);
    require(natsConnection_PublishMsg(connection_, made), name_);
}

std::optional<MessageLog::Placed> Publisher::publish(std::span<const MessageLog::Outgoing> messages, std::uint64_t after) {
    // Answers to what was given up before have other subjects.
    const std::string flight = inbox_ + "." + std::to_string(++flights_) + ".";
    const std::uint64_t connection = reconnections();
    for (std::size_t i = 0; i < messages.size(); ++i) send(messages[i], after + i, flight + std::to_string(i));
    std::vector<bool> is_answered(messages.size());
    bool is_refused = false;
    auto until = std::chrono::steady_clock::now() + timeout_;
    for (std::size_t answered = 0; answered < messages.size();) {
        natsMsg* found = nullptr;
        const natsStatus status = natsSubscription_NextMsg(&found, answers_, std::min(timeout_, slice).count());
        if (status == NATS_TIMEOUT) {
            if (reconnections() != connection) throw_failed(name_, NATS_CONNECTION_DISCONNECTED);
            if (natsConnection_Status(connection_) == NATS_CONN_STATUS_RECONNECTING) throw_failed(name_, NATS_CONNECTION_DISCONNECTED);
            if (std::chrono::steady_clock::now() >= until) throw_failed(name_, NATS_TIMEOUT);
            continue;
        }
        require(status, name_);
        const MessagePointer owned(found);
        const std::string_view subject = natsMsg_GetSubject(found);
        if (!subject.starts_with(flight)) continue;
        std::size_t which = messages.size();
        std::from_chars(subject.data() + flight.size(), subject.data() + subject.size(), which);
        if (which >= messages.size() || is_answered[which]) continue;
        if (natsMsg_IsNoResponders(found)) throw_failed(name_, NATS_NO_RESPONDERS);
        is_answered[which] = true;
        ++answered;
        until = std::chrono::steady_clock::now() + timeout_;
        const Answer answer = answer_of({natsMsg_GetData(found), static_cast<std::size_t>(natsMsg_GetDataLength(found))});
        if (answer.sequence == after + which + 1) continue;
        if (answer.code == wrong_last_sequence || answer.code == wrong_last_sequence_constant) {
            is_refused = true;
        } else {
            throw_failed(name_, NATS_ERR, static_cast<jsErrCode>(answer.code),
                         answer.description.empty() ? "an answer that means nothing" : answer.description);
        }
    }
    if (is_refused) return std::nullopt;
    return MessageLog::Placed{after + 1, after + messages.size()};
}

}  // namespace taiyen::nats
