#pragma once
/// WaitTimes: how many requests had to wait, and for how long.
/// (W1) A queue starts a request's wait under its mutex, once it is sure that the request will stand there: so who sees it counted and then wakes the queue wakes it, too.
/// Thread rule: safe.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <utility>

#include "object/request.hpp"

namespace taiyen::object {

class WaitTimes {
public:
    /// It wants to wait, as of now, unless it did before: its patience begins.
    static void begin(Request& request) noexcept {
        if (!request.since) request.since = CheckOuts::Clock::now();
    }
    /// It waits, as of now, unless it did before. Requires: `begin`.
    void start(Request& request) noexcept {
        if (std::exchange(request.waited, true)) return;
        waited_.fetch_add(1, std::memory_order_relaxed);
        waiting_.fetch_add(1, std::memory_order_relaxed);
    }
    /// It has ended.
    void stop(const Request& request) noexcept {
        if (!request.waited) return;
        waiting_.fetch_sub(1, std::memory_order_relaxed);
        const auto wait = static_cast<std::uint64_t>(std::chrono::nanoseconds(CheckOuts::Clock::now() - *request.since).count());
        std::uint64_t longest = longest_.load(std::memory_order_relaxed);
        while (longest < wait && !longest_.compare_exchange_weak(longest, wait, std::memory_order_relaxed)) {}
    }
    void tell(CheckoutStatistics& statistics) const noexcept {
        statistics.waited = waited_.load(std::memory_order_relaxed);
        statistics.waiting = waiting_.load(std::memory_order_relaxed);
        statistics.longest_wait = std::chrono::nanoseconds(longest_.load(std::memory_order_relaxed));
    }

private:
    std::atomic<std::uint64_t> waited_{0};
    std::atomic<std::uint64_t> waiting_{0};
    std::atomic<std::uint64_t> longest_{0};
};

}  // namespace taiyen::object
