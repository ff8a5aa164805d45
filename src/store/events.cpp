#include "store/events.hpp"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include <taiyen/base/error.hpp>

#include "base/process.hpp"

namespace taiyen {
namespace store {

constinit std::atomic<EventHandler> event_handler{nullptr};

namespace {

/// An event that waits, with what it points to.
struct WaitingEvent {
    Event event;
    std::shared_ptr<const EventSource> source;
    Restoration restoration;
    std::array<char, 256> text;
};

/// The events that wait for the handler, and its thread. Made once in a process and kept for good: who tells may do so until the process ends.
class EventQueue {
public:
    /// Of this process; null: nobody has installed a handler. A forked child leaves its parent's alone.
    static EventQueue* find() noexcept {
        EventQueue* const queue = made.load(std::memory_order_acquire);
        return queue != nullptr && queue->process_ == this_process() ? queue : nullptr;
    }
    static EventQueue& get() {
        for (;;) {
            EventQueue* before = made.load(std::memory_order_acquire);
            if (before != nullptr && before->process_ == this_process()) return *before;
            auto fresh = std::make_unique<EventQueue>();
            if (made.compare_exchange_strong(before, fresh.get(), std::memory_order_acq_rel)) {
                if (before != nullptr) event_handler.store(nullptr);  // the parent's
                return *fresh.release();
            }
        }
    }

    void push(const Event& event, std::shared_ptr<const EventSource> source) noexcept {
        {
            const std::lock_guard lock(mutex_);
            if (event_handler.load(std::memory_order_relaxed) == nullptr) return;
            if (end_ - begin_ == waiting_.size()) {
                ++missed_;
                return;
            }
            WaitingEvent& place = waiting_[end_ % waiting_.size()];
            place.event = event;
            place.event.at = std::chrono::system_clock::now();
            place.event.missed = std::exchange(missed_, 0);
            place.source = std::move(source);
            const std::size_t length = std::min(event.text.size(), place.text.size() - 1);
            if (length != 0) std::memcpy(place.text.data(), event.text.data(), length);
            place.event.text = {place.text.data(), length};
            if (event.restoration != nullptr) {
                place.restoration = *event.restoration;
                place.event.restoration = &place.restoration;
            }
            ++end_;
        }
        changed_.notify_all();
    }

    EventHandler install(EventHandler handler) {
        if (std::this_thread::get_id() == told_on_.load(std::memory_order_relaxed)) return event_handler.exchange(handler);
        const std::lock_guard installing(install_mutex_);
        std::unique_lock lock(mutex_);
        if (handler != nullptr && !thread_.joinable()) start();
        const auto until = end_;  // what comes later is the new handler's
        changed_.wait(lock, [&] { return begin_ >= until || !thread_.joinable(); });
        const EventHandler before = event_handler.exchange(handler);
        if (handler == nullptr && thread_.joinable()) {
            stopping_ = true;
            lock.unlock();
            changed_.notify_all();
            thread_.join();
        }
        return before;
    }

private:
    /// Requires: the mutex.
    void start() {
        try {
            stopping_ = false;
            thread_ = std::thread([this] { run(); });
        } catch (const std::system_error& error) {
            throw Error(errc::too_many_threads, std::string("no thread can be made for the event handler: ") + error.what() +
                                                    "; raise the limit of threads (ulimit -u, pids.max of the control group)");
        }
    }

    void run() noexcept {
        told_on_.store(std::this_thread::get_id(), std::memory_order_relaxed);
        std::unique_lock lock(mutex_);
        for (;;) {
            changed_.wait(lock, [&] { return stopping_ || begin_ != end_; });
            if (begin_ == end_) break;
            WaitingEvent& next = waiting_[begin_ % waiting_.size()];
            lock.unlock();
            if (const EventHandler handler = event_handler.load()) handler(next.event);
            next.source = nullptr;  // here, so that who tells frees nothing
            lock.lock();
            ++begin_;
            changed_.notify_all();
        }
        told_on_.store({}, std::memory_order_relaxed);
    }

    static constinit std::atomic<EventQueue*> made;

    const ProcessNumber process_ = this_process();
    std::mutex install_mutex_;  ///< one change of the handler at a time
    std::mutex mutex_;          ///< guards what follows; an event that is being told is not moved
    std::condition_variable changed_;
    std::array<WaitingEvent, 256> waiting_{};
    std::uint64_t begin_ = 0;
    std::uint64_t end_ = 0;
    std::uint64_t missed_ = 0;
    bool stopping_ = false;
    std::thread thread_;
    std::atomic<std::thread::id> told_on_{};
};

constinit std::atomic<EventQueue*> EventQueue::made{nullptr};

}  // namespace

void EventSource::push(const Event& event) const noexcept {
    EventQueue* const queue = EventQueue::find();
    if (queue == nullptr) return;
    Event told = event;
    told.heap = path_;
    queue->push(told, shared_from_this());
}

}  // namespace store

std::string_view name_of(EventKind kind) noexcept {
    switch (kind) {
        case EventKind::recovered: return "recovered";
        case EventKind::opened: return "opened";
        case EventKind::saved: return "saved";
        case EventKind::checkpointed: return "checkpointed";
        case EventKind::healed: return "healed";
        case EventKind::poisoned: return "poisoned";
        case EventKind::stalled: return "stalled";
        case EventKind::behind: return "behind";
        case EventKind::closed: return "closed";
        case EventKind::replication: return "replication";
        case EventKind::based: break;
    }
    return "based";
}

EventHandler set_event_handler(EventHandler handler) {
    if (handler == nullptr && store::EventQueue::find() == nullptr) return nullptr;
    return store::EventQueue::get().install(handler);
}

}  // namespace taiyen
