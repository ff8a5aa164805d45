#include "command/primary_watch.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace bank::command {

std::uint64_t PrimaryWatch::count() const {
    const std::lock_guard lock(mutex_);
    return told_.size();
}

bool PrimaryWatch::wait_for(std::uint64_t acknowledgements, Clock::time_point end) {
    std::unique_lock lock(mutex_);
    heard_.wait_until(lock, end, [&] { return has_ended_ || told_.size() >= acknowledgements; });
    if (has_ended_) throw std::runtime_error("the primary ended before it was killed");
    return told_.size() >= acknowledgements;
}

void PrimaryWatch::forget_pauses() {
    const std::lock_guard lock(mutex_);
    longest_pause_ = {};
}

std::chrono::nanoseconds PrimaryWatch::longest_pause() const {
    const std::lock_guard lock(mutex_);
    return longest_pause_;
}

std::vector<Acknowledgement> PrimaryWatch::all() {
    std::unique_lock lock(mutex_);
    heard_.wait(lock, [&] { return has_ended_; });
    return std::move(told_);
}

void PrimaryWatch::hear(const std::stop_token& stop) {
    std::vector<Acknowledgement> news;
    bool goes_on = true;
    while (goes_on && !stop.stop_requested()) {
        goes_on = primary_->hear(Clock::now() + std::chrono::milliseconds(50), news);
        const std::lock_guard lock(mutex_);
        for (const Acknowledgement& told : news) newest_ = std::max(newest_.load(), told.serial);
        if (!news.empty()) {
            const auto now = Clock::now();
            if (!told_.empty()) longest_pause_ = std::max<std::chrono::nanoseconds>(longest_pause_, now - last_);
            last_ = now;
        }
        told_.insert(told_.end(), news.begin(), news.end());
        news.clear();
        has_ended_ = !goes_on;
        heard_.notify_all();
    }
}

}  // namespace bank::command
