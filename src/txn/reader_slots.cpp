#include "txn/reader_slots.hpp"

#include <algorithm>
#include <new>

namespace taiyen::txn {
namespace {

thread_local constinit bool ended = false;  ///< what the thread's destructors read comes too late for a line

}  // namespace

constinit std::atomic<ReaderSlots*> ReaderSlots::first{nullptr};
thread_local constinit ReaderSlots* ReaderSlots::mine = nullptr;

ReaderSlots* ReaderSlots::take_line() noexcept {
    if (ended) return nullptr;
    struct Return {
        ~Return() {
            ended = true;
            ReaderSlots* const line = mine;
            mine = nullptr;
            // A lock that outlives its thread's end, of a program that is exiting, keeps the line.
            const bool is_free =
                line != nullptr && std::ranges::all_of(line->holds, [](const ReaderSlot& slot) { return slot.load(std::memory_order_relaxed) == 0; });
            if (is_free) line->taken.store(false, std::memory_order_release);
        }
    };
    static thread_local const Return at_end;
    (void)at_end;
    for (ReaderSlots* line = first.load(std::memory_order_acquire); line != nullptr; line = line->next) {
        bool taken = false;
        if (line->taken.compare_exchange_strong(taken, true, std::memory_order_acq_rel)) return mine = line;
    }
    auto* const line = new (std::nothrow) ReaderSlots;
    if (line == nullptr) return nullptr;
    line->next = first.load(std::memory_order_relaxed);
    while (!first.compare_exchange_weak(line->next, line, std::memory_order_acq_rel)) {}
    return mine = line;
}

}  // namespace taiyen::txn
