#pragma once
/// Snapshots: brings the files of a transactional heap up to date, from the log, on a thread of its own, while transactions and readers go on.
///
/// (S1) One save at a time, and each one's serial is newer than that of the one before it.
/// (S2) A save that fails without poisoning the heap (a full disk) is tried again when somebody asks, or needs room; whoever waits for it gets the error.
/// Thread rule: safe. Lock order: the writer lock, then `saving_`, then `mutex_`; the thread takes the writer lock while it holds neither.

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

namespace taiyen::txn {

class TransactionService;

class Snapshots {
public:
    Snapshots(TransactionService& service, const PersistentOptions& options);
    ~Snapshots();
    Snapshots(const Snapshots&) = delete;
    Snapshots& operator=(const Snapshots&) = delete;

    void start();
    /// Ends the thread; a save that runs is finished.
    void stop() noexcept;
    /// It is time for a save; returns at once.
    void ask() noexcept;
    /// What was committed and nobody waits for gets into the log; returns at once.
    void write_log() noexcept;
    /// Returns when the files hold everything up to `serial`, which is committed. Throws what the save threw.
    void wait_for(Serial serial);
    /// Appends to the log, after a save if that is what makes the room. The caller holds the writer lock. Throws what the save threw, and what the log throws;
    /// false: the thread can't save without the writer lock, and nothing was appended.
    bool append(Serial serial, std::span<const std::span<const std::byte>> pieces);
    /// A save by the calling thread, which holds the writer lock: the span is as of `serial`, and everything in the log comes before.
    void save_here(Serial serial, ByteCount extent);
    /// A save of everything committed. The caller holds the writer lock.
    void save_all();
    /// Excludes saves while it is held.
    std::unique_lock<std::mutex> exclude() { return std::unique_lock(saving_); }

private:
    void run() noexcept;
    /// One save of what is durable. False: that takes the writer lock, which the caller doesn't have (`locked`).
    bool save(bool locked);
    void save_under_writer_lock();
    /// Waits for a round that begins after this call. False (`under_writer_lock` only): the round waits for the writer lock. Throws what the round threw.
    bool wait_for_round(bool under_writer_lock);

    TransactionService& service_;
    const std::chrono::milliseconds interval_;
    std::mutex saving_;

    std::mutex mutex_;
    std::condition_variable wake_;      ///< the thread
    std::condition_variable finished_;  ///< who waits for a save
    bool asked_ = false;
    bool log_asked_ = false;
    bool stopping_ = false;
    bool wants_writer_lock_ = false;
    std::uint64_t rounds_begun_ = 0;
    std::uint64_t rounds_ended_ = 0;
    std::exception_ptr failure_;  ///< of the last round
    std::unique_ptr<std::thread> thread_;
};

}  // namespace taiyen::txn
