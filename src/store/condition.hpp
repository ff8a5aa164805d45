#pragma once
/// Condition: whether an open heap can be used: it is open, in the process that opened it, and no durable step of it has failed.
///
/// (C1) A durable step that fails poisons the heap: nothing more is written, later calls say so, reopening recovers. What a failed sync may have lost is not made official by a later one.
/// (C2) What poisoned it stays the reason.
/// Thread rule: safe.

#include <atomic>
#include <filesystem>
#include <functional>
#include <mutex>
#include <string>
#include <utility>

#include "heap/core.hpp"
#include "store/events.hpp"

namespace taiyen::store {

class Condition {
public:
    /// Core and events must outlive it.
    Condition(const heap::HeapCore& core, std::filesystem::path path, const EventSource& events, bool read_only)
        : core_(core), path_(std::move(path)), events_(events), read_only_(read_only) {}

    bool is_open() const noexcept { return open_.load(std::memory_order_relaxed); }
    /// The files are about to be closed: from now on every use is refused.
    void end() noexcept { open_.store(false, std::memory_order_relaxed); }
    bool is_read_only() const noexcept { return read_only_; }
    bool is_poisoned() const noexcept { return poisoned_.load(std::memory_order_relaxed); }
    /// Requires: it is.
    std::string why_poisoned() const;

    /// Throws: Error{closed | forked | poisoned}, and, unless `for_reading`, Error{read_only}.
    void check_usable(bool for_reading) const;
    /// The same, for those who ask all the time.
    void require_usable(bool for_reading) const {
        if (!is_open() || core_.in_forked_child() || is_poisoned() || (read_only_ && !for_reading)) [[unlikely]]
            check_usable(for_reading);
    }
    /// From now on the heap refuses everything, until it is opened again: what is in memory and what is in the files may differ by more than anybody knows.
    void poison(const char* what, const char* why) noexcept;
    /// Runs the step; if it throws, the heap is poisoned. Throws: Error{poisoned}: it didn't run; what `step` throws.
    void durable_step(const char* what, const std::function<void()>& step);

private:
    const heap::HeapCore& core_;
    const std::filesystem::path path_;
    const EventSource& events_;
    const bool read_only_;
    std::atomic<bool> open_ = true;
    std::atomic<bool> poisoned_ = false;
    std::string poison_;  ///< never changes once the flag is set
    mutable std::mutex mutex_;
};

}  // namespace taiyen::store
