#pragma once
/// futex(2): a thread of this process sleeps on a number until another wakes it.
///
/// Not std::atomic::wait: its notify enters the kernel whether anybody sleeps or not, and our locks know who may.
/// Thread rule: safe.

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <climits>
#include <cstdint>
#include <optional>

namespace taiyen {

static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t) && std::atomic<std::uint32_t>::is_always_lock_free,
              "the kernel waits on the bare number");

/// Sleeps while `number` is `value`, until it is woken or the time has come. May return without cause: the caller looks again.
inline void sleep_while(const std::atomic<std::uint32_t>& number, std::uint32_t value,
                        std::optional<std::chrono::steady_clock::time_point> deadline = std::nullopt) noexcept {
    timespec until{};
    if (deadline) {
        const auto since = deadline->time_since_epoch();  // of CLOCK_MONOTONIC
        const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(since);
        until.tv_sec = static_cast<time_t>(seconds.count());
        until.tv_nsec = static_cast<long>(std::chrono::duration_cast<std::chrono::nanoseconds>(since - seconds).count());
    }
    ::syscall(SYS_futex, &number, FUTEX_WAIT_BITSET_PRIVATE, value, deadline ? &until : nullptr, nullptr, FUTEX_BITSET_MATCH_ANY);
}

/// Takes an address, which is all that the kernel is told: the number may be gone.
inline void wake_one(const std::atomic<std::uint32_t>* number) noexcept { ::syscall(SYS_futex, number, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0); }
inline void wake_all(const std::atomic<std::uint32_t>& number) noexcept {
    ::syscall(SYS_futex, &number, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace taiyen
