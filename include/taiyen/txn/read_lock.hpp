#pragma once
/// ReadLock: while it lives, nothing in the heap changes.
///
/// Any number of threads may hold one; a transaction waits until those that came before it are gone, and readers that come later wait for that transaction: neither side
/// starves. Within a transaction or another ReadLock of the same thread it costs nothing.
/// Thread rule: begins and ends on one thread.

#include <taiyen/base/detail/export.hpp>
#include <taiyen/base/units.hpp>
#include <taiyen/txn/transactional_heap.hpp>

namespace taiyen {

class TAIYEN_EXPORT ReadLock {
public:
    /// Throws: Error{closed | forked | poisoned}. Complexity: constant while nobody writes; writes no memory that another thread writes then.
    [[nodiscard]] explicit ReadLock(const TransactionalHeap& heap);
    ~ReadLock();
    ReadLock(const ReadLock&) = delete;
    ReadLock& operator=(const ReadLock&) = delete;

    /// The newest transaction that this reader sees; it may not be durable yet. An answer that leaves the process and must survive a power cut waits for it
    /// (`TransactionalHeap::wait_durable`).
    Serial serial() const noexcept { return serial_; }

private:
    txn::TransactionService* service_ = nullptr;  ///< null: nothing to unlock
    Serial serial_;
};

}  // namespace taiyen
