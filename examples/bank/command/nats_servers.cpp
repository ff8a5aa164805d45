#include "command/nats_servers.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <utility>

namespace bank::command {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

constexpr seconds patience(60);

class Descriptor {
public:
    explicit Descriptor(int number) : number_(number) {}
    ~Descriptor() {
        if (number_ >= 0) close(number_);
    }
    Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
    Descriptor& operator=(Descriptor&&) = delete;
    int number() const { return number_; }

private:
    int number_;
};

Descriptor new_socket() { return Descriptor(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)); }

sockaddr_in loopback(unsigned port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

bool connects(const Descriptor& socket, unsigned port) {
    const sockaddr_in address = loopback(port);
    return connect(socket.number(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

/// A port that nobody has while the socket lives.
unsigned bound_port(const Descriptor& socket) {
    sockaddr_in address = loopback(0);
    socklen_t bytes = sizeof address;
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    if (bind(socket.number(), any, bytes) != 0 || getsockname(socket.number(), any, &bytes) != 0) throw std::runtime_error("no port is free");
    return ntohs(address.sin_port);
}

/// "v2.15.1"; empty: it is no such program, or an older one.
std::string version_of(const std::filesystem::path& program) {
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(program, ignored)) return {};
    FILE* const output = popen(("'" + program.string() + "' --version 2>/dev/null").c_str(), "r");
    if (output == nullptr) return {};
    std::array<char, 200> line{};
    std::string said = std::fgets(line.data(), static_cast<int>(line.size()), output) != nullptr ? line.data() : "";
    pclose(output);
    const std::size_t at = said.find('v', said.find(':'));
    int major = 0;
    int minor = 0;
    if (!said.starts_with("nats-server") || at == std::string::npos || std::sscanf(said.c_str() + at, "v%d.%d", &major, &minor) != 2) return {};
    return major > 2 || (major == 2 && minor >= 11) ? said.substr(at, said.find_first_of(" \n", at) - at) : std::string();
}

/// What a server answers to a question about the stream, as far as the leader's name; empty if it doesn't answer.
std::string stream_info(unsigned port, const std::string& stream, std::string_view until) {
    const Descriptor socket = new_socket();
    const timeval wait{.tv_sec = 3, .tv_usec = 0};
    setsockopt(socket.number(), SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    const std::string question = "CONNECT {\"verbose\":false}\r\nSUB _INBOX.info 1\r\nPUB $JS.API.STREAM.INFO." + stream + " _INBOX.info 0\r\n\r\n";
    if (!connects(socket, port) || send(socket.number(), question.data(), question.size(), MSG_NOSIGNAL) < 0) return {};
    std::string said;
    std::array<char, 4096> chunk{};
    std::size_t at = std::string::npos;
    while (at == std::string::npos || said.find('"', at + until.size()) == std::string::npos) {
        const ssize_t got = recv(socket.number(), chunk.data(), chunk.size(), 0);
        if (got <= 0) return {};
        said.append(chunk.data(), static_cast<std::size_t>(got));
        at = said.find(until);
    }
    return said;
}

}  // namespace

ServerProgram nats_server_program(const std::filesystem::path& named) {
    std::vector<std::filesystem::path> candidates;
    const char* const variable = std::getenv("TAIYEN_NATS_SERVER");
    const char* const path = std::getenv("PATH");
    if (!named.empty()) {
        candidates.push_back(named);
    } else {
        if (variable != nullptr) candidates.emplace_back(variable);
        std::istringstream folders(path == nullptr ? "" : path);
        for (std::string folder; std::getline(folders, folder, ':');) candidates.push_back(std::filesystem::path(folder) / "nats-server");
    }
    for (const auto& candidate : candidates)
        if (std::string version = version_of(candidate); !version.empty()) return {candidate, std::move(version)};
    if (!named.empty()) throw std::runtime_error(named.string() + " is no nats-server of version 2.11 or newer");
    throw std::runtime_error("there is no nats-server of version 2.11 or newer in PATH; name one with --nats-server or TAIYEN_NATS_SERVER");
}

NatsServers::NatsServers(const ServerProgram& program, const std::filesystem::path& folder, unsigned count)
    : program_(program.path), folder_(std::filesystem::absolute(folder)), nodes_(count) {
    std::filesystem::create_directories(folder_);
    // A port that was free may be taken before its server has it: then other ones.
    for (unsigned tries = 3;; --tries) {
        try {
            configure();
            for (unsigned i = 0; i < count; ++i) launch(i);
            for (unsigned i = 0; i < count; ++i) start(i);
            return;
        } catch (const std::runtime_error&) {
            if (tries == 1) throw;
            for (unsigned i = 0; i < count; ++i) kill(i);
        }
    }
}

void NatsServers::configure() {
    std::vector<Descriptor> sockets;
    const auto port = [&] { return bound_port(sockets.emplace_back(new_socket())); };
    std::string routes;
    for (Node& node : nodes_) {
        node.port = port();
        node.cluster_port = port();
        routes += (routes.empty() ? "" : ", ") + std::string("nats://127.0.0.1:") + std::to_string(node.cluster_port);
    }
    for (unsigned i = 0; i < count(); ++i) {
        std::ofstream file(file_of(i, ".conf"));
        file << "server_name: " << name_of(i) << "\nlisten: 127.0.0.1:" << nodes_[i].port << "\njetstream { store_dir: \"" << file_of(i, "").string()
             << "\", sync_interval: always }\n";
        if (count() > 1) file << "cluster { name: bank, listen: 127.0.0.1:" << nodes_[i].cluster_port << ", routes: [ " << routes << " ] }\n";
    }
}

std::string NatsServers::url() const {
    std::string all;
    for (const Node& node : nodes_) all += (all.empty() ? "" : ",") + std::string("nats://127.0.0.1:") + std::to_string(node.port);
    return all;
}

std::optional<unsigned> NatsServers::leader_of(const std::string& stream) const {
    constexpr std::string_view key = "\"leader\":\"";
    for (const Node& asked : nodes_) {
        if (count() == 1) break;
        const std::string said = stream_info(asked.port, stream, key);
        for (unsigned i = 0; i < count(); ++i)
            if (said.find(std::string(key) + name_of(i) + '"') != std::string::npos) return i;
    }
    return std::nullopt;
}

void NatsServers::launch(unsigned which) {
    const Descriptor log(open(file_of(which, ".log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    nodes_[which].process = std::make_unique<ChildProcess>(
        program_.string(), std::vector<std::string>{"nats-server", "-c", file_of(which, ".conf").string()}, log.number(), log.number());
}

bool NatsServers::is_up(unsigned which) { return !nodes_[which].process->has_ended() && connects(new_socket(), nodes_[which].port); }

void NatsServers::start(unsigned which) {
    if (!nodes_[which].process) launch(which);
    const auto end = steady_clock::now() + patience;
    while (!is_up(which)) {
        if (nodes_[which].process->has_ended() || steady_clock::now() > end)
            throw std::runtime_error("a NATS server doesn't start; it says why in " + file_of(which, ".log").string());
        std::this_thread::sleep_for(milliseconds(10));
    }
}

void NatsServers::signal_all(int number) {
    for (const Node& node : nodes_)
        if (node.process) node.process->signal(number);
}

}  // namespace bank::command
