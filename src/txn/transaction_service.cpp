// Transactions, readers, durability; the background side is in snapshots.cpp.

#include "txn/transaction_service.hpp"

#include <algorithm>
#include <utility>

#include <taiyen/base/check.hpp>
#include <taiyen/base/report.hpp>

#include "base/planted.hpp"
#include "change/redo.hpp"
#include "txn/readers_here.hpp"
#include "txn/record.hpp"
#include "txn/record_layout.hpp"
#include "txn/snapshots.hpp"

namespace taiyen::txn {

using change::Direction;
using change::Entry;
using change::OpenScopes;

namespace {

/// Where nothing limits the changed pages; the log is full long before, unless transactions change very little on very many pages.
constexpr ByteCount changed_bytes_default = ByteCount{1} << 30U;

log::GroupLog::Options log_options(const PersistentOptions& options) {
    log::GroupLog::Options found;
    found.flusher = options.durability == Durability::async;
    found.window = std::min<std::chrono::microseconds>(options.loss_window, std::chrono::hours(24 * 365));  // sums with a point of time have to fit
    found.pressure = options.snapshot_log_fill;
    return found;
}

/// The services that this thread has a transaction of.
thread_local constinit TransactionService* open_here = nullptr;
/// What the thread's destructors begin comes too late to be taken back.
thread_local constinit bool thread_has_ended = false;

}  // namespace

TransactionService::TransactionService(store::HeapFile& file, const PersistentOptions& options)
    : file_(&file), events_(file.files().events()), durability_(options.durability),
      changed_bytes_max_(options.snapshot_dirty_bytes != 0 ? options.snapshot_dirty_bytes : std::min(file.dirty_limit() / 4, changed_bytes_default)),
      log_(std::make_shared<log::GroupLog>(file.companions().take_log(), file.files().durable_serial(), log_options(options))),
      scopes_(file, change::Recorder::make(file.capture(), file, file.image().mapped(), file.audit(), change::Outside::stray)),
      last_(file.files().durable_serial().value), first_(file.files().durable_serial()), changed_pages_(file.ranges().durable_bytes),
      changed_bytes_allowed_(file.dirty_limit() / 2), annex_fits_(file.image().annex().is_saved()) {
    changed_pages_.extended(file.image().mapped());
    snapshots_ = std::make_unique<Snapshots>(*this, options);
    log_->on_pressure = [this] { snapshots_->ask(SaveReason::log_fill); };
    log_->on_failure = [this] {
        if (store::HeapFile* const heap = this->file())
            heap->condition().poison("writing the transaction log", "what was committed last may not be durable");
    };
}

TransactionService::~TransactionService() = default;

void TransactionService::join(store::HeapFile& file, const PersistentOptions& options) {
    if (file.read_only()) return;
    try {
        std::shared_ptr<TransactionService> made(new TransactionService(file, options));
        file.join(made);
        try {
            made->scopes_.recorder().start();
            made->snapshots_->start();
        } catch (...) {
            file.leave();
            throw;
        }
    } catch (const Error&) {
        throw;
    } catch (const std::system_error& error) {  // of std::thread
        throw Error(errc::too_many_threads, file.path(),
                    std::string("no thread can be made for the heap: ") + error.what() +
                        "; raise the limit of threads (ulimit -u, pids.max of the control group), then open the heap again");
    }
}

bool TransactionService::is_mine() const noexcept { return owner_.load(std::memory_order_relaxed) == this_thread(); }

void TransactionService::watch_thread() noexcept {
    if (thread_has_ended) return;
    struct AtEnd {
        ~AtEnd() {
            thread_has_ended = true;
            while (open_here != nullptr) open_here->thread_ends();
        }
    };
    static thread_local const AtEnd at_end;
    (void)at_end;
    next_here_ = std::exchange(open_here, this);
}

void TransactionService::unwatch_thread() noexcept {
    for (TransactionService** link = &open_here; *link != nullptr; link = &(*link)->next_here_) {
        if (*link == this) {
            *link = next_here_;
            return;
        }
    }
}

void TransactionService::thread_ends() noexcept {
    const std::shared_ptr<TransactionService> alive = shared_from_this();
    const store::HeapFile* const file = this->file();
    if (file == nullptr || file->in_forked_child()) return unwatch_thread();
    take_back();
    report({errc::transaction_doomed, nullptr,
            "a thread has ended with a transaction open, which was rolled back; end transactions on the thread that began them"});
}

bool TransactionService::was_taken_back() const noexcept { return thread_has_ended && !is_mine(); }

store::HeapFile& TransactionService::open_file() const {
    store::HeapFile* const found = file();
    if (found == nullptr) throw Error(errc::closed, "the heap was closed, and what its open transaction did was rolled back; open it again");
    return *found;
}

// Begin

void TransactionService::begin(Purpose purpose) {
    {
        store::HeapFile& file = open_file();
        file.require_usable(false);
        if (is_mine()) {
            if (scopes_.in_call()) throw Error(errc::scope_open, file.path(), "a procedure can't open a transaction: it is part of one itself");
            return begin_inner();
        }
        if (ReadersHere::holds(*this)) {
            throw Error(errc::scope_open, file.path(),
                        "this thread has a ReadLock on the heap, and its transaction would wait for that lock for ever; end the lock first");
        }
    }
    const std::shared_ptr<CommitGate> gate = this->gate();
    begin_outermost(purpose, gate.get());
}

std::shared_ptr<CommitGate> TransactionService::gate() const {
    if (!has_gate_.load(std::memory_order_relaxed)) return nullptr;
    const std::lock_guard lock(gate_mutex_);
    return gate_;
}

void TransactionService::begin_outermost(Purpose purpose, CommitGate* gate) {
    for (;;) {
        if (!may_change_more()) snapshots_->wait_for_memory();
        lock_.lock();
        if (gate == nullptr || file() == nullptr || gate->has_room(log_->appended_position(), log_->capacity())) break;
        lock_.unlock();
        gate->wait_for_room();
    }
    try {
        store::HeapFile& file = open_file();
        file.require_usable(false);
        if (closing_) throw Error(errc::closed, file.path(), "the heap is being closed; open it again");
        if (const Error* const why = refusal_.load(std::memory_order_acquire)) throw Error(*why);
        if (is_loading_lost()) {
            // Where no guard is left to tell it, it is told once.
            if (uncaptured_guards_.load() == 0) loading_lost_.store(false, std::memory_order_relaxed);
            throw_loading_lost();
        }
        start_transaction(file, purpose);
    } catch (...) {
        lock_.unlock();
        throw;
    }
}

void TransactionService::start_transaction(store::HeapFile& file, Purpose purpose) {
    const std::uint32_t number = loans_.begin();
    try {
        choose_capture(file, purpose);
        scopes_.begin(number, uncaptured_                ? OpenScopes::Kind::uncaptured
                              : purpose == Purpose::edit ? OpenScopes::Kind::edit
                                                         : OpenScopes::Kind::flat);
    } catch (...) {
        loans_.end(false);
        throw;
    }
    purpose_ = purpose;
    if (!is_ahead_of_log()) first_ahead_ = number;
    owner_.store(this_thread(), std::memory_order_relaxed);
    watch_thread();
    file.set_scope_serial(number);
    if (purpose != Purpose::edit) return;
    loans_.free_waiting([&](void* block) { file.deallocate_durable(block); });
}

// Inner transactions

const char* TransactionService::why_doomed() const noexcept {
    if (uncaptured_) return "a transaction or a procedure within this one was rolled back, so all of it is";
    return "what the transaction has touched can't be captured any more, since the system refuses to open its pages (mprotect(2)), so all of it is "
           "rolled back";
}

void TransactionService::begin_inner() {
    scopes_.begin_inner(loans_.begin_inner(scopes_.depth() + 1));
    file()->set_scope_serial(scopes_.number());
}

void TransactionService::roll_back_inner(store::HeapFile& file) noexcept {
    const std::uint32_t number = scopes_.number();
    try {
        scopes_.roll_back_inner();
    } catch (const std::exception& error) {
        file.condition().poison("rolling back a transaction", error.what());
    }
    file.set_scope_serial(scopes_.number());
    if (uncaptured_) return;  // all of it is rolled back, later
    loans_.inner_rolled_back(number);
    file.held().taken_back(number);
    if (change::StepKeeper* const keeper = keeper_now_.load(std::memory_order_acquire)) keeper->inner_ended(scopes_.depth(), false);
}

// Commit

Serial TransactionService::commit(Wait wait) {
    const bool waits = wait == Wait::durable && depth() == 1;
    const std::shared_ptr<CommitGate> gate = waits ? this->gate() : nullptr;
    const std::shared_ptr<log::GroupLog> log = gate ? log_ : nullptr;
    const Serial before = last_committed();
    const Serial serial = commit_here(wait);
    // Not where nothing was committed, or is durable: while loading is relaxed.
    if (gate && serial > before && log->durable() >= serial && !planted(Bug::commit_unconfirmed)) gate->confirm(serial);
    return serial;
}

Serial TransactionService::commit_here(Wait wait) {
    store::HeapFile& file = open_file();
    if (file.in_forked_child()) file.check_usable(true);
    if (was_taken_back()) throw Error(errc::transaction_doomed, file.path(), "the transaction was rolled back when its thread ended; end it before");
    TAIYEN_CHECK(is_mine());
    if (scopes_.depth() > 1) {
        scopes_.leave_inner();
        file.set_scope_serial(scopes_.number());
        if (change::StepKeeper* const keeper = keeper_now_.load(std::memory_order_acquire)) keeper->inner_ended(scopes_.depth(), true);
        if (scopes_.is_doomed()) throw Error(errc::transaction_doomed, file.path(), why_doomed());
        return {last_committed().value + 1};
    }
    if (durability_ == Durability::async) return commit_outermost(file);
    const std::shared_ptr<log::GroupLog> log = log_;  // without the writer lock the heap may be destroyed before the disk is done
    const Serial serial = commit_outermost(file);
    if (planted(Bug::commit_before_durable) || log->appended() < serial) return serial;  // relaxed
    if (log->durable() < serial) {
        if (wait == Wait::durable)
            log->wait_durable(serial);
        else
            snapshots_->write_log();
    }
    return serial;
}

Serial TransactionService::commit_outermost(store::HeapFile& file) {
    Serial serial = last_committed();
    bool wants_snapshot = false;
    try {
        const auto refuse_doomed = [&] {
            if (scopes_.is_doomed()) throw Error(errc::transaction_doomed, file.path(), why_doomed());
        };
        refuse_doomed();
        file.require_usable(false);
        scopes_.cut();
        const bool is_changed = !scopes_.segments().empty() || uncaptured_;
        if (is_changed && purpose_ == Purpose::edit && file.write_type_notes()) {
            if (!planted(Bug::notes_behind_cut)) scopes_.cut();
            refuse_doomed();
        }
        if (purpose_ == Purpose::edit) refuse_foreign_pointers(file);
        keep_step();
        if (!scopes_.segments().empty() || !annex_.empty() || uncaptured_) {
            serial = {serial.value + 1};
            wants_snapshot = keep(file, serial);
            last_.store(serial.value, std::memory_order_release);
            const change::StepKeeper* const keeper = keeper_now_.load(std::memory_order_acquire);
            annex_fits_ = (annex_fits_ && scopes_.segments().empty() && !uncaptured_) || (keeper != nullptr && keeper->has_annex());
        }
    } catch (...) {
        file.type_notes().wait_again();
        try {
            scopes_.reserve();
            take_back();
        } catch (const std::exception& error) {
            file.condition().poison("rolling back a transaction that could not be committed", error.what());
            end(false);
        }
        throw;
    }
    end(true);
    if (wants_snapshot) snapshots_->ask(SaveReason::changed_bytes);
    return serial;
}

bool TransactionService::keep(store::HeapFile& file, Serial serial) {
    const bool relaxed = relaxed_.load(std::memory_order_relaxed) != 0;
    if (!relaxed && is_ahead_of_log() && planted(Bug::relaxed_without_save)) log_->skip_to(last_committed());
    unsearched_ = unsearched_ || uncaptured_;
    const bool has_record = make_record(!relaxed && !is_ahead_of_log() && (!uncaptured_ || planted(Bug::uncaptured_in_log)));
    if (planted(Bug::append_one_late)) {
        static change::ByteBuffer late;
        if (log_->appended() == file.files().durable_serial()) late.truncate(0);
        std::swap(record_.redo(), late);
        if (record_.redo().empty()) record_.redo().extend(sizeof(layout::RecordHead));
    }
    if (relaxed) {  // whoever makes the heap strict again saves it as it is then
        if (uncaptured_) look_at_memory(file);
        return false;
    }
    const ByteCount extent = file.image().mapped();
    if (!has_record || !keep_in_log(serial, extent)) {
        snapshots_->save_here(serial, extent);
        saves_in_commits_.store(saves_in_commits_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
        return false;
    }
    return is_snapshot_due(record_.needs_heap());
}

bool TransactionService::is_snapshot_due(bool anyway) noexcept {
    const std::uint64_t changed = changed_bytes_.load(std::memory_order_relaxed);
    const bool is_due = anyway || changed - asked_at_ >= changed_bytes_max_;
    if (is_due) asked_at_ = changed;
    return is_due;
}

void TransactionService::keep_step() {
    annex_.clear();
    change::StepKeeper* const keeper = keeper_now_.load(std::memory_order_acquire);
    if (keeper != nullptr) {
        parts_.clear();
        for (const OpenScopes::Segment& segment : scopes_.segments()) parts_.push_back(segment.story());
        keeper->keep(scopes_.outermost_number(), loans_.last(), parts_, annex_);
    }
    // A history that nobody goes on with: its steps don't fit any more.
    if (annex_fits_ && !scopes_.segments().empty() && annex_.empty() && (keeper == nullptr || !keeper->has_annex()) &&
        !planted(Bug::history_outlives_its_bytes)) {
        annex_.add_zeroed_run({0}, page_bytes);
    }
}

void TransactionService::refuse_foreign_pointers(store::HeapFile& file) const {
    if (scopes_.segments().empty()) return;
    const ProgramPointers program = file.next_program_pointers();
    heap::ForeignPointerScan scan(file, program);
    if (scan.is_idle()) return;
    for (const OpenScopes::Segment& segment : scopes_.segments()) {
        segment.changes.for_each(Direction::forward, [&](const Entry& entry) {
            if (entry.kind != change::EntryKind::bytes || entry.after.empty()) return;
            const std::uint64_t from = round_down(entry.where.value, sizeof(std::uint64_t));
            const std::uint64_t to = round_up(entry.where.value + entry.length, sizeof(std::uint64_t));
            scan.examine({from}, to - from);
        });
    }
    scan.finish();
    file.note_searched(program);
}

bool TransactionService::make_record(bool logged) {
    record_.begin(annex_);
    ByteCount bytes = record_.annex_redo_bytes();
    for (const OpenScopes::Segment& segment : scopes_.segments()) bytes += segment.story().bytes().size();
    // A set holds the bytes before, too; the redo of one that is so much larger than the log can't be small enough.
    const bool may_fit = logged && bytes / 8 <= log_->capacity();
    change::RedoWriter writer(record_.redo());
    std::uint64_t pages = 0;
    bool needs_heap = false;
    const bool bytes_only = calls_as_bytes_.load(std::memory_order_relaxed);
    for (const OpenScopes::Segment& segment : scopes_.segments()) {
        const bool calls = !segment.call.empty() && !bytes_only;
        needs_heap = needs_heap || calls;
        segment.changes.for_each(Direction::forward, [&](const Entry& entry) {
            needs_heap = needs_heap || txn::needs_heap(entry.kind);
            pages += changed_pages_.add(entry.where, entry.length);
            if (may_fit && !calls) writer.add(entry);
        });
        if (may_fit && calls) segment.call.for_each(Direction::forward, [&](const Entry& entry) { writer.add(entry); });
    }
    record_.set_needs_heap(needs_heap);
    count_changed(pages);
    return may_fit;
}

bool TransactionService::keep_in_log(Serial serial, ByteCount extent) {
    if (!log_->fits(record_.bytes())) return false;
    const store::AnnexHead annex = record_.has_annex() ? file()->image().annex().head() : store::AnnexHead{};
    // Before a save can meet it. (If it isn't appended after all, the next save is made under the writer lock for nothing.)
    const std::uint64_t needed_heap = needs_heap_.load(std::memory_order_relaxed);
    if (record_.needs_heap()) needs_heap_.store(serial.value, std::memory_order_release);
    if (!snapshots_->append(serial, record_.finish(serial, extent, annex))) {
        needs_heap_.store(needed_heap, std::memory_order_release);
        return false;
    }
    logged_bytes_.store(logged_bytes_.load(std::memory_order_relaxed) + record_.bytes(), std::memory_order_relaxed);
    return true;
}

TransactionStats TransactionService::stats() const {
    TransactionStats stats;
    snapshots_->add_to(stats);
    stats.commits = last_committed().value - first_.value;
    stats.relaxed_loadings = relaxed_.load(std::memory_order_relaxed);
    stats.unlogged_commits = last_committed().value - std::min(last_committed(), log_->appended()).value;
    stats.rollbacks = rollbacks_.load(std::memory_order_relaxed);
    stats.logged_bytes = logged_bytes_.load(std::memory_order_relaxed);
    stats.saves_in_commits = saves_in_commits_.load(std::memory_order_relaxed);
    stats.log_used_bytes = log_->used();
    stats.log_capacity_bytes = log_->capacity();
    if (const store::HeapFile& file = open_file(); file.condition().is_poisoned()) stats.last_error = file.condition().why_poisoned();
    return stats;
}

// Rollback

void TransactionService::rollback() noexcept {
    store::HeapFile* const file = this->file();
    if (file == nullptr || file->in_forked_child() || was_taken_back()) return;
    TAIYEN_CHECK(is_mine());
    if (scopes_.depth() > 1) return roll_back_inner(*file);
    take_back();
}

void TransactionService::take_back() noexcept {
    store::HeapFile& file = *this->file();
    if (uncaptured_) {
        take_loading_back(file);
    } else {
        try {
            scopes_.roll_back();
        } catch (const std::exception& error) {
            file.condition().poison("rolling back a transaction", error.what());
        }
    }
    rollbacks_.store(rollbacks_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    end(false);
}

/// The outermost transaction is over.
void TransactionService::end(bool kept) noexcept {
    loans_.end(kept);
    heap::HeldBlocks& held = file()->held();
    if (kept)
        held.settle();
    else
        held.taken_back(scopes_.outermost_number());
    if (change::StepKeeper* const keeper = keeper_now_.load(std::memory_order_acquire)) keeper->ended(kept);
    annex_.clear();
    record_.shrink(kept_bytes);
    scopes_.end();
    scopes_.shrink(kept_bytes);
    file()->set_scope_serial(0);
    unwatch_thread();
    owner_.store(0, std::memory_order_relaxed);
    lock_.unlock();
}

void TransactionService::touch(const void* address, ByteCount bytes) {
    store::HeapFile& file = open_file();
    const std::uint64_t offset = reinterpret_cast<std::uintptr_t>(address) - file.ranges().durable;
    if (offset > file.image().mapped() || bytes > file.image().mapped() - offset)
        throw Error(errc::invalid_argument, file.path(), "touch: the range does not lie in the heap's durable memory");
    scopes_.touch({offset}, bytes);
}

std::shared_ptr<change::StepKeeper> TransactionService::keeper() const {
    const std::lock_guard lock(keeper_mutex_);
    return keeper_;
}

void TransactionService::set_keeper(std::shared_ptr<change::StepKeeper> keeper) {
    const std::lock_guard lock(keeper_mutex_);
    keeper_ = std::move(keeper);
    keeper_now_.store(keeper_.get(), std::memory_order_release);
}

void TransactionService::about_to_write(HeapOffset offset, ByteCount length) {
    if (file() == nullptr) return;
    scopes_.about_to_write(offset, length);
}

void TransactionService::check_change() const {
    if (!is_mine()) {
        throw Error(errc::no_transaction, open_file().path(),
                    "a transactional heap is changed within a transaction of the thread only; open a Transaction first");
    }
}

// Readers

bool TransactionService::lock_shared() {
    store::HeapFile& heap = open_file();
    heap.require_usable(true);
    if (is_mine()) return false;
    if (ReadersHere::Reader* const reader = ReadersHere::find(*this)) {
        ++reader->locks;
        return true;
    }
    ReadersHere::require_room();
    ReaderSlot* const slot = lock_.lock_shared();
    try {
        open_file().require_usable(true);
    } catch (...) {
        lock_.unlock_shared(slot);
        throw;
    }
    ReadersHere::add(*this, slot);
    return true;
}

void TransactionService::unlock_shared() noexcept {
    ReadersHere::Reader* const reader = ReadersHere::find(*this);
    TAIYEN_CHECK(reader != nullptr);  // a ReadLock ends on the thread that it began on
    if (--reader->locks != 0) return;
    ReaderSlot* const slot = reader->slot;
    ReadersHere::remove(*reader);
    std::shared_ptr<TransactionService> last;
    if (file() == nullptr) last = std::move(kept_);  // this thread has destroyed the heap while it read; so are we behind the function's end
    lock_.unlock_shared(slot);
}

// Durability

Serial TransactionService::last_durable() const { return std::max(log_->durable(), open_file().files().durable_serial()); }

void TransactionService::wait_durable(Serial serial) {
    store::HeapFile& file = open_file();
    file.require_usable(true);
    if (serial > last_committed()) {
        throw Error(
            errc::invalid_argument, file.path(),
            "no transaction " + std::to_string(serial.value) + " was committed yet, the last one was " + std::to_string(last_committed().value));
    }
    if (serial <= log_->appended()) {
        log_->wait_durable(serial);
        return;
    }
    if (is_mine() || ReadersHere::holds(*this)) {
        throw Error(errc::scope_open, file.path(),
                    "this thread has a transaction or a ReadLock on the heap; end it before waiting for what was loaded relaxed");
    }
    snapshots_->wait_for(serial);
}

bool TransactionService::save_itself() {
    store::HeapFile& file = open_file();
    if (is_mine() || ReadersHere::holds(*this))
        throw Error(errc::scope_open, file.path(), "this thread has a transaction or a ReadLock on the heap; end it before saving");
    snapshots_->wait_for(last_committed());
    return true;
}

void TransactionService::stand_still(const std::function<void()>& step) {
    if (is_mine() || ReadersHere::holds(*this)) {
        throw Error(errc::scope_open, open_file().path(),
                    "this thread has a transaction or a ReadLock on the heap; end it before you change the heap's files");
    }
    const std::lock_guard writer(lock_);
    store::HeapFile& file = open_file();
    file.require_usable(false);
    if (closing_) throw Error(errc::closed, file.path(), "the heap is being closed; open it again");
    if (!planted(Bug::log_replaced_unsaved)) snapshots_->save_all();
    const auto no_save = snapshots_->exclude();
    step();
}

void TransactionService::replace_log(ByteCount capacity, const std::filesystem::path& path) {
    stand_still([&] { log_->move_to(open_file().companions().replace_log(capacity, path)); });
}

void TransactionService::rebuild() {
    if (is_mine() || ReadersHere::holds(*this))
        throw Error(errc::scope_open, open_file().path(), "this thread has a transaction or a ReadLock on the heap; end it before rebuilding");
    const std::lock_guard writer(lock_);
    store::HeapFile& file = open_file();
    file.require_usable(false);
    if (is_ahead_of_log())
        throw Error(errc::busy, file.path(), "what was loaded relaxed is in memory only; wait until it is durable before rebuilding");
    try {
        read_again(file);
    } catch (const std::exception& error) {
        file.condition().poison("rebuilding the heap from its files and its log", error.what());
        throw;
    }
}

// The heap's life

void TransactionService::about_to_restore(PageNumber page) { scopes_.recorder().touch(offset_of(page), page_bytes); }

/// Everything committed gets into the files. The caller holds the writer lock, and nobody has a transaction open.
void TransactionService::save_everything(store::HeapFile& file) {
    const change::StepKeeper* const keeper = keeper_now_.load(std::memory_order_acquire);
    if (loans_.any_waits() && refusal_.load(std::memory_order_acquire) == nullptr &&
        (keeper == nullptr || !keeper->live())) {  // the blocks would be lost with this process; where steps are kept, a free is one
        const bool is_lost = loading_lost_.exchange(false, std::memory_order_relaxed);
        lock_.unlock();
        try {
            begin_outermost(Purpose::edit, nullptr);
            commit_here(Wait::durable);
        } catch (...) {
            lock_.lock();
            throw;
        }
        lock_.lock();
        loading_lost_.store(is_lost && uncaptured_guards_.load() != 0, std::memory_order_relaxed);
    }
    snapshots_->save_all();
    closing_ = true;
    (void)file;
}

void TransactionService::before_close() {
    if (is_mine() || ReadersHere::holds(*this))
        throw Error(errc::scope_open, open_file().path(), "this thread has a transaction or a ReadLock on the heap; end it before closing");
    const std::lock_guard writer(lock_);
    store::HeapFile& file = open_file();
    if (!file.condition().is_poisoned()) save_everything(file);
}

void TransactionService::before_abandon() noexcept {
    store::HeapFile* const file = this->file();
    if (file == nullptr || file->in_forked_child()) return;
    if (is_mine()) take_back();
    if (!closing_ && !file->condition().is_poisoned() && !ReadersHere::holds(*this)) {
        const std::lock_guard writer(lock_);
        try {
            save_everything(*file);
        } catch (const Error& error) {
            report({static_cast<errc>(error.code().value()), nullptr, error.what()});
        } catch (const std::exception& error) {
            report({errc::io_error, nullptr, error.what()});
        }
    }
    stop_saving();
}

/// Before the file is closed: the thread that saves would look at it meanwhile.
void TransactionService::stop_saving() noexcept {
    // That thread may want the writer lock, and would wait for this one's ReadLock, as this one for its end.
    without_read_lock([this] { snapshots_->stop(); });
}

void TransactionService::tell_keeper_left() noexcept {
    if (const std::shared_ptr<change::StepKeeper> keeper = this->keeper()) {
        keeper->left();
        set_keeper(nullptr);  // it holds us
    }
}

void TransactionService::left() noexcept {
    store::HeapFile& file = *this->file();
    if (file.in_forked_child()) {
        // Neither the span nor the threads are here, and the locks are as the parent had them.
        (void)scopes_.set_recorder(nullptr).release();
        (void)new std::shared_ptr<log::GroupLog>(std::move(log_));
        (void)snapshots_.release();
        tell_keeper_left();
        file_.store(nullptr, std::memory_order_release);
        return;
    }
    stop_saving();
    log_->stop();
    const bool reads = ReadersHere::holds(*this);
    if (reads)
        kept_ = shared_from_this();  // its ReadLock will come back to us
    else
        lock_.lock();
    if (scopes_.has_recorder()) scopes_.recorder().stop();  // null: reading the heap again has failed
    tell_keeper_left();
    log_.reset();
    file.set_scope_serial(0);
    file_.store(nullptr, std::memory_order_release);
    if (!reads) lock_.unlock();
}

bool TransactionService::free_later(void* block) noexcept {
    const store::HeapFile* const file = this->file();
    if (file == nullptr || is_mine() || file->in_forked_child()) return false;
    loans_.free_later(block);
    return true;
}

bool TransactionService::free_lent(void* block, std::uint32_t scope) noexcept {
    store::HeapFile* const file = this->file();
    if (file == nullptr || file->in_forked_child()) return true;
    if (!loans_.frees_now(block, scope, is_mine())) return true;
    return file->deallocate_durable(block);
}

}  // namespace taiyen::txn
