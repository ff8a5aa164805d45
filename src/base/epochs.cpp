#include "base/epochs.hpp"

#include <algorithm>
#include <utility>

namespace taiyen::epochs {

thread_local constinit EpochSlot* mine = nullptr;
constinit std::atomic<std::uint64_t> now{1};

namespace {

constinit std::atomic<EpochSlot*> slots{nullptr};
constinit std::atomic<std::uint32_t> slot_count{0};

/// Gives the slot back when its thread ends.
struct Return {
    ~Return() {
        // What outlives this, as a view in a variable of the thread that is destroyed later, keeps the slot.
        if (mine == nullptr || mine->depth != 0) return;
        std::exchange(mine, nullptr)->taken.store(false, std::memory_order_release);  // from here on it is another thread's
    }
};

}  // namespace

EpochSlot& take_slot() {
    static thread_local const Return at_end;
    static_cast<void>(at_end);
    for (EpochSlot* slot = slots.load(std::memory_order_acquire); slot != nullptr; slot = slot->next) {
        bool taken = false;
        if (!slot->taken.load(std::memory_order_relaxed) && slot->taken.compare_exchange_strong(taken, true, std::memory_order_acquire))
            return *(mine = slot);
    }
    auto* const slot = new EpochSlot;
    slot->number = slot_count.fetch_add(1, std::memory_order_relaxed);
    slot->next = slots.load(std::memory_order_relaxed);
    while (!slots.compare_exchange_weak(slot->next, slot)) {}  // in the one order of all sequentially consistent operations, as in EpochGuard
    return *(mine = slot);
}

std::uint64_t oldest() noexcept {
    std::uint64_t oldest = ~std::uint64_t{0};
    for (const EpochSlot* slot = slots.load(); slot != nullptr; slot = slot->next) {
        const std::uint64_t epoch = slot->epoch.load();
        if (epoch != 0) oldest = std::min(oldest, epoch);
    }
    return oldest;
}

}  // namespace taiyen::epochs
