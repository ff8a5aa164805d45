#pragma once
/// Restoring a heap from where it was replicated to: as of the newest transaction there, or of an earlier one.
///
///   taiyen::DirectoryTarget target("/backup/bank");
///   taiyen::restore(target, "bank.tyn");                                    // all that is there
///   taiyen::restore(target, "then.tyn", {.serial = taiyen::Serial{4711}});  // as of that transaction
///
/// Guide: doc/replication.md.

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <taiyen/base/detail/export.hpp>
#include <taiyen/base/progress.hpp>
#include <taiyen/base/units.hpp>
#include <taiyen/replicate/replication_target.hpp>

namespace taiyen {
/// As of when a heap is restored; of both the earlier one counts.
struct RestoreOptions {
    std::optional<Serial> serial{};                             ///< exactly as of that transaction; nothing: the newest one
    std::optional<std::chrono::system_clock::time_point> at{};  ///< nothing that was committed later, to within a frame (milliseconds)
    Progress progress{};                                        ///< frames; on the calling thread
};
/// What was restored.
struct Restored {
    Serial serial;                                     ///< newest transaction in the heap
    std::uint64_t transactions = 0;                    ///< that came on top of the base
    std::uint64_t frames = 0;                          ///< that were read
    std::chrono::system_clock::time_point written_at;  ///< when the newest frame that was used was written
};

/// Makes a closed heap at `to` out of what the target holds: same uuid, same address, a file of its own; no log, no second copy. Give it to any kind of heap to open.
/// The target is only read. Every byte is checked; the heap gets its name when it is whole and durable. What an interrupted call has left, `to`.restoring, the next one removes.
/// Memory: as opening after a crash. Complexity: reads the newest base that is old enough, and all transactions behind it.
/// Throws: Error{already_exists}: there is a file `to`; Error{not_found}: the target has no such transaction, or goes not so far back; Error{corrupt}: a frame is damaged or missing; Error{out_of_address_space}:
/// there is no room for it in this process (it needs none at the heap's address); Error{no_space | io_error | …}; what the target throws. There is nothing of that name then.
TAIYEN_EXPORT Restored restore(ReplicationTarget& target, const std::filesystem::path& to, const RestoreOptions& options = {});

/// A base in a target: the heap can be restored as of each transaction from `serial` on, up to the next gap.
struct ReplicaBase {
    std::uint64_t frame = 0;
    Serial serial;
    bool is_full = false;  ///< false: pages on top of the base before
    std::chrono::system_clock::time_point written_at;
};

/// What a target holds.
struct ReplicaInfo {
    std::string heap;         ///< its uuid
    std::string host;         ///< from which machine it was attached last
    std::uint64_t epoch = 0;  ///< grows when it is attached, and when a mark of a group comes or goes
    std::uint64_t first_frame = 0;
    std::uint64_t last_frame = 0;
    Serial newest;
    std::chrono::system_clock::time_point written_at;  ///< of the newest frame
    std::vector<ReplicaBase> bases;                    ///< newest first
    std::size_t groups_kept = 0;                       ///< so many groups have marks
    Serial kept_from;                                  ///< the oldest transaction that they need
};

/// Nothing: no frame is there. With `all_frames`, every frame is read and compared with the one before it. Throws: Error{corrupt}; what the target throws.
TAIYEN_EXPORT std::optional<ReplicaInfo> replica_info(ReplicationTarget& target, bool all_frames = false, const Progress& progress = {});

}  // namespace taiyen
