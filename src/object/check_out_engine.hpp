#pragma once
/// BasicCheckOuts: requests, queues, pauses; what ObjectManager promises is made here.
///
/// A request tries: enter (exclusive ones; a pause looks at who is in), then each object's word in ascending order. At one that is taken it gives all back and stands in that entry's
/// queue: a list in one of `lot_count` lots, each with a mutex. The bit `waiters` in the word tells who gives the object back to look there.
/// (I1) The bit is set, and looked at again, under the lot's mutex while the word says "taken": so who took it will see the bit when it gives the object back. Whoever makes a word with waiters free
///      wakes one request, or leaves that to one that was woken before and hasn't tried yet (bit `waking`).
/// (I2) A request that was woken for an entry clears `waking` before it tries. It takes the entry, or finds it taken by somebody who gives it back later, or wakes the next one for it: so an entry
///      that is free and has waiters always has somebody awake.
/// (I3) One request goes first: `first_`. It sets `reserved` in all its words; then nobody else takes them, and it tries again whenever one of them gets free. Whatever ends that
///      (granted, paused, stopped, too late) clears the bits and wakes who waits for them.
/// (I4) No mutex of ours is held while a loader, a callback or another mutex of ours is entered, but a lot's within none. Callbacks run when the thread holds nothing of ours (`run_callbacks`).
/// (I5) A request is in at most one queue, and only its thread, or who took it out of a queue, touches it. Its `place` says which one; who finds it changed under that queue's mutex looks again.
/// `Seam`: where tests slow a thread down (`step()`), or leave out a duty (`skips`).
/// Thread rule: safe.

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <taiyen/base/check.hpp>
#include <taiyen/base/error.hpp>
#include <taiyen/object/check_outs.hpp>

#include "object/object_table.hpp"
#include "object/signal.hpp"

namespace taiyen::object {

/// What tests can leave out, to see that they would notice.
enum class Duty : std::uint8_t {
    none,
    wake_next,                    ///< who was woken in vain wakes the next one
    look_again,                   ///< a word is looked at again before its waiter sleeps
    go_first,                     ///< a request that was passed over goes first
    give_all_back,                ///< what was taken before one that is taken
    enter_first,                  ///< a writer enters before it looks whether there is a pause
    load_once,                    ///< the id is claimed before its object is loaded
    tell_failure,                 ///< who waits for a load learns that it failed
    wait_to_remove,               ///< until nobody has it
    compare_ids,                  ///< an entry that serves another id now
    wake_at_stop,                 ///< who waits
    keep_order,                   ///< among those whom a pause held up
    stop_readers_behind_writers,  ///< that wait
};

struct NoSeam {
    static void step() noexcept {}
    static constexpr bool skips(Duty) noexcept { return false; }
};

template <class Seam>
class BasicCheckOuts final : public CheckOuts {
public:
    explicit BasicCheckOuts(Options options) : options_(std::move(options)), table_(options_.objects) {}
    ~BasicCheckOuts() override {
        stop();
        run_own_callbacks();
        for (const Stripe& stripe : stripes_) TAIYEN_CHECK(stripe.nobody_inside());  // a Checkout outlives its manager
    }

    void add(std::int64_t id, void* object) override {
        refuse_if_stopped();
        for (;;) {
            const auto [entry, made] = table_.insert(id, 0, object);
            if (made) return;
            if ((entry->word.load(std::memory_order_acquire) & word::dead) == 0) {
                throw Error(errc::already_exists, "the object manager has an object " + std::to_string(id) + " already; remove it first");
            }
        }
    }

    bool remove(std::int64_t id, const std::function<void(void*)>& last) override {
        Holding holding({&id, 1}, Access::exclusive);
        if (Seam::skips(Duty::wait_to_remove)) {
            Entry* const entry = table_.find(id);
            if (entry == nullptr) return false;
            last(entry->object.load());
            return true;
        }
        holding.stripe_ = stripe_of_thread();
        take(holding, std::nullopt, false);
        if (!holding.holds()) return false;
        Entry& entry = *holding.data()->entry;
        last(entry.object.load(std::memory_order_relaxed));
        table_.unlink(entry);
        Seam::step();
        entry.word.exchange(word::dead, std::memory_order_acq_rel);
        wake(take_all(entry));
        table_.give_back(entry);
        holding.owner_ = nullptr;
        leave(stripes_[holding.stripe_]);
        run_callbacks();
        return true;
    }

    bool contains(std::int64_t id) const override {
        for (;;) {
            const Entry* const found = table_.find(id);
            if (found == nullptr) return false;
            Seam::step();
            const std::uint64_t now = found->word.load(std::memory_order_acquire);
            // It may have moved meanwhile, or the entry serves another id: only what is the id's own says something about it.
            if ((now & word::dead) == 0 && found->id.load(std::memory_order_relaxed) == id) return (now & word::loading) == 0;
        }
    }

    void check_out(Holding& holding, std::optional<Clock::time_point> deadline) override {
        holding.stripe_ = stripe_of_thread();
        find_entries(holding);
        const std::span<const Holding::Item> items = holding.items();
        if (std::all_of(items.begin(), items.end(), [](const Holding::Item& item) { return item.entry != nullptr; }) &&
            (gate_.load(std::memory_order_relaxed) & gate_stopped) == 0) {
            Entry* taken = nullptr;
            if (attempt(holding, {}, taken) == Attempt::granted) return;
        }
        take(holding, deadline, true);
    }

    void check_out_later(std::span<const std::int64_t> ids, Access access, Callback callback) override {
        auto later = std::make_unique<Later>(*this, Holding(ids, access), std::move(callback));
        later->want.stripe_ = stripe_of_thread();
        later->request.later = later.get();
        go_on(later.release());
        run_callbacks();
    }

    void give_back(Holding& holding) noexcept override {
        holding.owner_ = nullptr;
        give_back_first(holding, holding.count_);
        if (holding.access_ == Access::exclusive) leave(stripes_[holding.stripe_]);
        run_callbacks();
    }

    void pause() override {
        std::unique_lock lock(gate_mutex_);
        ++pauses_;
        gate_.fetch_or(gate_paused, std::memory_order_seq_cst);
        nobody_inside_.wait(
            lock, [&] { return std::all_of(stripes_.begin(), stripes_.end(), [](const Stripe& stripe) { return stripe.nobody_inside(); }); });
    }

    void resume() noexcept override {
        std::unique_lock lock(gate_mutex_);
        if (--pauses_ != 0) return;
        // The gate stays closed for others until everybody who stood there has had a turn.
        while (pauses_ == 0) {
            Request* const next = Seam::skips(Duty::keep_order) ? at_gate_.last() : at_gate_.first();
            if (next == nullptr) {
                gate_.fetch_and(~gate_paused, std::memory_order_seq_cst);
                break;
            }
            at_gate_.remove(*next);
            next->place.store(Place::nowhere, std::memory_order_relaxed);
            // A pause that begins from here on waits until its turn is over, and longer if it got something.
            Stripe& stripe = stripes_[next->want.stripe_];
            stripe.count.fetch_add(inside_one, std::memory_order_seq_cst);
            lock.unlock();
            let_through(*next);
            leave(stripe);
            lock.lock();
        }
        lock.unlock();
        run_callbacks();
    }

    void stop() noexcept override {
        gate_.fetch_or(gate_stopped, std::memory_order_seq_cst);
        if (Seam::skips(Duty::wake_at_stop)) return;
        for (Lot& lot : lots_) {
            Queue woken;
            {
                const std::lock_guard lock(lot.mutex);
                while (Request* const request = lot.queue.first()) {
                    request->entry->word.fetch_and(~word::waiters, std::memory_order_relaxed);
                    take_out(lot.queue, *request, woken);
                }
            }
            wake(std::move(woken));
        }
        empty(gate_mutex_, at_gate_);
        empty(first_mutex_, wants_first_);
        run_callbacks();
    }

    CheckoutStatistics statistics() const override {
        CheckoutStatistics result;
        result.objects = table_.size();
        for (const Stripe& stripe : stripes_) result.granted += stripe.count.load(std::memory_order_relaxed) / granted_one;
        result.waited = waited_.load(std::memory_order_relaxed);
        result.waiting = waiting_.load(std::memory_order_relaxed);
        result.went_first = went_first_.load(std::memory_order_relaxed);
        result.loaded = loaded_.load(std::memory_order_relaxed);
        result.longest_wait = std::chrono::nanoseconds(longest_.load(std::memory_order_relaxed));
        return result;
    }

private:
    static constexpr std::size_t lot_count = 256;
    static constexpr std::size_t stripe_count = 16;
    static constexpr int spins = 40;
    static constexpr std::uint64_t inside_one = 1;
    static constexpr std::uint64_t granted_one = std::uint64_t{1} << 20U;
    static constexpr std::uint32_t gate_stopped = 1;
    static constexpr std::uint32_t gate_paused = 2;

    enum class Place : std::uint8_t { nowhere, lot, gate, wants_first };
    struct Later;
    struct Request {
        explicit Request(Holding& holding, bool load) : want(holding), may_load(load) {}
        Holding& want;
        const bool may_load;
        bool known = false;              ///< every item has an entry
        std::atomic<bool> first{false};  ///< it goes first; set by whoever lets it, while its thread may be about to sleep
        bool reserves = false;           ///< its words are reserved for it
        bool granted = false;            ///< by who let it through
        unsigned attempts = 0;           ///< woken in vain
        Entry* woken_for = nullptr;
        Entry* entry = nullptr;  ///< whose queue it stands in
        std::optional<Clock::time_point> since;
        std::exception_ptr failure;        ///< of the load that it waited for
        std::optional<std::int64_t> gone;  ///< the load that it waited for says that there is no such object
        std::atomic<Place> place{Place::nowhere};
        Request* next = nullptr;
        Request* before = nullptr;
        Later* later = nullptr;  ///< null: a thread waits
        Signal signal;
    };
    /// A request that no thread waits for.
    struct Later {
        Later(BasicCheckOuts& asked, Holding holding, Callback function)
            : owner(asked), want(std::move(holding)), callback(std::move(function)), request(want, true) {}
        BasicCheckOuts& owner;
        Holding want;
        Callback callback;
        Request request;
    };
    class Queue {
    public:
        Request* first() const noexcept { return first_; }
        Request* last() const noexcept { return last_; }
        void push(Request& request) noexcept { insert(request, last_); }
        /// Behind all that have waited longer, before all that haven't.
        void push_by_age(Request& request) noexcept {
            Request* behind = last_;
            while (behind != nullptr && behind->since > request.since) behind = behind->before;
            insert(request, behind);
        }
        void remove(Request& request) noexcept {
            (request.before != nullptr ? request.before->next : first_) = request.next;
            (request.next != nullptr ? request.next->before : last_) = request.before;
            request.next = request.before = nullptr;
        }

    private:
        void insert(Request& request, Request* behind) noexcept {
            request.before = behind;
            request.next = behind != nullptr ? behind->next : first_;
            (request.before != nullptr ? request.before->next : first_) = &request;
            (request.next != nullptr ? request.next->before : last_) = &request;
        }
        Request* first_ = nullptr;
        Request* last_ = nullptr;
    };
    struct alignas(64) Lot {
        std::mutex mutex;
        Queue queue;
    };
    /// The lower bits count exclusive requests that try or hold, the others what was granted.
    struct alignas(128) Stripe {
        std::atomic<std::uint64_t> count{0};
        bool nobody_inside() const noexcept { return (count.load(std::memory_order_seq_cst) & (granted_one - 1)) == 0; }
    };
    enum class Outcome : std::uint8_t { granted, missing, waits, refused };
    enum class Attempt : std::uint8_t { granted, taken, paused, stale };

    static std::uint32_t stripe_of_thread() noexcept {
        static std::atomic<std::uint32_t> threads{0};
        thread_local const std::uint32_t stripe = threads.fetch_add(1, std::memory_order_relaxed) % stripe_count;
        return stripe;
    }
    Lot& lot_of(const Entry& entry) noexcept { return lots_[(reinterpret_cast<std::uintptr_t>(&entry) / sizeof(Entry)) % lot_count]; }
    static std::uint64_t unit(Access access) noexcept { return access == Access::exclusive ? word::writer : word::one_reader; }
    bool stopped() const noexcept { return (gate_.load(std::memory_order_seq_cst) & gate_stopped) != 0; }
    void refuse_if_stopped() const {
        if (stopped()) throw Error(errc::stopped, "the object manager was stopped and grants nothing any more");
    }

    // One attempt

    /// What lets a request take more than others may.
    struct Rights {
        bool reserves = false;             ///< it goes first, and all its words are reserved
        const Entry* woken_for = nullptr;  ///< it comes out of that entry's queue
    };
    static Rights rights_of(const Request& request) noexcept { return {request.reserves, request.woken_for}; }

    static bool is_taken(std::uint64_t now, Access access, const Rights& rights, const Entry* entry) noexcept {
        if ((now & (word::writer | word::loading)) != 0 || ((now & word::reserved) != 0 && !rights.reserves)) return true;
        if ((now & word::readers) == 0) return false;
        if (access == Access::exclusive) return true;
        // Readers that join others would keep a writer out for ever.
        return (now & word::waiters) != 0 && !rights.reserves && rights.woken_for != entry && !Seam::skips(Duty::stop_readers_behind_writers);
    }

    /// `taken`: the entry that was.
    Attempt attempt(Holding& want, const Rights& rights, Entry*& taken, bool pass_gate = false) noexcept {
        const bool exclusive = want.access_ == Access::exclusive;
        Stripe& stripe = stripes_[want.stripe_];
        if (exclusive) {
            const auto closed = [&] { return !pass_gate && gate_.load(std::memory_order_seq_cst) != 0; };
            if (closed()) return Attempt::paused;
            Seam::step();
            stripe.count.fetch_add(inside_one + granted_one, std::memory_order_seq_cst);
            if (!Seam::skips(Duty::enter_first) && closed()) {
                leave(stripe, inside_one + granted_one);
                return Attempt::paused;
            }
        }
        const Attempt result = take_words(want, rights, taken);
        if (result == Attempt::granted) {
            if (!exclusive) stripe.count.fetch_add(granted_one, std::memory_order_relaxed);
            want.owner_ = this;
        } else if (exclusive) {
            leave(stripe, inside_one + granted_one);
        }
        return result;
    }

    Attempt take_words(Holding& want, const Rights& rights, Entry*& taken) noexcept {
        Holding::Item* const items = want.data();
        const std::uint64_t added = unit(want.access_);
        for (std::uint32_t i = 0; i < want.count_; ++i) {
            Seam::step();
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
                     !entry.word.compare_exchange_weak(now, now + added, std::memory_order_acquire, std::memory_order_relaxed));
            std::uint32_t have = i;
            if (found == Attempt::granted) {
                have = i + 1;
                if (entry.id.load(std::memory_order_relaxed) != items[i].id && !Seam::skips(Duty::compare_ids)) found = Attempt::stale;
            }
            if (found != Attempt::granted) {
                taken = &entry;
                if (!Seam::skips(Duty::give_all_back) || found == Attempt::stale) give_back_first(want, have);
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
            Seam::step();
            Entry& entry = *items[i].entry;
            const std::uint64_t now = entry.word.fetch_sub(added, std::memory_order_acq_rel) - added;
            if ((now & word::waiters) != 0 && (now & (word::readers | word::writer)) == 0 &&
                ((now & word::waking) == 0 || (now & word::reserved) != 0)) {
                wake_next(entry);
            }
        }
    }

    void leave(Stripe& stripe, std::uint64_t what = inside_one) noexcept {
        stripe.count.fetch_sub(what, std::memory_order_seq_cst);
        if ((gate_.load(std::memory_order_seq_cst) & gate_paused) != 0) {
            const std::lock_guard lock(gate_mutex_);
            nobody_inside_.notify_all();
        }
    }

    // Queues

    /// False: it is free by now, or dead, or serves another id (which makes the request forget what it knows): try again.
    bool stand_in_queue(Request& request, Entry& entry) noexcept {
        Lot& lot = lot_of(entry);
        start_clock(request);
        Seam::step();
        const std::lock_guard lock(lot.mutex);
        if (stopped()) return false;
        std::uint64_t now = entry.word.load(std::memory_order_relaxed);
        if (Seam::skips(Duty::look_again)) {
            entry.word.fetch_or(word::waiters);
        } else {
            do {
                if ((now & word::dead) != 0 || !is_taken(now, request.want.access(), rights_of(request), &entry)) return false;
            } while (!entry.word.compare_exchange_weak(now, now | word::waiters, std::memory_order_acquire, std::memory_order_relaxed));
            // The queue of another id would tell it what became of that one. If the id changes later, `take_all` comes in between.
            if (!asks_for(request, entry)) {
                request.known = false;
                return false;
            }
        }
        request.woken_for = nullptr;
        request.signal.clear();
        request.entry = &entry;
        request.place.store(Place::lot, std::memory_order_release);
        lot.queue.push_by_age(request);
        return true;
    }

    static bool asks_for(const Request& request, const Entry& entry) noexcept {
        const std::int64_t id = entry.id.load(std::memory_order_relaxed);
        const std::span<const Holding::Item> items = std::as_const(request.want).items();
        const auto found =
            std::lower_bound(items.begin(), items.end(), id, [](const Holding::Item& item, std::int64_t wanted) { return item.id < wanted; });
        return found != items.end() && found->id == id && found->entry == &entry;
    }

    /// Requires: the queue's mutex.
    static void take_out(Queue& queue, Request& request, Queue& woken) noexcept {
        queue.remove(request);
        request.place.store(Place::nowhere, std::memory_order_relaxed);
        woken.push(request);
    }

    void wake_next(Entry& entry) noexcept {
        Seam::step();
        Lot& lot = lot_of(entry);
        Queue woken;
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
                        take_out(lot.queue, *request, woken);
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
        Seam::step();
        wake(std::move(woken));
    }
    void wake_if_any_waits(Entry& entry) noexcept {
        if ((entry.word.load(std::memory_order_acquire) & word::waiters) != 0) wake_next(entry);
    }

    /// Everybody out of an entry's queue.
    Queue take_all(Entry& entry, const std::exception_ptr& failure = nullptr, bool gone = false) noexcept {
        Lot& lot = lot_of(entry);
        Queue woken;
        const std::lock_guard lock(lot.mutex);
        for (Request* request = lot.queue.first(); request != nullptr;) {
            Request* const next = request->next;
            if (request->entry == &entry) {
                if (!Seam::skips(Duty::tell_failure)) request->failure = failure;
                if (gone) request->gone = entry.id.load(std::memory_order_relaxed);
                take_out(lot.queue, *request, woken);
            }
            request = next;
        }
        entry.word.fetch_and(~(word::waiters | word::waking), std::memory_order_relaxed);
        return woken;
    }
    void empty(std::mutex& mutex, Queue& queue) noexcept {
        Queue woken;
        {
            const std::lock_guard lock(mutex);
            while (Request* const request = queue.first()) take_out(queue, *request, woken);
        }
        wake(std::move(woken));
    }

    void wake(Queue woken) noexcept {
        while (Request* const request = woken.first()) {
            woken.remove(*request);
            wake_one(*request);
        }
    }
    void wake_one(Request& request) noexcept {
        if (request.later == nullptr) {
            request.signal.set();  // its thread may be done with it before this returns
        } else {
            callbacks().waiting.push(request);
        }
    }

    void start_clock(Request& request) noexcept {
        if (request.since) return;
        request.since = Clock::now();
        waited_.fetch_add(1, std::memory_order_relaxed);
        waiting_.fetch_add(1, std::memory_order_relaxed);
    }
    void stop_clock(const Request& request) noexcept {
        if (!request.since) return;
        waiting_.fetch_sub(1, std::memory_order_relaxed);
        const auto wait = static_cast<std::uint64_t>(std::chrono::nanoseconds(Clock::now() - *request.since).count());
        std::uint64_t longest = longest_.load(std::memory_order_relaxed);
        while (longest < wait && !longest_.compare_exchange_weak(longest, wait, std::memory_order_relaxed)) {}
    }

    // Pauses

    /// False: there is no pause any more.
    bool stand_at_gate(Request& request) noexcept {
        start_clock(request);
        const std::lock_guard lock(gate_mutex_);
        const std::uint32_t gate = gate_.load(std::memory_order_seq_cst);
        if ((gate & gate_paused) == 0 || (gate & gate_stopped) != 0) return false;
        request.signal.clear();
        request.place.store(Place::gate, std::memory_order_relaxed);
        at_gate_.push_by_age(request);
        return true;
    }
    /// A request's turn after a pause, taken for it so that it comes before those behind it.
    void let_through(Request& request) noexcept {
        while (request.known && !stopped()) {
            Entry* taken = nullptr;
            const Attempt result = attempt(request.want, rights_of(request), taken, true);
            if (result == Attempt::stale) request.known = false;
            if (result == Attempt::granted) {
                request.granted = true;
                break;
            }
            if (result == Attempt::taken && stand_in_queue(request, *taken)) return;
        }
        wake_one(request);
    }

    // Going first

    /// False: it is first already now.
    bool ask_to_go_first(Request& request) noexcept {
        start_clock(request);
        const std::lock_guard lock(first_mutex_);
        if (stopped()) return false;
        if (first_ == nullptr) {
            make_first(request);
            return false;
        }
        request.signal.clear();
        request.place.store(Place::wants_first, std::memory_order_relaxed);
        wants_first_.push(request);
        return true;
    }
    void make_first(Request& request) noexcept {
        first_ = &request;
        request.first = true;
        went_first_.fetch_add(1, std::memory_order_relaxed);
    }
    /// Requires: it goes first, and knows its entries.
    void reserve(Request& request) noexcept {
        for (const Holding::Item& item : request.want.items()) {
            Seam::step();
            item.entry->word.fetch_or(word::reserved, std::memory_order_seq_cst);
        }
        request.reserves = true;
    }
    /// It is over with going first, for whatever reason.
    void stand_back(Request& request) noexcept {
        if (request.reserves) {
            request.reserves = false;
            for (const Holding::Item& item : request.want.items()) {
                Seam::step();
                if (item.entry == nullptr) continue;
                const std::uint64_t now = item.entry->word.fetch_and(~word::reserved, std::memory_order_seq_cst);
                // Who has it for itself alone will wake them.
                if ((now & word::waiters) != 0 && (now & word::writer) == 0) wake_next(*item.entry);
            }
        }
        if (!request.first) return;
        request.first = false;
        Request* next = nullptr;
        {
            const std::lock_guard lock(first_mutex_);
            first_ = nullptr;
            next = wants_first_.first();
            if (next != nullptr) {
                wants_first_.remove(*next);
                next->place.store(Place::nowhere, std::memory_order_relaxed);
                make_first(*next);
            }
        }
        if (next != nullptr) wake_one(*next);
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
        for (Holding::Item& item : want.items()) {
            if (request.gone == item.id) {
                want.missing_.push_back(item.id);
                continue;
            }
            if (item.entry == nullptr) item.entry = table_.find(item.id);
            while (item.entry == nullptr || (item.entry->word.load(std::memory_order_acquire) & word::loading) != 0) {
                if (item.entry == nullptr) {
                    if (!request.may_load || !options_.load) break;
                    if (Seam::skips(Duty::load_once)) (void)options_.load(item.id);
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

    /// Requires: the entry is loading, and ours. False: there is no such object.
    bool load(Entry& entry, std::int64_t id) {
        void* object = nullptr;
        std::exception_ptr failure;
        run_callbacks();  // they wouldn't want to wait for it
        try {
            object = options_.load(id);
        } catch (...) {
            failure = std::current_exception();
        }
        if (object != nullptr) {
            entry.object.store(object, std::memory_order_relaxed);
            entry.word.fetch_and(~word::loading, std::memory_order_release);
            loaded_.fetch_add(1, std::memory_order_relaxed);
        } else {
            table_.unlink(entry);
            entry.word.exchange(word::dead, std::memory_order_acq_rel);
        }
        wake(take_all(entry, failure, object == nullptr && !failure));
        if (object == nullptr) table_.give_back(entry);
        if (failure) std::rethrow_exception(failure);
        return object != nullptr;
    }

    // A request's way

    /// Goes as far as it can. `waits`: it stands in a queue, and belongs to who takes it out. Throws: Error{stopped}, what the loader throws.
    Outcome advance(Request& request, bool may_wait) {
        for (;;) {
            if (request.granted) return Outcome::granted;
            refuse_if_stopped();
            if (std::exception_ptr failure = std::exchange(request.failure, nullptr)) std::rethrow_exception(failure);
            Entry* const woken_for = request.woken_for;
            if (woken_for != nullptr) woken_for->word.fetch_and(~word::waking, std::memory_order_seq_cst);
            Seam::step();
            if (!request.known) {
                stand_back(request);
                const Outcome found = find_all(request, may_wait);
                if (found != Outcome::granted) return found;
            }
            if (request.first && !request.reserves) reserve(request);
            Entry* taken = nullptr;
            const Attempt result = attempt(request.want, rights_of(request), taken);
            if (result == Attempt::granted) {
                request.woken_for = nullptr;
                stand_back(request);
                return Outcome::granted;
            }
            if (woken_for != nullptr && woken_for != taken) pass_on(request);
            if (result == Attempt::stale) {
                request.known = false;
                continue;
            }
            if (result == Attempt::paused) {
                if (!may_wait) return Outcome::refused;
                stand_back(request);
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
        if (entry != nullptr && !Seam::skips(Duty::wake_next)) wake_if_any_waits(*entry);
    }
    bool wants_to_go_first(const Request& request) const noexcept {
        if (Seam::skips(Duty::go_first)) return false;
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
        stand_back(request);
    }

    void take(Holding& holding, std::optional<Clock::time_point> deadline, bool may_load) {
        Request request(holding, may_load);
        const bool may_wait = deadline != Clock::time_point::min();
        struct End {
            BasicCheckOuts& self;
            Request& request;
            ~End() {
                if (!request.want.holds()) self.give_up(request);
                self.stop_clock(request);
                self.run_callbacks();
            }
        } const end{*this, request};
        while (advance(request, may_wait) == Outcome::waits) {
            run_callbacks();
            if (!sleep(request, deadline)) return;
        }
    }

    /// False: the time is up, and the request is in no queue.
    bool sleep(Request& request, std::optional<Clock::time_point> deadline) {
        for (;;) {
            std::optional<Clock::time_point> until = deadline;
            const bool impatient = request.known && !request.first && request.place.load(std::memory_order_acquire) == Place::lot;
            if (impatient) {
                const bool ends = options_.patience < Clock::time_point::max() - *request.since;
                const Clock::time_point end_of_patience = ends ? *request.since + options_.patience : Clock::time_point::max();
                if (!until || end_of_patience < *until) until = end_of_patience;
            }
            Seam::step();
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
        const Place place = request.place.load(std::memory_order_acquire);
        if (place == Place::nowhere) return false;
        if (place == Place::lot) {
            Entry& entry = *request.entry;  // it leaves a lot for nowhere only, and only this thread goes on from there
            {
                Lot& lot = lot_of(entry);
                const std::lock_guard lock(lot.mutex);
                if (request.place.load(std::memory_order_relaxed) != Place::lot) return false;
                lot.queue.remove(request);
                request.place.store(Place::nowhere, std::memory_order_relaxed);
                bool others = false;
                for (Request* other = lot.queue.first(); other != nullptr; other = other->next) others = others || other->entry == &entry;
                if (!others) entry.word.fetch_and(~word::waiters, std::memory_order_relaxed);
            }
            // Readers behind a writer that gives up may join those who read.
            if (request.want.access() == Access::exclusive) wake_if_any_waits(entry);
            return true;
        }
        const std::lock_guard lock(place == Place::gate ? gate_mutex_ : first_mutex_);
        if (request.place.load(std::memory_order_relaxed) != place) return false;
        (place == Place::gate ? at_gate_ : wants_first_).remove(request);
        request.place.store(Place::nowhere, std::memory_order_relaxed);
        return true;
    }

    // Requests that no thread waits for

    struct Callbacks {
        Queue waiting;  ///< taken out of their queues by this thread; of all managers
        bool running = false;
    };
    static Callbacks& callbacks() noexcept {
        thread_local constinit Callbacks of_thread;
        return of_thread;
    }
    /// Whatever this thread has woken goes on; a callback that wakes more leaves them to the loop that is there already.
    void run_callbacks() noexcept {
        Callbacks& mine = callbacks();
        if (mine.running || mine.waiting.first() == nullptr) return;
        mine.running = true;
        while (Request* const request = mine.waiting.first()) {
            mine.waiting.remove(*request);
            request->later->owner.go_on(request->later);
        }
        mine.running = false;
    }
    /// Also within a callback, which would otherwise be left alone with what it woke here.
    void run_own_callbacks() noexcept {
        Callbacks& mine = callbacks();
        for (Request* request = mine.waiting.first(); request != nullptr;) {
            if (&request->later->owner != this) {
                request = request->next;
                continue;
            }
            mine.waiting.remove(*request);
            go_on(request->later);
            request = mine.waiting.first();
        }
    }
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
        stop_clock(request);
        done->callback(std::move(done->want), std::move(error));
    }

    const Options options_;
    ObjectTable table_;
    std::atomic<std::uint32_t> gate_{0};
    std::array<Stripe, stripe_count> stripes_;
    std::array<Lot, lot_count> lots_;

    std::mutex gate_mutex_;
    std::condition_variable nobody_inside_;
    std::uint64_t pauses_ = 0;
    Queue at_gate_;

    std::mutex first_mutex_;
    Request* first_ = nullptr;
    Queue wants_first_;

    std::atomic<std::uint64_t> waited_{0};
    std::atomic<std::uint64_t> waiting_{0};
    std::atomic<std::uint64_t> went_first_{0};
    std::atomic<std::uint64_t> loaded_{0};
    std::atomic<std::uint64_t> longest_{0};
};

}  // namespace taiyen::object
