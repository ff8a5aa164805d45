#pragma once
/// CheckOutEngine: what a request does to get its objects; what ObjectManager promises is made here.
///
/// A request tries: enter (exclusive ones; a pause looks at who is in: gate.hpp), then each object's word in ascending order. At one that is taken it gives all back and stands in that entry's
/// queue (entry_queues.hpp). After it was passed over for long it goes first (precedence.hpp).
/// (I1) A request that was woken for an entry clears `waking` before it tries. It takes the entry, or finds it taken by somebody who gives it back later, or wakes the next one for it: so an entry
///      that is free and has waiters always has somebody awake.
/// (I2) No mutex of ours is held while a loader, a callback or another mutex of ours is entered. Callbacks run when the thread holds nothing of ours (`WokenRequests::go_on`).
/// Thread rule: safe.

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>

#include <taiyen/base/check.hpp>
#include <taiyen/base/error.hpp>
#include <taiyen/object/check_outs.hpp>

#include "base/planted.hpp"
#include "object/background_loads.hpp"
#include "object/entry_queues.hpp"
#include "object/gate.hpp"
#include "object/object_table.hpp"
#include "object/precedence.hpp"
#include "object/request.hpp"
#include "object/wait_times.hpp"
#include "object/woken_requests.hpp"

namespace taiyen::object {

class CheckOutEngine final : public CheckOuts {
public:
    explicit CheckOutEngine(Options options) : options_(std::move(options)), table_(options_.objects) {}
    ~CheckOutEngine() override {
        stop();
        loads_.reset();
        WokenRequests::go_on(*this);
        TAIYEN_CHECK(gate_.nobody_inside());  // a Checkout outlives its manager
    }

    void add(std::int64_t id, void* object) override {
        refuse_if_stopped();
        for (;;) {
            const auto [entry, made] = table_.insert(id, 0, object);
            if (made) return;
            if ((entry->word.load(std::memory_order_acquire) & word::dead) == 0)
                throw Error(errc::already_exists, "the object manager has an object " + std::to_string(id) + " already; remove it first");
        }
    }

    bool remove(std::int64_t id, const std::function<void(void*)>& last) override {
        Holding holding({&id, 1}, Access::exclusive);
        if (planted(Bug::removed_while_held)) {
            Entry* const entry = table_.find(id);
            if (entry == nullptr) return false;
            last(entry->object.load());
            return true;
        }
        holding.stripe_ = Gate::stripe_of_thread();
        take(holding, std::nullopt, false);
        if (!holding.holds()) return false;
        Entry& entry = *holding.data()->entry;
        last(entry.object.load(std::memory_order_relaxed));
        table_.unlink(entry);
        planted_step();
        entry.word.exchange(word::dead, std::memory_order_acq_rel);
        queues_.wake_all(entry);
        table_.give_back(entry);
        holding.owner_ = nullptr;
        gate_.leave(holding.stripe_);
        WokenRequests::go_on();
        return true;
    }

    bool contains(std::int64_t id) const override {
        for (;;) {
            const Entry* const found = table_.find(id);
            if (found == nullptr) return false;
            planted_step();
            const std::uint64_t now = found->word.load(std::memory_order_acquire);
            // It may have moved meanwhile, or the entry serves another id: only what is the id's own says something about it.
            if ((now & word::dead) == 0 && found->id.load(std::memory_order_relaxed) == id) return (now & word::loading) == 0;
        }
    }

    void check_out(Holding& holding, std::optional<Clock::time_point> deadline) override {
        holding.stripe_ = Gate::stripe_of_thread();
        find_entries(holding);
        const std::span<const Holding::Item> items = holding.items();
        if (std::all_of(items.begin(), items.end(), [](const Holding::Item& item) { return item.entry != nullptr; }) && !gate_.seems_stopped()) {
            Entry* taken = nullptr;
            if (attempt(holding, {}, taken) == Attempt::granted) return;
        }
        take(holding, deadline, true);
    }

    void check_out_later(std::span<const std::int64_t> ids, Access access, Callback callback) override {
        auto later = std::make_unique<Later>(*this, Holding(ids, access), std::move(callback));
        later->want.stripe_ = Gate::stripe_of_thread();
        later.release()->go_on();
        WokenRequests::go_on();
    }

    void prefetch(std::span<const std::int64_t> ids) override {
        refuse_if_stopped();
        if (!can_load()) return;
        BackgroundLoads::Batch batch;
        try {
            batch = mark_unknown(ids);
            if (!batch.empty()) loads_->add(batch);
        } catch (...) {
            refuse(batch, std::current_exception());
            WokenRequests::go_on();
            throw;
        }
    }

    std::vector<HeldObject> held() const override {
        std::vector<HeldObject> result;
        table_.for_each([&](const Entry& entry) {
            const std::uint64_t now = entry.word.load(std::memory_order_relaxed);
            if ((now & (word::dead | word::loading)) != 0 || (now & (word::readers | word::writer)) == 0) return;
            const bool writes = (now & word::writer) != 0;
            result.push_back({entry.id.load(std::memory_order_relaxed), writes ? Access::exclusive : Access::shared,
                              writes ? 0 : static_cast<std::uint32_t>(now & word::readers)});
        });
        std::ranges::sort(result, {}, &HeldObject::id);
        return result;
    }

    void give_back(Holding& holding) noexcept override {
        holding.owner_ = nullptr;
        give_back_first(holding, holding.count_);
        if (holding.access_ == Access::exclusive) gate_.leave(holding.stripe_);
        WokenRequests::go_on();
    }

    bool pause(Paused whom, std::optional<Clock::time_point> deadline) override {
        if (gate_.pause(whom, deadline) && (whom == Paused::writers || wait_for_readers(deadline))) return true;
        resume(whom);
        return false;
    }

    void resume(Paused whom) noexcept override {
        gate_.resume(whom, [this](Request& request) { let_through(request); });
        WokenRequests::go_on();
    }

    void stop() noexcept override {
        gate_.stop();
        if (loads_) loads_->stop();  // null: a callback of the destructor asks
        if (planted(Bug::stop_wakes_nobody)) return;
        queues_.wake_all();
        gate_.wake_all();
        precedence_.wake_all();
        WokenRequests::go_on();
    }

    CheckoutStatistics statistics() const override {
        CheckoutStatistics result;
        result.objects = table_.size();
        result.granted = gate_.granted();
        result.went_first = precedence_.count();
        result.loaded = loaded_.load(std::memory_order_relaxed);
        waits_.tell(result);
        return result;
    }

private:
    static constexpr int spins = 40;

    enum class Outcome : std::uint8_t { granted, missing, waits, refused };
    enum class Attempt : std::uint8_t { granted, taken, paused, stale };

    static std::uint64_t unit(Access access) noexcept { return access == Access::exclusive ? word::writer : word::one_reader; }
    void refuse_if_stopped() const {
        if (gate_.stopped()) throw Error(errc::stopped, "the object manager was stopped and grants nothing any more");
    }

    // One attempt

    /// `taken`: the entry that was.
    Attempt attempt(Holding& want, const Rights& rights, Entry*& taken, bool pass_gate = false) noexcept {
        const bool exclusive = want.access_ == Access::exclusive;
        const auto is_kept_out = [&] { return !exclusive && !pass_gate && gate_.keeps_readers_out(); };
        if (is_kept_out() || (exclusive && !gate_.enter(want.stripe_, pass_gate))) return Attempt::paused;
        const Attempt result = take_words(want, rights, taken);
        if (result == Attempt::granted) {
            if (is_kept_out() && !planted(Bug::entered_unseen)) {
                give_back_first(want, want.count_);
                return Attempt::paused;
            }
            if (!exclusive) gate_.count_granted(want.stripe_);
            want.owner_ = this;
        } else if (exclusive) {
            gate_.leave_in_vain(want.stripe_);
        }
        return result;
    }

    Attempt take_words(Holding& want, const Rights& rights, Entry*& taken) noexcept {
        Holding::Item* const items = want.data();
        const std::uint64_t added = unit(want.access_);
        for (std::uint32_t i = 0; i < want.count_; ++i) {
            planted_step();
            Entry& entry = *items[i].entry;
            std::uint64_t now = entry.word.load(std::memory_order_relaxed);
            Attempt found = Attempt::granted;
            do {
                if ((now & word::dead) != 0) {
                    found = Attempt::stale;
                } else if (is_taken(now, want.access_, rights, &entry)) {
                    // By another id's holder, which may be this very request: two of its ids lead to one entry if the table has moved one of them since, and it would wait for itself.
                    found = entry.id.load(std::memory_order_relaxed) == items[i].id ? Attempt::taken : Attempt::stale;
                }
            } while (found == Attempt::granted &&
                     !entry.word.compare_exchange_weak(now, now + added, std::memory_order_seq_cst, std::memory_order_relaxed));
            std::uint32_t have = i;
            if (found == Attempt::granted) {
                have = i + 1;
                if (entry.id.load(std::memory_order_relaxed) != items[i].id && !planted(Bug::ids_not_compared)) found = Attempt::stale;
            }
            if (found != Attempt::granted) {
                taken = &entry;
                if (!planted(Bug::kept_in_part) || found == Attempt::stale) give_back_first(want, have);
                return found;
            }
            items[i].object = entry.object.load(std::memory_order_relaxed);
            __builtin_prefetch(items[i].object, 1);
        }
        return Attempt::granted;
    }

    void give_back_first(Holding& holding, std::uint32_t count) noexcept {
        const std::uint64_t added = unit(holding.access_);
        const Holding::Item* const items = holding.data();
        for (std::uint32_t i = count; i-- != 0;) {
            planted_step();
            Entry& entry = *items[i].entry;
            const std::uint64_t now = entry.word.fetch_sub(added, std::memory_order_acq_rel) - added;
            if ((now & word::waiters) != 0 && (now & (word::readers | word::writer)) == 0 &&
                ((now & word::waking) == 0 || (now & word::reserved) != 0)) {
                queues_.wake_next(entry);
            }
        }
    }

    /// Until nobody reads. Requires: the gate is closed to readers. False: the time was up.
    bool wait_for_readers(std::optional<Clock::time_point> deadline) const {
        constexpr std::chrono::microseconds longest_nap{1000};
        std::chrono::microseconds nap{1};
        for (;;) {
            bool somebody_reads = false;
            table_.for_each([&](const Entry& entry) {
                const std::uint64_t now = entry.word.load(std::memory_order_seq_cst);
                somebody_reads = somebody_reads || ((now & word::dead) == 0 && (now & word::readers) != 0);
            });
            if (!somebody_reads) return true;
            if (deadline && Clock::now() >= *deadline) return false;
            std::this_thread::sleep_for(nap);
            nap = std::min(2 * nap, longest_nap);
        }
    }

    // Entries and loads

    void find_entries(Holding& want) noexcept {
        const std::span<Holding::Item> items = want.items();
        if (items.size() == 1) {
            items[0].entry = table_.look_up(items[0].id, ObjectTable::mix(items[0].id));
            return;
        }
        std::array<std::uint64_t, Holding::items_inside> mixed;
        for (std::size_t from = 0; from < items.size(); from += mixed.size()) {
            const std::span<Holding::Item> some = items.subspan(from, std::min(mixed.size(), items.size() - from));
            // In two steps, so that the processor waits for memory once, not for each id.
            for (std::size_t i = 0; i < some.size(); ++i) {
                mixed[i] = ObjectTable::mix(some[i].id);
                table_.fetch(mixed[i]);
            }
            for (std::size_t i = 0; i < some.size(); ++i) some[i].entry = table_.look_up(some[i].id, mixed[i]);
        }
    }

    /// Everything that is asked for has an entry; what doesn't is loaded. Throws: what the loader throws.
    Outcome find_all(Request& request, bool may_wait) {
        Holding& want = request.want;
        find_entries(want);
        want.missing_.clear();
        const std::vector<std::int64_t> absent = request.may_load && options_.load_many ? load_unknown(request) : std::vector<std::int64_t>();
        for (Holding::Item& item : want.items()) {
            if (request.gone == item.id || std::ranges::binary_search(absent, item.id)) {
                want.missing_.push_back(item.id);
                continue;
            }
            if (item.entry == nullptr) item.entry = table_.find(item.id);
            while (item.entry == nullptr || (item.entry->word.load(std::memory_order_acquire) & word::loading) != 0) {
                if (item.entry == nullptr) {
                    if (!request.may_load || !can_load()) break;
                    if (planted(Bug::loaded_twice)) (void)options_.load(item.id);
                    const auto [entry, made] = table_.insert(item.id, word::loading, nullptr);
                    item.entry = entry;
                    if (made && !load(*entry, item.id)) {
                        item.entry = nullptr;
                        break;
                    }
                } else {
                    if (!may_wait) return Outcome::refused;
                    if (stand_in_queue(request, *item.entry)) return Outcome::waits;
                    refuse_if_stopped();
                    item.entry = table_.find(item.id);
                }
            }
            if (item.entry == nullptr) want.missing_.push_back(item.id);
        }
        request.gone.reset();
        if (!want.missing_.empty()) return Outcome::missing;
        request.known = true;
        return Outcome::granted;
    }

    bool can_load() const noexcept { return options_.load || options_.load_many; }

    /// Entries for those that nobody knows, which are loading from now on. Throws: std::bad_alloc, and none is.
    BackgroundLoads::Batch mark_unknown(std::span<const std::int64_t> ids) {
        BackgroundLoads::Batch marked;
        try {
            for (const std::int64_t id : ids) {
                if (table_.find(id) != nullptr) continue;
                marked.reserve(ids.size());
                const auto [entry, made] = table_.insert(id, word::loading, nullptr);
                if (made) marked.push_back({id, entry});
            }
        } catch (...) {
            refuse(marked, std::current_exception());
            throw;
        }
        return marked;
    }
    /// Loads what nobody knows of that, at once. Returns the ids of those that there aren't, ascending. Throws: what the loader throws.
    std::vector<std::int64_t> load_unknown(const Request& request) {
        std::vector<std::int64_t> ids;
        for (const Holding::Item& item : std::as_const(request.want).items())
            if (item.entry == nullptr && request.gone != item.id) ids.push_back(item.id);
        return ids.empty() ? ids : load(mark_unknown(ids));
    }
    /// Requires: the entries are loading, and ours. Returns the ids of those that there aren't, as they stood. Throws: what the loader throws; none was loaded then.
    std::vector<std::int64_t> load(const BackgroundLoads::Batch& batch) {
        std::vector<std::int64_t> absent;
        if (batch.empty()) return absent;
        WokenRequests::go_on();  // callbacks wouldn't want to wait for it
        std::vector<void*> objects;
        try {
            absent.reserve(batch.size());
            objects.resize(batch.size());
            std::vector<std::int64_t> ids;
            for (const LoadingEntry& one : batch) ids.push_back(one.id);
            options_.load_many(ids, objects);
        } catch (...) {
            refuse(batch, std::current_exception());
            throw;
        }
        for (std::size_t i = 0; i < batch.size(); ++i) {
            if (objects[i] == nullptr) absent.push_back(batch[i].id);
            settle(*batch[i].entry, objects[i], nullptr);
        }
        return absent;
    }
    /// Requires: the entry is loading, and ours. False: there is no such object.
    bool load(Entry& entry, std::int64_t id) {
        if (options_.load_many) {
            BackgroundLoads::Batch one;
            try {
                one.push_back({id, &entry});
            } catch (...) {
                forget(entry, std::current_exception(), false);
                throw;
            }
            return load(one).empty();
        }
        void* object = nullptr;
        std::exception_ptr failure;
        WokenRequests::go_on();  // as above
        try {
            object = options_.load(id);
        } catch (...) {
            failure = std::current_exception();
        }
        settle(entry, object, failure);
        if (failure) std::rethrow_exception(failure);
        return object != nullptr;
    }
    /// For the thread of `loads_`.
    void load_in_background(const BackgroundLoads::Batch& batch, bool stopped) noexcept {
        if (stopped) {
            refuse(batch, nullptr);
        } else if (options_.load_many) {
            try {
                load(batch);
            } catch (...) {  // NOLINT(bugprone-empty-catch): whoever waits for them has it
            }
        } else {
            for (const LoadingEntry& one : batch) {
                try {
                    gate_.stopped() ? forget(*one.entry, nullptr, false) : (void)load(*one.entry, one.id);
                } catch (...) {  // NOLINT(bugprone-empty-catch): as above
                }
            }
        }
        WokenRequests::go_on();
    }
    /// What became of a load. Requires: the entry is loading, and ours.
    void settle(Entry& entry, void* object, const std::exception_ptr& failure) noexcept {
        if (object == nullptr) return forget(entry, failure, !failure);
        entry.object.store(object, std::memory_order_relaxed);
        entry.word.fetch_and(~word::loading, std::memory_order_release);
        loaded_.fetch_add(1, std::memory_order_relaxed);
        queues_.wake_all(entry);
    }
    /// None of them comes. Null: who waits tries again.
    void refuse(const BackgroundLoads::Batch& batch, const std::exception_ptr& failure) noexcept {
        for (const LoadingEntry& one : batch) forget(*one.entry, failure, false);
    }
    void forget(Entry& entry, const std::exception_ptr& failure, bool gone) noexcept {
        table_.unlink(entry);
        entry.word.exchange(word::dead, std::memory_order_acq_rel);
        queues_.wake_all(entry, failure, gone);
        table_.give_back(entry);
    }

    // A request's way

    /// False: it need not wait any more, or not there: try again.
    bool stand_in_queue(Request& request, Entry& entry) noexcept {
        WaitTimes::begin(request);
        return queues_.stand(request, entry);
    }
    bool stand_at_gate(Request& request) noexcept {
        WaitTimes::begin(request);
        return gate_.stand(request);
    }
    bool ask_to_go_first(Request& request) noexcept {
        WaitTimes::begin(request);
        return precedence_.ask(request);
    }
    /// A request's turn after a pause, taken for it so that it comes before those behind it.
    void let_through(Request& request) noexcept {
        while (request.known && !gate_.stopped()) {
            Entry* taken = nullptr;
            const Attempt result = attempt(request.want, rights_of(request), taken, true);
            if (result == Attempt::stale) request.known = false;
            if (result == Attempt::granted) {
                request.granted = true;
                break;
            }
            if (result == Attempt::taken && stand_in_queue(request, *taken)) return;
        }
        WokenRequests::wake(request);
    }

    /// Goes as far as it can. `waits`: it stands in a queue, and belongs to who takes it out. Throws: Error{stopped}, what the loader throws.
    Outcome advance(Request& request, bool may_wait) {
        for (;;) {
            if (request.granted) return Outcome::granted;
            refuse_if_stopped();
            if (std::exception_ptr failure = std::exchange(request.failure, nullptr)) std::rethrow_exception(failure);
            Entry* const woken_for = request.woken_for;
            if (woken_for != nullptr) woken_for->word.fetch_and(~word::waking, std::memory_order_seq_cst);
            planted_step();
            if (!request.known) {
                precedence_.stand_back(request);
                const Outcome found = find_all(request, may_wait);
                if (found != Outcome::granted) return found;
            }
            if (request.first && !request.reserves) precedence_.reserve(request);
            Entry* taken = nullptr;
            const Attempt result = attempt(request.want, rights_of(request), taken);
            if (result == Attempt::granted) {
                request.woken_for = nullptr;
                precedence_.stand_back(request);
                return Outcome::granted;
            }
            if (woken_for != nullptr && woken_for != taken) pass_on(request);
            if (result == Attempt::stale) {
                request.known = false;
                continue;
            }
            if (result == Attempt::paused) {
                if (!may_wait) return Outcome::refused;
                precedence_.stand_back(request);
                if (stand_at_gate(request)) return Outcome::waits;
                continue;
            }
            if (!may_wait) return Outcome::refused;
            if (woken_for != nullptr) ++request.attempts;
            if (!request.since && gets_free(request, *taken)) continue;
            if (!request.first && wants_to_go_first(request)) {
                if (woken_for != nullptr) pass_on(request);
                if (ask_to_go_first(request)) return Outcome::waits;
                continue;
            }
            if (stand_in_queue(request, *taken)) return Outcome::waits;
        }
    }

    /// What it was woken for is left to the next one.
    void pass_on(Request& request) noexcept {
        Entry* const entry = std::exchange(request.woken_for, nullptr);
        if (entry != nullptr && !planted(Bug::next_not_woken)) queues_.wake_if_any_waits(*entry);
    }
    bool wants_to_go_first(const Request& request) const noexcept {
        if (planted(Bug::passed_over_for_ever)) return false;
        return request.attempts >= options_.attempts || (request.since && Clock::now() - *request.since >= options_.patience);
    }
    /// Most objects are given back sooner than a thread falls asleep.
    static bool gets_free(const Request& request, const Entry& entry) noexcept {
        for (int left = spins; left != 0; --left) {
            if (!is_taken(entry.word.load(std::memory_order_relaxed), request.want.access(), rights_of(request), &entry)) return true;
#if defined(__x86_64__)
            __builtin_ia32_pause();
#elif defined(__aarch64__)
            asm volatile("yield");
#endif
        }
        return false;
    }
    /// It ends without its objects: others may go on in its stead.
    void give_up(Request& request) noexcept {
        if (request.woken_for != nullptr) {
            request.woken_for->word.fetch_and(~word::waking, std::memory_order_seq_cst);
            pass_on(request);
        }
        precedence_.stand_back(request);
    }

    void take(Holding& holding, std::optional<Clock::time_point> deadline, bool may_load) {
        Request request(holding, may_load);
        const bool may_wait = deadline != Clock::time_point::min();
        struct End {
            CheckOutEngine& self;
            Request& request;
            ~End() {
                if (!request.want.holds()) self.give_up(request);
                self.waits_.stop(request);
                WokenRequests::go_on();
            }
        } const end{*this, request};
        while (advance(request, may_wait) == Outcome::waits) {
            WokenRequests::go_on();
            if (!sleep(request, deadline)) return;
        }
    }

    /// False: the time is up, and the request is in no queue.
    bool sleep(Request& request, std::optional<Clock::time_point> deadline) {
        for (;;) {
            std::optional<Clock::time_point> until = deadline;
            const bool impatient = request.known && !request.first && request.place.load(std::memory_order_acquire) == Place::entry;
            if (impatient) {
                const bool ends = options_.patience < Clock::time_point::max() - *request.since;
                const Clock::time_point end_of_patience = ends ? *request.since + options_.patience : Clock::time_point::max();
                if (!until || end_of_patience < *until) until = end_of_patience;
            }
            planted_step();
            if (request.signal.wait(until)) return true;
            if (!leave_queue(request)) {
                // Somebody has taken it out and will say so, or put it into another queue.
                if (request.signal.wait(Clock::now() + std::chrono::microseconds(50))) return true;
                continue;
            }
            if (deadline && Clock::now() >= *deadline) return false;
            return true;  // patience is at its end
        }
    }
    /// False: it isn't in the queue in which it was.
    bool leave_queue(Request& request) noexcept {
        switch (request.place.load(std::memory_order_acquire)) {
            case Place::entry: return queues_.leave(request);
            case Place::gate: return gate_.leave_queue(request);
            case Place::wants_first: return precedence_.leave_queue(request);
            case Place::nowhere: break;
        }
        return false;
    }

    // Requests that no thread waits for

    /// Deletes itself once it has called back.
    struct Later final : Unattended {
        Later(CheckOutEngine& asked, Holding holding, Callback function)
            : Unattended(asked, request_), owner(asked), want(std::move(holding)), callback(std::move(function)), request_(want, true) {
            request_.unattended = this;
        }
        void go_on() noexcept override { owner.go_on(this); }
        CheckOutEngine& owner;
        Holding want;
        Callback callback;

    private:
        Request request_;
    };
    void go_on(Later* later) noexcept {
        Request& request = later->request;
        std::exception_ptr error;
        try {
            if (advance(request, true) == Outcome::waits) return;
        } catch (...) {
            error = std::current_exception();
        }
        const std::unique_ptr<Later> done(later);
        if (!done->want.holds()) give_up(request);
        waits_.stop(request);
        done->callback(std::move(done->want), std::move(error));
    }

    const Options options_;
    ObjectTable table_;
    WaitTimes waits_;
    Gate gate_{waits_};
    EntryQueues queues_{gate_, waits_};
    Precedence precedence_{gate_, queues_, waits_};
    std::atomic<std::uint64_t> loaded_{0};
    std::optional<BackgroundLoads> loads_{std::in_place,
                                          [this](const BackgroundLoads::Batch& batch, bool stopped) { load_in_background(batch, stopped); }};
};

}  // namespace taiyen::object
