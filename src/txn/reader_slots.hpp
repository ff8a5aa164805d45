#pragma once
/// ReaderSlots: where a thread says of which locks it is a member and which of them it reads under (bias.hpp), so that it need not write where other threads write.
///
/// One cache line per thread, linked into a list that only grows; a line is used again when its thread has ended. The owner alone stores into it, others look.
/// (S1) Numbers of locks are never used twice, in four billion of them, so what a fork left behind of other threads concerns no lock of the child that is made there.
/// (S2) A thread that needs a slot and has none left takes one from a lock that it doesn't read under: to that lock's writer it has withdrawn.
/// Thread rule: the line is its thread's own; walking is safe.

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace taiyen::txn {

using ReaderSlot = std::atomic<std::uint64_t>;

struct alignas(64) ReaderSlots {
    static constexpr std::size_t count = 6;  ///< locks of which a thread is a member at once

    ReaderSlot values[count];
    std::atomic<bool> taken{true};
    std::uint8_t next_victim = 0;
    ReaderSlots* next = nullptr;

    /// This thread's slot that says that it is a member of the lock and out, of whichever period; null: none does.
    static ReaderSlot* find_out(std::uint32_t lock) noexcept {
        ReaderSlots* const line = mine;
        if (line == nullptr) return nullptr;
        const std::uint64_t wanted = std::uint64_t{lock} << 32U;
        for (ReaderSlot& slot : line->values)
            if ((slot.load(std::memory_order_relaxed) & (~std::uint64_t{0} << 32U | 1U)) == wanted) return &slot;
        return nullptr;
    }
    /// This thread becomes a member of the lock for the period, if it can. Requires: it holds the lock.
    static void join(std::uint32_t lock, std::uint32_t period) noexcept;
    /// Calls `visit(ReaderSlot&)` with the slots of all threads.
    template <class F>
    static void for_each(F&& visit) noexcept {
        for (ReaderSlots* line = first.load(std::memory_order_acquire); line != nullptr; line = line->next)
            for (ReaderSlot& slot : line->values) visit(slot);
    }

private:
    static ReaderSlots* take_line() noexcept;

    static constinit std::atomic<ReaderSlots*> first;
    static thread_local constinit ReaderSlots* mine;
};
static_assert(sizeof(ReaderSlots) == 64);

}  // namespace taiyen::txn
