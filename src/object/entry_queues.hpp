#pragma once
/// EntryQueues: where requests wait for an object that is taken.
///
/// An entry's queue is a part of a list in one of `lot_count` lots, each with a mutex. The bit `waiters` in the entry's word tells who gives the object back to look there.
/// (Q1) The bit is set, and looked at again, under the lot's mutex while the word says "taken": so who took it will see the bit when it gives the object back. Whoever makes a word with waiters free
///      wakes one request, or leaves that to one that was woken before and hasn't tried yet (bit `waking`).
/// Thread rule: safe; nobody holds another mutex of the manager's here.

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <span>
#include <utility>

#include "base/planted.hpp"
#include "object/gate.hpp"
#include "object/object_table.hpp"
#include "object/request.hpp"
#include "object/wait_times.hpp"
#include "object/woken_requests.hpp"

namespace taiyen::object {

class EntryQueues {
public:
    /// Who stands here when `gate` is stopped is woken by `wake_all`; who comes later stays out.
    EntryQueues(const Gate& gate, WaitTimes& waits) : gate_(gate), waits_(waits) {}

    /// False: it is free by now, or dead, or serves another id (which makes the request forget what it knows), or the manager was stopped: try again.
    bool stand(Request& request, Entry& entry) noexcept {
        Lot& lot = lot_of(entry);
        planted_step();
        const std::lock_guard lock(lot.mutex);
        if (gate_.stopped()) return false;
        std::uint64_t now = entry.word.load(std::memory_order_relaxed);
        if (planted(Bug::sleep_without_look)) {
            entry.word.fetch_or(word::waiters);
        } else {
            do {
                if ((now & word::dead) != 0 || !is_taken(now, request.want.access(), rights_of(request), &entry)) return false;
            } while (!entry.word.compare_exchange_weak(now, now | word::waiters, std::memory_order_acquire, std::memory_order_relaxed));
            // The queue of another id would tell it what became of that one. If the id changes later, `wake_all` comes in between.
            if (!asks_for(request, entry) && !planted(Bug::stands_for_other_id)) {
                request.known = false;
                return false;
            }
        }
        waits_.start(request);
        request.woken_for = nullptr;
        request.signal.clear();
        request.entry = &entry;
        request.place.store(Place::entry, std::memory_order_release);
        lot.queue.push_by_age(request);
        return true;
    }
    /// False: it isn't in the queue of an entry any more. Requires: it stood in one, and only this thread goes on from there.
    bool leave(Request& request) noexcept {
        Entry& entry = *request.entry;
        {
            Lot& lot = lot_of(entry);
            const std::lock_guard lock(lot.mutex);
            if (request.place.load(std::memory_order_relaxed) != Place::entry) return false;
            lot.queue.take_out(request);
            bool others = false;
            for (Request* other = lot.queue.first(); other != nullptr; other = other->next) others = others || other->entry == &entry;
            if (!others) entry.word.fetch_and(~word::waiters, std::memory_order_relaxed);
        }
        // Readers behind a writer that gives up may join those who read.
        if (request.want.access() == Access::exclusive) wake_if_any_waits(entry);
        return true;
    }

    /// The first one, or all readers if that is one; where the entry is reserved, who goes first.
    void wake_next(Entry& entry) noexcept {
        planted_step();
        Lot& lot = lot_of(entry);
        RequestQueue woken;
        {
            const std::lock_guard lock(lot.mutex);
            const bool for_first = (entry.word.load(std::memory_order_relaxed) & word::reserved) != 0;
            bool others = false;
            bool found = false;
            bool readers = false;
            for (Request* request = lot.queue.first(); request != nullptr;) {
                Request* const next = request->next;
                if (request->entry == &entry) {
                    const bool reads = request->want.access() == Access::shared;
                    if (for_first ? request->first.load() : !found || (readers && reads)) {
                        found = true;
                        readers = reads;
                        request->woken_for = &entry;
                        lot.queue.take_out(*request);
                        woken.push(*request);
                    } else {
                        others = true;
                    }
                }
                request = next;
            }
            // In this order: a word that says nothing lets the table move its object.
            if (found && !for_first) entry.word.fetch_or(word::waking, std::memory_order_relaxed);
            if (!others) entry.word.fetch_and(~word::waiters, std::memory_order_relaxed);
        }
        planted_step();
        WokenRequests::wake(woken);
    }
    void wake_if_any_waits(Entry& entry) noexcept {
        if ((entry.word.load(std::memory_order_acquire) & word::waiters) != 0) wake_next(entry);
    }
    /// Everybody out of an entry's queue, told why: its load failed, or says that there is no such object.
    void wake_all(Entry& entry, const std::exception_ptr& failure = nullptr, bool gone = false) noexcept {
        RequestQueue woken;
        {
            Lot& lot = lot_of(entry);
            const std::lock_guard lock(lot.mutex);
            for (Request* request = lot.queue.first(); request != nullptr;) {
                Request* const next = request->next;
                if (request->entry == &entry) {
                    if (!planted(Bug::failure_untold)) request->failure = failure;
                    if (gone) request->gone = entry.id.load(std::memory_order_relaxed);
                    lot.queue.take_out(*request);
                    woken.push(*request);
                }
                request = next;
            }
            entry.word.fetch_and(~(word::waiters | word::waking), std::memory_order_relaxed);
        }
        WokenRequests::wake(woken);
    }
    /// Everybody out of all queues.
    void wake_all() noexcept {
        for (Lot& lot : lots_) {
            RequestQueue woken;
            {
                const std::lock_guard lock(lot.mutex);
                while (Request* const request = lot.queue.first()) {
                    request->entry->word.fetch_and(~word::waiters, std::memory_order_relaxed);
                    lot.queue.take_out(*request);
                    woken.push(*request);
                }
            }
            WokenRequests::wake(woken);
        }
    }

private:
    static constexpr std::size_t lot_count = 256;
    struct alignas(64) Lot {
        std::mutex mutex;
        RequestQueue queue;
    };
    Lot& lot_of(const Entry& entry) noexcept { return lots_[(reinterpret_cast<std::uintptr_t>(&entry) / sizeof(Entry)) % lot_count]; }

    static bool asks_for(const Request& request, const Entry& entry) noexcept {
        const std::int64_t id = entry.id.load(std::memory_order_relaxed);
        const std::span<const Holding::Item> items = std::as_const(request.want).items();
        const auto found =
            std::lower_bound(items.begin(), items.end(), id, [](const Holding::Item& item, std::int64_t wanted) { return item.id < wanted; });
        return found != items.end() && found->id == id && found->entry == &entry;
    }

    const Gate& gate_;
    WaitTimes& waits_;
    std::array<Lot, lot_count> lots_;
};

}  // namespace taiyen::object
