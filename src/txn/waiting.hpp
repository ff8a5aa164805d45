#pragma once
/// How the locks of this room wait: a moment awake, then asleep in the kernel.
/// Thread rule: safe.

#include <sched.h>

#include "base/futex.hpp"

namespace taiyen::txn {

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
