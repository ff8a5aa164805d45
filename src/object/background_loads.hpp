#pragma once
/// BackgroundLoads: a thread that loads what requests haven't asked for yet. It is made when there is something to load for the first time.
/// Thread rule: safe, the destructor excepted.

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <new>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <taiyen/base/check.hpp>
#include <taiyen/base/error.hpp>

#include "object/object_table.hpp"

namespace taiyen::object {

/// An entry that is loading, and whose it is.
struct LoadingEntry {
    std::int64_t id;
    Entry* entry;
};

class BackgroundLoads {
public:
    using Batch = std::vector<LoadingEntry>;
    /// Brings them, or says that they don't come; must not throw. `stopped`: they are not to be loaded any more.
    using Load = std::function<void(const Batch& batch, bool stopped)>;

    explicit BackgroundLoads(Load load) : load_(std::move(load)) {}
    BackgroundLoads(const BackgroundLoads&) = delete;
    BackgroundLoads& operator=(const BackgroundLoads&) = delete;
    ~BackgroundLoads() {
        stop();
        if (!thread_.joinable()) return;
        TAIYEN_CHECK(thread_.get_id() != std::this_thread::get_id());  // a callback destroys its own manager
        thread_.join();
    }

    /// Throws: std::bad_alloc, Error{too_many_threads | stopped}: they are still the caller's.
    void add(Batch batch) {
        const std::lock_guard lock(mutex_);
        if (stopped_) throw Error(errc::stopped, "the object manager was stopped and grants nothing any more");
        batches_.push_back(std::move(batch));
        try {
            if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
        } catch (const std::bad_alloc&) {
            batches_.pop_back();
            throw;
        } catch (const std::system_error& error) {
            batches_.pop_back();
            throw Error(errc::too_many_threads, std::string("no thread can be made that loads objects: ") + error.what() +
                                                    "; raise the limit of threads (ulimit -u, pids.max of the control group)");
        }
        changed_.notify_one();
    }
    /// What waits to be loaded won't be.
    void stop() noexcept {
        const std::lock_guard lock(mutex_);
        stopped_ = true;
        changed_.notify_one();
    }

private:
    void run() {
        std::unique_lock lock(mutex_);
        for (;;) {
            changed_.wait(lock, [this] { return stopped_ || !batches_.empty(); });
            if (batches_.empty()) return;
            const Batch batch = std::move(batches_.front());
            batches_.pop_front();
            const bool stopped = stopped_;
            lock.unlock();
            load_(batch, stopped);
            lock.lock();
        }
    }

    const Load load_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Batch> batches_;
    bool stopped_ = false;
    std::thread thread_;
};

}  // namespace taiyen::object
