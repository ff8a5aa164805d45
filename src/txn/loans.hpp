#pragma once
/// Loans: which transaction lent a durable block to an object outside, and what its free means now.
///
/// Transactions have numbers, unique for one opening of the heap; a block that was moved out carries the number of its transaction. When its owner frees it:
///   still open    freed at once, by the transaction's own thread
///   committed     waits for the next transaction, as every free outside transactions does
///   rolled back   ignored: the block belongs to what it was moved out of, again
/// What was rolled back is remembered as ranges; the rest was committed. Numbers start again after four billion transactions; an owner that holds its block for that long may be taken for another.
/// Thread rule: external lock; `begin`, `end` and `free_waiting` come from one thread at a time. That thread needs the lock neither for `try_begin` and `try_end`, which leave
/// alone what others look at, nor for `any_waits`.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <vector>

namespace taiyen::txn {

class Loans {
public:
    enum class Fate { open, committed, rolled_back };

    /// The number of a transaction that begins; 0: only `begin` can tell.
    std::uint32_t try_begin() noexcept {
        if (rolled_back_.size() == rolled_back_.capacity() || last_ == ~std::uint32_t{0}) return 0;
        open_.store(++last_, std::memory_order_relaxed);
        return last_;
    }
    /// The number of a transaction that begins. Throws: std::bad_alloc.
    std::uint32_t begin() {
        if (rolled_back_.size() == rolled_back_.capacity()) rolled_back_.reserve(std::max<std::size_t>(16, 2 * rolled_back_.size()));
        if (++last_ == 0) {
            rolled_back_.clear();
            ++last_;
        }
        open_.store(last_, std::memory_order_relaxed);
        return last_;
    }
    /// It ended and was kept. False: only `end` can do it.
    bool try_end() noexcept {
        if (freed_ != 0) return false;
        open_.store(0, std::memory_order_relaxed);
        return true;
    }
    /// It ended. What it freed for others is done for good if it was kept, and waits again if not.
    void end(bool kept) noexcept {
        if (kept) {
            waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(freed_));
            count_waiting();
        } else if (!rolled_back_.empty() && rolled_back_.back().last + 1 == last_) {
            rolled_back_.back().last = last_;
        } else {
            rolled_back_.push_back({last_, last_});
        }
        freed_ = 0;
        open_.store(0, std::memory_order_relaxed);
    }
    /// 0: lent by no transaction.
    Fate fate(std::uint32_t number) const noexcept {
        if (number != 0 && number == open_.load(std::memory_order_relaxed)) return Fate::open;
        const auto after = std::ranges::upper_bound(rolled_back_, number, {}, &Range::first);
        return after != rolled_back_.begin() && number <= std::prev(after)->last ? Fate::rolled_back : Fate::committed;
    }
    /// Throws: std::bad_alloc.
    void wait(void* block, std::uint32_t number) {
        waiting_.push_back({block, number});
        count_waiting();
    }
    bool any_waits() const noexcept { return waiting_count_.load(std::memory_order_relaxed) != 0; }
    /// Frees what waits by `free(void*)`, in the transaction that has just begun.
    template <class F>
    void free_waiting(F&& free) {
        std::erase_if(waiting_, [this](const Waiting& waiting) { return fate(waiting.number) == Fate::rolled_back; });
        for (const Waiting& waiting : waiting_) free(waiting.block);
        freed_ = waiting_.size();
        count_waiting();
    }

private:
    struct Range {
        std::uint32_t first;
        std::uint32_t last;
    };
    struct Waiting {
        void* block;
        std::uint32_t number;
    };
    void count_waiting() noexcept { waiting_count_.store(waiting_.size(), std::memory_order_relaxed); }

    std::uint32_t last_ = 0;
    std::atomic<std::uint32_t> open_{0};  ///< `last_`, or 0; others may ask for its fate while it ends
    std::vector<Range> rolled_back_;  ///< ascending; room for one more while a transaction is open
    std::vector<Waiting> waiting_;
    std::atomic<std::size_t> waiting_count_{0};
    std::size_t freed_ = 0;  ///< the first of them, by the open transaction
};

}  // namespace taiyen::txn
