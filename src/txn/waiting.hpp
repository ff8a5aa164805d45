#pragma once
/// How the locks of this room wait: a moment awake, then asleep in the kernel.
/// Thread rule: safe.

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>

namespace taiyen::txn {

static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t) && std::atomic<std::uint32_t>::is_always_lock_free,
              "the kernel waits on the bare number");

// Not std::atomic::wait: its notify enters the kernel whether anybody sleeps or not, and here it is known who may.
inline void sleep_while(const std::atomic<std::uint32_t>& number, std::uint32_t value) noexcept {
    ::syscall(SYS_futex, &number, FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);  // interrupted, or changed meanwhile: the caller looks again
}
inline void wake_all(std::atomic<std::uint32_t>& number) noexcept { ::syscall(SYS_futex, &number, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0); }

// In pauses, about 40 ns each on current x86 processors. To sleep and be woken costs some 25 µs; most transactions are shorter.
inline constexpr int spins_far = 64;
inline constexpr int spins_near = 1'000;

/// One turn of a spinning wait; the one that is waited for may need this processor.
inline void spin(int left) noexcept {
    if (left % 64 == 0) ::sched_yield();
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

}  // namespace taiyen::txn
