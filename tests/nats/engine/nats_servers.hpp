#pragma once
/// Servers of NATS JetStream on free ports of this machine, alone or as a cluster; they end with the test.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "scratch_directory.hpp"

namespace taiyen::nats::test {

/// TAIYEN_NATS_SERVER, else what is in PATH, else what `bootstrap.sh` has installed; of version 2.11 or newer. Empty: there is none, which is told.
std::filesystem::path server_program();

class NatsServers {
public:
    /// `settings`: further lines of each one's configuration. `count`: more than one is a cluster.
    explicit NatsServers(unsigned count = 1, const std::string& settings = {}, bool with_streams = true);
    NatsServers(const NatsServers&) = delete;
    NatsServers& operator=(const NatsServers&) = delete;
    ~NatsServers();

    /// Of all of them.
    std::string url() const;
    /// SIGKILL; returns when it is gone.
    void kill(unsigned which = 0);
    /// Again, with its files; returns when it takes connections.
    /// `more`: lines of the configuration, this time.
    void start(unsigned which = 0, const std::string& more = {});
    /// Where they keep their files.
    const std::filesystem::path& directory() const { return directory_.path(); }
    unsigned port(unsigned which = 0) const { return nodes_[which].port; }
    unsigned count() const { return static_cast<unsigned>(nodes_.size()); }

private:
    void configure(const std::string& settings, bool with_streams);
    struct Node {
        unsigned port = 0;
        unsigned cluster_port = 0;
        pid_t process = -1;
    };
    ScratchDirectory directory_;
    std::vector<Node> nodes_;
};

}  // namespace taiyen::nats::test
