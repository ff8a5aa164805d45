#include "txn/phase_fair_lock.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>

namespace taiyen::txn {
namespace {

static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t) && std::atomic<std::uint32_t>::is_always_lock_free, "the kernel waits on the bare number");

// Not std::atomic::wait: its notify enters the kernel whether anybody sleeps or not, and here it is known who may.
void sleep_while(const std::atomic<std::uint32_t>& number, std::uint32_t value) noexcept {
    ::syscall(SYS_futex, &number, FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);  // interrupted, or changed meanwhile: the caller looks again
}
void wake_all(std::atomic<std::uint32_t>& number) noexcept { ::syscall(SYS_futex, &number, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0); }

void pause() noexcept {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

/// Waits until `done(number)`: a moment awake, since most critical sections are shorter than a sleep, then asleep.
template <class Done>
void wait_until(const std::atomic<std::uint32_t>& number, Done done) noexcept {
    for (int turn = 0; turn < 64; ++turn) {
        if (done(number.load(std::memory_order_acquire))) return;
        pause();
    }
    for (;;) {
        const std::uint32_t value = number.load(std::memory_order_seq_cst);
        if (done(value)) return;
        sleep_while(number, value);
    }
}

}  // namespace

void PhaseFairLock::lock() noexcept {
    const std::uint32_t ticket = tickets_.fetch_add(1, std::memory_order_seq_cst);
    wait_until(seats_[ticket % seats].turn, [=](std::uint32_t turn) { return turn == ticket; });
    ticket_ = ticket;
    readers_before_ = readers_in_.fetch_add(writer_present | (ticket & phase), std::memory_order_seq_cst);
    if (readers_out_.load(std::memory_order_acquire) == readers_before_) return;
    // Stored before the count is looked at again, and a leaving reader looks at it after it has counted itself: one of the two sees the other.
    awaited_.store(readers_before_, std::memory_order_seq_cst);
    wait_until(readers_out_, [this](std::uint32_t gone) { return gone == readers_before_; });
}

void PhaseFairLock::unlock() noexcept {
    const std::uint32_t ticket = ticket_;
    const std::uint32_t before = readers_before_;
    const std::uint32_t readers = readers_in_.fetch_and(~writer_bits, std::memory_order_seq_cst) & ~writer_bits;
    if (readers != before) wake_all(readers_in_);
    tickets_done_.store(ticket + 1, std::memory_order_release);
    std::atomic<std::uint32_t>& turn = seats_[(ticket + 1) % seats].turn;
    turn.store(ticket + 1, std::memory_order_seq_cst);
    if (tickets_.load(std::memory_order_seq_cst) != ticket + 1) wake_all(turn);
}

void PhaseFairLock::wait_for_writer(std::uint32_t writer) noexcept {
    wait_until(readers_in_, [=](std::uint32_t in) { return (in & writer_bits) != writer; });
}

void PhaseFairLock::wake_writer(std::uint32_t gone) noexcept {
    if (awaited_.load(std::memory_order_seq_cst) == gone) wake_all(readers_out_);
}

}  // namespace taiyen::txn
