#pragma once
/// Precedence: one request goes first, after it was passed over too often or for too long; the next ones queue for it.
///
/// (F1) Who goes first sets `reserved` in all its words; then nobody else takes them, and it tries again whenever one of them gets free. Whatever ends that (granted, paused, stopped, too late) clears the
///      bits and wakes who waits for them.
/// Thread rule: safe.

#include <atomic>
#include <cstdint>
#include <mutex>

#include "base/planted.hpp"
#include "object/entry_queues.hpp"
#include "object/gate.hpp"
#include "object/request.hpp"
#include "object/wait_times.hpp"
#include "object/woken_requests.hpp"

namespace taiyen::object {

class Precedence {
public:
    Precedence(const Gate& gate, EntryQueues& queues, WaitTimes& waits) : gate_(gate), queues_(queues), waits_(waits) {}

    /// True: it stands in the queue. False: it is first already now, or the manager was stopped.
    bool ask(Request& request) noexcept {
        const std::lock_guard lock(mutex_);
        if (gate_.stopped()) return false;
        if (first_ == nullptr) {
            make_first(request);
            return false;
        }
        waits_.start(request);
        request.signal.clear();
        request.place.store(Place::wants_first, std::memory_order_relaxed);
        queue_.push(request);
        return true;
    }
    /// False: it doesn't stand in the queue any more.
    bool leave_queue(Request& request) noexcept {
        const std::lock_guard lock(mutex_);
        if (request.place.load(std::memory_order_relaxed) != Place::wants_first) return false;
        queue_.take_out(request);
        return true;
    }
    /// Requires: it goes first, and knows its entries.
    void reserve(Request& request) noexcept {
        for (const Holding::Item& item : request.want.items()) {
            planted_step();
            item.entry->word.fetch_or(word::reserved, std::memory_order_seq_cst);
        }
        request.reserves = true;
    }
    /// It is over with going first, for whatever reason; nothing happens if it doesn't.
    void stand_back(Request& request) noexcept {
        if (request.reserves) {
            request.reserves = false;
            for (const Holding::Item& item : request.want.items()) {
                planted_step();
                if (item.entry == nullptr) continue;
                const std::uint64_t now = item.entry->word.fetch_and(~word::reserved, std::memory_order_seq_cst);
                // Who has it for itself alone will wake them.
                if ((now & word::waiters) != 0 && (now & word::writer) == 0) queues_.wake_next(*item.entry);
            }
        }
        if (!request.first) return;
        request.first = false;
        Request* next = nullptr;
        {
            const std::lock_guard lock(mutex_);
            first_ = nullptr;
            next = queue_.first();
            if (next != nullptr) {
                queue_.take_out(*next);
                make_first(*next);
            }
        }
        if (next != nullptr) WokenRequests::wake(*next);
    }
    /// Everybody in the queue.
    void wake_all() noexcept { WokenRequests::wake_all(mutex_, queue_); }
    /// Requests that went first, ever.
    std::uint64_t count() const noexcept { return count_.load(std::memory_order_relaxed); }

private:
    void make_first(Request& request) noexcept {
        first_ = &request;
        request.first = true;
        count_.fetch_add(1, std::memory_order_relaxed);
    }

    const Gate& gate_;
    EntryQueues& queues_;
    WaitTimes& waits_;
    std::mutex mutex_;
    Request* first_ = nullptr;
    RequestQueue queue_;
    std::atomic<std::uint64_t> count_{0};
};

}  // namespace taiyen::object
