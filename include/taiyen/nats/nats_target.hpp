#pragma once
/// NatsTarget: replicates into a stream of NATS JetStream, on one server or as many copies as a cluster keeps.
///
///   auto target = std::make_shared<taiyen::NatsTarget>(taiyen::nats_options("nats://localhost/bank"));
///   taiyen::Replication replication(heap, target);
///
/// A library of its own: link taiyen::nats (find_package(taiyen COMPONENTS nats)). It needs libnats; servers are of version 2.11 or newer.
/// A frame is there when `append` returns: on most of the stream's servers, and on their disks as these are configured to sync (`sync_interval: always`).
/// libnats makes the process ignore SIGPIPE, and has threads of its own. A forked child makes a target of its own.
/// Whoever may publish there may forge a heap: give the subject to the program's user alone, or seal the frames (SealedTarget).
/// Format: src/replicate/FORMAT.md, "In a stream of NATS"; guide: doc/replication.md.

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include <taiyen/base/detail/export.hpp>
#include <taiyen/replicate/replication_target.hpp>

namespace taiyen {

/// Where the stream is, and how to get there.
struct NatsOptions {
    std::string url = "nats://127.0.0.1:4222";  ///< of a server; of several, with commas between them; tls:// asks for TLS
    std::string name{};     ///< of the stream: up to 64 letters, digits, "-" and "_"; its subject is taiyen.NAME, as NATS knows it TAIYEN_NAME
    unsigned replicas = 1;  ///< how many servers of a cluster keep it, from 1 to 5; where it is there already, that counts
    std::filesystem::path credentials{};  ///< a file of user and key, as `nsc` makes it (.creds); empty: none
    std::filesystem::path authority{};    ///< certificates that servers are checked with; empty: the system's. Asks for TLS
    std::filesystem::path certificate{};  ///< the program's own, with its `key`; empty: none. Asks for TLS
    std::filesystem::path key{};
    std::string server_name{};                 ///< that a server's certificate must name; empty: its host in the URL
    bool allow_plaintext = false;              ///< without TLS to other machines, too
    std::chrono::milliseconds timeout{5'000};  ///< for an answer; then the call throws, and whether it was done is not known
    std::chrono::milliseconds linger{1};       ///< ReplicationTarget::linger
};

/// The options that "nats://HOST[:PORT]/NAME" means, or "tls://…". Throws: Error{invalid_argument}: it means none, or holds a password.
TAIYEN_EXPORT NatsOptions nats_options(std::string_view address);

/// Frames as messages: one for each frame, or several where a server takes no message of that size. The stream is made with the first frame: kept in files, without limits.
class TAIYEN_EXPORT NatsTarget final : public ReplicationTarget {
public:
    /// Connects; when the connection is lost, again and again. Throws: Error{unreachable}: no server answers, or none takes these credentials; Error{invalid_argument}: options that can't be meant, plain text
    /// to another machine among them.
    explicit NatsTarget(const NatsOptions& options);
    ~NatsTarget() override;

    /// "nats://HOST:PORT/NAME"; never a secret.
    std::string name() const override;
    std::chrono::milliseconds linger() const override;
    /// Complexity: a question to the server; where others have appended, a message more. Throws: Error{unreachable}; Error{mismatch}: the stream would drop frames by itself, or isn't kept in files.
    Range range() override;
    /// Throws: Error{unreachable}; Error{no_space}: the server takes no more; Error{permission}; Error{mismatch}.
    bool append(std::uint64_t number, std::span<const std::byte> frame) override;
    /// Complexity: one after the other they come many at a time; any other is looked up in logarithmic time.
    std::vector<std::byte> read(std::uint64_t number) override;
    void trim(std::uint64_t first) override;

private:
    class Parts;
    std::unique_ptr<Parts> parts_;
};

}  // namespace taiyen
