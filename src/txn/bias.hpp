#pragma once
/// Bias: how readers get into a lock, and how a writer gets them out, without a locked instruction or a fence on the reader's side. The part of BiasedLock that must be right whatever
/// the processor delays; a template over its machine, so that a test can walk through everything that a machine may do.
///
/// A thread is a *member* of some locks; each membership is a slot of its own, into which it alone stores:
///
///   0  --join-->  2n (out)  --enter-->  2n + 1 (reads)  --leave-->  2n …  --withdraw-->  0        n: the lock's number
///
/// (M1) A thread joins while it holds the lock the other way: no writer is there, and the next one sees the slot.
/// (M2) A member that enters stores 2n + 1 and looks at the bias, with no fence between them: it may see a bias that is over while its own store is still on its way.
/// (M3) A member that finds the bias gone withdraws. Whoever sees the 0 knows: it is out, and it comes back the other way. That costs neither side more than a cache miss.
/// (M4) A member that stays out doesn't withdraw, unless it is about to write itself. After the moment in which the others do, the writer has every thread execute a fence: from then on slots say who reads, and who enters sees the end.
/// Thread rule: the members' functions for the slot's thread, the writer's for who holds the lock alone.

#include <atomic>
#include <cstdint>

namespace taiyen::txn {

/// Machine: `Atomic<T>` with load, store, fetch_add and fetch_sub; `reader_store`, `reader_load`: memory orders that cost nothing beside plain ones; `fence_of_compiler`; `fence_everywhere`: a full fence in all threads;
/// `spin(left)`: one turn of a spinning wait; `sleep_while(number, value)` and `wake_all(number)` as of a futex; `moment`, `near`: turns in which members withdraw, or end what they read.
template <class Machine>
class Bias {
public:
    template <class T>
    using Atomic = typename Machine::template Atomic<T>;
    using Slot = Atomic<std::uint64_t>;

    static constexpr std::uint64_t out(std::uint64_t lock) { return 2 * lock; }
    static constexpr std::uint64_t reads(std::uint64_t lock) { return 2 * lock + 1; }
    static constexpr bool is_reading(std::uint64_t value) { return value % 2 != 0; }
    static constexpr std::uint64_t lock_of(std::uint64_t value) { return value / 2; }

    /// Writers that sleep until a member leaves; of all locks together, because a member that leaves looks at it when its lock may be gone.
    struct Sleepers {
        Atomic<std::uint32_t> count{0};
        Atomic<std::uint32_t> departures{0};  ///< grows when somebody leaves while somebody sleeps
    };

    // Members.

    /// False: there is no bias any more; the member has withdrawn. Requires: it is out.
    static bool enter(Slot& slot, std::uint64_t lock, const Atomic<std::uint32_t>& bias, Sleepers& sleepers) {
        slot.store(reads(lock), Machine::reader_store);
        Machine::fence_of_compiler();
        if (bias.load(Machine::reader_load) != 0) return true;
        store_departure(slot, 0, sleepers);
        return false;
    }
    /// Requires: the member reads.
    static void leave(Slot& slot, Sleepers& sleepers) { store_departure(slot, out(lock_of(slot.load(std::memory_order_relaxed))), sleepers); }

    /// Requires: the member is out.
    static void withdraw(Slot& slot) { slot.store(0, Machine::reader_store); }

    // The writer.

    /// Returns when no member reads and none can enter. True: that took a fence in all threads. `for_each_slot` calls its argument with every slot that may be a member's.
    template <class ForEachSlot>
    static bool end(Atomic<std::uint32_t>& bias, std::uint64_t lock, Sleepers& sleepers, ForEachSlot&& for_each_slot) {
        bias.store(0, std::memory_order_seq_cst);
        bool all_withdrew = true;
        for_each_slot([&](const Slot& slot) { all_withdrew = all_withdrew && withdraws(slot, lock); });
        if (all_withdrew) return false;
        Machine::fence_everywhere();
        for_each_slot([&](const Slot& slot) { wait_until_out(slot, lock, sleepers); });
        return true;
    }

private:
    static void store_departure(Slot& slot, std::uint64_t value, Sleepers& sleepers) {
        slot.store(value, Machine::reader_store);
        Machine::fence_of_compiler();
        if (sleepers.count.load(Machine::reader_load) == 0) return;
        sleepers.departures.fetch_add(1, std::memory_order_seq_cst);
        Machine::wake_all(sleepers.departures);
    }

    /// Whether it is no member soon. One that reads would have to be waited for anyway.
    static bool withdraws(const Slot& slot, std::uint64_t lock) {
        int moment = Machine::moment;
        int near = Machine::near;
        for (;;) {
            const std::uint64_t value = slot.load(std::memory_order_acquire);
            if (lock_of(value) != lock) return true;
            int& left = is_reading(value) ? near : moment;
            if (left == 0) return false;
            Machine::spin(left--);
        }
    }

    static void wait_until_out(const Slot& slot, std::uint64_t lock, Sleepers& sleepers) {
        for (int left = Machine::near; left > 0; --left) {
            if (slot.load(std::memory_order_acquire) != reads(lock)) return;
            Machine::spin(left);
        }
        sleepers.count.fetch_add(1, std::memory_order_seq_cst);
        Machine::fence_everywhere();  // a member that leaves from here on sees us, one that left before is seen below
        for (;;) {
            const std::uint32_t departures = sleepers.departures.load(std::memory_order_acquire);
            if (slot.load(std::memory_order_acquire) != reads(lock)) break;
            Machine::sleep_while(sleepers.departures, departures);
        }
        sleepers.count.fetch_sub(1, std::memory_order_relaxed);
    }
};

}  // namespace taiyen::txn
