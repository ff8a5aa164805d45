#pragma once

namespace taiyen {

/// In a loop that waits for another processor's store: this one leaves its shared resources to its sibling for a moment.
inline void pause_processor() noexcept {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield" ::: "memory");
#endif
}

}  // namespace taiyen
