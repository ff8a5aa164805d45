#pragma once
/// Bias: how readers get into a lock, and how a writer gets them out, without a locked instruction or a fence on the reader's side. The part of BiasedLock that must be right whatever
/// the processor delays; a template over its machine, so that a test can walk through everything that a machine may do.
///
/// Each time that a lock becomes biased a *period* begins, with a number of its own; the bias is that number, or 0. A thread is a *member* of some locks, for a period; each membership is a slot of its own, into which it
/// alone stores:
///
///   0  --join-->  out(lock, period)  --enter-->  reads(lock, period)  --leave-->  out(lock, period) …  --withdraw-->  0
///
/// (M1) A thread joins while it holds the lock the other way: no writer is there, and the next one sees the slot.
/// (M2) A member that enters says that it reads and looks at the bias, with no fence between them: it may see a period that is over while its own store is still on its way.
/// (M3) A member that finds its period gone withdraws. Whoever sees the 0 knows: it is out, and it comes back the other way. That costs neither side more than a cache miss.
/// (M4) A member that stays out doesn't withdraw, unless it is about to write itself. After the moment in which the others do, the writer has every thread execute a fence: from then on slots say who reads, and who enters sees the end.
/// (M5) Writers of later periods don't look at it any more: a thread that sleeps, or does something else for long, costs one fence. When it reads again it finds another period than its own (M3).
/// Numbers of periods come again after two billion of them. A member that stayed out for so long is one of the new period, and as visible as who has just joined.
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

    /// What is in a slot: the lock's number, the period's in the lower half but for its last bit, which says whether the member reads.
    static constexpr std::uint64_t out(std::uint32_t lock, std::uint32_t period) { return std::uint64_t{lock} << 32U | std::uint64_t{period} << 1U; }
    static constexpr std::uint64_t reads(std::uint32_t lock, std::uint32_t period) { return out(lock, period) | 1U; }
    static constexpr bool is_reading(std::uint64_t value) { return value % 2 != 0; }
    static constexpr std::uint32_t lock_of(std::uint64_t value) { return static_cast<std::uint32_t>(value >> 32U); }
    static constexpr std::uint32_t period_of(std::uint64_t value) { return static_cast<std::uint32_t>(value) >> 1U; }
    /// The next period's number, 31 bits and never 0.
    static constexpr std::uint32_t after(std::uint32_t period) { return period == ~std::uint32_t{0} >> 1U ? 1 : period + 1; }

    /// Writers that sleep until a member leaves; of all locks together, because a member that leaves looks at it when its lock may be gone.
    struct Sleepers {
        Atomic<std::uint32_t> count{0};
        Atomic<std::uint32_t> departures{0};  ///< grows when somebody leaves while somebody sleeps
    };

    // Members.

    /// False: its period is over; the member has withdrawn. Requires: it is out.
    static bool enter(Slot& slot, const Atomic<std::uint32_t>& bias, Sleepers& sleepers) {
        const std::uint64_t value = slot.load(std::memory_order_relaxed);
        slot.store(value | 1U, Machine::reader_store);
        Machine::fence_of_compiler();
        if (bias.load(Machine::reader_load) == period_of(value)) return true;
        store_departure(slot, 0, sleepers);
        return false;
    }
    /// Requires: the member reads.
    static void leave(Slot& slot, Sleepers& sleepers) { store_departure(slot, slot.load(std::memory_order_relaxed) & ~std::uint64_t{1}, sleepers); }

    /// Requires: the member is out.
    static void withdraw(Slot& slot) { slot.store(0, Machine::reader_store); }

    // The writer.

    /// Returns when no member reads and none can enter. True: that took a fence in all threads. `for_each_slot` calls its argument with every slot that may be a member's. Requires: there is a bias.
    template <class ForEachSlot>
    static bool end(Atomic<std::uint32_t>& bias, std::uint32_t lock, Sleepers& sleepers, ForEachSlot&& for_each_slot) {
        const std::uint64_t member = out(lock, bias.load(std::memory_order_relaxed));
        bias.store(0, std::memory_order_seq_cst);
        bool all_withdrew = true;
        for_each_slot([&](const Slot& slot) { all_withdrew = all_withdrew && withdraws(slot, member); });
        if (all_withdrew) return false;
        Machine::fence_everywhere();
        for_each_slot([&](const Slot& slot) { wait_until_out(slot, member | 1U, sleepers); });
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
    static bool withdraws(const Slot& slot, std::uint64_t member) {
        int moment = Machine::moment;
        int near = Machine::near;
        for (;;) {
            const std::uint64_t value = slot.load(std::memory_order_acquire);
            if ((value & ~std::uint64_t{1}) != member) return true;
            int& left = is_reading(value) ? near : moment;
            if (left == 0) return false;
            Machine::spin(left--);
        }
    }

    static void wait_until_out(const Slot& slot, std::uint64_t reading, Sleepers& sleepers) {
        for (int left = Machine::near; left > 0; --left) {
            if (slot.load(std::memory_order_acquire) != reading) return;
            Machine::spin(left);
        }
        sleepers.count.fetch_add(1, std::memory_order_seq_cst);
        Machine::fence_everywhere();  // a member that leaves from here on sees us, one that left before is seen below
        for (;;) {
            const std::uint32_t departures = sleepers.departures.load(std::memory_order_acquire);
            if (slot.load(std::memory_order_acquire) != reading) break;
            Machine::sleep_while(sleepers.departures, departures);
        }
        sleepers.count.fetch_sub(1, std::memory_order_relaxed);
    }
};

}  // namespace taiyen::txn
