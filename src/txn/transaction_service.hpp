#pragma once
/// TransactionService: transactions, readers and the log of one open heap. It owns the recorder and the log, takes part in the heap's life, and outlives the heap as long as
/// a transaction holds it.
///
/// (I1) Whoever changes the span holds the writer lock; serials are given, and records appended, under it: the log's order is the order in which transactions ran.
/// (I2) `rollback` allocates nothing and calls nobody's code (change::OpenScopes, I1). Where the system refuses to open pages again, even together with their neighbours or the whole heap, the heap is poisoned.
/// (I3) A file never claims a serial whose bytes it doesn't hold: a save gets the end of a durable group, or is made under the writer lock.
/// (I4) The log's room is given back only behind a save whose header is durable.
/// (I5) Who waits for room in the log never holds what the snapshot needs that makes the room: it saves itself where the snapshot would need the writer lock.
/// (I6) What is committed while loading is relaxed stands in no log: `last_committed()` is ahead of it then, and nothing is appended before a save under the writer lock has brought the files up to
///      there. So the log never holds a transaction whose predecessors are neither in it nor in the files.
/// (I7) A transaction that nobody captures is never appended to the log: it is saved as a part of the span, or taken back with all that is ahead of the log.
/// (I8) A thread that ends takes back what it has left open: nobody waits for a transaction that can't end, and nobody is taken for its owner.
/// Lock order: README.md. Thread rule: safe; begin, commit and rollback of one transaction belong to one thread.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <taiyen/base/error.hpp>
#include <taiyen/store/options.hpp>
#include <taiyen/txn/relaxed_loading.hpp>
#include <taiyen/txn/transaction_stats.hpp>

#include "base/thread_number.hpp"
#include "change/edits.hpp"
#include "change/open_scopes.hpp"
#include "log/group_log.hpp"
#include "store/heap_file.hpp"
#include "txn/biased_lock.hpp"
#include "txn/changed_pages.hpp"
#include "txn/commit_gate.hpp"
#include "txn/heap_loans.hpp"
#include "txn/readers_here.hpp"
#include "txn/record_writer.hpp"

namespace taiyen::txn {

class Snapshots;

class TransactionService final : public store::SnapshotParticipant,
                                 public heap::WriteObserver,
                                 public change::Edits,
                                 public std::enable_shared_from_this<TransactionService> {
public:
    /// Joins a heap that was opened as transactional: capture begins, the log is taken over. A reader's heap gets none. Throws: Error{not_instrumented | too_many_threads | …}, std::bad_alloc, HeapFull.
    static void join(store::HeapFile& file, const PersistentOptions& options);
    /// Null: a reader's heap, or a closed one. Requires: the heap was opened as transactional.
    static TransactionService* of(const store::HeapFile& file) noexcept {
        store::SnapshotParticipant* const participant = file.participant();
        return participant != nullptr && participant->has_transactions() ? static_cast<TransactionService*>(participant) : nullptr;
    }
    ~TransactionService() override;

    // Transactions; change::Edits.
    void begin(Purpose purpose = Purpose::edit) override;
    /// Ends the innermost transaction. Throws: it was rolled back (an outermost one), or all of them are doomed; Error{poisoned} after the log failed; Error{unconfirmed}: it was committed, as CommitGate says.
    Serial commit(Wait wait = Wait::durable) override;
    void rollback() noexcept override;
    /// Of this thread; 0: it has none.
    std::size_t depth() const noexcept override { return is_mine() ? scopes_.depth() : 0; }
    bool in_call() const noexcept override { return scopes_.in_call(); }
    void touch(const void* address, ByteCount bytes) override;
    void call(std::string_view name, const std::string& signature, std::span<const std::byte> arguments) override {
        scopes_.call(open_file().image().mapped(), name, signature, arguments);
    }
    std::shared_ptr<change::StepKeeper> keeper() const override;
    void set_keeper(std::shared_ptr<change::StepKeeper> keeper) override;
    std::shared_ptr<change::Edits> shared() override { return shared_from_this(); }
    void end_part() override { scopes_.end_part(); }
    void repeat(const change::Entry& call, change::Direction direction) override { scopes_.repeat(open_file().image().mapped(), call, direction); }
    const change::Recorder& recorder() const override { return scopes_.recorder(); }
    void loans_undone(std::uint32_t first, std::uint32_t last) noexcept override { loans_.undo(first, last); }
    void loans_redone(std::uint32_t first, std::uint32_t last) noexcept override { loans_.redo(first, last); }
    void loans_settled() noexcept override { loans_.settle(); }
    bool annex_fits() const noexcept override { return annex_fits_; }
    /// Null: the heap is gone.
    store::HeapFile* file() const noexcept { return file_.load(std::memory_order_acquire); }

    // Readers.
    /// False: there is nothing to unlock, this thread is in a transaction. Throws: Error{closed | poisoned | forked}.
    bool lock_shared() override;
    void unlock_shared() noexcept override;
    Serial last_committed() const noexcept { return {last_.load(std::memory_order_acquire)}; }

    // Durability.
    const log::GroupLog& log() const noexcept { return *log_; }
    /// For who follows it, and may outlive the heap.
    const std::shared_ptr<log::GroupLog>& shared_log() const noexcept { return log_; }
    Serial last_durable() const;
    TransactionStats stats() const;
    void wait_durable(Serial serial);
    void rebuild();
    void replace_log(ByteCount capacity, const std::filesystem::path& path);

    // Replication.
    /// From now on no transaction begins: `begin` throws that error. Waits for nobody.
    void refuse(const Error& why);
    /// From now on transactions that begin log the bytes that a procedure's call changed, not the call: who replays it elsewhere has no procedures. Waits for nobody.
    void log_bytes_of_calls() noexcept;
    /// Who has a word in each transaction that begins or ends from now on; null: nobody.
    void set_gate(std::shared_ptr<CommitGate> gate);
    /// Nobody has, if it is that one.
    void clear_gate(const CommitGate& gate) noexcept;
    Durability durability() const noexcept { return durability_; }
    /// Whether a transaction behind that one may have logged a call.
    bool has_calls_behind(Serial serial) const noexcept { return needs_heap_.load(std::memory_order_acquire) > serial.value; }
    /// `step` while a ReadLock of this thread, if it has one, is let go: for who waits for somebody who wants to write.
    template <class F>
    void without_read_lock(F&& step) noexcept;
    /// Of a heap that follows another file of it: these transactions, the next ones, become durable, then visible, all at once. Waits for readers. Complexity: one durable write.
    /// Requires: one thread, which has no ReadLock. Throws: Error{corrupt | missing_procedure | no_space | poisoned | closed | …}, HeapFull: those up to `last_committed()` happened.
    void follow(const log::Record& group);
    /// The same: `pages` (ascending) become what `fill` says, and the heap is as of `serial`, which isn't older than what it holds. Requires: as above; everything committed was saved.
    /// Durability: on return. Throws: as above.
    /// With the same save the header gets `mark`. `fill` must not fail: the heap would be poisoned.
    void follow_pages(Serial serial, ByteCount extent, const store::AnnexHead& annex, std::span<const PageNumber> pages, const store::FillPages& fill,
                      const store::ReplicaMark& mark);

    // Relaxed loading.
    void relax(RelaxedRollback takes_back) noexcept;
    void end_relaxed(RelaxedRollback takes_back) noexcept;
    /// Whether a rollback has taken back what was loaded, and a guard that allows it lives.
    bool is_loading_lost() const noexcept { return loading_lost_.load(std::memory_order_relaxed); }
    [[noreturn]] void throw_loading_lost() const;
    /// Whether transactions were committed that neither the log nor the files have.
    bool is_ahead_of_log() const noexcept {
        const Serial committed = last_committed();  // first: what is committed was appended before
        return committed > log_->appended();
    }

    // store::SnapshotParticipant
    heap::WriteObserver* observer() override { return this; }
    bool has_transactions() const noexcept override { return true; }
    bool save_itself() override;
    void stand_still(const std::function<void()>& step) override;
    void check_change() const override;
    void before_save() override {}
    void saved() noexcept override {}
    void extended(ByteCount from, ByteCount to) override {
        changed_pages_.extended(to);
        scopes_.recorder().extended(from, to);
    }
    void about_to_restore(PageNumber page) override;
    bool keeps_open(PageNumber page) const noexcept override { return scopes_.has_recorder() && scopes_.recorder().keeps_open(page); }
    void before_close() override;
    void before_abandon() noexcept override;
    void left() noexcept override;
    bool free_later(void* block) noexcept override;
    bool free_lent(void* block, std::uint32_t scope) noexcept override;
    bool lent_came_back(std::uint32_t scope) const noexcept override { return loans_.came_back(scope); }

    // heap::WriteObserver
    void about_to_write(HeapOffset offset, ByteCount length) override;

private:
    friend class Snapshots;
    /// What is used again keeps no more memory than this.
    static constexpr ByteCount kept_bytes = ByteCount{1} << 20U;

    TransactionService(store::HeapFile& file, const PersistentOptions& options);

    bool is_mine() const noexcept;
    /// The thread that begins a transaction takes it back if it ends before.
    void watch_thread() noexcept;
    void unwatch_thread() noexcept;
    void thread_ends() noexcept;
    /// Whether the transaction of an object that outlives its thread's end was taken back then.
    bool was_taken_back() const noexcept;
    store::HeapFile& open_file() const;
    std::shared_ptr<CommitGate> gate() const;
    /// `gate`: null: it is not asked.
    void begin_outermost(Purpose purpose, CommitGate* gate);
    Serial commit_here(Wait wait);
    void start_transaction(store::HeapFile& file, Purpose purpose);
    void begin_inner();
    const char* why_doomed() const noexcept;
    void roll_back_inner(store::HeapFile& file) noexcept;
    /// Who keeps steps does it, and what of the annex changes with the transaction is in `annex_`.
    void keep_step();
    void refuse_foreign_pointers(store::HeapFile& file) const;
    /// Counts what changed; `logged`: all segments into `record_`; false: it would be larger than the log can take. Throws: std::bad_alloc.
    bool make_record(bool logged);
    Serial commit_outermost(store::HeapFile& file);
    /// Makes the transaction's record, then finds what keeps it: the log, a save, or for now memory alone. Returns whether a snapshot is due.
    bool keep(store::HeapFile& file, Serial serial);
    /// False: it doesn't fit, or the room can't be made meanwhile.
    bool keep_in_log(Serial serial, ByteCount extent);
    void take_back() noexcept;
    void end(bool kept) noexcept;
    void save_everything(store::HeapFile& file);
    bool does_without_capture(store::HeapFile& file, Purpose purpose) const noexcept;
    void choose_capture(store::HeapFile& file, Purpose purpose);
    void look_at_memory(const store::HeapFile& file) noexcept;
    void take_loading_back(store::HeapFile& file) noexcept;
    void read_again(store::HeapFile& file);
    /// Memory is what the files hold: what capture knew of it is forgotten.
    void renew_recorder(store::HeapFile& file);
    /// So many pages were changed that weren't since the newest save began.
    void count_changed(std::uint64_t pages) noexcept {
        changed_bytes_.store(changed_bytes_.load(std::memory_order_relaxed) + pages * page_bytes, std::memory_order_relaxed);
    }
    /// For what was changed, or `anyway`. It counts as asked for.
    bool is_snapshot_due(bool anyway) noexcept;
    store::HeapFile& file_to_follow() const;
    void stop_saving() noexcept;
    /// Whether a transaction may begin; else what was changed has to be saved first, and its memory given back.
    bool may_change_more() const noexcept {
        return changed_bytes_.load(std::memory_order_relaxed) <= changed_bytes_allowed_.load(std::memory_order_relaxed);
    }
    /// A save begins: what is changed from now on counts anew. Returns what `allow_changes_from` wants to know behind it.
    std::uint64_t begin_count() noexcept {
        const std::uint64_t changed = changed_bytes_.load(std::memory_order_relaxed);
        changed_pages_.begin_anew();
        return changed;
    }
    /// What was changed up to there has been saved.
    void allow_changes_from(std::uint64_t changed) noexcept {
        changed_bytes_allowed_.store(changed + open_file().dirty_limit() / 2, std::memory_order_relaxed);
    }
    void tell_keeper_left() noexcept;

    std::atomic<store::HeapFile*> file_;  ///< null: the heap is gone; changes under the writer lock only
    const std::shared_ptr<const store::EventSource> events_;
    const Durability durability_;
    const ByteCount changed_bytes_max_;
    std::shared_ptr<log::GroupLog> log_;  ///< null: the heap is gone; shared with who waits for its disk
    change::OpenScopes scopes_;           ///< of the thread that holds the writer lock

    BiasedLock lock_;
    std::atomic<ThreadNumber> owner_{0};          ///< of the thread that holds the writer lock for a transaction
    std::atomic<std::uint64_t> last_;             ///< newest committed serial
    std::atomic<std::uint64_t> logged_bytes_{0};  ///< this and the next two change under the writer lock only
    std::atomic<std::uint64_t> rollbacks_{0};
    std::atomic<std::uint64_t> saves_in_commits_{0};
    const Serial first_;          ///< newest one before all that were committed here
    ChangedPages changed_pages_;  ///< since the newest save began
    /// Of pages, ever; a page counts once between two saves. Changes under the writer lock only.
    std::atomic<std::uint64_t> changed_bytes_{0};
    std::atomic<std::uint64_t> changed_bytes_allowed_;  ///< until more was saved
    std::atomic<unsigned> relaxed_{0};                  ///< guards that live
    std::atomic<unsigned> uncaptured_guards_{0};        ///< those of them under which a rollback may take back what was loaded
    std::atomic<bool> loading_lost_{false};             ///< one did
    std::atomic<std::uint64_t> needs_heap_{0};          ///< newest serial whose record can't be patched into pages

    // Of the thread that holds the writer lock:
    TransactionService* next_here_ = nullptr;  ///< another one that the thread has a transaction of
    bool closing_ = false;
    std::atomic<const Error*> refusal_{nullptr};  ///< of transactions; it stays, and so does what it points to
    std::vector<std::unique_ptr<const Error>> refusals_;
    std::mutex refusals_mutex_;
    std::atomic<bool> calls_as_bytes_{false};
    std::atomic<bool> has_gate_{false};
    mutable std::mutex gate_mutex_;
    std::shared_ptr<CommitGate> gate_;
    std::uint64_t asked_at_ = 0;  ///< `changed_bytes_` when that was last a reason for a snapshot
    RecordWriter record_;         ///< of the transaction that commits
    Purpose purpose_ = Purpose::edit;
    std::uint32_t first_ahead_ = 0;  ///< of the first one that neither the log nor the files have
    bool uncaptured_ = false;        ///< the recorder is stopped: nobody knows what the open transaction changes
    bool unsearched_ = false;        ///< nobody has looked for foreign pointers in what was committed so, until it is saved
    std::chrono::steady_clock::time_point next_look_;
    std::vector<change::ChangeSetView> parts_;  ///< its memory is used again
    change::ChangeSet annex_;                   ///< what the open transaction changes in the annex
    bool annex_fits_ = false;                   ///< whether there is an annex in use, and nothing was committed beside it
    mutable std::mutex keeper_mutex_;
    std::shared_ptr<change::StepKeeper> keeper_;
    std::atomic<change::StepKeeper*> keeper_now_{nullptr};

    std::shared_ptr<TransactionService> kept_;  ///< ourselves, while the thread that destroyed the heap still reads it

    HeapLoans loans_;

    std::unique_ptr<Snapshots> snapshots_;
};

template <class F>
void TransactionService::without_read_lock(F&& step) noexcept {
    ReadersHere::Reader* const reader = ReadersHere::find(*this);
    if (reader != nullptr) lock_.unlock_shared(reader->slot);
    step();
    if (reader != nullptr) reader->slot = lock_.lock_shared();
}

/// For the rooms above: while it lives nobody changes the heap, of whatever kind it is. Throws: as TransactionService::lock_shared.
class Reading {
public:
    explicit Reading(const store::HeapFile& file) {
        if (file.kind() != HeapKind::transactional) return;
        TransactionService* const service = TransactionService::of(file);
        if (service != nullptr && service->lock_shared()) locked_ = service;
    }
    ~Reading() {
        if (locked_ != nullptr) locked_->unlock_shared();
    }
    Reading(const Reading&) = delete;
    Reading& operator=(const Reading&) = delete;

private:
    TransactionService* locked_ = nullptr;
};

}  // namespace taiyen::txn
