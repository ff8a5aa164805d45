#include "nats/engine/cutting_proxy.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string_view>

#include "nats/engine/loopback.hpp"

namespace taiyen::nats::test {

CuttingProxy::CuttingProxy(unsigned server_port) : server_port_(server_port) {
    listening_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = loopback(0);
    socklen_t bytes = sizeof address;
    if (::bind(listening_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 || ::listen(listening_, 16) != 0 ||
        ::getsockname(listening_, reinterpret_cast<sockaddr*>(&address), &bytes) != 0 || ::pipe2(ending_, O_CLOEXEC) != 0)
        throw std::runtime_error("no port is free for a proxy");
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { run(); });
}

CuttingProxy::~CuttingProxy() {
    ::close(ending_[1]);
    thread_.join();
    for (const Connection& connection : connections_) close_connection(connection);
    ::close(listening_);
    ::close(ending_[0]);
}

void CuttingProxy::set_fate(const Fate& fate) {
    const std::lock_guard lock(mutex_);
    fate_ = fate;
}

unsigned CuttingProxy::cuts() const {
    const std::lock_guard lock(mutex_);
    return cuts_;
}

void CuttingProxy::close_connection(const Connection& connection) {
    ::close(connection.client);
    ::close(connection.server);
}

void CuttingProxy::open_connection() {
    Connection connection;
    connection.client = ::accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC);
    connection.server = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in address = loopback(server_port_);
    if (connection.client >= 0 && ::connect(connection.server, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
        connections_.push_back(connection);
    else
        close_connection(connection);
}

bool CuttingProxy::forward(int from, int to, std::uint64_t Fate::* left, bool& is_dead) {
    std::array<char, 64 << 10> bytes;
    const ssize_t got = ::recv(from, bytes.data(), bytes.size(), 0);
    if (got <= 0) return false;
    auto through = static_cast<std::uint64_t>(got);
    if (hides_version_) {
        static constexpr std::string_view told = "\"_nats.level\"";
        for (auto at = bytes.begin();; at[1] = '-')
            if (at = std::search(at, bytes.begin() + got, told.begin(), told.end()); at == bytes.begin() + got) break;
    }
    bool is_over = false;
    std::chrono::milliseconds delay{0};
    {
        const std::lock_guard lock(mutex_);
        delay = fate_.delay;
        if (fate_.*left != never) {
            through = std::min(through, fate_.*left);
            fate_.*left -= through;
            if (fate_.*left == 0) {
                is_over = !fate_.goes_dead;
                is_dead = fate_.goes_dead;
                ++cuts_;
                fate_ = {};
            }
        }
    }
    std::this_thread::sleep_for(delay);
    for (std::uint64_t sent = 0; sent < through;) {
        const ssize_t put = ::send(to, bytes.data() + sent, through - sent, MSG_NOSIGNAL);
        if (put <= 0) return false;
        sent += static_cast<std::uint64_t>(put);
    }
    return !is_over;
}

void CuttingProxy::run() {
    for (;;) {
        std::vector<pollfd> all{{ending_[0], POLLIN, 0}, {listening_, POLLIN, 0}};
        for (const Connection& connection : connections_)
            for (const int socket : {connection.client, connection.server}) all.push_back({connection.is_dead ? -1 : socket, POLLIN, 0});
        (void)::poll(all.data(), all.size(), -1);
        if (all[0].revents != 0) return;
        std::vector<Connection> open;
        for (std::size_t i = 0; i < connections_.size(); ++i) {
            Connection connection = connections_[i];
            bool goes_on = true;
            if (all[2 + 2 * i].revents != 0) goes_on = forward(connection.client, connection.server, &Fate::up_bytes, connection.is_dead);
            if (goes_on && !connection.is_dead && all[3 + 2 * i].revents != 0)
                goes_on = forward(connection.server, connection.client, &Fate::down_bytes, connection.is_dead);
            if (goes_on)
                open.push_back(connection);
            else
                close_connection(connection);
        }
        connections_ = std::move(open);
        if (all[1].revents != 0) open_connection();
    }
}

}  // namespace taiyen::nats::test
