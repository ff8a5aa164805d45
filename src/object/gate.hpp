#pragma once
/// Gate: what exclusive requests go through, so that a pause can keep them out and wait until nobody is inside; what stops a manager closes it for ever. Shared requests only look at it: who they are stands in
/// the words of their objects, and who keeps them out looks there.
///
/// (P1) Who enters says so before it looks whether the gate is closed, and a pause closes it before it looks who is inside: so one of the two sees the other.
///      A shared request takes its words before it looks, and a pause for everybody closes the gate before it looks at the words.
/// (P2) Who stood here while it was closed has its turn, in order, before the gate opens for others.
/// Thread rule: safe.

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>

#include <taiyen/object/check_outs.hpp>

#include "base/planted.hpp"
#include "object/request.hpp"
#include "object/wait_times.hpp"
#include "object/woken_requests.hpp"

namespace taiyen::object {

class Gate {
public:
    explicit Gate(WaitTimes& waits) : waits_(waits) {}

    /// Which of the counters this thread's requests use.
    static std::uint32_t stripe_of_thread() noexcept {
        static std::atomic<std::uint32_t> threads{0};
        thread_local const std::uint32_t stripe = threads.fetch_add(1, std::memory_order_relaxed) % stripe_count;
        return stripe;
    }

    /// An exclusive request is inside from now on, and is counted as granted. False: the gate is closed; never if it `passes`.
    bool enter(std::uint32_t stripe, bool passes) noexcept {
        const auto closed = [&] { return !passes && word_.load(std::memory_order_seq_cst) != 0; };
        if (closed()) return false;
        planted_step();
        stripes_[stripe].count.fetch_add(inside_one + granted_one, std::memory_order_seq_cst);
        if (!planted(Bug::entered_unseen) && closed()) {
            leave_in_vain(stripe);
            return false;
        }
        return true;
    }
    /// It has given everything back.
    void leave(std::uint32_t stripe) noexcept { leave(stripe, inside_one); }
    /// It was inside and got nothing.
    void leave_in_vain(std::uint32_t stripe) noexcept { leave(stripe, inside_one + granted_one); }
    /// A request that doesn't have to enter was granted.
    void count_granted(std::uint32_t stripe) noexcept { stripes_[stripe].count.fetch_add(granted_one, std::memory_order_relaxed); }
    std::uint64_t granted() const noexcept {
        std::uint64_t sum = 0;
        for (const Stripe& stripe : stripes_) sum += stripe.count.load(std::memory_order_relaxed) / granted_one;
        return sum;
    }
    bool nobody_inside() const noexcept {
        return std::all_of(stripes_.begin(), stripes_.end(), [](const Stripe& stripe) { return stripe.nobody_inside(); });
    }

    /// Whether a shared request has to stand here.
    bool keeps_readers_out() const noexcept { return (word_.load(std::memory_order_seq_cst) & readers_paused) != 0; }
    /// True: nobody is inside, and nobody gets in before as many `resume`. False: the time was up; `resume`, too.
    bool pause(Paused whom, std::optional<std::chrono::steady_clock::time_point> deadline) {
        std::unique_lock lock(mutex_);
        ++pauses_;
        if (whom == Paused::everybody) ++pauses_of_readers_;
        word_.fetch_or(whom == Paused::everybody ? paused | readers_paused : paused, std::memory_order_seq_cst);
        const auto is_over = [this] { return nobody_inside(); };
        if (deadline) return nobody_inside_.wait_until(lock, *deadline, is_over);
        nobody_inside_.wait(lock, is_over);
        return true;
    }
    /// Calls `let_through(Request&)` for each that stood here, without a mutex.
    template <class LetThrough>
    void resume(Paused whom, LetThrough&& let_through) noexcept {
        std::unique_lock lock(mutex_);
        if (whom == Paused::everybody && --pauses_of_readers_ == 0) word_.fetch_and(~readers_paused, std::memory_order_seq_cst);
        if (--pauses_ != 0) {
            if (pauses_of_readers_ == 0) wake_readers();
            return;
        }
        // The gate stays closed for others until everybody who stood there has had a turn.
        while (pauses_ == 0) {
            Request* const next = planted(Bug::pause_loses_order) ? queue_.last() : queue_.first();
            if (next == nullptr) {
                word_.fetch_and(~paused, std::memory_order_seq_cst);
                break;
            }
            queue_.take_out(*next);
            // A pause that begins from here on waits until its turn is over, and longer if it got something.
            const std::uint32_t stripe = next->want.stripe();
            stripes_[stripe].count.fetch_add(inside_one, std::memory_order_seq_cst);
            lock.unlock();
            let_through(*next);
            leave(stripe);
            lock.lock();
        }
        if (pauses_ != 0 && pauses_of_readers_ == 0) wake_readers();  // a pause that has begun meanwhile keeps out writers only
    }
    /// False: there is no pause any more.
    bool stand(Request& request) noexcept {
        planted_step();
        const std::lock_guard lock(mutex_);
        const std::uint32_t now = word_.load(std::memory_order_seq_cst);
        const bool is_kept_out = (now & (request.want.access() == Access::shared ? readers_paused : paused)) != 0;
        if (!is_kept_out || (now & stopped_for_ever) != 0) return false;
        waits_.start(request);
        request.signal.clear();
        request.place.store(Place::gate, std::memory_order_relaxed);
        queue_.push_by_age(request);
        return true;
    }
    /// False: it doesn't stand here any more.
    bool leave_queue(Request& request) noexcept {
        const std::lock_guard lock(mutex_);
        if (request.place.load(std::memory_order_relaxed) != Place::gate) return false;
        queue_.take_out(request);
        return true;
    }

    void stop() noexcept { word_.fetch_or(stopped_for_ever, std::memory_order_seq_cst); }
    bool stopped() const noexcept { return (word_.load(std::memory_order_seq_cst) & stopped_for_ever) != 0; }
    /// For who looks again.
    bool seems_stopped() const noexcept { return (word_.load(std::memory_order_relaxed) & stopped_for_ever) != 0; }
    /// Everybody who stands here.
    void wake_all() noexcept { WokenRequests::wake_all(mutex_, queue_); }

private:
    static constexpr std::size_t stripe_count = 16;
    static constexpr std::uint64_t inside_one = 1;
    static constexpr std::uint64_t granted_one = std::uint64_t{1} << 20U;
    static constexpr std::uint32_t stopped_for_ever = 1;
    static constexpr std::uint32_t paused = 2;          ///< for writers
    static constexpr std::uint32_t readers_paused = 4;  ///< for readers, too

    /// The lower bits count exclusive requests that try or hold, the others what was granted.
    struct alignas(128) Stripe {
        std::atomic<std::uint64_t> count{0};
        bool nobody_inside() const noexcept { return (count.load(std::memory_order_seq_cst) & (granted_one - 1)) == 0; }
    };

    /// They try again, and pass what keeps out writers only. Requires: the mutex.
    void wake_readers() noexcept {
        for (Request* request = queue_.first(); request != nullptr;) {
            Request* const next = request->next;
            if (request->want.access() == Access::shared) {
                queue_.take_out(*request);
                WokenRequests::wake(*request);
            }
            request = next;
        }
    }
    void leave(std::uint32_t stripe, std::uint64_t what) noexcept {
        stripes_[stripe].count.fetch_sub(what, std::memory_order_seq_cst);
        if ((word_.load(std::memory_order_seq_cst) & paused) != 0) {
            const std::lock_guard lock(mutex_);
            nobody_inside_.notify_all();
        }
    }

    WaitTimes& waits_;
    std::atomic<std::uint32_t> word_{0};
    std::array<Stripe, stripe_count> stripes_;
    std::mutex mutex_;
    std::condition_variable nobody_inside_;
    std::uint64_t pauses_ = 0;             ///< of any kind
    std::uint64_t pauses_of_readers_ = 0;  ///< those of everybody
    RequestQueue queue_;
};

}  // namespace taiyen::object
