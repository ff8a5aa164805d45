#include "txn/phase_fair_lock.hpp"

#include "txn/waiting.hpp"

namespace taiyen::txn {
namespace {

/// Waits until `done(number)`: a moment awake, then asleep.
template <class Done>
void wait_until(const std::atomic<std::uint32_t>& number, Done done) noexcept {
    for (int left = spins_near; left > 0; --left) {
        if (done(number.load(std::memory_order_acquire))) return;
        spin(left);
    }
    for (;;) {
        const std::uint32_t value = number.load(std::memory_order_seq_cst);
        if (done(value)) return;
        sleep_while(number, value);
    }
}

}  // namespace

void PhaseFairLock::call(std::uint32_t ticket, std::uint32_t value) noexcept {
    Seat& seat = seats_[ticket % seats];
    // Who goes to sleep counts itself before it looks for a call: one of the two sees the other.
    seat.call.store(value, std::memory_order_seq_cst);
    if (seat.asleep.load(std::memory_order_seq_cst) != 0) wake_all(seat.call);
}

void PhaseFairLock::wait_for_turn(std::uint32_t ticket) noexcept {
    Seat& seat = seats_[ticket % seats];
    bool near = tickets_done_.load(std::memory_order_acquire) == ticket - 1;  // the one before works already
    for (int left = near ? spins_near : spins_far;;) {
        std::uint32_t value = seat.call.load(std::memory_order_acquire);
        if (value == turn_call(ticket)) return;
        if (value == next_call(ticket) && !near) {
            near = true;
            left = spins_near;
        }
        if (left > 0) {
            spin(left--);
            continue;
        }
        seat.asleep.fetch_add(1, std::memory_order_seq_cst);
        value = seat.call.load(std::memory_order_seq_cst);
        if (value != turn_call(ticket) && (near || value != next_call(ticket))) sleep_while(seat.call, value);
        seat.asleep.fetch_sub(1, std::memory_order_relaxed);
    }
}

void PhaseFairLock::lock() noexcept {
    const std::uint32_t ticket = tickets_.fetch_add(1, std::memory_order_seq_cst);
    wait_for_turn(ticket);
    ticket_ = ticket;
    if (tickets_.load(std::memory_order_relaxed) != ticket + 1) call(ticket + 1, next_call(ticket + 1));
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
    call(ticket + 1, turn_call(ticket + 1));
}

void PhaseFairLock::wait_for_writer(std::uint32_t writer) noexcept {
    wait_until(readers_in_, [=](std::uint32_t in) { return (in & writer_bits) != writer; });
}

void PhaseFairLock::wake_writer(std::uint32_t gone) noexcept {
    if (awaited_.load(std::memory_order_seq_cst) == gone) wake_all(readers_out_);
}

}  // namespace taiyen::txn
