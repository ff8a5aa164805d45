#pragma once
/// Signal: what one thread sleeps on until another wakes it, or a time has come.
/// Thread rule: safe; one thread sleeps.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>

#include "base/futex.hpp"

namespace taiyen::object {

class Signal {
public:
    bool is_set() const noexcept { return number_.load(std::memory_order_acquire) != 0; }
    void clear() noexcept { number_.store(0, std::memory_order_relaxed); }
    /// Whoever sleeps may be gone before this returns, with the signal: the kernel is only told an address.
    void set() noexcept {
        const auto* const address = &number_;
        number_.store(1, std::memory_order_release);
        wake_one(address);
    }
    /// False: the time has come, and it isn't set.
    bool wait(std::optional<std::chrono::steady_clock::time_point> deadline) const noexcept {
        while (!is_set()) {
            if (deadline && std::chrono::steady_clock::now() >= *deadline) return is_set();
            sleep_while(number_, 0, deadline);
        }
        return true;
    }

private:
    std::atomic<std::uint32_t> number_{0};
};

}  // namespace taiyen::object
