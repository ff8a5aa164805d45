#include "crash/txn_life.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

#include <taiyen/base/error.hpp>
#include <taiyen/change/procedure.hpp>
#include <taiyen/inspect/report.hpp>
#include <taiyen/undo/history.hpp>
#include <taiyen/undo/scope.hpp>

#include "base/checksum.hpp"
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
    : disk_(disk), marks_(marks), setup_(setup), history_(std::move(history)), acknowledged_(history_.size() - 1), issued_(history_.size() - 1) {
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
    store::Tuning tuning;
    tuning.journal_bytes = 32_KiB;
    tuning.batch_bytes = setup_.batch_bytes;
    file_ = store::HeapFile::open(disk_, txn_path, mode, kind, options, tuning);
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
    history_.resize(1);
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
    const heap::CoreRanges left = setup_.lends && file_ ? file_->ranges() : heap::CoreRanges{};
    heap_.reset();
    relaxed_.reset();
    lower_.reset();
    file_.reset();
    if (left.durable_bytes != 0) ::munmap(reinterpret_cast<void*>(left.durable), heap::CoreRanges::total_bytes(left.durable_bytes));
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

std::byte* TxnLife::object(const std::string& name) const {
    const auto root = file_->engine().find_root(name);
    return root ? reinterpret_cast<std::byte*>(file_->ranges().durable + root->object.value) : nullptr;
}

void TxnLife::touch(void* address, ByteCount bytes) const {
    if (transaction_ != nullptr && setup_.capture == Capture::declared) transaction_->touch(address, bytes);
}

std::byte* TxnLife::own_block(const std::string& name, ByteCount size) {
    heap::Engine& engine = file_->engine();
    std::byte* const before = object(name);
    auto* const block = static_cast<std::byte*>(before == nullptr ? engine.allocate(size) : engine.resize(before, size));
    if (before != nullptr) engine.remove_root(name);
    const auto offset = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(block) - file_->ranges().durable);
    engine.add_root({.name = name, .fingerprint = "bytes", .object = {offset}, .bytes = size, .count = 1});
    return block;
}

void TxnLife::set_object(const std::string& name, ByteCount size, std::uint64_t seed) {
    std::byte* const block = own_block(name, size);
    now_.objects[name] = bytes_for(size, seed);
    touch(block, size);
    std::memcpy(block, now_.objects[name].data(), size);
}

void TxnLife::change_bytes(const std::string& name, std::uint64_t seed) {
    std::vector<std::byte>& expected = now_.objects.at(name);
    const std::size_t at = seed % expected.size();
    const std::size_t count = std::min<std::size_t>(expected.size() - at, 1 + seed / 7 % 64);
    const auto bytes = bytes_for(count, seed);
    std::memcpy(expected.data() + at, bytes.data(), count);
    touch(object(name) + at, count);
    std::memcpy(object(name) + at, bytes.data(), count);
}

void TxnLife::drop_object(const std::string& name) {
    std::byte* const block = object(name);
    file_->engine().remove_root(name);
    file_->engine().deallocate(block);
    now_.objects.erase(name);
}

void TxnLife::change_something(std::mt19937_64& random) {
    const std::string name(1, static_cast<char>('a' + random() % 4));
    const std::uint64_t what = random() % 8;
    if (!now_.objects.contains(name) || what == 0) {
        set_object(name, 1 + random() % 3000, random());
    } else if (what == 1) {
        drop_object(name);
    } else {
        change_bytes(name, random());
    }
}

void TxnLife::set_number() {
    const std::uint64_t number = history_.size();
    std::byte* block = object(number_name);
    if (block == nullptr) block = own_block(number_name, sizeof number);
    touch(block, sizeof number);
    std::memcpy(block, &number, sizeof number);
    std::vector<std::byte>& expected = now_.objects[number_name];
    expected.resize(sizeof number);
    std::memcpy(expected.data(), &number, sizeof number);
}

void TxnLife::run(std::uint64_t seed, const std::function<void()>& changes) {
    Transaction transaction(*heap_);
    transaction_ = &transaction;
    TxnState before = now_;
    const Serial serial{before.serial.value + 1};
    if (seed % 8 == 7) {  // changes nothing in the end
        try {
            Transaction inner(*heap_);
            std::mt19937_64 random(seed);
            transaction_ = &inner;
            change_something(random);
            inner.rollback();
        } catch (...) {
            transaction_ = nullptr;
            now_ = std::move(before);
            throw;
        }
        transaction.rollback();
        transaction_ = nullptr;
        now_ = std::move(before);
        run(seed / 8 * 8, changes);
        return;
    }
    try {
        changes();
        set_number();
        step_in_model("");
        now_.serial = serial;
        now_.blocks = file_->engine().stats().live_blocks - 2 * loans_.size();
        history_.push_back(now_);
    } catch (...) {  // rolled back by the transaction's destructor
        transaction_ = nullptr;
        now_ = std::move(before);
        throw;
    }
    const std::uint64_t number = history_.size() - 1;
    issue(number);
    const bool tell = tell_ && setup_.durability == Durability::sync && !relaxed_;
    transaction_ = nullptr;
    Serial found;
    try {
        found = transaction.commit();
    } catch (...) {
        if (file_ != nullptr && !file_->is_poisoned()) {  // rolled back for certain
            history_.pop_back();
            now_ = std::move(before);
        }
        throw;
    }
    if (found != serial) throw std::runtime_error("transaction " + text(serial.value) + " was told to be " + text(found.value));
    if (tell) acknowledge(number);
    note_lost_steps(number);
}

/// What was done is a step, if the history is attached; else there is none any more.
void TxnLife::step_in_model(const std::string& name) {
    if (!attached_) {
        now_.has_steps = false;
        now_.names.clear();
        now_.contents.clear();
        now_.at = 0;
        return;
    }
    now_.names.resize(now_.at);
    now_.contents.resize(now_.at + 1);
    now_.names.push_back(name);
    now_.contents.push_back(now_.objects);
    ++now_.at;
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
    if (file_ == nullptr || file_->is_poisoned()) return;
    history_.resize(number);
    std::swap(now_, before);
}

void TxnLife::resume() {
    if (!now_.has_steps) {
        attach();
        return;
    }
    const Serial before = now_.serial;
    heap_->attach_undo();
    attached_ = true;
    if (!setup_.scarce) return;
    match_steps();
    if (heap_->last_durable() == before) return;
    // It had ended, and begins anew, which is a transaction.
    now_.has_steps = true;
    now_.contents = {now_.objects};
    now_.serial = heap_->last_durable();
    history_.push_back(now_);
    issue(history_.size() - 1);
    acknowledge(history_.size() - 1);
}

void TxnLife::attach() {
    library_transaction(
        [](TxnState& state) {
            state.has_steps = true;
            state.names.clear();
            state.contents = {state.objects};
            state.at = 0;
        },
        [&] { heap_->attach_undo(); });
    attached_ = true;
}

void TxnLife::step(const std::string& name, std::uint64_t seed, ByteCount size) {
    TxnState before = now_;
    const std::uint64_t number = history_.size();
    try {
        UndoScope scope(*heap_, name);
        try {
            Transaction inner(*heap_);  // declares ranges
            transaction_ = &inner;
            std::mt19937_64 random(seed);
            if (size != 0) {
                set_object("large", size, seed);
            } else {
                change_something(random);
            }
            set_number();
            transaction_ = nullptr;
            inner.commit();
            now_.serial = {before.serial.value + 1};
            step_in_model(name);
            history_.push_back(now_);
        } catch (...) {
            transaction_ = nullptr;
            throw;
        }
        issue(number);
        scope.commit();
    } catch (...) {
        never_happened(number, before);
        throw;
    }
    acknowledge(number);
    note_lost_steps(number);
}

void TxnLife::note_lost_steps(std::uint64_t number) {
    if (!setup_.scarce || !attached_ || within_) return;
    match_steps();
    TxnState now = now_;
    std::swap(history_[number], now);
}

void TxnLife::require_steps(bool there) {
    if (!there) throw Error(errc::history_full, txn_path, "the history has lost these steps");
}

void TxnLife::match_steps() {
    if (!setup_.scarce || !attached_ || within_) return;
    const auto found = heap_->undo_steps();
    const std::size_t lost = now_.names.size() - std::min(now_.names.size(), found.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
        if (i + lost >= now_.names.size() || found[i].name != now_.names[i + lost] || found[i].undone != (i + lost >= now_.at))
            throw std::runtime_error("step " + text(i) + " of the history is another, '" + found[i].name + "'");
    }
    if (found.empty()) {
        now_.names.clear();
        now_.contents = {now_.objects};
        now_.at = 0;
        return;
    }
    if (lost > now_.at) throw std::runtime_error("undone steps are lost, and older ones aren't");
    now_.names.erase(now_.names.begin(), now_.names.begin() + static_cast<std::ptrdiff_t>(lost));
    now_.contents.erase(now_.contents.begin(), now_.contents.begin() + static_cast<std::ptrdiff_t>(lost));
    now_.at -= lost;
}

void TxnLife::undo() {
    match_steps();
    require_steps(!setup_.scarce || now_.at != 0);
    library_transaction([](TxnState& state) { state.objects = state.contents[--state.at]; },
                        [&] {
                            if (!heap_->undo()) throw std::runtime_error("there is nothing to undo");
                        });
}

void TxnLife::redo() {
    match_steps();
    require_steps(!setup_.scarce || now_.at < now_.names.size());
    library_transaction([](TxnState& state) { state.objects = state.contents[++state.at]; },
                        [&] {
                            if (!heap_->redo()) throw std::runtime_error("there is nothing to redo");
                        });
}

void TxnLife::squash(std::size_t count, const std::string& name) {
    match_steps();
    require_steps(!setup_.scarce || now_.at >= count);
    library_transaction(
        [&](TxnState& state) {
            const auto steps = static_cast<std::ptrdiff_t>(count - 1);
            state.contents.erase(state.contents.end() - 1 - steps, state.contents.end() - 1);
            state.names.resize(state.names.size() - count + 1);
            state.names.back() = name;
            state.at = state.names.size();
        },
        [&] { heap_->squash_undo(count, name); });
}

void TxnLife::prove_history(bool all) {
    heap_->attach_undo();
    attached_ = true;
    match_steps();
    const auto found = heap_->undo_steps();
    if (found.size() != now_.names.size())
        throw std::runtime_error("the history has " + text(found.size()) + " steps instead of " + text(now_.names.size()));
    for (std::size_t i = 0; i < found.size(); ++i) {
        if (found[i].name != now_.names[i] || found[i].undone != (i >= now_.at))
            throw std::runtime_error("step " + text(i) + " of the history is another, '" + found[i].name + "'");
    }
    if (!all || !now_.has_steps) return;
    for (std::size_t at = now_.at; at-- > 0;) {
        if (!heap_->undo()) throw std::runtime_error("a step of the history can't be undone");
        compare_with(now_.contents[at], "the undone step " + text(at));
    }
    for (std::size_t at = 1; at < now_.contents.size(); ++at) {
        if (!heap_->redo()) throw std::runtime_error("a step of the history can't be redone");
        compare_with(now_.contents[at], "the redone step " + text(at - 1));
    }
}

void TxnLife::transact(std::uint64_t seed) {
    run(seed, [&] {
        std::mt19937_64 random(seed);
        for (std::uint64_t more = random() % 3; more-- > 0;) change_something(random);
    });
}

void TxnLife::put(const std::string& name, ByteCount size, std::uint64_t seed) {
    run(0, [&] { set_object(name, size, seed); });
}

void TxnLife::put_sparse(const std::string& name, ByteCount size) {
    run(0, [&] {
        std::byte* const block = own_block(name, size);
        std::vector<std::byte>& expected = now_.objects[name];
        expected.assign(size, std::byte{0});
        expected.back() = std::byte{1};
        // A block that was never used is zero.
        if (!is_zero({block, size - 1})) throw std::runtime_error("the heap's fresh end is not zero");
        touch(block + size - 1, 1);
        block[size - 1] = std::byte{1};
    });
}

/// As a container has it: its allocator, then its pointer.
void TxnLife::set_owner(const std::byte* block) {
    constexpr ByteCount size = 4 * sizeof block;
    std::byte* const owner = object("owner") != nullptr ? object("owner") : own_block("owner", size);
    touch(owner, size);
    std::memset(owner, 0, size);
    std::memcpy(owner + sizeof block, &block, sizeof block);
    now_.objects["owner"].assign(owner, owner + size);
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
        Loan loan{static_cast<std::byte*>(engine.allocate(500)), static_cast<std::byte*>(engine.allocate(100)), file_->scope_serial()};
        touch(loan.block, 500);
        std::memcpy(loan.block + 8, &loan.inner, sizeof loan.inner);
        set_owner(loan.block);
        file_->lend(reinterpret_cast<std::uintptr_t>(object("owner")), reinterpret_cast<std::uintptr_t>(&loans_));
        set_owner(nullptr);
        loans_.push_back(loan);
    });
}

void TxnLife::take_back(std::uint64_t seed) {
    run_with_loans(seed, [&] {
        set_owner(loans_.front().block);
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
    run(0, [&] { drop_object(name); });
}

void TxnLife::call(std::uint64_t seed) {
    run(0, [&] {
        if (!now_.objects.contains("called")) set_object("called", called_bytes, seed);
        std::byte* const block = object("called");
        std::vector<std::byte>& expected = now_.objects["called"];
        transaction_->call(procedure_name, block, std::uint64_t{called_bytes}, seed);
        add_to_each(expected.data(), expected.size(), seed);
    });
}

void TxnLife::relax() { relaxed_.emplace(*heap_); }

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
    if (file_->serial() < now_.serial) throw std::runtime_error("after a snapshot the files lack transactions");
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
    change_something(random);
    set_number();
    const std::uint64_t number = history_.size();
    history_.push_back(now_);
    issue(number);
    file_->save();
    acknowledge(number);
}

// ---- the oracle

void TxnLife::compare_with(const TxnState::Objects& objects, const std::string& what) const {
    auto roots = file_->engine().roots();
    std::erase_if(roots, &heap::HeldBlocks::is_entry);
    if (roots.size() != objects.size()) throw std::runtime_error(what + " has " + text(objects.size()) + " objects, the heap " + text(roots.size()));
    for (const heap::Root& root : roots) {
        const auto found = objects.find(root.name);
        if (found == objects.end() || found->second.size() != root.bytes)
            throw std::runtime_error(what + " has no object '" + root.name + "' of " + text(root.bytes) + " bytes");
        if (std::memcmp(reinterpret_cast<const std::byte*>(file_->ranges().durable + root.object.value), found->second.data(), root.bytes) != 0) {
            throw std::runtime_error("object '" + root.name + "' differs from " + what);
        }
    }
}

std::uint64_t TxnLife::compare() const {
    std::uint64_t number = 1;
    if (setup_.history) {
        // The newest one with that serial: where life went on after a crash, those that were lost have had it, too.
        for (number = history_.size() - 1; number != 0 && history_[number].serial != file_->serial();) --number;
    } else if (const std::byte* const block = object(number_name)) {
        std::memcpy(&number, block, sizeof number);
    }
    if (number == 0 || number >= history_.size()) throw std::runtime_error("the heap holds state " + text(number) + ", which never was");
    const TxnState& state = history_[number];
    compare_with(state.objects, "state " + text(number));
    if (file_->serial() != state.serial) {
        throw std::runtime_error("the heap holds transaction " + text(state.serial.value) + " and says that it is " + text(file_->serial().value));
    }
    return number;
}

void TxnLife::look_alive() {
    try {
        compare_with(now_.objects, "what was committed last");
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
    for (const Finding& finding : report.findings) {
        if (finding.severity != Severity::note)
            throw std::runtime_error("verify: " + finding.path.string() + " at " + text(finding.offset) + ": " + finding.what);
    }
}

void TxnLife::prove_no_leak(const TxnState& state) {
    if (state.blocks == 0) return;
    Transaction transaction(*heap_);
    const std::uint64_t found = file_->engine().stats().live_blocks;
    // Where memory ran out as an object let go of its blocks, they are nobody's, but stay until the next process comes.
    if (setup_.scarce ? found > state.blocks : found != state.blocks)
        throw std::runtime_error("the heap has " + text(found) + " blocks, of which " + text(state.blocks) + " are somebody's");
    for (const heap::Damage& damage : file_->engine().check(1)) throw std::runtime_error("engine: " + damage.what);
    transaction.rollback();
}

}  // namespace taiyen::crash
