#include "txn/snapshots.hpp"

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

#include <taiyen/base/check.hpp>
#include <taiyen/base/error.hpp>
#include <taiyen/base/report.hpp>

#include "base/aligned_buffer.hpp"
#include "base/planted.hpp"
#include "txn/page_patches.hpp"
#include "txn/transaction_service.hpp"

namespace taiyen::txn {

// A point of time so far ahead can still be told; one that can't lies in the past.
Snapshots::Snapshots(TransactionService& service, const PersistentOptions& options)
    : service_(service), interval_(std::min<std::chrono::milliseconds>(options.snapshot_interval, std::chrono::hours(24 * 365))) {}

Snapshots::~Snapshots() { stop(); }

void Snapshots::start() {
    thread_ = std::make_unique<std::thread>([this] { run(); });
}

void Snapshots::stop() noexcept {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
    }
    wake_.notify_all();
    finished_.notify_all();
    if (thread_) thread_->join();
    thread_.reset();
}

void Snapshots::write_log() noexcept {
    {
        const std::lock_guard lock(mutex_);
        log_asked_ = true;
    }
    wake_.notify_one();
}

/// A transaction waits for a save while it lives.
class Snapshots::Stall {
public:
    /// `serial`: of the transaction; 0: it has none yet.
    Stall(Snapshots& snapshots, Serial serial) : snapshots_(snapshots), serial_(serial) {}
    Stall(const Stall&) = delete;
    Stall& operator=(const Stall&) = delete;
    ~Stall() {
        const auto waited = std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - begun_).count();
        const auto width = static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(std::max<std::int64_t>(waited, 1))));
        snapshots_.stalls_[std::min(width - 1, snapshots_.stalls_.size() - 1)].fetch_add(1, std::memory_order_relaxed);
        if (const std::chrono::microseconds took(waited); took >= stall_told_min)
            snapshots_.service_.events_->tell({.kind = EventKind::stalled, .took = took, .serial = serial_.value});
    }

private:
    Snapshots& snapshots_;
    const Serial serial_;
    const std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
};

void Snapshots::ask_for_round(SaveReason reason) noexcept {
    if (!std::exchange(asked_, true) || reason == SaveReason::log_full) reason_ = reason;  // who finds the log full has just said that it fills up
}

void Snapshots::ask(SaveReason reason) noexcept {
    {
        const std::lock_guard lock(mutex_);
        ask_for_round(reason);
    }
    wake_.notify_one();
}

bool Snapshots::wait_for_round(SaveReason reason) {
    const bool under_writer_lock = reason == SaveReason::log_full;
    std::unique_lock lock(mutex_);
    ask_for_round(reason);
    const std::uint64_t ours = rounds_begun_ + 1;  // one that runs now may have begun too early
    wake_.notify_one();
    ++waiting_;
    waiting_for_room_ += under_writer_lock ? 1 : 0;
    finished_.wait(lock, [&] { return stopping_ || rounds_ended_ >= ours || (under_writer_lock && wants_writer_lock_); });
    --waiting_;
    waiting_for_room_ -= under_writer_lock ? 1 : 0;
    if (rounds_ended_ >= ours) {
        if (failure_) std::rethrow_exception(failure_);
        return true;
    }
    if (stopping_) throw Error(errc::closed, service_.open_file().path(), "the heap is being closed; open it again");
    return false;
}

void Snapshots::wait_for_memory() {
    std::optional<Stall> stall;  // ends without the mutex
    std::unique_lock lock(mutex_);
    // Who comes after `stop` must not look at the thread: it is gone, or about to be.
    if (stopping_ || !thread_ || thread_->get_id() == std::this_thread::get_id()) return;
    stall.emplace(*this, Serial{});
    if (failure_ && service_.is_ahead_of_log()) {
        lock.unlock();
        wait_for_round(SaveReason::memory);  // no log's room bounds what is loaded relaxed
        lock.lock();
    }
    if (stopping_ || failure_) return;
    // A round that runs may be enough: another one is asked for only when it was not.
    const auto wait_for_settled = [&](std::uint64_t round) {
        finished_.wait(lock, [&] { return stopping_ || rounds_settled_ >= round || service_.may_change_more(); });
    };
    wait_for_settled(rounds_begun_);
    if (stopping_ || failure_ || service_.may_change_more()) return;
    ask_for_round(SaveReason::memory);
    wake_.notify_one();
    wait_for_settled(rounds_begun_ + 1);
}

void Snapshots::wait_for(Serial serial) {
    while (service_.open_file().files().durable_serial() < serial) {
        if (service_.last_committed() < serial) service_.throw_loading_lost();
        wait_for_round(SaveReason::asked);
    }
}

bool Snapshots::append(Serial serial, std::span<const std::span<const std::byte>> pieces) {
    std::optional<Stall> stall;
    const store::EventClock clock;
    const std::uint64_t waits = service_.log_->window_waits();
    while (!service_.log_->try_append(serial, pieces)) {
        if (!stall) stall.emplace(*this, serial);
        if (service_.needs_heap_.load(std::memory_order_acquire) > service_.open_file().files().durable_serial().value) return false;
        if (!wait_for_round(SaveReason::log_full)) return false;
    }
    if (service_.log_->window_waits() != waits) service_.events_->tell({.kind = EventKind::behind, .took = clock.took(), .serial = serial.value});
    return true;
}

void Snapshots::save_here(Serial serial, ByteCount extent) {
    log::GroupLog& log = *service_.log_;
    log.wait_durable(log.appended());
    const std::lock_guard saving(saving_);
    const log::GroupLog::Point point = log.durable_point();
    if (planted(Bug::large_before_save)) log.skip_to(serial);
    service_.open_file().save_at({.serial = serial, .log_start = point.next, .extent = extent, .searches = service_.unsearched_});
    service_.unsearched_ = false;
    log.skip_to(serial);
    log.release(point.next.position);
}

void Snapshots::save_all() { TAIYEN_CHECK(save(true)); }

bool Snapshots::save(bool locked) {
    log::GroupLog& log = *service_.log_;
    if (service_.is_ahead_of_log()) {
        if (!locked) return false;
        service_.open_file().check_usable(false);
        save_here(service_.last_committed(), service_.open_file().image().mapped());
        return true;
    }
    const log::GroupLog::Point before = log.durable_point();
    log.wait_durable(log.appended());
    const std::lock_guard saving(saving_);
    store::HeapFile& file = service_.open_file();
    file.check_usable(false);  // a save that failed behind its commit point left nothing to save, and no room: who waits for that must hear it
    const log::GroupLog::Point point = planted(Bug::save_older_than_given_back) ? before : log.durable_point();
    if (!planted(Bug::save_older_than_given_back)) TAIYEN_CHECK(point.serial >= newest_given_back_);
    const Serial contained = file.files().durable_serial();
    if (point.serial <= contained) return true;
    if (service_.needs_heap_.load(std::memory_order_acquire) > contained.value) {
        if (!locked) return false;
        file.save_at({point.serial, point.next, file.image().mapped()});
    } else {
        PagePatches patches(log.file(), log.identity(), file.files().point().log_start, contained, point.serial, file.ranges().durable_bytes,
                            file.saves().batch_bytes());
        patches.read([&](PageNumber page, std::span<std::byte> image) { file.saves().read_base(page, image); });
        TAIYEN_CHECK(!patches.needs_heap());
        if (planted(Bug::release_before_snapshot)) log.release(point.next.position);
        const Serial claimed{point.serial.value + (planted(Bug::snapshot_claims_next) ? 1 : 0)};
        const store::SavePoint save{claimed, planted(Bug::stale_log_start) ? file.files().point().log_start : point.next, patches.extent(),
                                    patches.annex()};
        if (patches.has_images()) {
            file.saves().save_images(save, patches.pages(),
                                     [&](std::span<const PageNumber> pages, std::span<std::byte> images) { patches.copy_images(pages, images); });
        } else {
            file.saves().save_patched(save, patches.pages(),
                                      [&](std::span<const PageNumber> pages, std::span<std::byte> images) { patches.patch(pages, images); });
        }
    }
    log.release(point.next.position);
    return true;
}

std::unique_lock<BiasedLock> Snapshots::lock_writers() {
    {
        const std::lock_guard lock(mutex_);
        wants_writer_lock_ = true;
    }
    finished_.notify_all();
    std::unique_lock writer(service_.lock_);
    {
        const std::lock_guard lock(mutex_);
        wants_writer_lock_ = false;
    }
    return writer;
}

void Snapshots::save_under_writer_lock() {
    const auto writer = lock_writers();
    save_all();
}

/// `left`: bytes of private copies. Who waits for room in the log has to be served first, and so has everybody else once enough memory is free.
bool Snapshots::must_end_trim(ByteCount left) {
    const std::lock_guard lock(mutex_);
    return stopping_ || waiting_for_room_ != 0 || ((asked_ || log_asked_) && left <= service_.open_file().dirty_limit() / 2);
}

/// Gives back private copies that the files hold too, if there are many.
void Snapshots::trim() noexcept {
    try {
        store::HeapFile& file = service_.open_file();
        std::vector<vm::PageRun> todo = file.private_pages();
        ByteCount bytes = 0;
        for (const vm::PageRun& run : todo) bytes += run.count * page_bytes;
        // What changes all the time can't be given back: it isn't looked at each time.
        if (bytes <= file.dirty_limit() / 2 || bytes <= left_by_trim_ + file.dirty_limit() / 16) return;
        const AlignedBuffer buffer(16 * page_bytes);
        ByteCount dropped = 0;
        left_by_trim_ = 0;
        while (!todo.empty()) {
            const vm::PageRun next = todo.back();  // what the page cache has lost is fetched before anybody waits for us
            const std::uint64_t count = std::min<std::uint64_t>(next.count, buffer.size() / page_bytes);
            file.files().backing().read_pages({next.first + next.count - count}, buffer.first(count * page_bytes), store::Via::cache);
            if (must_end_trim(bytes - dropped)) return;
            const auto writer = lock_writers();
            newest_given_back_ = service_.last_committed();
            dropped += file.saves().drop_saved(todo, buffer.span(), trim_time) * page_bytes;
        }
        left_by_trim_ = bytes - dropped;
    } catch (const std::exception&) {
        // Then they stay: memory is all that it costs.
    }
}

void Snapshots::add_to(TransactionStats& stats) const {
    std::exception_ptr failure;
    {
        const std::lock_guard lock(mutex_);
        const auto saves = [&](SaveReason reason) { return saves_[static_cast<std::size_t>(reason)]; };
        stats.saves_for_log_fill = saves(SaveReason::log_fill);
        stats.saves_for_changed_bytes = saves(SaveReason::changed_bytes);
        stats.saves_for_interval = saves(SaveReason::interval);
        stats.saves_for_room = saves(SaveReason::log_full);
        stats.saves_for_memory = saves(SaveReason::memory);
        stats.saves_asked_for = saves(SaveReason::asked);
        stats.failed_saves = failed_saves_;
        stats.last_save_failed = failure_ != nullptr;
        failure = last_failure_;
    }
    for (std::size_t i = 0; i < stalls_.size(); ++i) stats.stalls[i] = stalls_[i].load(std::memory_order_relaxed);
    if (!failure) return;
    try {
        std::rethrow_exception(failure);
    } catch (const std::exception& error) {
        stats.last_error = error.what();
    }
}

/// Nobody waits for the save that failed: whoever fills the log will.
void Snapshots::tell(const std::exception_ptr& failure) noexcept {
    try {
        std::rethrow_exception(failure);
    } catch (const Error& error) {
        report({static_cast<errc>(error.code().value()), nullptr, error.what()});
    } catch (const std::exception& error) {
        report({errc::io_error, nullptr, error.what()});
    }
}

void Snapshots::run() noexcept {
    std::unique_lock lock(mutex_);
    const auto called = [this] { return asked_ || log_asked_ || stopping_; };
    for (;;) {
        if (interval_.count() > 0)
            wake_.wait_for(lock, interval_, called);
        else
            wake_.wait(lock, called);
        if (stopping_) return;
        if (std::exchange(log_asked_, false) && !asked_) {
            lock.unlock();
            try {
                service_.log_->wait_durable(service_.log_->appended());
            } catch (const std::exception&) {
                // The heap is poisoned, and says so.
            }
            lock.lock();
            continue;
        }
        const SaveReason reason = std::exchange(asked_, false) ? reason_ : SaveReason::interval;
        ++rounds_begun_;
        lock.unlock();
        const Serial before = service_.open_file().files().durable_serial();
        const std::uint64_t changed = service_.begin_count();
        std::exception_ptr failure;
        try {
            if (!save(false)) save_under_writer_lock();
        } catch (...) {
            failure = std::current_exception();
        }
        lock.lock();
        const bool is_news = failure && !failure_ && waiting_ == 0;
        failure_ = failure;
        if (failure) {
            last_failure_ = failure;
            ++failed_saves_;
        } else if (service_.open_file().files().durable_serial() != before) {
            ++saves_[static_cast<std::size_t>(reason)];
        }
        if (is_news) {
            lock.unlock();
            tell(failure);
            lock.lock();
        }
        rounds_ended_ = rounds_begun_;
        finished_.notify_all();
        if (!failure_ && !stopping_) {
            lock.unlock();
            trim();
            service_.allow_changes_from(changed);
            lock.lock();
        }
        rounds_settled_ = rounds_begun_;
        finished_.notify_all();
    }
}

}  // namespace taiyen::txn
