#include "txn/reader_slots.hpp"

#include <new>

#include "txn/biased_lock.hpp"

namespace taiyen::txn {
namespace {

using Protocol = BiasedLock::Protocol;

thread_local constinit bool ended = false;  ///< what the thread's destructors read comes too late for a line

}  // namespace

constinit std::atomic<ReaderSlots*> ReaderSlots::first{nullptr};
thread_local constinit ReaderSlots* ReaderSlots::mine = nullptr;

void ReaderSlots::join(std::uint32_t lock, std::uint32_t period) noexcept {
    ReaderSlots* const line = mine != nullptr ? mine : take_line();
    if (line == nullptr) return;
    ReaderSlot* found = nullptr;
    for (ReaderSlot& slot : line->values) {
        const std::uint64_t value = slot.load(std::memory_order_relaxed);
        if (Protocol::lock_of(value) == lock) {
            if (Protocol::is_reading(value)) return;  // not through this slot: it is one read within another
            found = &slot;
            break;
        }
        if (found == nullptr && value == 0) found = &slot;
    }
    for (std::size_t tries = 0; found == nullptr && tries < count; ++tries) {
        ReaderSlot& victim = line->values[line->next_victim];
        line->next_victim = static_cast<std::uint8_t>((line->next_victim + 1) % count);
        if (!Protocol::is_reading(victim.load(std::memory_order_relaxed))) found = &victim;
    }
    if (found != nullptr) found->store(Protocol::out(lock, period), std::memory_order_release);
}

ReaderSlots* ReaderSlots::take_line() noexcept {
    if (ended) return nullptr;
    struct Return {
        ~Return() {
            ended = true;
            ReaderSlots* const line = mine;
            mine = nullptr;
            if (line == nullptr) return;
            bool reads = false;
            for (ReaderSlot& slot : line->values)
                if (Protocol::is_reading(slot.load(std::memory_order_relaxed)))
                    reads = true;
                else
                    slot.store(0, std::memory_order_release);
            // A lock that outlives its thread's end, of a program that is exiting, keeps the line.
            if (!reads) line->taken.store(false, std::memory_order_release);
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
