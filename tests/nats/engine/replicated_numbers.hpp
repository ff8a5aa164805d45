#pragma once
/// A heap of numbers that is replicated into streams of real servers, and what it takes to wait for them.

#include <chrono>
#include <cstdint>
#include <map>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <taiyen/nats/nats_target.hpp>
#include <taiyen/taiyen.hpp>

#include "nats/engine/nats_servers.hpp"

namespace taiyen::nats::test {

inline std::vector<std::byte> frame_of(std::uint64_t number, std::size_t bytes) {
    std::vector<std::byte> frame(bytes);
    std::mt19937_64 random(number);
    for (std::byte& byte : frame) byte = static_cast<std::byte>(random());
    return frame;
}

inline NatsOptions options_for(const NatsServers& servers, const std::string& name = "bank") {
    NatsOptions options;
    options.url = servers.url();
    options.name = name;
    options.replicas = servers.count();
    options.timeout = std::chrono::seconds(10);  // a disk may take long where others work, too
    return options;
}

/// Quick to try again.
inline ReplicationOptions quick() {
    ReplicationOptions options;
    options.retry = std::chrono::milliseconds(50);
    return options;
}

template <class F>
void wait_until(F&& is_so, const char* what) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(120);
    while (!is_so()) {
        if (std::chrono::steady_clock::now() > end) throw std::runtime_error(std::string("never: ") + what);
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
}

/// What a cluster that elects leaders, or a server that has just been started, takes some seconds for.
template <class F>
void once_it_answers(F&& step) {
    wait_until(
        [&] {
            try {
                step();
                return true;
            } catch (const Error& error) {
                if (error.code() != errc::unreachable && error.code() != errc::no_space) throw;
                return false;
            }
        },
        "a server that answers");
}

/// What a cluster that was just started takes some seconds for.
inline void wait_for_leader(ReplicationTarget& target) {
    wait_until(
        [&] {
            try {
                return target.append(1, frame_of(1, 100));
            } catch (const Error&) {
                return false;
            }
        },
        "a cluster with a leader");
}

using Numbers = taiyen::map<std::uint64_t, taiyen::string>;
using Model = std::map<std::uint64_t, std::string>;

inline Serial put(TransactionalHeap& heap, std::uint64_t key) {
    Transaction transaction(heap);
    heap.find_or_construct<Numbers>("numbers")[key] = std::to_string(key);
    return transaction.commit();
}
inline Model model_of(const TransactionalHeap& heap) {
    Model model;
    const ReadLock lock(heap);
    for (const auto& [key, value] : *heap.find<Numbers>("numbers")) model.emplace(key, std::string(value));
    return model;
}

}  // namespace taiyen::nats::test
