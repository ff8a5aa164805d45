#include "txn/phase_fair_lock.hpp"

#include "txn/waiting.hpp"

namespace taiyen::txn {
namespace {

/// Whether `done(number)` becomes true in a moment.
template <class Done>
bool happens_soon(const std::atomic<std::uint32_t>& number, Done done) noexcept {
    for (int left = spins_near; left > 0; --left) {
        if (done(number.load(std::memory_order_acquire))) return true;
        spin(left);
    }
    return false;
}

/// Sleeps until `done(number)`.
template <class Done>
void sleep_until(const std::atomic<std::uint32_t>& number, Done done) noexcept {
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
    const auto all_gone = [this](std::uint32_t gone) { return (gone & ~writer_sleeps) == readers_before_; };
    if (happens_soon(readers_out_, all_gone)) return;
    // In the very number in which a reader counts itself when it leaves: it can't miss us, and needn't look anywhere else.
    readers_out_.fetch_or(writer_sleeps, std::memory_order_seq_cst);
    sleep_until(readers_out_, all_gone);
    readers_out_.fetch_and(~writer_sleeps, std::memory_order_relaxed);
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
    const auto is_gone = [=](std::uint32_t in) { return (in & writer_bits) != writer; };
    if (!happens_soon(readers_in_, is_gone)) sleep_until(readers_in_, is_gone);
}

void PhaseFairLock::wake_writer() noexcept { wake_all(readers_out_); }

}  // namespace taiyen::txn
