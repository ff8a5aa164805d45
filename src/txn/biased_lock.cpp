#include "txn/biased_lock.hpp"

#include <linux/membarrier.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "base/planted.hpp"
#include "txn/waiting.hpp"

namespace taiyen::txn {
namespace {

std::int64_t now() noexcept {
    timespec time{};
    ::clock_gettime(CLOCK_MONOTONIC, &time);
    return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

#if defined(TAIYEN_THREAD_SANITIZER)
bool barrier_is_there() noexcept { return true; }
void fence_of_writer() noexcept {}
#else
int membarrier(int command) noexcept { return static_cast<int>(::syscall(SYS_membarrier, command, 0, 0)); }

constinit std::atomic<bool> refused{false};

bool barrier_is_there() noexcept {
    static const bool registered = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0 && membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0;
    return registered && !refused.load(std::memory_order_relaxed);
}

/// Every running thread of the process executes a full fence between the call's begin and its return.
void fence_of_writer() noexcept {
    if (membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0) return;
    // A forked child has to register again.
    if (membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0 && membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0) return;
    // Allowed when the bias began and refused now: the program has locked itself into a sandbox since. There will be no bias any more. To end this one: taking a right away from a page in use
    // interrupts the other processors, too, and no store waits for milliseconds to be seen.
    refused.store(true, std::memory_order_relaxed);
    void* const page = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page != MAP_FAILED) {
        *static_cast<volatile char*>(page) = 1;
        ::mprotect(page, 4096, PROT_READ);
        ::munmap(page, 4096);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
}
#endif

}  // namespace

constinit std::atomic<std::uint32_t> BiasedLock::sleepers_{0};
constinit std::atomic<std::uint32_t> BiasedLock::departures_{0};
constinit std::atomic<std::uint64_t> BiasedLock::numbers_{1};

bool BiasedLock::can_be_biased() noexcept { return barrier_is_there(); }

ReaderSlot* BiasedLock::lock_shared_in_turn() noexcept {
    const std::uint32_t come = lock_.lock_shared();
    // Few readers ask: the clock costs more than the lock.
    const bool asks = come % 16 == 0 && come - quiet_since_.load(std::memory_order_relaxed) >= reads_without_writer;
    if (asks && !lock_.writer_is_there() && now() >= not_before_.load(std::memory_order_relaxed) && barrier_is_there()) {
        biased_.store(true, std::memory_order_release);  // what the writer before us did is seen by who sees this
    }
    return nullptr;
}

void BiasedLock::end_bias() noexcept {
    const std::int64_t begin = now();
    biased_.store(false, std::memory_order_seq_cst);
    fence_of_writer();
    const std::int64_t end = now();
    not_before_.store(end + pause_factor * (end - begin), std::memory_order_relaxed);
    ReaderSlots::for_each([this](const ReaderSlot& slot) {
        if (slot.load(std::memory_order_seq_cst) == number_) wait_for(slot);
    });
}

void BiasedLock::wait_for(const ReaderSlot& slot) noexcept {
    for (int left = spins_near; left > 0; --left) {
        if (slot.load(std::memory_order_acquire) != number_) return;
        spin(left);
    }
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    fence_of_writer();  // a reader that leaves from here on sees us, one that left before is seen below
    for (;;) {
        const std::uint32_t departures = departures_.load(std::memory_order_acquire);
        if (slot.load(std::memory_order_seq_cst) != number_) break;
        sleep_while(departures_, departures);
    }
    sleepers_.fetch_sub(1, std::memory_order_relaxed);
}

void BiasedLock::wake_sleepers() noexcept {
    departures_.fetch_add(1, std::memory_order_seq_cst);
    wake_all(departures_);
}

}  // namespace taiyen::txn
