#pragma once
/// WokenRequests: waking requests. A thread that waits gets its signal; what no thread waits for goes on here, on the thread that has woken it, as soon as that holds nothing of a manager's.
/// Thread rule: each thread has its own.

#include <mutex>

#include "object/request.hpp"

namespace taiyen::object {

class WokenRequests {
public:
    /// Requires: it stands in no queue.
    static void wake(Request& request) noexcept {
        if (request.unattended == nullptr)
            request.signal.set();  // its thread may be done with it before this returns
        else
            of_thread().waiting_.push(request);
    }
    static void wake(RequestQueue woken) noexcept {
        while (Request* const request = woken.first()) {
            woken.remove(*request);
            wake(*request);
        }
    }
    /// Everybody out of a queue.
    static void wake_all(std::mutex& mutex, RequestQueue& queue) noexcept {
        RequestQueue woken;
        {
            const std::lock_guard lock(mutex);
            while (Request* const request = queue.first()) {
                queue.take_out(*request);
                woken.push(*request);
            }
        }
        wake(woken);
    }
    /// Whatever this thread has woken goes on; a callback that wakes more leaves them to the loop that is there already. Requires: the thread holds no mutex of a manager.
    static void go_on() noexcept {
        WokenRequests& mine = of_thread();
        if (mine.running_ || mine.waiting_.first() == nullptr) return;
        mine.running_ = true;
        while (Request* const request = mine.waiting_.first()) {
            mine.waiting_.remove(*request);
            request->unattended->go_on();
        }
        mine.running_ = false;
    }
    /// Those of one manager only, also within a callback, which would otherwise be left alone with what it woke here.
    static void go_on(const CheckOuts& manager) noexcept {
        WokenRequests& mine = of_thread();
        for (Request* request = mine.waiting_.first(); request != nullptr;) {
            if (request->unattended->manager != &manager) {
                request = request->next;
                continue;
            }
            mine.waiting_.remove(*request);
            request->unattended->go_on();
            request = mine.waiting_.first();
        }
    }

private:
    static WokenRequests& of_thread() noexcept {
        thread_local constinit WokenRequests of_this;
        return of_this;
    }

    RequestQueue waiting_;  ///< taken out of their queues by this thread; of all managers
    bool running_ = false;
};

}  // namespace taiyen::object
