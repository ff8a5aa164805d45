// Relaxed loading: its guards, and transactions that nobody captures.

#include <taiyen/txn/relaxed_loading.hpp>

#include <ctime>

#include <chrono>
#include <utility>

#include "base/planted.hpp"
#include "change/redo.hpp"
#include "store/heap_access.hpp"
#include "store/log_replay.hpp"
#include "txn/snapshots.hpp"
#include "txn/transaction_service.hpp"

namespace taiyen {

RelaxedLoading::RelaxedLoading(TransactionalHeap& heap, RelaxedRollback takes_back) : takes_back_(takes_back) {
    store::HeapFile& file = HeapAccess::file(heap);
    file.require_usable(false);
    service_ = txn::TransactionService::of(file)->shared_from_this();
    service_->relax(takes_back_);
}

RelaxedLoading::~RelaxedLoading() { end(); }

void RelaxedLoading::end() noexcept {
    if (std::exchange(relaxes_, false)) service_->end_relaxed(takes_back_);
}

void RelaxedLoading::wait_until_strict() {
    const bool lost = relaxes_ && takes_back_ == RelaxedRollback::loading && service_->is_loading_lost();
    end();
    if (lost) service_->throw_loading_lost();
    service_->wait_durable(service_->last_committed());
}

}  // namespace taiyen

namespace taiyen::txn {
namespace {

/// Of this thread, the kernel's share included.
std::chrono::nanoseconds processor_time() noexcept {
    timespec time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace

void TransactionService::relax(RelaxedRollback takes_back) noexcept {
    // In this order, and back in the other one: whoever counts the guards of this kind first, and finds as many guards, has missed none of the other.
    relaxed_.fetch_add(1);
    if (takes_back == RelaxedRollback::loading) uncaptured_guards_.fetch_add(1);
}

void TransactionService::end_relaxed(RelaxedRollback takes_back) noexcept {
    if (takes_back == RelaxedRollback::loading && uncaptured_guards_.fetch_sub(1) == 1) loading_lost_.store(false, std::memory_order_relaxed);
    const bool is_last = relaxed_.fetch_sub(1) == 1;
    if (!is_last) return;
    const store::HeapFile* const heap = file();
    if (heap != nullptr && !heap->in_forked_child() && !planted(Bug::relaxed_without_save)) snapshots_->ask(SaveReason::asked);
}

void TransactionService::throw_loading_lost() const {
    throw Error(
        errc::transaction_doomed, open_file().path(),
        "a transaction that was rolled back has taken back what was loaded since the last durable point; end the RelaxedLoading, then load that "
        "again");
}

/// Whether the transaction that begins needs no capture: nobody asks what it changes, and nobody wants it alone rolled back.
bool TransactionService::does_without_capture(store::HeapFile& file, Purpose purpose) const noexcept {
    const unsigned guards = uncaptured_guards_.load();
    if (guards == 0) return false;
    const change::StepKeeper* const keeper = keeper_now_.load(std::memory_order_acquire);
    return guards == relaxed_.load() && purpose == Purpose::edit && file.audit() == Audit::off && file.image().first_touch() == nullptr &&
           !annex_fits_ && (keeper == nullptr || (!keeper->live() && !keeper->has_annex()));
}

void TransactionService::choose_capture(store::HeapFile& file, Purpose purpose) {
    const bool without = does_without_capture(file, purpose);
    if (without == uncaptured_) return;
    if (without) {
        scopes_.recorder().stop();
        next_look_ = {};
    } else {
        scopes_.recorder().start();
    }
    uncaptured_ = without;
}

/// Nobody counts the pages that change: from time to time the system is asked, so seldom that it costs some percent. What a look costs is processor time: one that has to wait for a
/// processor puts off none of the next.
void TransactionService::look_at_memory(const store::HeapFile& file) noexcept {
    constexpr int share = 32;
    if (std::chrono::steady_clock::now() < next_look_) return;
    const auto begun = processor_time();
    try {
        if (file.private_bytes() > file.dirty_limit()) {
            changed_bytes_.store(std::max(changed_bytes_.load(std::memory_order_relaxed), changed_bytes_allowed_.load(std::memory_order_relaxed) + 1),
                                 std::memory_order_relaxed);
        }
    } catch (const std::exception&) {
        // The next look will tell.
    }
    next_look_ = std::chrono::steady_clock::now() + share * (processor_time() - begun);
}

/// What a crash would take is gone, and what the open transaction did with it.
void TransactionService::take_loading_back(store::HeapFile& file) noexcept {
    if (is_ahead_of_log()) {
        loading_lost_.store(true, std::memory_order_relaxed);
        if (const std::uint32_t number = scopes_.outermost_number(); first_ahead_ < number) {
            loans_.undo(first_ahead_, number - 1);
            loans_.settle();
            file.held().taken_back(first_ahead_);
        }
        last_.store(log_->appended().value, std::memory_order_release);
    }
    unsearched_ = false;
    file.type_notes().wait_again();
    try {
        read_again(file);
    } catch (const std::exception& error) {
        file.condition().poison("taking back what was loaded without capture", error.what());
    }
}

/// The span becomes what files and log hold. Requires: they hold everything up to `last_committed()`; the writer lock.
void TransactionService::read_again(store::HeapFile& file) {
    log_->wait_durable(log_->appended());
    const auto saves = snapshots_->exclude();
    snapshots_->nothing_given_back_beyond(last_committed());
    scopes_.recorder().stop();
    file.drop_private();
    const auto replay = store::make_log_replay(log_->file().path(), file.ranges().durable_bytes, file.files().durable_serial());
    if (replay->last() < last_committed()) {
        log::Ring::scan(log_->file(), log_->identity(), file.files().point().log_start, [&](const log::Record& group) {
            replay->apply(group, file);
            return replay->last() < last_committed();
        });
    }
    if (replay->last() != last_committed())
        throw Error(errc::corrupt, log_->file().path(), "the log lacks transactions that were acknowledged; restore the heap's files from a copy");
    file.engine().forget({0}, file.ranges().durable_bytes);
    renew_recorder(file);
    uncaptured_ = false;
}

void TransactionService::renew_recorder(store::HeapFile& file) {
    scopes_.set_recorder(nullptr);  // the old one has to go first
    scopes_.set_recorder(change::Recorder::make(file.capture(), file, file.image().mapped(), file.audit(), change::Outside::stray));
    scopes_.recorder().start();
}

}  // namespace taiyen::txn
