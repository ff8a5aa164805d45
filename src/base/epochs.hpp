#pragma once
/// Epochs: when memory that readers without locks may still look at can be used again (Fraser, "Practical lock-freedom", 2004, section 5.2.3).
///
/// A thread that reads shows the epoch in which it began, in a slot of its own. What was taken out of a structure is tagged with the epoch that ended then; nobody sees it once all who began in that epoch or before have left.
/// All structures of the process share the epochs: a thread needs one slot, whatever it reads.
/// Thread rule: safe. A slot is left by the thread that entered.

#include <atomic>
#include <cstdint>

#include <taiyen/base/check.hpp>

#include "base/planted.hpp"

namespace taiyen {

/// A thread's; never freed, another thread has it later.
struct alignas(64) EpochSlot {
    std::atomic<std::uint64_t> epoch{0};  ///< in which its thread began to read, 0: it reads nothing
    std::uint32_t depth = 0;              ///< guards of its thread
    std::uint32_t number = 0;             ///< small, distinct
    std::atomic<bool> taken{true};
    EpochSlot* next = nullptr;
};

namespace epochs {
extern thread_local constinit EpochSlot* mine __attribute__((tls_model("initial-exec")));
extern std::atomic<std::uint64_t> now;

/// Throws: std::bad_alloc.
EpochSlot& take_slot();
/// This thread's. Throws: std::bad_alloc.
inline EpochSlot& slot() { return mine != nullptr ? *mine : take_slot(); }
/// Ends the epoch. Returns it: the tag of all that was taken out before.
inline std::uint64_t end() noexcept { return now.fetch_add(1); }
/// The epoch in which the oldest reader began; all ones if nobody reads.
std::uint64_t oldest() noexcept;

/// What this thread finds between the two calls is not used for anything else meanwhile. Calls nest. Throws: std::bad_alloc.
inline EpochSlot& enter() {
    EpochSlot& own = slot();
    if (own.depth++ != 0) return own;
    // Who ends an epoch looks at the slots afterwards. Either it sees this one, or the second look here sees the new epoch, and with it all that was taken out before.
    std::uint64_t seen = now.load();
    for (;;) {
        if (!planted(Bug::store_enters_no_epoch)) own.epoch.store(seen);
        const std::uint64_t again = now.load();
        if (again == seen) return own;
        seen = again;
    }
}
/// Requires: by the same thread.
inline void leave(EpochSlot& slot) noexcept {
    TAIYEN_CHECK(&slot == mine);
    if (--slot.depth == 0) slot.epoch.store(0, std::memory_order_release);
}
}  // namespace epochs

/// Enters and leaves.
class EpochGuard {
public:
    /// Throws: std::bad_alloc.
    EpochGuard() : slot_(epochs::enter()) {}
    EpochGuard(const EpochGuard&) = delete;
    EpochGuard& operator=(const EpochGuard&) = delete;
    ~EpochGuard() { epochs::leave(slot_); }
    const EpochSlot& slot() const noexcept { return slot_; }

private:
    EpochSlot& slot_;
};

}  // namespace taiyen
