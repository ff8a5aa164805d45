#pragma once
/// NatsServers: servers of NATS JetStream on free ports of this machine, one alone or several as a cluster; they end with this process at the latest.
///
/// Thread rule: one thread; it lives as long as the thread that made it.

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "command/child_process.hpp"

namespace bank::command {

struct ServerProgram {
    std::filesystem::path path;
    std::string version;  ///< "v2.15.1"
};
/// The program that is named, else TAIYEN_NATS_SERVER, else what is in PATH. Throws: std::runtime_error: it is none of version 2.11 or newer.
ServerProgram nats_server_program(const std::filesystem::path& named);

class NatsServers {
public:
    /// Their configurations, logs and streams are below `folder`. A server's disk is synced before it answers. Returns when all take connections. Throws: std::runtime_error: one doesn't start.
    NatsServers(const ServerProgram& program, const std::filesystem::path& folder, unsigned count);

    unsigned count() const { return static_cast<unsigned>(nodes_.size()); }
    /// Of all of them, as NatsOptions has it.
    std::string url() const;
    /// "n1", …
    static std::string name_of(unsigned which) { return "n" + std::to_string(which + 1); }
    /// Which one leads those that keep the stream; nothing: there is one server alone, or none of them says so.
    std::optional<unsigned> leader_of(const std::string& stream) const;
    /// SIGKILL; returns when it is gone.
    void kill(unsigned which) { nodes_[which].process.reset(); }
    /// Again, with its files; returns when it takes connections. Throws: std::runtime_error.
    void start(unsigned which);
    void signal_all(int number);

private:
    struct Node {
        unsigned port = 0;
        unsigned cluster_port = 0;
        std::unique_ptr<ChildProcess> process;
    };
    void configure();
    std::filesystem::path file_of(unsigned which, const char* suffix) const { return folder_ / (name_of(which) + suffix); }
    void launch(unsigned which);
    bool is_up(unsigned which);

    std::filesystem::path program_;
    std::filesystem::path folder_;
    std::vector<Node> nodes_;
};

}  // namespace bank::command
