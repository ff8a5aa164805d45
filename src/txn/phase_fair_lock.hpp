#pragma once
/// One writer, many readers, nobody starves: readers and writers take turns in phases.
///
/// Algorithm: PF-T of B. Brandenburg and J. Anderson, "Spin-based reader-writer synchronization for multiprocessor real-time systems" (Real-Time Systems 46, 2010); here a thread that has spun for a
/// moment sleeps in the kernel.
/// (P1) A reader that finds a writer there waits for that one writer only: when it unlocks, all readers that have come meanwhile enter, before the next writer.
/// (P2) A writer waits for the readers that were there before it, and for the writers before it (first come, first served), and no longer.
/// (P3) While no writer is there, a reader's way in, and its way out, is one atomic operation each. Nobody is notified while nobody waits.
/// (P4) A writer that sleeps is woken when it becomes the next one, not when its turn has come: it wakes up while the one before it works.
/// (P5) A reader that leaves touches nothing of the lock behind the operation that counts it: a writer that gets in then may destroy the lock. What it wakes is an address, not a lock.
/// Not recursive: a thread that holds it for reading and asks again may wait for a writer that waits for it. Thread rule: safe. Fewer than 2^24 readers at once.

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace taiyen::txn {

class PhaseFairLock {
public:
    PhaseFairLock() noexcept { seats_[0].call.store(turn_call(0), std::memory_order_relaxed); }
    PhaseFairLock(const PhaseFairLock&) = delete;
    PhaseFairLock& operator=(const PhaseFairLock&) = delete;

    void lock() noexcept;
    void unlock() noexcept;

    /// Returns how many readers had come before, modulo 2^24.
    std::uint32_t lock_shared() noexcept {
        const std::uint32_t in = readers_in_.fetch_add(one_reader, std::memory_order_seq_cst);
        if ((in & writer_bits) != 0) wait_for_writer(in & writer_bits);
        return in / one_reader;
    }
    void unlock_shared() noexcept {
        if ((readers_out_.fetch_add(one_reader, std::memory_order_seq_cst) & writer_sleeps) != 0) wake_writer();
    }

    /// Whether a writer holds the lock or waits for readers to leave: for tests and statistics.
    bool writer_is_there() const noexcept { return (readers_in_.load(std::memory_order_acquire) & writer_bits) != 0; }
    /// How many readers had come before the writer that holds it, modulo 2^24. Requires: it is the caller.
    std::uint32_t readers_come() const noexcept { return readers_before_ / one_reader; }
    /// How many writers hold it or wait for it.
    std::uint32_t writers() const noexcept { return tickets_.load(std::memory_order_acquire) - tickets_done_.load(std::memory_order_acquire); }

private:
    static constexpr std::uint32_t one_reader = 1U << 8U;
    static constexpr std::uint32_t writer_bits = 3;
    static constexpr std::uint32_t writer_present = 2;
    static constexpr std::uint32_t phase =
        1;  ///< differs between a writer and the next, so that a late sleeper sees that the one it waited for is gone
    static constexpr std::uint32_t writer_sleeps = 1;  ///< in the number of readers that have gone
    static constexpr std::size_t seats = 16;           ///< where waiting writers sleep, by ticket: an unlock wakes the next one and not all

    void wait_for_writer(std::uint32_t writer) noexcept;
    void wake_writer() noexcept;

    alignas(64) std::atomic<std::uint32_t> readers_in_{0};   ///< readers that have come, above the writer's bits
    alignas(64) std::atomic<std::uint32_t> readers_out_{0};  ///< readers that have gone, above the bit that says that a writer sleeps until they have
    alignas(64) std::atomic<std::uint32_t> tickets_{0};      ///< the next writer's
    std::atomic<std::uint32_t> tickets_done_{0};
    // Of the writer that holds the lock:
    std::uint32_t ticket_ = 0;
    std::uint32_t readers_before_ = 0;  ///< readers that had come before it
    /// Where the writers with ticket t, t + 16, … wait: 2t means that t is next, 2t + 1 that it is t's turn.
    struct alignas(64) Seat {
        std::atomic<std::uint32_t> call{0};
        std::atomic<std::uint32_t> asleep{0};
    };
    static constexpr std::uint32_t next_call(std::uint32_t ticket) { return 2 * ticket; }
    static constexpr std::uint32_t turn_call(std::uint32_t ticket) { return 2 * ticket + 1; }
    void wait_for_turn(std::uint32_t ticket) noexcept;
    void call(std::uint32_t ticket, std::uint32_t value) noexcept;

    Seat seats_[seats];
};

}  // namespace taiyen::txn
