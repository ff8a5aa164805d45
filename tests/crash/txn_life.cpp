#include "crash/txn_life.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

#include <taiyen/base/error.hpp>
#include <taiyen/change/procedure.hpp>
#include <taiyen/inspect/leaks.hpp>
#include <taiyen/inspect/reclaim.hpp>
#include <taiyen/inspect/report.hpp>

#include "change/recorder.hpp"
#include "crash/heap_life.hpp"
#include "store/heap_access.hpp"
#include "txn/transaction_service.hpp"

namespace taiyen::crash {
namespace {

using Change = SteppedStorage::Change;

constexpr const char* procedure_name = "crash tests: add to each byte";
constexpr ByteCount called_bytes = 3000;
/// What a transaction of `transact` takes in the log at most.
constexpr ByteCount small_bytes = 12_KiB;

/// Done twice it is another change than done once.
void add_to_each(std::byte* bytes, std::uint64_t count, std::uint64_t what) {
    for (std::uint64_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(static_cast<std::uint64_t>(bytes[i]) + what + i);
}

void add_in_heap(ProcedureHeap& heap, std::byte* bytes, std::uint64_t count, std::uint64_t what) {
    if (change::Recorder* const recorder = change::Recorder::of(*heap.core()))
        recorder->touch({reinterpret_cast<std::uintptr_t>(bytes) - heap.core()->ranges().durable}, count);
    add_to_each(bytes, count, what);
}

void register_once() {
    static const bool registered = [] {
        register_procedure(procedure_name, &add_in_heap, &add_in_heap);
        return true;
    }();
    (void)registered;
}

std::string text(std::uint64_t number) { return std::to_string(number); }

bool is_log(const std::filesystem::path& path) { return path.extension() == ".log"; }

}  // namespace

const std::filesystem::path& TxnSetup::path() { return txn_path; }

std::filesystem::path TxnSetup::data_path() const { return apart ? std::string(data_directory) + "/t.tyn.data" : txn_path.string() + ".data"; }

std::filesystem::path TxnSetup::log_path() const { return apart ? std::string(log_directory) + "/t.tyn.log" : txn_path.string() + ".log"; }

TxnLife::TxnLife(io::Storage& disk, io::RecordingStorage* marks, const TxnSetup& setup, TxnHistory history)
    : disk_(disk), marks_(marks), setup_(setup), history_(std::move(history)), objects_(now_.objects, setup.capture == Capture::declared),
      acknowledged_(history_.size() - 1), issued_(history_.size() - 1) {
    register_once();
    disk_.before_change = [this](Change change, const std::filesystem::path& path) { before_change(change, path); };
}

TxnLife::~TxnLife() { abandon(); }

// ---- opening and closing

void TxnLife::open_file(store::OpenMode mode, HeapKind kind) {
    PersistentOptions options;
    options.capacity = setup_.capacity;
    options.log_capacity = setup_.log_bytes;
    options.durability = setup_.durability;
    options.capture = setup_.capture;
    options.loss_window = std::chrono::hours(1);  // nothing is written by the clock
    options.snapshot_log_fill = 1e9;              // nothing but a full log, or the test, asks for snapshots
    options.dirty_limit = setup_.dirty_limit;
    options.snapshot_dirty_bytes = 1_GiB;
    options.detach_data_file = setup_.detach_data_file;
    if (setup_.apart) options.log_file = setup_.log_path();
    // A transactional heap makes the data file that is named; that of an earlier life lies there until the heap has no use for it any more.
    if (kind == HeapKind::transactional ? setup_.data_file || (setup_.apart && disk_.find(setup_.data_path()) && names_data_file(disk_, txn_path))
                                        : setup_.apart || setup_.data_file) {
        options.data_file = setup_.data_path();
    }
    if (mode == store::OpenMode::read_only) options.verify = Verify::at_first_touch;  // what recovery shows must be what the checksums say
    store::Tuning tuning;
    tuning.journal_bytes = 32_KiB;
    tuning.batch_bytes = setup_.batch_bytes;
    file_ = store::HeapFile::open(disk_, txn_path, mode, kind, options, tuning);
    objects_.open(*file_);
    if (kind == HeapKind::transactional && mode != store::OpenMode::read_only) {
        txn::TransactionService::join(*file_, options);
        heap_.emplace(HeapAccess::make<TransactionalHeap>(file_));
    } else {
        lower_.emplace(HeapAccess::make<ArchiveHeap>(file_));
    }
}

void TxnLife::create() {
    issue(1);
    now_ = {};
    history_.cut(1);
    history_.push_back(now_);
    open_file(store::OpenMode::create_only, setup_.kind);
    opened_ = 1;
    acknowledge(1);
    listens_ = heap_.has_value();
    ready_ = true;
}

void TxnLife::open(HeapKind kind) {
    open_file(store::OpenMode::open_only, kind);
    opened_ = compare();
    now_ = history_[opened_];
    if (setup_.lends && heap_) leaked_ = find_leaks(*heap_).leaked_blocks;
    listens_ = heap_.has_value();
    ready_ = true;
}

void TxnLife::open_to_read() {
    open_file(store::OpenMode::read_only, HeapKind::transactional);
    opened_ = compare();
}

void TxnLife::close() {
    heap_ ? heap_->close() : lower_->close();
    abandon();
}

void TxnLife::abandon() {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
    listens_ = false;
    ready_ = false;
    attached_ = false;
    // A heap whose blocks are held outside leaves them where they are; a process that is gone leaves nothing.
    const bool leaves = setup_.lends && file_;
    const std::uintptr_t left = leaves ? file_->ranges().durable : 0;
    const ByteCount left_bytes = leaves ? file_->reserved_bytes() + page_bytes : 0;  // with the page behind
    heap_.reset();
    relaxed_.reset();
    lower_.reset();
    objects_.close();
    file_.reset();
    loans_.clear();
    if (leaves) ::munmap(reinterpret_cast<void*>(left), left_bytes);
}

// ---- marks

void TxnLife::issue(std::uint64_t number) {
    const std::lock_guard lock(marks_mutex_);
    issued_ = std::max(issued_.load(), number);
    if (marks_ != nullptr) marks_->issue(number);
}

void TxnLife::acknowledge(std::uint64_t number) {
    const std::lock_guard lock(marks_mutex_);
    if (number <= acknowledged_) return;
    acknowledged_ = number;
    if (marks_ != nullptr) marks_->acknowledge(number);
}

void TxnLife::listen() {
    if (!listens_) return;
    try {
        acknowledge(opened_ + heap_->last_durable().value - history_[opened_].serial.value);
    } catch (const Error&) {
        // Closed or poisoned: it says nothing.
    }
}

void TxnLife::before_change(Change change, const std::filesystem::path& path) {
    listen();
    const bool commits = change == Change::durably_written && is_log(path);
    if (sharers_ != 0 && commits) {
        const unsigned count = std::exchange(sharers_, 0);
        const log::GroupLog& log = txn::TransactionService::of(*file_)->log();
        for (unsigned i = 0; i < count; ++i) {
            const Serial before = log.appended();
            const unsigned failed_before = failed_;
            threads_.emplace_back([this, seed = seed_ + i] {
                try {
                    transact(seed);
                } catch (const Error&) {
                    ++failed_;
                }
            });
            while (log.appended() == before && failed_ == failed_before) std::this_thread::yield();
        }
    }
    if (watches_ && !within_ && !commits) look_alive();
    if (once_meanwhile_ && !within_ && !commits) {
        within_ = true;
        try {
            std::exchange(once_meanwhile_, nullptr)();
        } catch (const Error&) {  // NOLINT(bugprone-empty-catch): the disk fails
        }
        within_ = false;
    }
    if (meanwhile_ != 0 && !within_ && !commits && log_has_room()) {
        --meanwhile_;
        within_ = true;
        try {
            transact(seed_++);
        } catch (const Error&) {
            meanwhile_ = 0;  // the disk fails
        }
        within_ = false;
    }
}

bool TxnLife::log_has_room() const {
    const log::GroupLog& log = txn::TransactionService::of(*file_)->log();
    return log.used() + small_bytes <= log.capacity();
}

// ---- changes

void TxnLife::run(std::uint64_t seed, const std::function<void()>& changes) {
    Transaction transaction(*heap_);
    objects_.enter(transaction);
    TxnState before = now_;
    const Serial serial{before.serial.value + 1};
    if (seed % 8 == 7) {  // changes nothing in the end
        try {
            Transaction inner(*heap_);
            std::mt19937_64 random(seed);
            objects_.enter(inner);
            objects_.change_something(random);
            inner.rollback();
        } catch (...) {
            objects_.leave();
            transaction.rollback();
            rolled_back(before);
            throw;
        }
        transaction.rollback();
        objects_.leave();
        now_ = std::move(before);
        run(seed / 8 * 8, changes);
        return;
    }
    try {
        changes();
        objects_.set_number(history_.size());
        add_step("");
        now_.serial = serial;
        now_.blocks = file_->engine().stats().live_blocks - 2 * loans_.size() - leaked_;
        history_.push_back(now_);
    } catch (...) {
        objects_.leave();
        transaction.rollback();
        rolled_back(before);
        throw;
    }
    const std::uint64_t number = history_.size() - 1;
    issue(number);
    const bool tell = tell_ && setup_.durability == Durability::sync && !relaxed_;
    objects_.leave();
    Serial found;
    try {
        found = transaction.commit();
    } catch (...) {
        if (file_ != nullptr && !file_->condition().is_poisoned()) {  // rolled back for certain
            history_.pop_back();
            rolled_back(before);
        }
        throw;
    }
    if (found != serial) throw std::runtime_error("transaction " + text(serial.value) + " was told to be " + text(found.value));
    if (tell) acknowledge(number);
    note_lost_steps(number);
}

/// A transaction was; without capture the heap is as of the last durable one, and a save in the background may have kept a part of what was loaded.
void TxnLife::rolled_back(TxnState& before) {
    std::swap(now_, before);
    if (file_ == nullptr || file_->condition().is_poisoned() || !relaxed_) return;
    const Serial left = txn::TransactionService::of(*file_)->last_committed();
    for (std::size_t i = history_.size(); left != now_.serial && i-- > 0;)
        if (history_[i].serial == left) now_ = history_[i];
    if (left != now_.serial) throw std::runtime_error("a rollback has left transaction " + text(left.value) + ", which never was");
}

void TxnLife::library_transaction(const std::function<void(TxnState&)>& model, const std::function<void()>& call) {
    TxnState before = now_;
    const std::uint64_t number = history_.size();
    try {
        model(now_);
        ++now_.serial.value;
        history_.push_back(now_);
        issue(number);
        call();
    } catch (...) {
        never_happened(number, before);
        throw;
    }
    acknowledge(number);
}

/// Unless nobody can know: a heap that isn't poisoned has rolled it back.
void TxnLife::never_happened(std::uint64_t number, TxnState& before) {
    if (file_ == nullptr || file_->condition().is_poisoned()) return;
    history_.cut(number);
    std::swap(now_, before);
}

void TxnLife::transact(std::uint64_t seed) {
    run(seed, [&] {
        std::mt19937_64 random(seed);
        for (std::uint64_t more = random() % 3; more-- > 0;) objects_.change_something(random);
    });
}

void TxnLife::transact_nested(std::uint64_t seed) {
    run(0, [&] {
        std::mt19937_64 random(seed);
        nest(random, 1);
    });
}

void TxnLife::nest(std::mt19937_64& random, unsigned depth) {
    Transaction* const outer = objects_.transaction();
    for (std::uint64_t more = 1 + random() % 3; more-- > 0;) {
        objects_.change_something(random);
        if (depth == 4) continue;
        const TxnState::Objects before = now_.objects;
        Transaction inner(*heap_);
        objects_.enter(inner);
        nest(random, depth + 1);
        objects_.enter(*outer);
        if (random() % 2 == 0) {
            inner.commit();
        } else {
            inner.rollback();
            now_.objects = before;
            objects_.compare(now_.objects, "after an inner rollback what was before");
        }
    }
}

void TxnLife::put(const std::string& name, ByteCount size, std::uint64_t seed) {
    run(0, [&] { objects_.set(name, size, seed); });
}

void TxnLife::put_sparse(const std::string& name, ByteCount size) {
    run(0, [&] { objects_.set_sparse(name, size); });
}

void TxnLife::run_with_loans(std::uint64_t seed, const std::function<void()>& changes) {
    std::vector<Loan> before = loans_;
    try {
        run(seed / 8 * 8, changes);
    } catch (...) {
        loans_.swap(before);  // rolled back, or nobody will ask
        throw;
    }
}

void TxnLife::lend(std::uint64_t seed) {
    run_with_loans(seed, [&] {
        heap::Engine& engine = file_->engine();
        if (std::byte* const block = objects_.owned()) {
            std::byte* inner = nullptr;
            std::memcpy(&inner, block + 8, sizeof inner);
            file_->deallocate_durable(inner);
            file_->deallocate_durable(block);
        }
        Loan loan{static_cast<std::byte*>(engine.allocate(500)), static_cast<std::byte*>(engine.allocate(100)), file_->scope_serial()};
        objects_.touch(loan.block, 500);
        std::memcpy(loan.block + 8, &loan.inner, sizeof loan.inner);
        objects_.set_owner(loan.block);
        file_->held().lend(reinterpret_cast<std::uintptr_t>(objects_.find("owner")));
        objects_.set_owner(nullptr);
        loans_.push_back(loan);
    });
}

void TxnLife::take_back(std::uint64_t seed) {
    run_with_loans(seed, [&] {
        objects_.set_owner(loans_.front().block);
        file_->held().watch(reinterpret_cast<std::uintptr_t>(objects_.find("owner")));
        loans_.erase(loans_.begin());
    });
}

void TxnLife::let_go() {
    const Loan loan = loans_.front();
    loans_.erase(loans_.begin());
    file_->deallocate_durable(loan.inner);
    file_->deallocate_lent(loan.block, loan.serial);
}

void TxnLife::remove(const std::string& name) {
    run(0, [&] { objects_.drop(name); });
}

void TxnLife::call(std::uint64_t seed) {
    run(0, [&] {
        if (!now_.objects.contains("called")) objects_.set("called", called_bytes, seed);
        std::byte* const block = objects_.find("called");
        std::vector<std::byte>& expected = now_.objects["called"];
        objects_.transaction()->call(procedure_name, block, std::uint64_t{called_bytes}, seed);
        add_to_each(expected.data(), expected.size(), seed);
    });
}

void TxnLife::relax(RelaxedRollback takes_back) { relaxed_.emplace(*heap_, takes_back); }

void TxnLife::load(unsigned count, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    for (unsigned i = 0; i < count; ++i) transact(random() / 8 * 8);
}

void TxnLife::end_relaxed_within(std::uint64_t seed) {
    run(seed / 8 * 8, [&] {
        std::mt19937_64 random(seed);
        objects_.change_something(random);
        relaxed_.reset();
    });
}

void TxnLife::take_loading_back(unsigned count, std::uint64_t seed) {
    TxnState before = now_;
    relax(RelaxedRollback::loading);
    load(count, seed);
    Transaction(*heap_).rollback();
    rolled_back(before);
    relaxed_.reset();
}

void TxnLife::end_relaxed() { relaxed_.reset(); }

void TxnLife::make_strict() {
    relaxed_->wait_until_strict();
    relaxed_.reset();
    acknowledge(history_.size() - 1);
}

void TxnLife::wait() {
    heap_->wait_durable(now_.serial);
    acknowledge(history_.size() - 1);
}

void TxnLife::snapshot_meanwhile(const std::function<void()>& what) {
    once_meanwhile_ = what;
    try {
        heap_->snapshot();
    } catch (...) {
        once_meanwhile_ = nullptr;
        throw;
    }
    once_meanwhile_ = nullptr;
}
void TxnLife::snapshot() {
    watches_ = true;
    try {
        heap_->snapshot();
    } catch (...) {
        watches_ = false;
        throw;
    }
    watches_ = false;
    acknowledge(history_.size() - 1);
    if (file_->files().durable_serial() < now_.serial) throw std::runtime_error("after a snapshot the files lack transactions");
}

void TxnLife::change_data_file() {
    heap_->has_data_file() ? heap_->detach_data_file() : heap_->attach_data_file(setup_.data_path());
    acknowledge(history_.size() - 1);
}

void TxnLife::replace_log(ByteCount capacity) {
    heap_->replace_log(capacity);
    acknowledge(history_.size() - 1);
    if (heap_->transaction_stats().log_capacity_bytes != capacity) throw std::runtime_error("the log has another capacity than was asked for");
}

void TxnLife::snapshot_meanwhile(unsigned count, std::uint64_t seed) {
    seed_ = seed;
    meanwhile_ = count;
    try {
        heap_->snapshot();
    } catch (...) {
        meanwhile_ = 0;
        throw;
    }
    meanwhile_ = 0;
}

void TxnLife::share(unsigned count, std::uint64_t seed) {
    seed_ = seed + 1;
    sharers_ = count;
    tell_ = false;
    failed_ = 0;
    std::exception_ptr failure;
    try {
        transact(seed);
    } catch (const Error&) {
        failure = std::current_exception();
    }
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
    tell_ = true;
    sharers_ = 0;
    if (failure) std::rethrow_exception(failure);
    if (failed_ == 0) acknowledge(history_.size() - 1);
}

void TxnLife::save(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    objects_.change_something(random);
    objects_.set_number(history_.size());
    const std::uint64_t number = history_.size();
    history_.push_back(now_);
    issue(number);
    file_->save();
    acknowledge(number);
}

// ---- the oracle

std::uint64_t TxnLife::compare() const {
    std::uint64_t number = 1;
    if (setup_.history || setup_.lends) {
        // The library's transactions leave the number. The newest one with that serial: where life went on after a crash, those that were lost have had it, too.
        for (number = history_.size() - 1; number != 0 && history_[number].serial != file_->files().durable_serial();) --number;
    } else {
        number = objects_.number();
    }
    if (number == 0 || number >= history_.size()) throw std::runtime_error("the heap holds state " + text(number) + ", which never was");
    const TxnState& state = history_[number];
    objects_.compare(state.objects, "state " + text(number));
    if (file_->files().durable_serial() != state.serial) {
        throw std::runtime_error("the heap holds transaction " + text(state.serial.value) + " and says that it is " +
                                 text(file_->files().durable_serial().value));
    }
    return number;
}

void TxnLife::look_alive() {
    try {
        objects_.compare(now_.objects, "what was committed last");
    } catch (const std::runtime_error& error) {
        if (wrong_alive_.empty()) wrong_alive_ = std::string("while the heap was open, ") + error.what();
    }
}

void TxnLife::compare_alive() {
    look_alive();
    if (!wrong_alive_.empty()) throw std::runtime_error(std::exchange(wrong_alive_, {}));
}

void TxnLife::prove() const {
    for (const heap::Damage& damage : file_->engine().check(1)) throw std::runtime_error("engine: " + damage.what);
    const Report report = heap_ ? heap_->verify() : lower_->verify();
    for (const Finding& finding : report.findings)
        if (finding.severity != Severity::note)
            throw std::runtime_error("verify: " + finding.path.string() + " at " + text(finding.offset) + ": " + finding.what);
}

void TxnLife::prove_leaks(const TxnState& state) const {
    if (state.blocks == 0) return;
    const LeakReport report = find_leaks(*heap_);
    const std::uint64_t found = report.live_blocks - report.leaked_blocks;
    // Where memory ran out as an object let go of its blocks, they are leaks, too.
    if (setup_.scarce ? found > state.blocks : found != state.blocks) {
        throw std::runtime_error("named objects lead to " + text(found) + " of " + text(report.live_blocks) + " blocks, but " + text(state.blocks) +
                                 " are somebody's");
    }
}

void TxnLife::reclaim() {
    library_transaction([](TxnState&) {}, [&] { taiyen::reclaim(*heap_); });
    leaked_ = 0;
    const LeakReport report = find_leaks(*heap_);
    if (report.leaked_blocks != 0) throw std::runtime_error("reclaim left " + text(report.leaked_blocks) + " leaked blocks");
    compare_alive();
}

}  // namespace taiyen::crash
