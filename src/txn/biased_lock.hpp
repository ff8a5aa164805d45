#pragma once
/// A PhaseFairLock that costs its readers no shared memory while nobody writes: it is then biased towards them, and a reader only says in a line of its own that it is there.
///
/// Algorithm: D. Dice and A. Kogan, "BRAVO: Biased Locking for Reader-Writer Locks" (USENIX ATC 2019), with slots per thread instead of a shared table, and with an asymmetric barrier:
/// a reader stores its slot and looks at the bias without a fence between them; a writer that ends the bias has the kernel put one into every running thread of the process (membarrier),
/// so that each reader either is seen in its slot or sees that the bias is gone. A locked instruction in each reader costs more than itself: the processor can't overlap the cache misses
/// of one read with those of the next.
/// (B1) The bias begins only in the hands of who holds the lock for reading, and a writer ends it after it got the lock and before it returns: the bias and a writer never are at once.
/// (B2) A writer waits for readers in their slots that were there when it ended the bias. Who comes later takes the phase-fair way, with its promises.
/// (B3) The bias begins after `reads_without_writer` reads that no writer interrupted, and not before `pause_factor` times what ending it took has passed since: writers that come one after the other
///      pay nothing, others at most one part in `pause_factor`.
/// Without membarrier (an old kernel, a sandbox) there is never a bias. The thread sanitizer doesn't know what membarrier does: under it both sides use sequentially consistent operations instead.
/// Not recursive. Thread rule: safe; who unlocks a shared lock is the thread that locked it, and touches nothing of the lock once others may destroy it.

#include <atomic>
#include <cstdint>

#include "txn/phase_fair_lock.hpp"
#include "txn/reader_slots.hpp"

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TAIYEN_THREAD_SANITIZER 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define TAIYEN_THREAD_SANITIZER 1
#endif

namespace taiyen::txn {

class BiasedLock {
public:
    BiasedLock() noexcept : number_(numbers_.fetch_add(1, std::memory_order_relaxed)) {}
    BiasedLock(const BiasedLock&) = delete;
    BiasedLock& operator=(const BiasedLock&) = delete;

    void lock() noexcept {
        lock_.lock();
        if (quiet_since_.load(std::memory_order_relaxed) != lock_.readers_come()) quiet_since_.store(lock_.readers_come(), std::memory_order_relaxed);
        if (biased_.load(std::memory_order_relaxed)) end_bias();
    }
    void unlock() noexcept { lock_.unlock(); }

    /// What `unlock_shared` wants back; null is an answer, too.
    [[nodiscard]] ReaderSlot* lock_shared() noexcept {
        if (biased_.load(std::memory_order_relaxed)) {
            if (ReaderSlot* const slot = ReaderSlots::free_one()) {
                slot->store(number_, reader_store);
                fence_of_reader();
                if (biased_.load(reader_load)) return slot;
                leave(*slot);
            }
        }
        return lock_shared_in_turn();
    }
    void unlock_shared(ReaderSlot* slot) noexcept {
        if (slot != nullptr) {
            leave(*slot);
        } else {
            lock_.unlock_shared();
        }
    }

    bool writer_is_there() const noexcept { return lock_.writer_is_there(); }
    std::uint32_t writers() const noexcept { return lock_.writers(); }
    /// For tests.
    bool is_biased() const noexcept { return biased_.load(std::memory_order_acquire); }
    /// Whether there can be a bias on this system.
    static bool can_be_biased() noexcept;

    static constexpr std::uint32_t reads_without_writer = 64;
    static constexpr std::int64_t pause_factor = 8;

private:
#if defined(TAIYEN_THREAD_SANITIZER)
    static constexpr std::memory_order reader_store = std::memory_order_seq_cst;
    static constexpr std::memory_order reader_load = std::memory_order_seq_cst;
    static void fence_of_reader() noexcept {}
#else
    static constexpr std::memory_order reader_store = std::memory_order_release;
    static constexpr std::memory_order reader_load = std::memory_order_acquire;
    /// For the compiler; the processor's is in `end_bias`.
    static void fence_of_reader() noexcept { std::atomic_signal_fence(std::memory_order_seq_cst); }
#endif

    ReaderSlot* lock_shared_in_turn() noexcept;
    void end_bias() noexcept;
    void wait_for(const ReaderSlot& slot) noexcept;
    static void leave(ReaderSlot& slot) noexcept {
        slot.store(0, reader_store);
        fence_of_reader();
        if (sleepers_.load(reader_load) != 0) wake_sleepers();
    }
    static void wake_sleepers() noexcept;

    // Of all locks together, because a reader that leaves looks at them when its lock may be gone.
    static constinit std::atomic<std::uint32_t> sleepers_;    ///< writers that sleep until a slot is left
    static constinit std::atomic<std::uint32_t> departures_;  ///< grows when a slot is left while somebody sleeps
    static constinit std::atomic<std::uint64_t> numbers_;

    std::atomic<bool> biased_{false};
    std::atomic<std::uint32_t> quiet_since_{0};  ///< readers that had come when the newest writer did
    std::atomic<std::int64_t> not_before_{0};    ///< nanoseconds: when a bias may begin again
    const std::uint64_t number_;                 ///< of this lock in slots
    PhaseFairLock lock_;
};

}  // namespace taiyen::txn
