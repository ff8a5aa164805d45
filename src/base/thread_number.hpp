#pragma once
/// A number for each thread that no other thread of the process has, before or after it: ids and addresses of thread variables are used again when a thread has ended.
/// Thread rule: safe, in signal handlers, too.

#include <cstdint>

namespace taiyen {

/// 0: no thread.
using ThreadNumber = std::uint64_t;

namespace thread_number {
// Reached without a call that could allocate: a signal handler may be the first to ask.
extern thread_local constinit ThreadNumber of_this __attribute__((tls_model("initial-exec")));
ThreadNumber give() noexcept;
}  // namespace thread_number

inline ThreadNumber this_thread() noexcept { return thread_number::of_this != 0 ? thread_number::of_this : thread_number::give(); }

}  // namespace taiyen
