#include "txn/snapshots.hpp"

#include <utility>

#include <taiyen/base/check.hpp>
#include <taiyen/base/error.hpp>

#include "base/planted.hpp"
#include "txn/page_patches.hpp"
#include "txn/transaction_service.hpp"

namespace taiyen::txn {

Snapshots::Snapshots(TransactionService& service, const PersistentOptions& options) : service_(service), interval_(options.snapshot_interval) {}

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

void Snapshots::ask() noexcept {
    {
        const std::lock_guard lock(mutex_);
        asked_ = true;
    }
    wake_.notify_one();
}

bool Snapshots::wait_for_round(bool under_writer_lock) {
    std::unique_lock lock(mutex_);
    asked_ = true;
    const std::uint64_t ours = rounds_begun_ + 1;  // one that runs now may have begun too early
    wake_.notify_one();
    finished_.wait(lock, [&] { return stopping_ || rounds_ended_ >= ours || (under_writer_lock && wants_writer_lock_); });
    if (rounds_ended_ >= ours) {
        if (failure_) std::rethrow_exception(failure_);
        return true;
    }
    if (stopping_) throw Error(errc::closed, service_.open_file().path(), "the heap is being closed; open it again");
    return false;
}

void Snapshots::wait_for(Serial serial) {
    while (service_.open_file().serial() < serial) wait_for_round(false);
}

bool Snapshots::append(Serial serial, std::span<const std::span<const std::byte>> pieces) {
    while (!service_.log_->try_append(serial, pieces)) {
        if (service_.needs_heap_.load(std::memory_order_acquire) > service_.open_file().serial().value) return false;
        if (!wait_for_round(true)) return false;
    }
    return true;
}

void Snapshots::save_here(Serial serial, ByteCount extent) {
    log::GroupLog& log = *service_.log_;
    log.wait_durable(log.appended());
    const std::lock_guard saving(saving_);
    const log::GroupLog::Point point = log.durable_point();
    if (planted(Bug::large_before_save)) log.skip_to(serial);
    service_.open_file().save_at({serial, point.next, extent});
    log.skip_to(serial);
    log.release(point.next.position);
}

void Snapshots::save_all() { TAIYEN_CHECK(save(true)); }

bool Snapshots::save(bool locked) {
    log::GroupLog& log = *service_.log_;
    log.wait_durable(log.appended());
    const std::lock_guard saving(saving_);
    store::HeapFile& file = service_.open_file();
    file.check_usable(false);  // a save that failed behind its commit point left nothing to save, and no room: who waits for that must hear it
    const log::GroupLog::Point point = log.durable_point();
    const Serial contained = file.serial();
    if (point.serial <= contained) return true;
    if (service_.needs_heap_.load(std::memory_order_acquire) > contained.value) {
        if (!locked) return false;
        file.save_at({point.serial, point.next, file.mapped_bytes()});
    } else {
        PagePatches patches(log.file(), log.identity(), file.log_start(), contained, point.serial, file.ranges().durable_bytes, file.batch_bytes());
        patches.read([&](PageNumber page, std::span<std::byte> image) { file.read_base(page, image); });
        TAIYEN_CHECK(!patches.needs_heap());
        if (planted(Bug::release_before_snapshot)) log.release(point.next.position);
        const Serial claimed{point.serial.value + (planted(Bug::snapshot_claims_next) ? 1 : 0)};
        const store::SavePoint save{claimed, planted(Bug::stale_log_start) ? file.log_start() : point.next, patches.extent(), patches.annex()};
        if (patches.has_images()) {
            file.save_images(save, patches.pages(),
                             [&](std::span<const PageNumber> pages, std::span<std::byte> images) { patches.copy_images(pages, images); });
        } else {
            file.save_patched(save, patches.pages(),
                              [&](std::span<const PageNumber> pages, std::span<std::byte> images) { patches.patch(pages, images); });
        }
    }
    log.release(point.next.position);
    return true;
}

void Snapshots::save_under_writer_lock() {
    {
        const std::lock_guard lock(mutex_);
        wants_writer_lock_ = true;
    }
    finished_.notify_all();
    const std::lock_guard writer(service_.lock_);
    {
        const std::lock_guard lock(mutex_);
        wants_writer_lock_ = false;
    }
    save_all();
}

void Snapshots::run() noexcept {
    std::unique_lock lock(mutex_);
    const auto called = [this] { return asked_ || log_asked_ || stopping_; };
    for (;;) {
        if (interval_.count() > 0) {
            wake_.wait_for(lock, interval_, called);
        } else {
            wake_.wait(lock, called);
        }
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
        asked_ = false;
        ++rounds_begun_;
        lock.unlock();
        std::exception_ptr failure;
        try {
            if (!save(false)) save_under_writer_lock();
        } catch (...) {
            failure = std::current_exception();
        }
        lock.lock();
        failure_ = failure;
        rounds_ended_ = rounds_begun_;
        finished_.notify_all();
    }
}

}  // namespace taiyen::txn
