#pragma once
/// A PhaseFairLock that costs its readers no shared memory while nobody writes: it is then biased towards them, and a reader only says in a line of its own that it is there.
///
/// Algorithm: D. Dice and A. Kogan, "BRAVO: Biased Locking for Reader-Writer Locks" (USENIX ATC 2019), with slots per thread instead of a shared table, and without a fence in the reader (bias.hpp): a locked
/// instruction in each reader costs more than itself, since the processor can't overlap the cache misses of one read with those of the next. A writer waits for readers that are at it to say that
/// they saw the bias end, some hundred nanoseconds; where one says nothing, because it does something else, the kernel puts a fence into every running thread of the process (membarrier).
/// (B1) The bias begins only in the hands of who holds the lock for reading, and a writer ends it after it got the lock and before it returns: the bias and a writer never are at once.
/// (B2) A writer waits for readers in their slots that were there when it ended the bias. Who comes later takes the phase-fair way, with its promises.
/// (B3) The bias begins after `reads_without_writer` reads that no writer interrupted, and, where ending it took a fence, not before `pause_factor` times what that took has passed since: writers that come one
///      after the other pay nothing, and others, and the threads that the fence interrupts, about one part in `pause_factor`.
/// Without membarrier (an old kernel, a sandbox) there is never a bias. Under the thread sanitizer both sides use sequentially consistent operations instead.
/// Not recursive. Thread rule: safe; who unlocks a shared lock is the thread that locked it, and touches nothing of the lock once others may destroy it.

#include <atomic>
#include <cstdint>

#include "txn/bias.hpp"
#include "txn/phase_fair_lock.hpp"
#include "txn/process_barrier.hpp"
#include "txn/reader_slots.hpp"
#include "txn/waiting.hpp"

namespace taiyen::txn {

class BiasedLock {
    struct Machine {
        template <class T>
        using Atomic = std::atomic<T>;
#if defined(TAIYEN_THREAD_SANITIZER)
        static constexpr std::memory_order reader_store = std::memory_order_seq_cst;
        static constexpr std::memory_order reader_load = std::memory_order_seq_cst;
        static void fence_of_compiler() noexcept {}
#else
        static constexpr std::memory_order reader_store = std::memory_order_release;
        static constexpr std::memory_order reader_load = std::memory_order_acquire;
        static void fence_of_compiler() noexcept { std::atomic_signal_fence(std::memory_order_seq_cst); }
#endif
        static void fence_everywhere() noexcept { ProcessBarrier::execute(); }
        static constexpr int moment = 63;  ///< 3 µs; a fence costs as much, or more
        static constexpr int near = spins_near;
        static void spin(int left) noexcept { txn::spin(left); }
        static void sleep_while(const std::atomic<std::uint32_t>& number, std::uint32_t value) noexcept { taiyen::sleep_while(number, value); }
        static void wake_all(std::atomic<std::uint32_t>& number) noexcept { taiyen::wake_all(number); }
    };

public:
    using Protocol = Bias<Machine>;

    BiasedLock() noexcept : number_(next_number()) {}
    BiasedLock(const BiasedLock&) = delete;
    BiasedLock& operator=(const BiasedLock&) = delete;

    void lock() noexcept {
        // We stay out for as long as we write, and may wait for a disk behind that: nobody should have to find that out by a fence.
        if (ReaderSlot* const slot = ReaderSlots::find_out(number_)) Protocol::withdraw(*slot);
        lock_.lock();
        if (quiet_since_.load(std::memory_order_relaxed) != lock_.readers_come()) quiet_since_.store(lock_.readers_come(), std::memory_order_relaxed);
        if (bias_.load(std::memory_order_relaxed) != 0) end_bias();
    }
    void unlock() noexcept { lock_.unlock(); }

    /// What `unlock_shared` wants back; null is an answer, too.
    [[nodiscard]] ReaderSlot* lock_shared() noexcept {
        ReaderSlot* const slot = ReaderSlots::find_out(number_);
        if (slot != nullptr && Protocol::enter(*slot, bias_, sleepers_)) return slot;
        return lock_shared_in_turn();
    }
    void unlock_shared(ReaderSlot* slot) noexcept {
        if (slot != nullptr)
            Protocol::leave(*slot, sleepers_);
        else
            lock_.unlock_shared();
    }

    /// For tests.
    bool is_biased() const noexcept { return bias_.load(std::memory_order_acquire) != 0; }
    std::uint64_t fences() const noexcept { return fences_; }
    /// Whether there can be a bias on this system.
    static bool can_be_biased() noexcept { return ProcessBarrier::is_there(); }

    static constexpr std::uint32_t reads_without_writer = 4;
    static constexpr std::int64_t pause_factor = 64;
    static constexpr std::int64_t fence_time_max = 30'000;  ///< nanoseconds

private:
    static std::uint32_t next_number() noexcept {
        std::uint32_t number = 0;  // which is nobody's
        while (number == 0) number = numbers_.fetch_add(1, std::memory_order_relaxed);
        return number;
    }
    ReaderSlot* lock_shared_in_turn() noexcept;
    void end_bias() noexcept;

    static constinit Protocol::Sleepers sleepers_;
    static constinit std::atomic<std::uint32_t> numbers_;

    std::atomic<std::uint32_t> bias_{0};         ///< the period that goes on; 0: the lock isn't biased
    std::uint32_t next_period_ = 1;              ///< changes while nobody reads
    std::atomic<std::uint32_t> quiet_since_{0};  ///< readers that had come when the newest writer did
    std::atomic<std::int64_t> not_before_{0};    ///< nanoseconds: when a bias may begin again
    std::uint64_t fences_ = 0;                   ///< that ended a bias
    const std::uint32_t number_;                 ///< of this lock in slots
    PhaseFairLock lock_;
};

}  // namespace taiyen::txn
