#pragma once
/// Publisher: messages into a stream, one behind the other, several in flight.
///
/// Each carries Nats-Expected-Last-Sequence, so whatever is lost, delayed or sent again: none lands elsewhere than behind the one before it.
/// Thread rule: external lock.

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "nats/message_log.hpp"

typedef struct __natsConnection natsConnection;
typedef struct __natsSubscription natsSubscription;

namespace taiyen::nats {

/// What a server answers to a message that was published: `{"stream": …, "seq": N}`, or `{"error": {"err_code": N, "description": …}, …}` (NATS ADR-1).
struct Answer {
    std::uint64_t sequence = 0;  ///< 0: it was refused
    int code = 0;                ///< of the error
    std::string description;
};
Answer answer_of(std::string_view json);

class Publisher {
public:
    /// The connection must outlive it. Throws: Error{unreachable}.
    Publisher(natsConnection* connection, std::string name, std::string stream, std::string subject, std::chrono::milliseconds timeout);
    Publisher(const Publisher&) = delete;
    Publisher& operator=(const Publisher&) = delete;
    ~Publisher();

    /// As MessageLog::append.
    std::optional<MessageLog::Placed> publish(std::span<const MessageLog::Outgoing> messages, std::uint64_t after);

private:
    void send(const MessageLog::Outgoing& message, std::uint64_t after, const std::string& reply);
    std::uint64_t reconnections() const;

    natsConnection* const connection_;
    const std::string name_;  ///< for messages
    const std::string stream_;
    const std::string subject_;
    const std::chrono::milliseconds timeout_;
    std::string inbox_;
    natsSubscription* answers_ = nullptr;
    std::uint64_t flights_ = 0;
};

}  // namespace taiyen::nats
