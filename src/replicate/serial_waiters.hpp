#pragma once
/// SerialWaiters: threads that each wait for a serial to arrive. One that arrives wakes those who waited for it, and nobody else.
///
/// Nothing is allocated: who waits is listed by what lies on its stack. Thread rule: all calls under one mutex of the owner.

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>

#include <taiyen/base/units.hpp>

namespace taiyen::replicate {

class SerialWaiters {
public:
    SerialWaiters() = default;
    SerialWaiters(const SerialWaiters&) = delete;
    SerialWaiters& operator=(const SerialWaiters&) = delete;
    ~SerialWaiters() = default;

    std::size_t count() const { return count_; }
    /// Until `is_over()`, asked when the serial arrives or all are woken, or the time has passed. `entered` is called once this thread counts.
    template <class Entered, class IsOver>
    void wait(std::unique_lock<std::mutex>& lock, Serial serial, std::chrono::steady_clock::time_point until, Entered&& entered, IsOver&& is_over) {
        Waiter self(*this, serial);
        entered();
        self.woken.wait_until(lock, until, is_over);
    }
    /// Wakes those who wait for it, or an earlier one; returns how many.
    std::size_t arrived(Serial serial) {
        std::size_t found = 0;
        for (Waiter* waiter = first_; waiter != nullptr; waiter = waiter->next) {
            if (waiter->is_served && waiter->serial > serial) {  // a target has lost it before this thread ran
                waiter->is_served = false;
                ++count_;
            }
            if (waiter->is_served || waiter->serial > serial) continue;
            waiter->is_served = true;
            --count_;
            ++found;
            waiter->woken.notify_one();
        }
        return found;
    }
    void wake_all() {
        for (Waiter* waiter = first_; waiter != nullptr; waiter = waiter->next) waiter->woken.notify_one();
    }

private:
    struct Waiter {
        Waiter(SerialWaiters& all, Serial wanted) : of(all), serial(wanted), next(all.first_) {
            if (next != nullptr) next->previous = this;
            of.first_ = this;
            ++of.count_;
        }
        Waiter(const Waiter&) = delete;
        Waiter& operator=(const Waiter&) = delete;
        ~Waiter() {
            (previous != nullptr ? previous->next : of.first_) = next;
            if (next != nullptr) next->previous = previous;
            if (!is_served) --of.count_;
        }
        SerialWaiters& of;
        const Serial serial;
        std::condition_variable woken;
        bool is_served = false;  ///< and no longer counted
        Waiter* previous = nullptr;
        Waiter* next;
    };

    Waiter* first_ = nullptr;
    std::size_t count_ = 0;  ///< those who wait for what hasn't arrived
};

}  // namespace taiyen::replicate
