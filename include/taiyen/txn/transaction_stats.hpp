#pragma once
/// What a transactional heap has done since it was opened, and how it is.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace taiyen {

/// Figures about the transactions of an open heap, since its opening.
struct TransactionStats {
    std::uint64_t commits = 0;       ///< that changed something; undo and redo among them
    std::uint64_t rollbacks = 0;     ///< of outermost transactions
    std::uint64_t logged_bytes = 0;  ///< of the records of these commits
    std::size_t log_used_bytes = 0;  ///< of the log: what the files don't hold yet
    std::size_t log_capacity_bytes = 0;
    /// How full the log is; saves in the background begin at `snapshot_log_fill`.
    double log_fill() const noexcept {
        return log_capacity_bytes == 0 ? 0.0 : static_cast<double>(log_used_bytes) / static_cast<double>(log_capacity_bytes);
    }

    std::uint64_t relaxed_loadings = 0;  ///< `RelaxedLoading` that live
    std::uint64_t unlogged_commits =
        0;  ///< committed while loading was relaxed, and in memory only so far; `wait_durable()` of the newest waits for them

    // Saves in the background that brought the files further, by what they were made for. One that several asked for counts for the first.
    std::uint64_t saves_for_log_fill = 0;       ///< `snapshot_log_fill`
    std::uint64_t saves_for_changed_bytes = 0;  ///< `snapshot_dirty_bytes`
    std::uint64_t saves_for_interval = 0;       ///< `snapshot_interval`
    std::uint64_t saves_for_room = 0;           ///< a commit found the log full
    std::uint64_t saves_for_memory = 0;         ///< a transaction would have gone beyond `dirty_limit`
    std::uint64_t saves_asked_for = 0;          ///< snapshot() and its like
    std::uint64_t saves_in_commits = 0;         ///< not in the background: of transactions that the log has no room for
    std::uint64_t failed_saves = 0;             ///< a full disk, …

    /// Transactions that waited for a save, at their beginning or in their commit: [i] counts waits of 2^i to 2^(i+1) − 1 µs, [0] those below 2.
    std::array<std::uint64_t, 32> stalls{};

    bool last_save_failed = false;
    std::string last_error;  ///< of the newest save in the background that failed, or why the heap is poisoned; empty: none
};

}  // namespace taiyen
