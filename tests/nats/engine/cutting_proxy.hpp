#pragma once
/// CuttingProxy: between a program and a server, a wire that is cut, goes dead, or is slow, as a test says.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace taiyen::nats::test {

/// Thread rule: safe.
class CuttingProxy {
public:
    static constexpr std::uint64_t never = ~std::uint64_t{0};
    /// What becomes of the wire, once.
    struct Fate {
        std::uint64_t up_bytes = never;      ///< so many of the program's get through before it is cut
        std::uint64_t down_bytes = never;    ///< and of the server's
        std::chrono::milliseconds delay{0};  ///< of each piece until then
        bool goes_dead = false;              ///< in the place of being cut: nothing gets through any more, and nobody is told
    };

    /// To a server of this machine.
    explicit CuttingProxy(unsigned server_port);
    CuttingProxy(const CuttingProxy&) = delete;
    CuttingProxy& operator=(const CuttingProxy&) = delete;
    ~CuttingProxy();

    std::string url() const { return "nats://127.0.0.1:" + std::to_string(port_); }
    /// From now on. When it has come about the wire is whole again, for new connections.
    void set_fate(const Fate& fate);
    /// While it is set the server looks like one from before 2.11: of its version nothing gets through.
    void hide_version(bool hidden) { hides_version_ = hidden; }
    /// How often it has been cut, or gone dead.
    unsigned cuts() const;

private:
    struct Connection {
        int client = -1;
        int server = -1;
        bool is_dead = false;
    };
    void run();
    void open_connection();
    /// False: it is over.
    bool forward(int from, int to, std::uint64_t Fate::* left, bool& is_dead);
    static void close_connection(const Connection& connection);

    const unsigned server_port_;
    unsigned port_ = 0;
    int listening_ = -1;
    int ending_[2] = {-1, -1};  ///< a pipe: readable once the proxy ends
    mutable std::mutex mutex_;
    Fate fate_;
    unsigned cuts_ = 0;
    std::atomic<bool> hides_version_{false};
    std::vector<Connection> connections_;  ///< of the thread
    std::thread thread_;
};

}  // namespace taiyen::nats::test
