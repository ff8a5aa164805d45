#pragma once
/// Repairing a heap: what is provably safe, and a list of it.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <taiyen/base/detail/export.hpp>
#include <taiyen/base/error.hpp>
#include <taiyen/inspect/report.hpp>
#include <taiyen/store/options.hpp>
#include <taiyen/store/restoration.hpp>

namespace taiyen {

/// What repair() found, did and left.
struct RepairReport {
    Report before;
    bool opened = false;             ///< false: it could not be opened for writing (`stopped` says why), and no byte of it was changed
    Restoration restoration;         ///< what opening it did: recovery after a crash, headers, a copy built again from the other
    std::uint64_t pages_healed = 0;  ///< pages, and pages of checksum tables, restored from the other copy
    std::string stopped;             ///< what could not be repaired, the first of it; empty: nothing
    Report after;
};

/// Verifies the heap, opens it for writing (which recovers it after a crash), restores from the other copy whatever matches its checksum there, verifies it again, closes it.
/// Nothing is guessed: a byte is replaced only by one that a checksum proves to be the saved one; a page that no copy has whole stays as it is.
/// A heap in which nothing is wrong is not opened for writing. Durability: what was restored is synced on return.
/// Throws: Error{not_found | busy | permission | address_in_use | …}: nothing was looked at.
TAIYEN_EXPORT RepairReport repair(const std::filesystem::path& path, const PersistentOptions& options = {}, const Progress& progress = {});

/// What scrub() restored, and what is lost.
struct ScrubReport {
    static constexpr std::size_t listed_max = 1000;

    std::uint64_t pages_healed = 0;  ///< pages, and pages of checksum tables, restored from the other copy
    std::uint64_t pages_lost = 0;    ///< that no copy has whole, or whose checksums are lost: they are as they were
    std::vector<Finding> lost;       ///< the first ones
};

/// As `heap.heal()`, but what no copy has whole is listed instead of thrown: reads every page of every copy from the device and restores damaged and unreadable ones from the other copy.
/// Durability: restored pages are synced. Throws: Error{io_error | read_only | poisoned | …}. Complexity: reads all files.
TAIYEN_EXPORT ScrubReport scrub(ArchiveHeap& heap, const Progress& progress = {});

/// Whether an opening that fails with it has found the files themselves to be bad: damage, and not a reason to try later or elsewhere.
TAIYEN_EXPORT bool is_damage(const Error& error) noexcept;

}  // namespace taiyen
