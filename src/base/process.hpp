#pragma once
/// Which process this is: a forked child must leave what it inherited of its parent alone.
///
/// (I1) The number differs from that of each process up the line of parents, however the child was made: fork(2), _Fork(3), or clone(2) without CLONE_VM. The number lies
///      in a page that the kernel wipes in a child (MADV_WIPEONFORK): no handler has to run. Where the kernel refuses that, a handler of fork(3) wipes it.
/// (I2) A child that shares its parent's memory (vfork(2), posix_spawn(3), CLONE_VM) has its parent's number.
/// Thread rule: safe, in signal handlers, too, after the first call.

#include <atomic>
#include <cstdint>

namespace taiyen {

/// Not 0. Differs between this process and its parents.
using ProcessNumber = std::uint64_t;

namespace process {
/// Where the number lies; null before the first call.
extern constinit std::atomic<std::atomic<ProcessNumber>*> number;
ProcessNumber determine_number();
}  // namespace process

/// Complexity: two loads. Throws at the first call in a program only: std::bad_alloc.
inline ProcessNumber this_process() {
    if (const std::atomic<ProcessNumber>* const number = process::number.load(std::memory_order_acquire); number != nullptr) [[likely]] {
        if (const ProcessNumber known = number->load(std::memory_order_relaxed); known != 0) [[likely]]
            return known;
    }
    return process::determine_number();
}

/// Whether this process has that number, which some process got from `this_process`: a child whose number was wiped has another one. Complexity: two loads.
inline bool is_process(ProcessNumber number) noexcept {
    return process::number.load(std::memory_order_relaxed)->load(std::memory_order_relaxed) == number;
}

}  // namespace taiyen
