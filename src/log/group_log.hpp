#pragma once
/// Groups: many small records in one record of the ring, so that threads that commit at the same time share one write.
///
/// While a group is being written the next one fills. Whoever waits first for an unwritten group, while no write is in flight, writes it (the leader, outside the mutex); the others wait.
///
/// (G1) A record is copied once: into the sectors of the group that will be written.
/// (G2) Groups are written in the order of their serials, one at a time; `durable()` grows only after the write that it stands for has returned.
/// (G3) After a failed write nobody is told that anything newer is durable: the log is poisoned, and `on_failure` has returned, before any waiter wakes.
/// (G4) With a flusher, `append` returns only while the oldest record that isn't durable is younger than `Options::window` and all of them together take at most `Options::window_bytes`:
///      that much can be lost, no more. A disk that is slower than the program slows the program down.
/// (G5) Room in the ring is set aside by `append`: a record that was appended can be written without waiting for `release`.
/// (G6) A record that a `Hold` covers isn't overwritten before the hold is moved on, let go, or lost. The log waits for none: one that stands in a record's way is lost, and says so.
/// (G7) In the steady state nothing is allocated, and while nobody waits nobody is notified. While there is a `Hold`, copies of the groups that were written last are kept, a megabyte at most: who keeps up reads no disk.
/// Format: FORMAT.md, "Groups". Thread rule: safe, except that `append` needs the caller's lock (serials come in order) and `stop` ends it all.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <vector>

#include <taiyen/base/units.hpp>

#include "log/group.hpp"
#include "log/ring.hpp"

namespace taiyen::log {

class GroupLog {
    struct State;

public:
    struct Options {
        ByteCount group_bytes_max = 1_MiB;         ///< a larger record gets a group of its own
        std::chrono::microseconds window{10'000};  ///< with a flusher
        ByteCount window_bytes = 4_MiB;            ///< with a flusher
        bool flusher = false;                      ///< a thread of ours writes what nobody waits for
        double pressure = 0.5;                     ///< the share of the ring in use from which on `on_pressure` is called
    };

    /// `last`: serial of the newest record that came before; the next one is its successor. Everything in the ring up to `ring->next()` counts as durable.
    GroupLog(std::unique_ptr<Ring> ring, Serial last, const Options& options);
    GroupLog(std::unique_ptr<Ring> ring, Serial last) : GroupLog(std::move(ring), last, Options()) {}
    GroupLog(const GroupLog&) = delete;
    GroupLog& operator=(const GroupLog&) = delete;
    /// As `stop`.
    ~GroupLog();

    /// Set before the first `append`; called without locks of ours (but the caller of `append` may hold its own): it only signals.
    std::function<void()> on_pressure;  ///< the ring has filled up: somebody should `release` soon
    std::function<void()> on_failure;   ///< a write has failed; returns before any waiter wakes

    /// Whether a record of this size can ever be appended: it takes at most half of the ring.
    bool fits(ByteCount record_bytes) const { return record_bytes <= fits_always || fits_exactly(record_bytes); }
    /// Copies the record into the open group. Waits while the window is full, or until `release` makes room in the ring.
    /// Requires: `serial` follows `appended()`; fits. Throws: Error{poisoned}, Error{closed} after `stop`, std::bad_alloc; then nothing was appended.
    void append(Serial serial, std::span<const std::span<const std::byte>> pieces);
    /// The same, but never waits for `release`: false if the ring has no room now (`on_pressure` has been called). For a caller who holds what the releaser needs.
    bool try_append(Serial serial, std::span<const std::span<const std::byte>> pieces);

    /// Returns when the record is durable; the first to wait writes. Throws: Error{poisoned}: whether it is durable is not known. Requires: serial ≤ appended().
    void wait_durable(Serial serial);
    Serial durable() const noexcept { return {durable_.load(std::memory_order_acquire)}; }
    Serial appended() const noexcept { return {appended_.load(std::memory_order_acquire)}; }
    /// `appended()` of several logs at one moment: whatever was appended to one of them after an `append` to another had returned comes after it here, too. Complexity: a mutex each.
    static std::vector<Serial> appended_together(std::span<const GroupLog* const> logs);
    /// How often an `append` has waited because of (G4).
    std::uint64_t window_waits() const noexcept { return window_waits_.load(std::memory_order_relaxed); }
    bool poisoned() const noexcept { return poisoned_.load(std::memory_order_acquire); }

    /// The end of the newest durable group.
    struct Point {
        Serial serial;
        RingStart next;  ///< where the group of the next serial begins
    };
    Point durable_point() const;
    /// Returns when something newer than `serial` is durable, or `stop` is asked for. For who follows the log on a thread of its own.
    void wait_beyond(Serial serial, const std::stop_token& stop) const;

    /// The position behind everything that was appended.
    std::uint64_t appended_position() const;
    /// Bytes of the ring that hold, or will hold, records that the files still need: those behind the newest `release`.
    ByteCount used() const;
    ByteCount capacity() const;
    /// The files need nothing before `position`, at most `durable_point().next.position`. Wakes who waits for room.
    void release(std::uint64_t position);

    /// Keeps durable records for somebody who reads the ring's file beside the writer.
    class Hold {
    public:
        /// Of everything from `durable_point()` on. Throws: std::bad_alloc.
        explicit Hold(GroupLog& log);
        /// Of everything from there on; lost at once if the log goes on in another ring, or has given that room back. Throws: std::bad_alloc.
        Hold(GroupLog& log, const Uuid& ring, const Point& from);
        Hold(const Hold&) = delete;
        Hold& operator=(const Hold&) = delete;
        ~Hold();

        /// Where reading begins.
        const Point& begin() const { return begin_; }
        /// The ring that is held. Null: the log is closed, or goes on in another one.
        std::shared_ptr<const io::File> file() const { return file_.lock(); }
        const RingIdentity& identity() const { return identity_; }
        /// The durable groups from that position on, where a group begins, if they are still in memory; empty: they are not, or the hold is lost.
        std::vector<std::shared_ptr<const Record>> recent(std::uint64_t position) const;
        /// What comes before `position`, at most `durable_point().next.position`, was read.
        void move_on(std::uint64_t position);
        /// Whether a record has taken the place of something that was held, or the log is gone. Asked after reading: if not, what was read is what was written there.
        bool is_lost() const;

    private:
        friend class GroupLog;
        const std::shared_ptr<State> state_;
        std::weak_ptr<io::File> file_;
        RingIdentity identity_;
        Point begin_;
        std::uint64_t position_;
        bool lost_ = false;
    };

    /// The next serials up to `serial` were made durable without the log; the next record is that of its successor. Requires: everything appended is durable.
    void skip_to(Serial serial);
    /// The newest one of those.
    Serial skipped_to() const noexcept { return {skipped_.load(std::memory_order_acquire)}; }

    /// Goes on in another ring. Everything that was held is lost. Requires: the caller's lock; everything appended is durable, and the files need nothing of it.
    void move_to(std::unique_ptr<Ring> ring) noexcept;

    /// Ends the flusher's thread. Whoever waits for room, and every later `append`, gets Error{closed}; what was appended can still be waited for.
    void stop() noexcept;

    /// Both until `move_to`.
    io::File& file() const;
    const RingIdentity& identity() const;

private:
    /// One of these fits into half of the smallest ring.
    static constexpr ByteCount fits_always = 2048;
    bool fits_exactly(ByteCount record_bytes) const;

    const std::shared_ptr<State> state_;
    std::atomic<std::uint64_t> appended_;
    std::atomic<std::uint64_t> durable_;
    std::atomic<std::uint64_t> skipped_{0};
    std::atomic<bool> poisoned_{false};
    std::atomic<std::uint64_t> window_waits_{0};
};

}  // namespace taiyen::log
