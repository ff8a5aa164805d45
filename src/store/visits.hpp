#pragma once
/// Visits: who reads the files of an open heap on a thread of its own is on a visit; closing waits until the last one has ended, and lets no more begin.
///
/// A visit is short: one piece of work. Beginning one waits for nobody; who ends visits holds no lock that a visitor may want. Thread rule: safe.

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>

#include <taiyen/base/error.hpp>

namespace taiyen::store {

class Visits {
public:
    class Visit {
    public:
        /// Throws: Error{closed}.
        explicit Visit(Visits& visits) : visits_(visits) {
            const std::lock_guard lock(visits.mutex_);
            if (visits.ended_) throw Error(errc::closed, "the heap is being closed; open it again");
            ++visits.count_;
        }
        Visit(const Visit&) = delete;
        Visit& operator=(const Visit&) = delete;
        ~Visit() {
            const std::lock_guard lock(visits_.mutex_);
            if (--visits_.count_ == 0) visits_.changed_.notify_all();
        }

    private:
        Visits& visits_;
    };

    /// Sleeps so long, or until visits end (false) or `stop` is asked for.
    bool rest(std::chrono::nanoseconds time, const std::stop_token& stop) {
        std::unique_lock lock(mutex_);
        changed_.wait_for(lock, stop, time, [&] { return ended_; });
        return !ended_;
    }
    /// Asked for when visits end: for who waits for something else during a visit.
    std::stop_token ending() const noexcept { return ending_.get_token(); }
    /// Returns when nobody visits any more. Requires: the caller is on no visit.
    void end() noexcept {
        ending_.request_stop();
        std::unique_lock lock(mutex_);
        ended_ = true;
        changed_.notify_all();
        changed_.wait(lock, [&] { return count_ == 0; });
    }

private:
    std::mutex mutex_;
    std::condition_variable_any changed_;
    std::stop_source ending_;
    unsigned count_ = 0;
    bool ended_ = false;
};

}  // namespace taiyen::store
