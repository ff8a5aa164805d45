#include "log/group_log.hpp"

#include <time.h>

#include <algorithm>
#include <bit>
#include <condition_variable>
#include <deque>
#include <exception>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <taiyen/base/check.hpp>
#include <taiyen/base/error.hpp>

#include "base/planted.hpp"

namespace taiyen::log {
namespace {

using layout::GroupHead;
using layout::GroupRecordHead;

using Clock = std::chrono::steady_clock;
static_assert(std::is_same_v<Clock::duration, std::chrono::nanoseconds>);
using Lock = std::unique_lock<std::mutex>;

std::chrono::nanoseconds in_nanoseconds(const timespec& time) { return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec); }

/// The clock of `Clock` as of the system's last tick: a fifth of the price. Never ahead of it.
Clock::time_point coarse_now() {
    timespec time{};
    ::clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
    return Clock::time_point(in_nanoseconds(time));
}
/// How far it may be behind: a tick, or two where one was late.
std::chrono::nanoseconds coarse_lag() {
    timespec tick{};
    ::clock_getres(CLOCK_MONOTONIC_COARSE, &tick);
    return 2 * in_nanoseconds(tick);
}

/// What a record adds to its group's payload.
constexpr ByteCount bytes_in_group(ByteCount record_bytes) { return sizeof(GroupRecordHead) + round_up(record_bytes, 8); }

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
    return std::as_bytes(std::span(&value, 1));
}

/// A condition that knows whether anybody waits: notifying nobody costs nothing. Waiting and `anybody` need the mutex.
class Condition {
public:
    void wait(Lock& lock) {
        ++waiting_;
        condition_.wait(lock);
        --waiting_;
    }
    void wait_until(Lock& lock, Clock::time_point time) {
        ++waiting_;
        condition_.wait_until(lock, time);
        --waiting_;
    }
    bool anybody() const { return waiting_ != 0; }
    void notify_one() { condition_.notify_one(); }
    void notify_all() { condition_.notify_all(); }

private:
    std::condition_variable condition_;
    unsigned waiting_ = 0;
};

/// One of the two groups: open, being written, or empty.
struct Group {
    RecordBuffer buffer;
    std::uint32_t records = 0;
    unsigned committers = 0;  ///< threads that wait, or have waited, for this group
    std::uint64_t first = 0;  ///< serials, while there are records
    std::uint64_t last = 0;
    Clock::time_point opened;  ///< when the first record came; with a flusher only
    Condition finished;        ///< its write, or, for one waiter, the write before it: time to write this one

    ByteCount ring_bytes() const { return records == 0 ? 0 : Ring::record_bytes(buffer.payload_bytes()); }
    ByteCount payload_bytes() const { return records == 0 ? 0 : buffer.payload_bytes(); }
};

/// A buffer that one huge record made is not kept for the small ones.
constexpr ByteCount group_buffer_kept_bytes = 4_MiB;
constexpr ByteCount recent_bytes_max = 1_MiB;

constexpr Clock::duration gather_time_max = std::chrono::microseconds(200);
constexpr unsigned gather_pause_max = 63;

}  // namespace

std::int64_t count_in_group(const Record& group) {
    const std::span payload(group.payload);
    GroupHead head;
    if (group.kind != record_transactions || payload.size() < sizeof head) return -1;
    std::memcpy(&head, payload.data(), sizeof head);
    if (head.zero != 0 || head.records == 0) return -1;
    std::size_t at = sizeof head;
    for (std::uint32_t index = 0; index < head.records; ++index) {
        GroupRecordHead record;
        if (payload.size() - at < sizeof record) return -1;
        std::memcpy(&record, payload.data() + at, sizeof record);
        // A large group has left the near caches since it was read, and its records are too small for the processor to see a pattern in these loads.
        __builtin_prefetch(payload.data() + std::min(at + 1024, payload.size()));
        if (record.zero != 0 || bytes_in_group(record.bytes) > payload.size() - at) return -1;
        at += bytes_in_group(record.bytes);
    }
    return at == payload.size() ? std::int64_t{head.records} : -1;
}

struct GroupLog::State {
    State(GroupLog& log, std::unique_ptr<Ring> the_ring, Serial last, const Options& the_options)
        : log(log), ring(std::move(the_ring)), options(the_options), durable{last, ring->next()}, head(ring->next().position), needed(ring->tail()) {
        measure();
    }
    /// What follows from the ring's capacity.
    void measure() noexcept {
        capacity.store(ring->capacity(), std::memory_order_relaxed);
        group_bytes_max =
            std::min({options.group_bytes_max, ring->capacity() / 4, options.flusher ? options.window_bytes / 2 : options.group_bytes_max});
        flush_bytes = group_bytes_max / 2;
        pressure_bytes = static_cast<ByteCount>(options.pressure * static_cast<double>(ring->capacity()));
    }

    // ---- under the mutex

    ByteCount used() const { return head - needed + open->ring_bytes(); }
    /// The oldest byte that must not be overwritten.
    std::uint64_t tail() const {
        std::uint64_t oldest = needed;
        for (const Hold* hold : holds) oldest = hold->lost_ ? oldest : std::min(oldest, hold->position_);
        return oldest;
    }
    /// Whether so many bytes fit behind the head; holds that are in the way are lost.
    bool make_room(ByteCount bytes) {
        const std::uint64_t end = head + bytes;
        if (end - needed > ring->capacity()) return false;
        for (Hold* hold : holds) hold->lost_ = hold->lost_ || end - hold->position_ > ring->capacity();
        return true;
    }
    void hold(Hold& hold, const Point& from) {
        hold.file_ = ring->shared_file();
        hold.identity_ = ring->identity();
        hold.begin_ = from;
        hold.position_ = from.next.position;
        holds.push_back(&hold);
        easy_bytes = 0;
    }
    void forget_recent() noexcept {
        recent.clear();
        recent_bytes = 0;
    }
    /// What was written there, for who follows the log; null: nobody does, or there is no memory for it.
    void keep_recent(std::uint64_t position, std::shared_ptr<const Record> group) noexcept;
    ByteCount not_durable_bytes() const { return open->payload_bytes() + (writing != nullptr ? writing->payload_bytes() : 0); }
    Clock::time_point oldest() const { return writing != nullptr ? writing->opened : open->records != 0 ? open->opened : Clock::time_point::max(); }
    [[noreturn]] void throw_poisoned() const {
        throw Error(errc::poisoned, ring->file().path(), "a write to the log failed (" + cause + "); reopen the heap");
    }

    /// The caller becomes the leader: writes the open group, without the mutex. Requires: it has records; nothing is being written.
    void write_open(Lock& lock);
    /// Brings the open group nearer to the disk: writes it, or waits for the write before it.
    void write_or_wait(Lock& lock) {
        if (gathering) {
            hurry.store(true, std::memory_order_relaxed);
            open->finished.wait(lock);
        } else if (writing == nullptr) {
            write_open(lock);
        } else {
            writing->finished.wait(lock);
        }
    }
    /// Whoever has just been woken is likely to commit again at once. A leader gives them a moment to join its group, if that has paid lately: without it, threads that commit without
    /// pause split into two halves that wait for each other's writes.
    void gather(Lock& lock);
    /// Whether a record has to wait for the window (G4).
    bool is_beyond_window(ByteCount bytes) const;
    /// Whether a record can't be added to the open group before that one or the one before it has been written.
    bool must_write_first(ByteCount bytes) const {
        return (open->records != 0 && open->payload_bytes() + bytes > group_bytes_max) || is_beyond_window(bytes);
    }
    /// Whether the window of the oldest record has passed. While that is some ticks away, only every 16th record asks the exact clock: ticks come late where the system is stalled.
    bool is_late() const {
        const Clock::time_point since = oldest();
        return (open->records % 16 == 0 || coarse_now() + coarse_lag_ - since >= options.window) && Clock::now() - since >= options.window;
    }
    /// Up to which payload records may join the open group without another look at anything but the clock.
    ByteCount easy_limit() const;
    /// Requires: the buffer has room.
    void add(std::uint64_t serial, std::span<const std::span<const std::byte>> pieces, ByteCount record_bytes);
    bool append(Serial serial, std::span<const std::span<const std::byte>> pieces, bool may_wait_for_room);
    void flush_in_time();

    GroupLog& log;
    std::unique_ptr<Ring> ring;  ///< of the leader while it writes, except `capacity`, `file`
    const Options options;
    std::atomic<ByteCount> capacity;
    ByteCount group_bytes_max;
    ByteCount flush_bytes;  ///< the flusher writes a group of this size at once
    ByteCount pressure_bytes;

    std::mutex mutex;
    Group groups[2];
    Group* open = &groups[0];
    Group* writing = nullptr;
    bool gathering = false;          ///< a leader waits for more to join the open group
    std::atomic<bool> hurry{false};  ///< it should not
    unsigned expected = 0;           ///< threads that were committing when the last write ended
    unsigned gather_pause = 0;       ///< writes that went without gathering after it was in vain
    unsigned gather_pause_left = 0;
    Clock::duration write_time{};  ///< smoothed
    Point durable;
    std::uint64_t head;    ///< ring position behind what has been or is being written
    std::uint64_t needed;  ///< by the files: from here on
    std::vector<Hold*> holds;
    struct Recent {
        std::uint64_t position;
        std::shared_ptr<const Record> group;
    };
    std::deque<Recent> recent;  ///< each behind the one before, the last one up to `durable`
    ByteCount recent_bytes = 0;
    ByteCount easy_bytes = 0;  ///< `easy_limit()`, or 0: it has to be found out
    const std::chrono::nanoseconds coarse_lag_ = coarse_lag();
    bool stopped = false;
    bool pressed = false;  ///< `on_pressure` was called since the last release
    std::string cause;     ///< of the poisoning
    Condition room;
    Condition work;      ///< for the flusher
    Condition progress;  ///< for who follows the log
    bool flusher_sleeps_until_due = false;
    std::thread flusher;
};

GroupLog::GroupLog(std::unique_ptr<Ring> ring, Serial last, const Options& options)
    : state_(std::make_shared<State>(*this, std::move(ring), last, options)), appended_(last.value), durable_(last.value) {
    if (options.flusher) state_->flusher = std::thread([this] { state_->flush_in_time(); });
}

GroupLog::~GroupLog() {
    stop();
    const Lock lock(state_->mutex);
    for (Hold* hold : state_->holds) hold->lost_ = true;
    state_->ring.reset();
}

// ---- writing

void GroupLog::State::gather(Lock& lock) {
    if (expected <= open->records) return;  // also a single thread
    if (gather_pause_left > 0) {
        --gather_pause_left;
        return;
    }
    const std::uint64_t had = log.appended_.load(std::memory_order_relaxed);
    const std::uint64_t wanted = log.durable_.load(std::memory_order_relaxed) + expected;
    gathering = true;
    hurry.store(false, std::memory_order_relaxed);
    lock.unlock();
    const Clock::time_point end = Clock::now() + std::min<Clock::duration>(write_time / 2, gather_time_max);
    while (log.appended_.load(std::memory_order_relaxed) < wanted && !hurry.load(std::memory_order_relaxed) && Clock::now() < end)
        std::this_thread::yield();
    lock.lock();
    gathering = false;
    gather_pause = log.appended_.load(std::memory_order_relaxed) > had ? 0 : std::min(2 * gather_pause + 1, gather_pause_max);
    gather_pause_left = gather_pause;
}

void GroupLog::State::keep_recent(std::uint64_t position, std::shared_ptr<const Record> group) noexcept {
    if (!group || holds.empty()) return forget_recent();
    try {
        recent_bytes += group->payload.size();
        recent.push_back({position, std::move(group)});
    } catch (const std::bad_alloc&) {
        return forget_recent();
    }
    for (; recent_bytes > recent_bytes_max; recent.pop_front()) recent_bytes -= recent.front().group->payload.size();
}

void GroupLog::State::write_open(Lock& lock) {
    TAIYEN_CHECK(writing == nullptr && !gathering && open->records != 0);
    easy_bytes = 0;
    Group& group = *open;
    writing = &group;
    open = &group == &groups[0] ? &groups[1] : &groups[0];
    head += group.ring_bytes();
    ring->release(tail());
    if (planted(Bug::group_before_write)) log.durable_.store(group.last, std::memory_order_release);
    const bool is_followed = !holds.empty();
    lock.unlock();

    const Clock::time_point begin = Clock::now();
    bool failed = true;
    std::uint64_t position = 0;
    std::string why = "unknown";
    try {
        group.buffer.overwrite(0, bytes_of(GroupHead{group.records, 0}));
        position = ring->append(record_transactions, group.first, group.buffer);
        failed = false;
    } catch (const std::exception& error) {
        why = error.what();
    } catch (...) {  // NOLINT(bugprone-empty-catch): whatever it was, the log is poisoned
    }
    if (failed && log.on_failure) log.on_failure();
    const RingStart next = ring->next();
    const Clock::duration took = Clock::now() - begin;
    std::shared_ptr<Record> copy;
    if (is_followed && !failed && group.buffer.payload_bytes() <= recent_bytes_max) {
        try {
            copy = std::make_shared<Record>(Record{record_transactions, group.first, 0, position, group.buffer.payload(), 0});
        } catch (const std::bad_alloc&) {
            copy.reset();
        }
    }

    lock.lock();
    write_time += (took - write_time) / 8;
    expected = group.committers + open->committers;
    const std::uint64_t last = group.last;
    writing = nullptr;
    easy_bytes = 0;
    group.records = 0;
    group.committers = 0;
    group.buffer.clear();
    group.buffer.keep_at_most(group_buffer_kept_bytes);
    if (failed) {
        if (planted(Bug::wake_before_poison)) log.durable_.store(last, std::memory_order_release);
        cause = std::move(why);
        log.poisoned_.store(true, std::memory_order_release);
        group.finished.notify_all();
        open->finished.notify_all();
        room.notify_all();
        work.notify_all();
        return;
    }
    durable = {{last}, next};
    keep_recent(position, std::move(copy));
    log.durable_.store(last, std::memory_order_release);
    const bool followers = group.finished.anybody();
    const bool successor = open->records != 0 && open->finished.anybody();
    const bool watched = progress.anybody();
    Group& following = *open;
    if (!followers && !successor && !watched) return;
    // Notified without the mutex, or they would wake only to wait for it.
    lock.unlock();
    if (successor) following.finished.notify_one();
    if (followers) group.finished.notify_all();
    if (watched) progress.notify_all();
    lock.lock();
}

void GroupLog::State::flush_in_time() {
    Lock lock(mutex);
    while (!stopped && !log.poisoned()) {
        easy_bytes = 0;  // who appends from here on looks whether we sleep
        if (open->records == 0) {
            work.wait(lock);
            continue;
        }
        // Half of the window is for filling the group, the other half for writing it.
        const Clock::time_point due = open->opened + options.window / 2;
        if (open->payload_bytes() < flush_bytes && Clock::now() < due) {
            flusher_sleeps_until_due = true;
            work.wait_until(lock, due);
            flusher_sleeps_until_due = false;
            continue;
        }
        write_or_wait(lock);
    }
}

void GroupLog::wait_durable(Serial serial) {
    if (durable_.load(std::memory_order_acquire) >= serial.value) return;
    State& state = *state_;
    Lock lock(state.mutex);
    TAIYEN_CHECK(serial.value <= appended_.load(std::memory_order_relaxed));
    if (durable_.load(std::memory_order_relaxed) >= serial.value) return;
    const auto is_in_flight = [&] { return state.writing != nullptr && serial.value <= state.writing->last; };
    ++(is_in_flight() ? state.writing : state.open)->committers;
    do {
        if (poisoned()) state.throw_poisoned();
        if (is_in_flight()) {
            state.writing->finished.wait(lock);
        } else if (state.writing != nullptr || state.gathering) {
            state.open->finished.wait(lock);
        } else {
            state.gather(lock);
            state.write_open(lock);
        }
    } while (durable_.load(std::memory_order_relaxed) < serial.value);
}

// ---- appending

bool GroupLog::fits_exactly(ByteCount record_bytes) const {
    if (record_bytes > layout::group_record_bytes_max) return false;
    return Ring::record_bytes(sizeof(GroupHead) + bytes_in_group(record_bytes)) <= capacity() / 2;
}

bool GroupLog::State::is_beyond_window(ByteCount bytes) const {
    if (!options.flusher || (open->records == 0 && writing == nullptr)) return false;
    return not_durable_bytes() + bytes > options.window_bytes || is_late();
}

bool GroupLog::State::append(Serial serial, std::span<const std::span<const std::byte>> pieces, bool may_wait_for_room) {
    ByteCount record_bytes = 0;
    for (const auto& piece : pieces) record_bytes += piece.size();
    const ByteCount bytes = bytes_in_group(record_bytes);

    Lock lock(mutex);
    TAIYEN_CHECK(serial.value == log.appended_.load(std::memory_order_relaxed) + 1);
    if (open->buffer.payload_bytes() + bytes <= easy_bytes && !(options.flusher && is_late())) {
        add(serial.value, pieces, record_bytes);
        return true;
    }
    TAIYEN_CHECK(log.fits(record_bytes));
    for (bool pressure_told = false;;) {
        if (log.poisoned()) throw_poisoned();
        if (stopped) throw Error(errc::closed, ring->file().path(), "the log has been closed");
        if (must_write_first(bytes)) {
            if (is_beyond_window(bytes)) log.window_waits_.fetch_add(1, std::memory_order_relaxed);
            write_or_wait(lock);
            continue;
        }
        const ByteCount group_bytes = Ring::record_bytes(std::max(open->payload_bytes(), sizeof(GroupHead)) + bytes);
        if (make_room(group_bytes)) break;
        // A releaser can only release what is durable.
        if (open->records != 0 || writing != nullptr) {
            write_or_wait(lock);
            continue;
        }
        if (!pressure_told) {
            pressure_told = true;
            lock.unlock();
            if (log.on_pressure) log.on_pressure();
            lock.lock();
            continue;
        }
        if (!may_wait_for_room) return false;
        room.wait(lock);
        pressure_told = false;
    }
    open->buffer.reserve(std::max(open->payload_bytes(), sizeof(GroupHead)) + bytes);  // the last thing that can fail
    add(serial.value, pieces, record_bytes);
    easy_bytes = easy_limit();
    const bool pressure = !pressed && used() >= pressure_bytes;
    pressed = pressed || pressure;
    // The flusher sleeps without a time only while the group is empty; otherwise it must know when there is much to write.
    const bool call_flusher =
        options.flusher && work.anybody() && (flusher_sleeps_until_due ? open->payload_bytes() >= flush_bytes : open->records == 1);
    lock.unlock();
    if (call_flusher) work.notify_one();
    if (pressure && log.on_pressure) log.on_pressure();
    return true;
}

ByteCount GroupLog::State::easy_limit() const {
    ByteCount most = std::min({group_bytes_max, open->buffer.payload_bytes_max(), layout::group_record_bytes_max});
    if (options.flusher)
        most = std::min(most, options.window_bytes - std::min(options.window_bytes, writing != nullptr ? writing->payload_bytes() : 0));
    // Who reaches these two has somebody to call.
    if (options.flusher && work.anybody()) most = std::min(most, flush_bytes - 1);
    const auto room = [&](ByteCount bytes, std::uint64_t from) { return Ring::payload_bytes_max(bytes - std::min(bytes, head - from)); };
    if (!pressed) most = std::min(most, room(pressure_bytes - std::min<ByteCount>(pressure_bytes, 1), needed));
    return std::min(most, room(ring->capacity(), tail()));
}

void GroupLog::State::add(std::uint64_t serial, std::span<const std::span<const std::byte>> pieces, ByteCount record_bytes) {
    Group& group = *open;
    if (group.records == 0) {
        group.buffer.put(bytes_of(GroupHead{}));  // its numbers come when it is written
        group.first = serial;
        if (options.flusher) group.opened = Clock::now();
    }
    group.buffer.put_padded(std::bit_cast<std::uint64_t>(GroupRecordHead{static_cast<std::uint32_t>(record_bytes), 0}), pieces, record_bytes);
    ++group.records;
    group.last = serial;
    log.appended_.store(serial, std::memory_order_release);
}

void GroupLog::append(Serial serial, std::span<const std::span<const std::byte>> pieces) { state_->append(serial, pieces, true); }
bool GroupLog::try_append(Serial serial, std::span<const std::span<const std::byte>> pieces) { return state_->append(serial, pieces, false); }

// ---- room

std::vector<Serial> GroupLog::appended_together(std::span<const GroupLog* const> logs) {
    std::vector<State*> in_order;  // the same for everybody, or two would wait for each other
    for (const GroupLog* const log : logs) in_order.push_back(log->state_.get());
    std::ranges::sort(in_order, std::less<State*>());
    const auto same = std::ranges::unique(in_order);
    in_order.erase(same.begin(), same.end());
    std::vector<Lock> locks;
    if (!planted(Bug::cut_one_by_one))
        for (State* const state : in_order) locks.emplace_back(state->mutex);
    std::vector<Serial> serials;
    for (const GroupLog* const log : logs) {
        serials.push_back(log->appended());
        if (planted(Bug::cut_one_by_one)) planted_step();
    }
    return serials;
}

GroupLog::Point GroupLog::durable_point() const {
    const Lock lock(state_->mutex);
    return state_->durable;
}

void GroupLog::wait_beyond(Serial serial, const std::stop_token& stop) const {
    State& state = *state_;
    const std::stop_callback wake(stop, [&] {
        const Lock lock(state.mutex);
        state.progress.notify_all();
    });
    Lock lock(state.mutex);
    while (state.durable.serial <= serial && !stop.stop_requested()) state.progress.wait(lock);
}

ByteCount GroupLog::used() const {
    const Lock lock(state_->mutex);
    return state_->used();
}

std::uint64_t GroupLog::appended_position() const {
    const Lock lock(state_->mutex);
    return state_->head + (state_->open->records != 0 ? state_->open->ring_bytes() : 0);
}

ByteCount GroupLog::capacity() const { return state_->capacity.load(std::memory_order_relaxed); }

void GroupLog::release(std::uint64_t position) {
    State& state = *state_;
    Lock lock(state.mutex);
    TAIYEN_CHECK(position <= state.durable.next.position);
    state.needed = std::max(state.needed, position);
    state.easy_bytes = 0;
    state.pressed = false;
    const bool anybody = state.room.anybody();
    lock.unlock();
    if (anybody) state.room.notify_all();
}

GroupLog::Hold::Hold(GroupLog& log) : state_(log.state_) {
    const Lock lock(state_->mutex);
    state_->hold(*this, state_->durable);
}

GroupLog::Hold::Hold(GroupLog& log, const Uuid& ring, const Point& from) : state_(log.state_) {
    const Lock lock(state_->mutex);
    state_->hold(*this, from);
    lost_ = identity_.ring != ring || from.next.position < state_->needed;
}

GroupLog::Hold::~Hold() {
    const Lock lock(state_->mutex);
    std::erase(state_->holds, this);
    if (state_->holds.empty()) state_->forget_recent();
    state_->easy_bytes = 0;
}

void GroupLog::Hold::move_on(std::uint64_t position) {
    const Lock lock(state_->mutex);
    if (lost_) return;  // maybe by another ring, with positions of its own
    TAIYEN_CHECK(position <= state_->durable.next.position);
    position_ = std::max(position_, position);
    state_->easy_bytes = 0;
}

std::vector<std::shared_ptr<const Record>> GroupLog::Hold::recent(std::uint64_t position) const {
    const Lock lock(state_->mutex);
    std::vector<std::shared_ptr<const Record>> found;
    if (lost_) return found;
    auto at = std::ranges::find(state_->recent, position, &State::Recent::position);
    for (; at != state_->recent.end(); ++at) found.push_back(at->group);
    return found;
}

bool GroupLog::Hold::is_lost() const {
    const Lock lock(state_->mutex);
    return lost_;
}

void GroupLog::skip_to(Serial serial) {
    const Lock lock(state_->mutex);
    TAIYEN_CHECK(state_->open->records == 0 && state_->writing == nullptr && serial.value >= appended_.load(std::memory_order_relaxed));
    skipped_.store(serial.value, std::memory_order_release);
    appended_.store(serial.value, std::memory_order_release);
    state_->durable.serial = serial;
    durable_.store(serial.value, std::memory_order_release);
    if (state_->progress.anybody()) state_->progress.notify_all();
}

void GroupLog::move_to(std::unique_ptr<Ring> ring) noexcept {
    State& state = *state_;
    Lock lock(state.mutex);
    TAIYEN_CHECK(state.open->records == 0 && state.writing == nullptr && !state.gathering);
    state.ring = std::move(ring);
    state.measure();
    state.durable.next = state.ring->next();
    state.head = state.needed = state.durable.next.position;
    for (Hold* hold : state.holds) hold->lost_ = true;
    state.forget_recent();
    state.easy_bytes = 0;
    state.pressed = false;
}

void GroupLog::stop() noexcept {
    State& state = *state_;
    {
        const Lock lock(state.mutex);
        state.stopped = true;
        state.easy_bytes = 0;
    }
    state.room.notify_all();
    state.work.notify_all();
    if (state.flusher.joinable()) state.flusher.join();
}

io::File& GroupLog::file() const { return state_->ring->file(); }

const RingIdentity& GroupLog::identity() const { return state_->ring->identity(); }

}  // namespace taiyen::log
