#pragma once
/// Loans: which transaction, or scope, lent a durable block to an object outside, and what its free means now.
///
/// Transactions have numbers, unique for one opening of the heap, inner ones too; a block that was moved out carries the number of the innermost one of that moment. When its owner frees it:
///   still open    freed at once, by the transaction's own thread
///   committed     waits for the next transaction, as every free outside transactions does
///   rolled back   ignored: the block belongs to what it was moved out of, again
///   undone        the same, as long as it is not redone; a free that waits already goes on waiting
/// What was rolled back or is undone is remembered as ranges; the rest was committed. Numbers start again after four billion transactions; an owner that holds its block for that long may be taken for another.
/// Thread rule: external lock; whatever changes something comes from one thread at a time. That thread needs the lock neither for `try_begin` and `try_end`, which leave
/// alone what others look at, nor for `any_waits`.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <new>
#include <vector>

namespace taiyen::change {

class Loans {
public:
    enum class Fate { open, committed, rolled_back };

    /// The number of a transaction that begins; 0: only `begin` can tell.
    std::uint32_t try_begin() noexcept {
        const bool room = rolled_back_.capacity() - rolled_back_.size() > undone_.size() && undone_.size() < undone_.capacity();
        if (!room || last_ >= restart_at) return 0;
        open_.store(++last_, std::memory_order_relaxed);
        return last_;
    }
    /// The number of a transaction that begins; with room for as many more by `try_begin` behind its end. Throws: std::bad_alloc.
    std::uint32_t begin(std::size_t following = 0) {
        reserve(rolled_back_, undone_.size() + 1 + following);
        reserve(undone_, 1 + following);
        if (++last_ > restart_at) {
            rolled_back_.clear();
            undone_.clear();
            last_ = 1;
        }
        open_.store(last_, std::memory_order_relaxed);
        return last_;
    }
    /// The number of an inner transaction of the open one, which is the `depth`-th, that included. Throws: std::bad_alloc (or there are no numbers left).
    std::uint32_t begin_inner(std::size_t depth) {
        if (last_ == ~std::uint32_t{0}) throw std::bad_alloc();
        reserve(rolled_back_, undone_.size() + depth);
        return ++last_;
    }
    /// An inner one that began with that number was rolled back, and with it those within it.
    void inner_rolled_back(std::uint32_t number) noexcept { add(rolled_back_, {number, last_}); }
    /// The newest number.
    std::uint32_t last() const noexcept { return last_; }
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
        } else {
            add(rolled_back_, {open_.load(std::memory_order_relaxed), last_});
        }
        freed_ = 0;
        open_.store(0, std::memory_order_relaxed);
    }
    /// 0: lent by no transaction.
    Fate fate(std::uint32_t number) const noexcept {
        if (holds(rolled_back_, number) || holds(undone_, number)) return Fate::rolled_back;
        const std::uint32_t open = open_.load(std::memory_order_relaxed);
        return open != 0 && number >= open ? Fate::open : Fate::committed;
    }
    /// Steps that are undone came from these transactions. Once in each transaction, between its `begin` and the next one.
    void undo(std::uint32_t first, std::uint32_t last) noexcept { add(undone_, {first, last}); }
    /// They were redone. Requires: they are the newest that were undone.
    void redo(std::uint32_t first, std::uint32_t last) noexcept {
        std::erase_if(undone_, [&](const Range& range) { return range.first >= first && range.last <= last; });
        for (Range& range : undone_)
            if (range.first <= last && range.last > last) range.first = last + 1;
    }
    /// What is undone stays so.
    void settle() noexcept {
        for (const Range& range : undone_) add(rolled_back_, range);
        undone_.clear();
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
        std::erase_if(waiting_, [this](const Waiting& waiting) { return holds(rolled_back_, waiting.number); });
        const auto end = std::partition(waiting_.begin(), waiting_.end(), [this](const Waiting& waiting) { return !holds(undone_, waiting.number); });
        for (auto waiting = waiting_.begin(); waiting != end; ++waiting) free(waiting->block);
        freed_ = static_cast<std::size_t>(end - waiting_.begin());
        count_waiting();
    }

private:
    struct Range {
        std::uint32_t first;
        std::uint32_t last;
    };
    /// What is above is for inner transactions of one that began below.
    static constexpr std::uint32_t restart_at = 0xf000'0000;

    static void reserve(std::vector<Range>& ranges, std::size_t more) {
        if (ranges.capacity() - ranges.size() < more) ranges.reserve(std::max<std::size_t>(16, 2 * (ranges.size() + more)));
    }
    /// Requires: room for one more.
    static void add(std::vector<Range>& ranges, Range range) noexcept {
        const auto touches = [&](const Range& other) { return other.first <= std::uint64_t{range.last} + 1; };  // of those that don't end before it
        auto from = std::ranges::lower_bound(ranges, range.first == 0 ? 0 : range.first - 1, {}, &Range::last);
        if (from != ranges.end() && !touches(*from)) from = ranges.end();
        if (from == ranges.end()) {
            ranges.insert(std::ranges::upper_bound(ranges, range.first, {}, &Range::first), range);
            return;
        }
        const auto to = std::find_if_not(from, ranges.end(), touches);
        *from = {std::min(from->first, range.first), std::max(std::prev(to)->last, range.last)};
        ranges.erase(std::next(from), to);
    }
    static bool holds(const std::vector<Range>& ranges, std::uint32_t number) noexcept {
        const auto after = std::ranges::upper_bound(ranges, number, {}, &Range::first);
        return after != ranges.begin() && number <= std::prev(after)->last;
    }
    struct Waiting {
        void* block;
        std::uint32_t number;
    };
    void count_waiting() noexcept { waiting_count_.store(waiting_.size(), std::memory_order_relaxed); }

    std::uint32_t last_ = 0;
    std::atomic<std::uint32_t> open_{0};  ///< of the outermost transaction, or 0; others may ask for its fate while it ends
    std::vector<Range> rolled_back_;      ///< ascending; room for what is undone, and one more for each transaction that is open
    std::vector<Range> undone_;           ///< ascending; room for one more
    std::vector<Waiting> waiting_;
    std::atomic<std::size_t> waiting_count_{0};
    std::size_t freed_ = 0;  ///< the first of them, by the open transaction
};

}  // namespace taiyen::change
