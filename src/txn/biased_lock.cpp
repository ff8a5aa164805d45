#include "txn/biased_lock.hpp"

#include <time.h>

#include <algorithm>

namespace taiyen::txn {
namespace {

std::int64_t now() noexcept {
    timespec time{};
    ::clock_gettime(CLOCK_MONOTONIC, &time);
    return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

constinit BiasedLock::Protocol::Sleepers BiasedLock::sleepers_;
constinit std::atomic<std::uint32_t> BiasedLock::numbers_{1};

ReaderSlot* BiasedLock::lock_shared_in_turn() noexcept {
    const std::uint32_t come = lock_.lock_shared();
    if (bias_.load(std::memory_order_relaxed) == 0) {
        // Few readers ask: the clock costs more than the lock.
        const bool asks = come % 4 == 0 && come - quiet_since_.load(std::memory_order_relaxed) >= reads_without_writer;
        if (!asks || lock_.writer_is_there() || now() < not_before_.load(std::memory_order_relaxed) || !can_be_biased()) return nullptr;
        bias_.store(next_period_, std::memory_order_release);  // what the writer before us did is seen by who sees this
    }
    ReaderSlots::join(number_, next_period_);
    return nullptr;
}

void BiasedLock::end_bias() noexcept {
    const std::int64_t begin = now();
    next_period_ = Protocol::after(next_period_);
    if (!Protocol::end(bias_, number_, sleepers_, [](auto&& visit) { ReaderSlots::for_each(visit); })) return;
    ++fences_;
    const std::int64_t end = now();
    // What took longer was waiting for readers, or for a processor.
    not_before_.store(end + pause_factor * std::min(end - begin, fence_time_max), std::memory_order_relaxed);
}

}  // namespace taiyen::txn
