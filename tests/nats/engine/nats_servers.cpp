#include "nats/engine/nats_servers.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

#include <boost/test/unit_test.hpp>

#include "nats/engine/loopback.hpp"

namespace taiyen::nats::test {
namespace {

/// One that nobody had a moment ago.
unsigned free_port() {
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = loopback(0);
    socklen_t bytes = sizeof address;
    const bool is_bound = ::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
                          ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &bytes) == 0;
    ::close(socket);
    if (!is_bound) throw std::runtime_error("no port is free");
    return ntohs(address.sin_port);
}

bool takes_connections(unsigned port) {
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in address = loopback(port);
    const bool is_open = ::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    ::close(socket);
    return is_open;
}

/// "v2.15.1"; empty: it is no such program.
std::string version_of(const std::filesystem::path& program) {
    FILE* const output = ::popen(("'" + program.string() + "' --version 2>/dev/null").c_str(), "r");
    if (output == nullptr) return {};
    std::array<char, 200> line{};
    const std::string said = std::fgets(line.data(), line.size(), output) != nullptr ? line.data() : "";
    ::pclose(output);
    const std::size_t at = said.find('v', said.find(':'));
    return said.starts_with("nats-server") && at != std::string::npos ? said.substr(at) : std::string();
}

bool is_new_enough(const std::string& version) {
    int major = 0;
    int minor = 0;
    return std::sscanf(version.c_str(), "v%d.%d", &major, &minor) == 2 && (major > 2 || (major == 2 && minor >= 11));
}

std::filesystem::path find_program() {
    std::vector<std::filesystem::path> candidates;
    if (const char* const named = std::getenv("TAIYEN_NATS_SERVER")) candidates.emplace_back(named);
    if (const char* const path = std::getenv("PATH")) {
        std::istringstream folders(path);
        for (std::string folder; std::getline(folders, folder, ':');) candidates.push_back(std::filesystem::path(folder) / "nats-server");
    }
    candidates.emplace_back(TAIYEN_NATS_INSTALLED);
    for (const auto& candidate : candidates) {
        std::error_code ignored;
        if (std::filesystem::exists(candidate, ignored) && is_new_enough(version_of(candidate))) return candidate;
    }
    return {};
}

}  // namespace

std::filesystem::path server_program() {
    static const std::filesystem::path found = find_program();
    if (found.empty()) BOOST_TEST_MESSAGE("skipped: there is no nats-server of version 2.11 or newer; name one: TAIYEN_NATS_SERVER");
    return found;
}

NatsServers::NatsServers(unsigned count, const std::string& settings, bool with_streams) : nodes_(count) {
    // A port that was free may be taken before its server has it: then other ones.
    for (unsigned tries = 3;; --tries) {
        try {
            configure(settings, with_streams);
            for (unsigned i = 0; i < count; ++i) start(i);
            return;
        } catch (const std::runtime_error&) {
            if (tries == 1) throw;
            for (unsigned i = 0; i < count; ++i) kill(i);
        }
    }
}

void NatsServers::configure(const std::string& settings, bool with_streams) {
    for (Node& node : nodes_) node = {free_port(), free_port(), -1};
    for (unsigned i = 0; i < count(); ++i) {
        std::ofstream file(directory_ / (std::to_string(i) + ".conf"));
        file << "server_name: n" << i << "\nlisten: 127.0.0.1:" << nodes_[i].port << "\n" << settings << "\n";
        if (with_streams) file << "jetstream { store_dir: \"" << (directory_ / std::to_string(i)).string() << "\", sync_interval: always }\n";
        if (count() > 1) {
            file << "cluster { name: taiyen, listen: 127.0.0.1:" << nodes_[i].cluster_port << ", routes: [";
            for (unsigned k = 0; k < count(); ++k) file << (k == 0 ? " " : ", ") << "nats://127.0.0.1:" << nodes_[k].cluster_port;
            file << " ] }\n";
        }
    }
}

NatsServers::~NatsServers() {
    for (unsigned i = 0; i < count(); ++i) kill(i);
}

std::string NatsServers::url() const {
    std::string all;
    for (const Node& node : nodes_) all += (all.empty() ? "" : ",") + std::string("nats://127.0.0.1:") + std::to_string(node.port);
    return all;
}

void NatsServers::kill(unsigned which) {
    Node& node = nodes_[which];
    if (node.process <= 0) return;
    ::kill(node.process, SIGKILL);
    ::waitpid(node.process, nullptr, 0);
    node.process = -1;
}

void NatsServers::start(unsigned which, const std::string& more) {
    Node& node = nodes_[which];
    const std::string program = server_program().string();
    std::string configuration = (directory_ / (std::to_string(which) + ".conf")).string();
    if (!more.empty()) {
        std::ofstream(configuration + ".more") << std::ifstream(configuration).rdbuf() << more << "\n";
        configuration += ".more";
    }
    const std::string log = (directory_ / (std::to_string(which) + ".log")).string();
    node.process = ::fork();
    if (node.process == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        const int to = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
        ::dup2(to, 1);
        ::dup2(to, 2);
        ::execl(program.c_str(), program.c_str(), "-c", configuration.c_str(), nullptr);
        ::_exit(127);
    }
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!takes_connections(node.port)) {
        if (::waitpid(node.process, nullptr, WNOHANG) != 0 || std::chrono::steady_clock::now() > end) {
            kill(which);
            std::stringstream said;
            said << std::ifstream(log).rdbuf();
            throw std::runtime_error("the server doesn't start: " + said.str());
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
}

}  // namespace taiyen::nats::test
