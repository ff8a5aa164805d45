#pragma once
/// HeapLoans: the loans of one open heap, under a lock of their own, since any thread may free what it was lent.
///
/// A transaction that lends nothing, and in which nobody frees anything, takes no lock here.
/// Lock order: README.md. Thread rule: safe; `begin`, `end`, `free_waiting`, `undo`, `redo` and `settle` belong to the thread that holds the writer lock.

#include <cstdint>
#include <mutex>
#include <new>
#include <utility>

#include "change/loans.hpp"

namespace taiyen::txn {

class HeapLoans {
public:
    /// The number of a transaction that begins. Throws: std::bad_alloc.
    std::uint32_t begin() {
        const std::uint32_t number = loans_.try_begin();
        if (number != 0) return number;
        const std::lock_guard lock(mutex_);
        return loans_.begin();
    }
    /// The number of an inner transaction, the `depth`-th that is open. Throws: std::bad_alloc.
    std::uint32_t begin_inner(std::size_t depth) {
        const std::lock_guard lock(mutex_);
        return loans_.begin_inner(depth);
    }
    /// It was rolled back.
    void inner_rolled_back(std::uint32_t number) noexcept {
        const std::lock_guard lock(mutex_);
        loans_.inner_rolled_back(number);
    }
    /// The newest number; for the thread that holds the writer lock.
    std::uint32_t last() const noexcept { return loans_.last(); }
    /// It is over.
    void end(bool kept) noexcept {
        if (kept && loans_.try_end()) return;
        const std::lock_guard lock(mutex_);
        loans_.end(kept);
    }
    /// Whether frees wait for a transaction.
    bool any_waits() const noexcept { return loans_.any_waits(); }
    /// Frees what waits by `free(void*)`, in the transaction that has just begun.
    template <class F>
    void free_waiting(F&& free) {
        if (!loans_.any_waits()) return;
        const std::lock_guard lock(mutex_);
        loans_.free_waiting(std::forward<F>(free));
    }

    /// Transactions whose steps are undone, redone, or undone for ever: as Loans.
    void undo(std::uint32_t first, std::uint32_t last) noexcept {
        const std::lock_guard lock(mutex_);
        loans_.undo(first, last);
    }
    void redo(std::uint32_t first, std::uint32_t last) noexcept {
        const std::lock_guard lock(mutex_);
        loans_.redo(first, last);
    }
    void settle() noexcept {
        const std::lock_guard lock(mutex_);
        loans_.settle();
    }

    /// Somebody outside transactions frees a block that nobody lent.
    void free_later(void* block) noexcept {
        const std::lock_guard lock(mutex_);
        wait(block, 0);
    }
    /// Who was lent the block by that transaction frees it; `in_transaction`: on the thread of the open one. True: it is to be freed now. Else nothing is left to do: it waits, or belongs to what it
    /// was moved out of.
    bool frees_now(void* block, std::uint32_t number, bool in_transaction) noexcept {
        const std::lock_guard lock(mutex_);
        const change::Loans::Fate fate = loans_.fate(number);
        if (fate == change::Loans::Fate::rolled_back) return false;
        if (fate == change::Loans::Fate::open && in_transaction) return true;
        wait(block, number);
        return false;
    }
    /// Whether what that transaction lent belongs to what it was moved out of, again.
    bool came_back(std::uint32_t number) const noexcept {
        const std::lock_guard lock(mutex_);
        return loans_.fate(number) == change::Loans::Fate::rolled_back;
    }

private:
    void wait(void* block, std::uint32_t number) noexcept {
        try {
            loans_.wait(block, number);
        } catch (const std::bad_alloc&) {
            // The block stays allocated: a leak, but nobody's data.
        }
    }

    mutable std::mutex mutex_;
    change::Loans loans_;
};

}  // namespace taiyen::txn
