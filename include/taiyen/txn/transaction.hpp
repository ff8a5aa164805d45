#pragma once
/// Transaction: what happens between its construction and its commit is durable as a whole, or never happened.
///
/// One transaction writes at a time; its constructor waits for the one before it and for readers. `commit()` gives the heap to the next one before it waits for the disk, so
/// threads that commit at the same time share one write. Destroyed uncommitted: rolled back; that allocates nothing and can't fail.
/// A transaction opened within another of the same thread and heap is an inner one, a savepoint: rolled back, or left by an exception, it takes back what was done since it began, and the outer one goes on. Committed
/// it becomes part of the outer one, and is taken back if that is rolled back. To any depth.
/// (Without capture, RelaxedRollback::loading, it can't be taken back alone: the outer one is doomed, too.) A container outside the heap that existed before a transaction and was changed inside it is invalid after a
/// rollback. A transaction may outlive its heap object: then it is over, and was rolled back. So is one that its thread leaves open when it ends, which is reported (errc::transaction_doomed).
/// Thread rule: begins and ends on one thread, in reverse order.

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <taiyen/base/detail/export.hpp>
#include <taiyen/base/units.hpp>
#include <taiyen/change/arguments.hpp>
#include <taiyen/heap/detail/access.hpp>
#include <taiyen/txn/transactional_heap.hpp>

namespace taiyen {

class TAIYEN_EXPORT Transaction {
public:
    /// Throws: Error{closed | read_only | poisoned | forked | scope_open (this thread has a ReadLock on the heap: it would wait for itself; or a procedure is running) |
    /// stray_write | uncaptured_store (of the outer transaction, with Audit::scope)}, std::bad_alloc, HeapFull{address_space}.
    [[nodiscard]] explicit Transaction(TransactionalHeap& heap);
    ~Transaction();
    Transaction(const Transaction&) = delete;
    Transaction& operator=(const Transaction&) = delete;

    /// Ends the transaction and keeps its changes; returns its serial. A transaction that changed nothing gets none: the last one's is returned.
    /// Durability: on return; with Durability::async about `loss_window` later; while the device is slower than that, commits wait for it (`TransactionalHeap::wait_durable`). An inner transaction: with the outermost one's commit.
    /// Throws: Error{transaction_doomed (its thread has ended, an inner one or a procedure was rolled back without capture, or the system refuses to capture again what was touched) | foreign_pointer | uncaptured_store | closed | …}, std::bad_alloc, HeapFull: rolled back. Error{poisoned | io_error}: the log failed; whether the
    /// transaction survives is known when the heap is opened again. Error{scope_open} (an inner transaction is) | Error{invalid_argument} (ended already): nothing happened.
    Serial commit();
    /// Ends the transaction and takes its changes back; of an inner one its own, and those of what was kept within it. Nothing happens if it ended already.
    void rollback() noexcept;
    /// The bytes are about to be changed by means that capture can't see: a system call that writes into the heap, any store with Capture::declared. Holds until the transaction ends, within inner ones, too.
    /// Throws: Error{closed | invalid_argument (not in the heap)}, std::bad_alloc.
    void touch(void* address, std::size_t bytes);

    /// Calls a registered procedure; the log remembers the call instead of the bytes it changes, unless it allocates or frees, or the bytes are fewer. After a crash recovery calls
    /// it again. Throws: Error{missing_procedure | type_mismatch | closed | …} and what the procedure throws: then the call never happened.
    template <class... A>
    void call(std::string_view name, const A&... arguments) {
        change::ArgumentWriter bytes(core());
        (change::put_argument<change::stored_t<A>>(bytes, change::stored_t<A>(arguments)), ...);
        call_erased(name, change::signature<change::stored_t<A>...>(), bytes.bytes);
    }

    bool is_open() const noexcept;

private:
    heap::HeapCore& core() const;
    void call_erased(std::string_view name, const std::string& signature, std::span<const std::byte> arguments);
    txn::TransactionService& open_service() const;
    void leave() noexcept;

    std::shared_ptr<txn::TransactionService> service_;  ///< null: ended
    Transaction* outer_ = nullptr;                      ///< the thread's innermost transaction before this one, of whatever heap
    std::size_t depth_ = 0;                             ///< 1: outermost of its heap
};

/// Runs `action`, with the transaction as its argument if it takes one: committed when it returns, rolled back when it throws. Returns what it returns.
/// `committed`: gets the serial that the commit returned, for waiting for it (`wait_durable`) or telling others; unchanged if something throws.
/// Durability and Throws: as Transaction::commit; and what `action` throws.
template <class F>
auto transact(TransactionalHeap& heap, Serial& committed, F&& action) {
    Transaction transaction(heap);
    const auto run = [&]() -> decltype(auto) {
        if constexpr (std::is_invocable_v<F&&, Transaction&>)
            return std::forward<F>(action)(transaction);
        else
            return std::forward<F>(action)();
    };
    if constexpr (std::is_void_v<decltype(run())>) {
        run();
        committed = transaction.commit();
    } else {
        auto result = run();
        committed = transaction.commit();
        return result;
    }
}
/// The same without the serial.
template <class F>
auto transact(TransactionalHeap& heap, F&& action) {
    Serial committed;
    return transact(heap, committed, std::forward<F>(action));
}

}  // namespace taiyen
