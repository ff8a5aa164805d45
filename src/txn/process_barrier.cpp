#include "txn/process_barrier.hpp"

#include <linux/membarrier.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace taiyen::txn {
namespace {

int ask_kernel(int command) noexcept { return static_cast<int>(::syscall(SYS_membarrier, command, 0, 0)); }

constinit std::atomic<ProcessBarrier::Call> asked{&ask_kernel};

enum class Answer : int { unknown, allowed, refused };
constinit std::atomic<Answer> answer{Answer::unknown};

[[maybe_unused]] bool try_execute(ProcessBarrier::Call call) noexcept {  // the thread sanitizer has no use for it
    if (call(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0) return true;
    // A forked child has to register again.
    return call(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0 && call(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0;
}

}  // namespace

bool ProcessBarrier::is_there() noexcept {
#if defined(TAIYEN_THREAD_SANITIZER)
    return true;
#else
    Answer known = answer.load(std::memory_order_relaxed);
    if (known == Answer::unknown) {
        const Answer found = try_execute(asked.load(std::memory_order_relaxed)) ? Answer::allowed : Answer::refused;
        if (answer.compare_exchange_strong(known, found, std::memory_order_relaxed)) known = found;
    }
    return known == Answer::allowed;
#endif
}

void ProcessBarrier::execute() noexcept {
#if !defined(TAIYEN_THREAD_SANITIZER)
    if (try_execute(asked.load(std::memory_order_relaxed))) return;
    // Allowed before and refused now: the program has locked itself into a sandbox since. Taking a right away from a page in use interrupts the other processors, too, and no store waits
    // for milliseconds to be seen.
    answer.store(Answer::refused, std::memory_order_relaxed);
    void* const page = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page != MAP_FAILED) {
        *static_cast<volatile char*>(page) = 1;
        ::mprotect(page, 4096, PROT_READ);
        ::munmap(page, 4096);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
#endif
}

ProcessBarrier::Call ProcessBarrier::exchange_call(Call call) noexcept {
    const Call before = asked.exchange(call, std::memory_order_relaxed);
    answer.store(Answer::unknown, std::memory_order_relaxed);
    return before;
}

}  // namespace taiyen::txn
