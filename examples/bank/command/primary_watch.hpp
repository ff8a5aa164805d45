#pragma once
/// PrimaryWatch: hears what a bank in another process promises, as it comes, and how long it pauses.
///
/// Thread rule: safe; `all` belongs to the thread that made it.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "acknowledgement.hpp"
#include "command/bank_process.hpp"
#include "command/figures.hpp"

namespace bank::command {

class PrimaryWatch {
public:
    /// `primary` outlives it.
    explicit PrimaryWatch(BankProcess& primary) : primary_(&primary), thread_([this](const std::stop_token& stop) { hear(stop); }) {}

    /// Of acknowledgements so far.
    std::uint64_t count() const;
    /// The newest transaction that was acknowledged.
    std::uint64_t newest() const { return newest_; }
    /// Returns when there are so many acknowledgements, true, or at that time. Throws: std::runtime_error: the primary has ended.
    bool wait_for(std::uint64_t acknowledgements, Clock::time_point end);
    /// Pauses count from now on.
    void forget_pauses();
    /// The longest time between two acknowledgements.
    std::chrono::nanoseconds longest_pause() const;
    /// All that was told, once the primary has been killed.
    std::vector<Acknowledgement> all();

private:
    void hear(const std::stop_token& stop);

    BankProcess* primary_;
    mutable std::mutex mutex_;
    std::condition_variable heard_;
    std::vector<Acknowledgement> told_;
    Clock::time_point last_ = Clock::now();
    std::chrono::nanoseconds longest_pause_{};
    bool has_ended_ = false;
    std::atomic<std::uint64_t> newest_{0};
    std::jthread thread_;  ///< last: it uses the rest
};

}  // namespace bank::command
