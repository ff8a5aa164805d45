#pragma once
/// Loans: which transaction lent a durable block to an object outside, and what its free means now.
///
/// Transactions have numbers, unique for one opening of the heap; a block that was moved out carries the number of its transaction. When its owner frees it:
///   still open    freed at once, by the transaction's own thread
///   committed     waits for the next transaction, as every free outside transactions does
///   rolled back   ignored: the block belongs to what it was moved out of, again
/// What was rolled back is remembered as ranges; the rest was committed. Numbers start again after four billion transactions; an owner that holds its block for that long may be taken for another.
/// Thread rule: external lock.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <vector>

namespace taiyen::txn {

class Loans {
public:
    enum class Fate { open, committed, rolled_back };

    /// The number of a transaction that begins. Throws: std::bad_alloc.
    std::uint32_t begin() {
        if (rolled_back_.size() == rolled_back_.capacity()) rolled_back_.reserve(std::max<std::size_t>(16, 2 * rolled_back_.size()));
        if (++last_ == 0) {
            rolled_back_.clear();
            ++last_;
        }
        open_ = last_;
        return open_;
    }
    /// It ended. What it freed for others is done for good if it was kept, and waits again if not.
    void end(bool kept) noexcept {
        if (kept) {
            waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(freed_));
        } else if (!rolled_back_.empty() && rolled_back_.back().last + 1 == open_) {
            rolled_back_.back().last = open_;
        } else {
            rolled_back_.push_back({open_, open_});
        }
        freed_ = 0;
        open_ = 0;
    }
    /// 0: lent by no transaction.
    Fate fate(std::uint32_t number) const noexcept {
        if (number != 0 && number == open_) return Fate::open;
        const auto after = std::ranges::upper_bound(rolled_back_, number, {}, &Range::first);
        return after != rolled_back_.begin() && number <= std::prev(after)->last ? Fate::rolled_back : Fate::committed;
    }
    /// Throws: std::bad_alloc.
    void wait(void* block, std::uint32_t number) { waiting_.push_back({block, number}); }
    bool any_waits() const noexcept { return !waiting_.empty(); }
    /// Frees what waits by `free(void*)`, in the transaction that has just begun.
    template <class F>
    void free_waiting(F&& free) {
        std::erase_if(waiting_, [this](const Waiting& waiting) { return fate(waiting.number) == Fate::rolled_back; });
        for (const Waiting& waiting : waiting_) free(waiting.block);
        freed_ = waiting_.size();
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
    std::uint32_t last_ = 0;
    std::uint32_t open_ = 0;
    std::vector<Range> rolled_back_;  ///< ascending; room for one more while a transaction is open
    std::vector<Waiting> waiting_;
    std::size_t freed_ = 0;  ///< the first of them, by the open transaction
};

}  // namespace taiyen::txn
