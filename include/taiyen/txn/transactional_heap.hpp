#pragma once
/// TransactionalHeap: a heap whose every change is part of a transaction: atomic, isolated, durable.
///
///   taiyen::TransactionalHeap heap(taiyen::open_or_create, "bank.tyn");
///   {
///       taiyen::Transaction tx(heap);
///       heap.find_or_construct<taiyen::map<int, taiyen::string>>("accounts")[7] = "Ada";
///       tx.commit();                                       // durable when it returns
///   }
///   taiyen::ReadLock lock(heap);                           // many readers, one writer
///
/// Beside the heap's file stands its log (`x.tyn.log`): a commit appends what changed, a thread of the heap brings the files up to date in the background and gives the log's
/// room back, opening after a crash replays what the files don't hold. Nobody waits for that unless the log runs full.
/// What the calls that change a heap (allocate, resize, construct, destroy, make …) do outside a transaction of the calling thread: throw errc::no_transaction. A store into the heap
/// outside a transaction is a bug of the program; with Capture::pages it is reported where it happens, best effort.
/// Protocol: src/txn/FORMAT.md; guide: doc/transactions.md.
/// Thread rule: safe, the constructors, moving, close() and the destructor excepted; what lies in the heap is read under a ReadLock or in a transaction, and changed in a transaction.

#include <filesystem>
#include <memory>

#include <taiyen/base/detail/export.hpp>
#include <taiyen/base/units.hpp>
#include <taiyen/store/snapshot_heap.hpp>

namespace taiyen {

struct TransactionStats;  ///< taiyen/txn/transaction_stats.hpp

namespace txn {
class TransactionService;  ///< the compiled engine behind transactions and the log
}

class TAIYEN_EXPORT TransactionalHeap : public SnapshotHeap {
public:
    /// Creates `path` and its log (prewritten, `log_capacity` bytes), and a data file if `data_file` names one. Durability: the empty heap is durable on return.
    /// Throws: as ArchiveHeap; Error{not_instrumented} (Capture::stores, and no instrumented code is part of the program), Error{too_many_threads}.
    TransactionalHeap(create_only_t, const std::filesystem::path& path, const PersistentOptions& options = {});
    /// Opens a heap of any kind; one without a log gets one. After a crash every transaction that was acknowledged is replayed first.
    /// Throws: as ArchiveHeap; Error{too_many_threads}, Error{log_missing} (the log of a heap that was not closed is gone), Error{missing_procedure} (the log calls a procedure that this program has not
    /// registered): the files are untouched.
    TransactionalHeap(open_only_t, const std::filesystem::path& path, const PersistentOptions& options = {});
    TransactionalHeap(open_or_create_t, const std::filesystem::path& path, const PersistentOptions& options = {});
    /// Opens for reading: what was committed is there, also after a crash; nothing at all is written.
    TransactionalHeap(open_read_only_t, const std::filesystem::path& path, const PersistentOptions& options = {});
    TransactionalHeap(TransactionalHeap&&) noexcept = default;
    TransactionalHeap& operator=(TransactionalHeap&&) noexcept = default;
    TransactionalHeap(const TransactionalHeap&) = delete;
    TransactionalHeap& operator=(const TransactionalHeap&) = delete;
    /// As close(); what fails is reported. An open transaction of this thread is rolled back, transactions and readers of other threads are waited for.
    ~TransactionalHeap() = default;

    /// The newest transaction that survives a power cut; 0: none was ever committed. Throws: Error{closed}.
    Serial last_durable() const;
    /// Returns when that transaction is durable. Throws: Error{poisoned} (it may be lost), Error{invalid_argument} (there is no such transaction yet).
    void wait_durable(Serial serial) const;
    /// What was done since opening, and how full the log is; also of a heap that is poisoned. A reader's heap counts nothing. Throws: Error{closed}. Complexity: constant; any thread may ask.
    TransactionStats transaction_stats() const;
    /// Puts an empty log of that capacity (bytes, rounded up to 4 KiB; 0: as large as it is) in the place of the one in use, in another file if `path` isn't empty, which options name at the next opening (`log_file`).
    /// All that was committed is saved first. Other threads' transactions wait meanwhile. Durability: on return; after a crash the heap has the old log, the new one, or was closed without.
    /// Throws: Error{scope_open} (this thread has a transaction or a ReadLock), Error{no_space | mismatch | invalid_argument}: nothing changed. Complexity: that of a save, and of writing the new log once.
    void replace_log(std::size_t capacity, const std::filesystem::path& path = {});
    /// Takes the bytes of the heap from the files and the log again, in place: for a program that knows that its memory was damaged. Everything committed stays, addresses too.
    /// Throws: Error{scope_open | poisoned | corrupt}: the heap is poisoned if it can't be rebuilt. Complexity: reads the log and all pages written since opening.
    void rebuild();

    // Inherited, and what they mean here:
    // snapshot()  brings the files up to everything committed before the call; transactions go on meanwhile. Not needed for durability. Throws: Error{scope_open}.
    // close()     waits for other threads' transactions, then saves: opening is fast afterwards. Throws: Error{scope_open} if this thread has a transaction or a ReadLock.

protected:
    using SnapshotHeap::SnapshotHeap;
    friend struct HeapAccess;
};

}  // namespace taiyen
