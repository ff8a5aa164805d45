#pragma once
/// Which heaps this thread reads under a ReadLock, so that a second lock costs nothing and a transaction that would wait for its own thread is refused.
/// Thread rule: each thread has its own.

namespace taiyen::txn {

class TransactionService;

struct ReadersHere {
    static bool holds(const TransactionService& service) noexcept;
    /// One more lock on a heap that is locked already. False: it isn't.
    static bool add_inner(const TransactionService& service) noexcept;
    /// Throws: Error{invalid_argument}: this thread reads too many heaps at once.
    static void require_room();
    /// Requires: !holds, require_room.
    static void add(const TransactionService& service) noexcept;
    /// True: that was the heap's last lock of this thread.
    static bool remove(const TransactionService& service) noexcept;
};

}  // namespace taiyen::txn
