#pragma once
/// Snapshots: brings the files of a transactional heap up to date, from the log, on a thread of its own, while transactions and readers go on.
///
/// (S1) One save at a time, and each one's serial is newer than that of the one before it.
/// (S2) A save that fails without poisoning the heap (a full disk) is tried again when somebody asks, or needs room; whoever waits for it gets the error; if nobody does, the first of
///      successive failures is reported.
/// (S3) Private copies of pages that the files hold too are given back when they take more than half of what they may (`dirty_limit`): after a save, under the writer lock, in pieces of
///      `trim_time`, those that are byte for byte what the backing file holds and that capture doesn't keep open. From then on the program sees that file's pages, so no save may bring an older state of them into it:
///      a save's point is never older than what was committed when it began, and so never older than what was given back.
/// (S4) The pages that were changed since the newest save began take about half of `dirty_limit` at most: then transactions wait before they begin, until a save has ended and (S3) has run. So
///      private copies take about `dirty_limit`, whatever is changed, and how fast. A save that fails stops nobody: then the log's room is the bound; but for what is loaded relaxed there is none, so
///      it is tried again before each transaction that would go beyond, which is refused if it fails again.
/// Thread rule: safe. Lock order: the writer lock, then `saving_`, then `mutex_`; the thread takes the writer lock while it holds neither.

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <thread>

#include <taiyen/base/units.hpp>
#include <taiyen/store/options.hpp>
#include <taiyen/txn/transaction_stats.hpp>

#include "txn/biased_lock.hpp"

namespace taiyen::txn {

class TransactionService;

/// What a save is made for.
enum class SaveReason { log_fill, changed_bytes, interval, log_full, memory, asked };

class Snapshots {
public:
    /// So long at most the writer lock is held at once to give pages back.
    static constexpr std::chrono::microseconds trim_time{100};

    Snapshots(TransactionService& service, const PersistentOptions& options);
    ~Snapshots();
    Snapshots(const Snapshots&) = delete;
    Snapshots& operator=(const Snapshots&) = delete;

    void start();
    /// Ends the thread; a save that runs is finished.
    void stop() noexcept;
    /// It is time for a save; returns at once.
    void ask(SaveReason reason) noexcept;
    /// What was committed and nobody waits for gets into the log; returns at once.
    void write_log() noexcept;
    /// For who wants to begin a transaction when (S4) forbids it: returns when that may be. Throws what a save threw, if what was loaded relaxed can't be saved.
    void wait_for_memory();
    /// Returns when the files hold everything up to `serial`, which is committed. Throws what the save threw.
    void wait_for(Serial serial);
    /// Appends to the log, after a save if that is what makes the room. The caller holds the writer lock. Throws what the save threw, and what the log throws;
    /// false: the thread can't save without the writer lock, and nothing was appended.
    bool append(Serial serial, std::span<const std::span<const std::byte>> pieces);
    /// A save by the calling thread, which holds the writer lock: the span is as of `serial`, and everything in the log comes before.
    void save_here(Serial serial, ByteCount extent);
    /// A save of everything committed. The caller holds the writer lock.
    void save_all();
    /// Saves, stalls, the last error.
    void add_to(TransactionStats& stats) const;
    /// Excludes saves while it is held.
    std::unique_lock<std::mutex> exclude() { return std::unique_lock(saving_); }
    /// Private copies of newer transactions are gone. Requires: the writer lock, and that saves are excluded.
    void nothing_given_back_beyond(Serial serial) noexcept { newest_given_back_ = std::min(newest_given_back_, serial); }

private:
    void run() noexcept;
    /// One save of what is durable. False: that takes the writer lock, which the caller doesn't have (`locked`).
    bool save(bool locked);
    /// For the thread. Who holds that lock and waits for room in the log hears of it, and saves itself.
    std::unique_lock<BiasedLock> lock_writers();
    void save_under_writer_lock();
    void trim() noexcept;
    bool must_end_trim(ByteCount left);
    void tell(const std::exception_ptr& failure) noexcept;
    /// Waits for a round that begins after this call. False (SaveReason::log_full only, whose caller holds that lock): the round waits for the writer lock. Throws what the round threw.
    bool wait_for_round(SaveReason reason);
    /// The first to ask for a round says why, or a commit that finds the log full. Requires: `mutex_`.
    void ask_for_round(SaveReason reason) noexcept;
    class Stall;

    TransactionService& service_;
    const std::chrono::milliseconds interval_;
    std::mutex saving_;
    Serial newest_given_back_;    ///< what was committed when pages were given back last
    ByteCount left_by_trim_ = 0;  ///< private copies that the last trim found changed

    mutable std::mutex mutex_;
    std::condition_variable wake_;      ///< the thread
    std::condition_variable finished_;  ///< who waits for a save
    bool asked_ = false;
    bool log_asked_ = false;
    bool stopping_ = false;
    bool wants_writer_lock_ = false;
    unsigned waiting_ = 0;           ///< threads in wait_for_round
    unsigned waiting_for_room_ = 0;  ///< those of them that hold the writer lock
    std::uint64_t rounds_begun_ = 0;
    std::uint64_t rounds_ended_ = 0;
    std::uint64_t rounds_settled_ = 0;  ///< what they saved was given back, too
    std::exception_ptr failure_;        ///< of the last round
    std::exception_ptr last_failure_;   ///< of the last one that failed
    SaveReason reason_{};               ///< why a round was asked for
    std::array<std::uint64_t, 6> saves_{};
    std::uint64_t failed_saves_ = 0;
    std::array<std::atomic<std::uint64_t>, 32> stalls_{};
    std::unique_ptr<std::thread> thread_;
};

}  // namespace taiyen::txn
