#pragma once
/// Stream: the messages of one subject of NATS JetStream, by way of libnats (https://nats-io.github.io/nats.c, 3.4).
///
/// A message is appended with Nats-Expected-Last-Sequence, which the server compares and the stream's leader decides: that is all that orders and fences frames.
/// Everything is asked of the leader (no direct reads from copies, which may lag behind).
/// Thread rule: external lock.

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>

#include <taiyen/nats/nats_target.hpp>

#include "nats/message_log.hpp"
#include "nats/publisher.hpp"

typedef struct __jsCtx jsCtx;
typedef struct __natsSubscription natsSubscription;

namespace taiyen::nats {

/// An address without user and password: for messages.
std::string told(std::string_view url);

class Stream final : public MessageLog {
public:
    /// Connects. Throws: Error{unreachable | invalid_argument}.
    explicit Stream(const NatsOptions& options);
    ~Stream() override;

    std::string name() const override { return name_; }
    std::size_t message_bytes_max() const override;
    std::optional<State> state() override;
    void create() override;
    std::optional<Placed> append(std::span<const Outgoing> messages, std::uint64_t after) override;
    std::optional<Message> get(std::uint64_t sequence) override;
    std::vector<Message> get_many(std::uint64_t sequence, std::size_t count) override;
    void trim(std::uint64_t first) override;

private:
    void connect();
    void require_version();
    void require_connected();
    void close_reader() noexcept;

    struct Close {
        void operator()(natsConnection* connection) const noexcept;
        void operator()(jsCtx* context) const noexcept;
    };
    const NatsOptions options_;
    const std::string name_;     ///< for messages
    const std::string stream_;   ///< as NATS knows it
    const std::string subject_;  ///< of its messages
    std::unique_ptr<natsConnection, Close> connection_;
    std::unique_ptr<jsCtx, Close> context_;                                       ///< of the connection
    std::unique_ptr<Publisher> publisher_;                                        ///< on the connection
    std::int64_t stream_message_max_ = std::numeric_limits<std::int32_t>::max();  ///< as its configuration said last
    bool is_version_known_ = false;                                               ///< of the server of this connection
    natsSubscription* reader_ = nullptr;                                          ///< gives what stands from `reader_next_` on
    std::uint64_t reader_next_ = 0;
};

}  // namespace taiyen::nats
