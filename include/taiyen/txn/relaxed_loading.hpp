#pragma once
/// RelaxedLoading: while one lives, transactions of a heap are isolated as ever, but nothing of them is written and nothing is captured: for filling a heap fast.
///
///   {
///       taiyen::RelaxedLoading loading(heap);
///       for (const auto& [key, value] : million) taiyen::transact(heap, [&] { index[key] = value; });
///       loading.wait_until_strict();                       // everything is durable
///   }
///
/// A commit returns at once and says nothing to the log. What was committed meanwhile gets into the files as a whole: by wait_until_strict(), `snapshot()`, `wait_durable()`, closing, the first commit after the last
/// guard's end, or when `dirty_limit` asks for room. So what changes again and again is written once. A crash before that leaves the heap as of the last such point, or the last strict commit: whole, and without what
/// was committed since.
/// A save that fails meanwhile (a full disk) stops no transaction before half of `dirty_limit` has been changed since the last one; from then on beginning one tries the save again, and throws what it threw.
/// It holds for all threads of this process, as long as any guard lives; it ends with the process.
///
/// Loading takes about as long as in an ArchiveHeap, because nobody notes what a transaction changes. A transaction that is rolled back, whatever it did, takes with it what a crash would: the heap is as of the last
/// durable point again, what was made since is gone, and as long as the guard lives beginning a transaction throws Error{transaction_doomed}. Pointers that lead out of the heap are found by the save, stores outside
/// transactions by nobody. A program whose transactions may fail one by one says so:
///
///   taiyen::RelaxedLoading loading(heap, taiyen::RelaxedRollback::transaction);
///
/// Then each page that a transaction stores into is captured, which costs many times the rest with `Capture::pages`, and a rollback takes back that transaction alone. So it is without asking where somebody wants to know
/// what changes: with a history that is attached, an audit, `Verify::at_first_touch`, memory on loan, or a guard of the other kind beside it.
/// Thread rule: one thread at a time; several guards may live at once.

#include <memory>

#include <taiyen/base/detail/export.hpp>
#include <taiyen/txn/transactional_heap.hpp>

namespace taiyen {

/// What a rollback takes back while loading is relaxed.
enum class RelaxedRollback {
    loading,     ///< it may take all that was committed since the last durable point: nothing is captured
    transaction  ///< that transaction, as ever
};

class TAIYEN_EXPORT RelaxedLoading {
public:
    /// Throws: Error{closed | read_only | poisoned | forked}.
    [[nodiscard]] explicit RelaxedLoading(TransactionalHeap& heap, RelaxedRollback takes_back = RelaxedRollback::loading);
    /// As end().
    ~RelaxedLoading();
    RelaxedLoading(const RelaxedLoading&) = delete;
    RelaxedLoading& operator=(const RelaxedLoading&) = delete;

    /// From now on commits are durable again, unless another guard lives. What was committed before becomes durable soon, in the background, and at the latest with the next commit.
    void end() noexcept;
    /// Ends, and returns when everything committed before the call is durable. Throws: Error{transaction_doomed} (a rollback has taken the loading back), Error{scope_open} (this thread has a transaction or a
    /// ReadLock), Error{closed | poisoned | no_space | foreign_pointer | …}.
    void wait_until_strict();

private:
    std::shared_ptr<txn::TransactionService> service_;
    RelaxedRollback takes_back_;
    bool relaxes_ = true;
};

}  // namespace taiyen
