#pragma once
/// RequestQueue: between those who ask and the threads that answer; whoever fills it faster than it is emptied waits.
///
/// Thread rule: safe.

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

#include "request.hpp"

namespace bank {

class RequestQueue {
public:
    explicit RequestQueue(std::size_t requests_max) : requests_max_(requests_max) {}

    /// Waits for room. False: the queue is closed, the request was not taken.
    bool push(Request request) {
        std::unique_lock lock(mutex_);
        has_room_.wait(lock, [&] { return closed_ || requests_.size() < requests_max_; });
        if (closed_) return false;
        requests_.push_back(std::move(request));
        has_request_.notify_one();
        return true;
    }

    /// Waits for a request; nothing once the queue is closed and empty.
    std::optional<Request> pop() {
        std::unique_lock lock(mutex_);
        has_request_.wait(lock, [&] { return closed_ || !requests_.empty(); });
        if (requests_.empty()) return std::nullopt;
        Request request = std::move(requests_.front());
        requests_.pop_front();
        has_room_.notify_one();
        return request;
    }

    /// What is in it is still answered, unless it is to be dropped.
    void close(bool drop = false) {
        const std::lock_guard lock(mutex_);
        closed_ = true;
        if (drop) requests_.clear();
        has_room_.notify_all();
        has_request_.notify_all();
    }

private:
    const std::size_t requests_max_;
    std::mutex mutex_;
    std::condition_variable has_room_;
    std::condition_variable has_request_;
    std::deque<Request> requests_;
    bool closed_ = false;
};

}  // namespace bank
