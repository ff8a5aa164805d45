#pragma once
/// ReaderSlots: where a thread says which locks it holds for reading, so that it need not write where other threads write.
///
/// One cache line per thread, linked into a list that only grows; a line is used again when its thread has ended. The owner alone stores into it, others look.
/// (S1) A slot holds the number of a lock, or 0. Numbers are never used twice, so what a fork left behind of other threads concerns no lock of the child.
/// Thread rule: `mine` is its thread's own; walking is safe.

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace taiyen::txn {

using ReaderSlot = std::atomic<std::uint64_t>;

struct alignas(64) ReaderSlots {
    static constexpr std::size_t count = 6;  ///< locks that a thread holds at once in this way

    ReaderSlot holds[count];
    std::atomic<bool> taken{true};
    ReaderSlots* next = nullptr;

    /// A free slot of this thread; null: there is none, no memory for any, or the thread is about to end.
    static ReaderSlot* free_one() noexcept {
        ReaderSlots* const line = mine != nullptr ? mine : take_line();
        if (line == nullptr) return nullptr;
        for (ReaderSlot& slot : line->holds) {
            if (slot.load(std::memory_order_relaxed) == 0) return &slot;
        }
        return nullptr;
    }
    /// Calls `visit(ReaderSlot&)` with the slots of all threads.
    template <class F>
    static void for_each(F&& visit) noexcept {
        for (ReaderSlots* line = first.load(std::memory_order_acquire); line != nullptr; line = line->next) {
            for (ReaderSlot& slot : line->holds) visit(slot);
        }
    }

private:
    static ReaderSlots* take_line() noexcept;

    static constinit std::atomic<ReaderSlots*> first;
    static thread_local constinit ReaderSlots* mine;
};
static_assert(sizeof(ReaderSlots) == 64);

}  // namespace taiyen::txn
