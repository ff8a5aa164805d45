// What a follower's one writer does: transactions, and pages, that another file of the heap has. Their bytes count, not how they came about: nothing is captured.

#include <algorithm>
#include <array>
#include <limits>

#include <taiyen/base/error.hpp>

#include "base/planted.hpp"
#include "change/audit_shadow.hpp"
#include "txn/record.hpp"
#include "txn/snapshots.hpp"
#include "txn/transaction_service.hpp"

namespace taiyen::txn {

void TransactionService::refuse(const Error& why) {
    const std::lock_guard lock(refusals_mutex_);
    refusals_.push_back(std::make_unique<const Error>(why));
    refusal_.store(refusals_.back().get(), std::memory_order_release);
}

void TransactionService::set_gate(std::shared_ptr<CommitGate> gate) {
    const std::lock_guard lock(gate_mutex_);
    gate_ = std::move(gate);
    has_gate_.store(gate_ != nullptr, std::memory_order_relaxed);
}

void TransactionService::clear_gate(const CommitGate& gate) noexcept {
    std::shared_ptr<CommitGate> gone;  // released without the lock
    const std::lock_guard lock(gate_mutex_);
    if (gate_.get() != &gate) return;
    gone.swap(gate_);
    has_gate_.store(false, std::memory_order_relaxed);
}

void TransactionService::log_bytes_of_calls() noexcept { calls_as_bytes_.store(!planted(Bug::calls_replicated), std::memory_order_relaxed); }

store::HeapFile& TransactionService::file_to_follow() const {
    store::HeapFile& file = open_file();
    file.require_usable(false);
    if (closing_) throw Error(errc::closed, file.path(), "the heap is being closed; open it again");
    return file;
}

void TransactionService::follow(const log::Record& group) {
    ByteCount largest = 0;
    log::for_each_in_group(group, [&](Serial, std::span<const std::byte> record) { largest = std::max<ByteCount>(largest, record.size()); });
    if (!log_->fits(largest)) replace_log(4 * largest, {});
    if (!may_change_more()) snapshots_->wait_for_memory();

    const std::lock_guard writer(lock_);
    store::HeapFile& file = file_to_follow();
    const ByteCount capacity = file.ranges().durable_bytes;
    // Everything that can go wrong, before anything is in the log.
    ByteCount extent = 0;
    std::optional<store::AnnexHead> annex;
    LogWalk check(file.path(), capacity, last_committed());
    check.walk(
        group,
        [&](const LoggedTransaction& transaction) {
            if (transaction.needs_heap) {
                throw Error(errc::missing_procedure, file.path(),
                            "transaction " + std::to_string(transaction.serial.value) +
                                " calls a procedure, which a follower hasn't got; make a new base where the heap is changed");
            }
            extent = std::max(extent, transaction.extent);
            if (transaction.annex) annex = transaction.annex;
        },
        [](const change::Entry&) {});
    if (extent > file.image().mapped()) file.extend(extent);
    if (annex) file.image().annex().follow(*annex);
    // Up to that transaction.
    const auto for_each_of_span = [&](Serial until, auto&& visit) {
        LogWalk walk(file.path(), capacity, last_committed());
        bool is_wanted = true;
        walk.walk(
            group, [&](const LoggedTransaction& transaction) { is_wanted = transaction.serial <= until; },
            [&](const change::Entry& entry) {
                if (is_wanted && entry.where < store::annex_start) visit(entry);
            });
    };
    for_each_of_span(check.last(), [&](const change::Entry& entry) { file.prove(entry.where, entry.length); });

    const auto make_visible = [&](Serial until) {
        auto* const span = reinterpret_cast<std::byte*>(file.ranges().durable);
        std::uint64_t pages = 0;
        std::uint64_t first = std::numeric_limits<std::uint64_t>::max();
        std::uint64_t last = 0;
        for_each_of_span(until, [&](const change::Entry& entry) {
            change::write_entry(span, entry, change::Direction::forward);
            pages += changed_pages_.add(entry.where, entry.length);
            first = std::min(first, entry.where.value);
            last = std::max(last, entry.where.value + entry.length);
        });
        if (first < last) file.engine().forget({first}, last - first);
        count_changed(pages);
        last_.store(until.value, std::memory_order_release);
    };
    if (planted(Bug::followed_before_durable)) make_visible(check.last());
    std::exception_ptr failure;
    try {
        log::for_each_in_group(group, [&](Serial serial, std::span<const std::byte> record) {
            const std::array pieces{record};
            if (!snapshots_->append(serial, pieces)) throw Error(errc::busy, file.path(), "the log has no room");
        });
    } catch (...) {
        failure = std::current_exception();
    }
    // Whatever the log has is shown before readers go on: a save may have brought it into the file under the mapping meanwhile.
    try {
        const Serial appended = log_->appended();
        if (!planted(Bug::followed_before_durable) && appended > last_committed()) {
            log_->wait_durable(appended);
            make_visible(appended);
        }
    } catch (const std::exception& error) {
        file.condition().poison("showing what was replicated", error.what());
        throw;
    }
    if (failure) std::rethrow_exception(failure);
    if (is_snapshot_due(false)) snapshots_->ask(SaveReason::changed_bytes);
}

void TransactionService::follow_pages(Serial serial, ByteCount extent, const store::AnnexHead& annex, std::span<const PageNumber> pages,
                                      const store::FillPages& fill, const store::ReplicaMark& mark) {
    const std::lock_guard writer(lock_);
    store::HeapFile& file = file_to_follow();
    snapshots_->save_all();
    const auto no_save = snapshots_->exclude();
    if (extent > file.image().mapped()) file.extend(extent);
    if (annex.extent != 0) file.image().annex().follow(annex);
    const log::GroupLog::Point point = log_->durable_point();
    const store::ReplicaMark before = file.files().backing().header.replica;
    const auto set_mark = [&](const store::ReplicaMark& one) {
        const auto saves = file.files().hold_saves();
        file.files().for_each([&](store::PageFile& copy) { copy.header.replica = one; });
    };
    set_mark(mark);
    try {
        file.saves().save_images({.serial = serial, .log_start = point.next, .extent = file.image().mapped(), .annex = file.image().annex().head()},
                                 pages, fill);
    } catch (...) {
        set_mark(before);
        throw;
    }
    try {
        scopes_.recorder().stop();
        file.drop_private();
        renew_recorder(file);
    } catch (const std::exception& error) {
        file.condition().poison("showing what was saved", error.what());
        throw;
    }
    log_->skip_to(serial);
    log_->release(point.next.position);
    last_.store(serial.value, std::memory_order_release);
}

}  // namespace taiyen::txn
