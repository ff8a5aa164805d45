#pragma once
/// Signal: what one thread sleeps on until another wakes it, or a time has come.
/// Thread rule: safe; one thread sleeps.

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>

namespace taiyen::object {

class Signal {
public:
    bool is_set() const noexcept { return number_.load(std::memory_order_acquire) != 0; }
    void clear() noexcept { number_.store(0, std::memory_order_relaxed); }
    /// Whoever sleeps may be gone before this returns, with the signal: the kernel is only told an address.
    void set() noexcept {
        const auto* const address = &number_;
        number_.store(1, std::memory_order_release);
        ::syscall(SYS_futex, address, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
    }
    /// False: the time has come, and it isn't set.
    bool wait(std::optional<std::chrono::steady_clock::time_point> deadline) const noexcept {
        while (!is_set()) {
            timespec until{};
            if (deadline) {
                if (std::chrono::steady_clock::now() >= *deadline) return is_set();
                const auto since = deadline->time_since_epoch();  // of CLOCK_MONOTONIC
                const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(since);
                until.tv_sec = static_cast<time_t>(seconds.count());
                until.tv_nsec = static_cast<long>(std::chrono::duration_cast<std::chrono::nanoseconds>(since - seconds).count());
            }
            ::syscall(SYS_futex, &number_, FUTEX_WAIT_BITSET_PRIVATE, 0, deadline ? &until : nullptr, nullptr, FUTEX_BITSET_MATCH_ANY);
        }
        return true;
    }

private:
    std::atomic<std::uint32_t> number_{0};
};

}  // namespace taiyen::object
