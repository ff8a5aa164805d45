#pragma once
/// What a heap's files say about it, read without opening the heap: no mapping, no recovery, no lock, nothing written.

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include <taiyen/base/detail/export.hpp>
#include <taiyen/store/options.hpp>
#include <taiyen/store/restoration.hpp>

namespace taiyen {

/// What a file is to a heap that is replicated (Replication, Follower).
enum class ReplicaRole {
    owner,     ///< programs may change it: every heap but these
    follower,  ///< it shows what another file has replicated, until it is promoted
    deposed    ///< another file was promoted in its place; it can be read, and copied
};
/// What the headers of a heap's files say.
struct HeapParameters {
    std::uint32_t version = 0;
    HeapKind kind = HeapKind::archive;  ///< by the files that are attached
    std::string uuid;
    std::uintptr_t address = 0;
    bool position_independent = false;  ///< `address` is only where it is opened if nothing lies there
    std::size_t capacity_bytes = 0;
    std::size_t extent_bytes = 0;  ///< of the heap in use, as of the last checkpoint
    std::uint64_t generation = 0;  ///< of the last checkpoint
    std::uint64_t serial = 0;
    ReplicaRole role = ReplicaRole::owner;
    bool clean = false;               ///< closed by its last user
    std::filesystem::path data_file;  ///< where it is expected; empty if none is attached
    std::filesystem::path journal_file;
    std::filesystem::path log_file;  ///< the transaction log
    std::size_t file_bytes = 0;
    std::size_t allocated_bytes = 0;
    /// When the header was written last, by the system's clock: closed (`clean`), or brought up to date. Nothing: unknown.
    std::optional<std::chrono::system_clock::time_point> written_at;
    std::optional<Restoration> last_restoration;  ///< of the last opening that had something to do; nothing: none is known
};

/// Throws: Error{not_found | not_a_regular_file | not_a_heap | unsupported_version | foreign_byte_order | corrupt | …}.
TAIYEN_EXPORT HeapParameters read_parameters(const std::filesystem::path& path);

}  // namespace taiyen
