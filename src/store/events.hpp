#pragma once
/// Telling events: taiyen/store/event.hpp says what is promised of it.
/// Thread rule: safe, under any lock, in handlers of faults, too.

#include <atomic>
#include <chrono>
#include <memory>
#include <string>

#include <taiyen/store/event.hpp>

namespace taiyen::store {

/// Null: nobody wants to hear of anything.
extern constinit std::atomic<EventHandler> event_handler;

/// Where events come from: a heap, and who may outlive it.
class EventSource : public std::enable_shared_from_this<EventSource> {
public:
    explicit EventSource(std::string path) : path_(std::move(path)) {}
    /// Events are told from here on.
    void begin() noexcept { tells_.store(true, std::memory_order_relaxed); }
    bool is_heard() const noexcept { return event_handler.load(std::memory_order_relaxed) != nullptr && tells_.load(std::memory_order_relaxed); }
    /// Path and time are filled in.
    void tell(const Event& event) const noexcept {
        if (is_heard()) [[unlikely]]
            push(event);
    }

private:
    void push(const Event& event) const noexcept;

    const std::string path_;
    std::atomic<bool> tells_ = false;
};

/// Since its making, if somebody wants to know by then.
class EventClock {
public:
    EventClock() noexcept {
        if (event_handler.load(std::memory_order_relaxed) != nullptr) begun_ = std::chrono::steady_clock::now();
    }
    /// 0: the handler was installed later.
    std::chrono::microseconds took() const noexcept {
        if (begun_ == std::chrono::steady_clock::time_point{}) return {};
        return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - begun_);
    }

private:
    std::chrono::steady_clock::time_point begun_{};
};

}  // namespace taiyen::store
