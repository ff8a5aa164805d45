#pragma once
/// Bringing a heap's files up to date, and copying them: what a program does that opens the heap and saves.
///
/// A copy is a heap of its own, in one file, without second copy, journal and log. It has the uuid and the address of the heap, as cp(1) would give it: a process opens one of them at a time.
/// Thread rule: values.

#include <cstddef>
#include <cstdint>
#include <filesystem>

#include <taiyen/base/detail/export.hpp>
#include <taiyen/inspect/report.hpp>
#include <taiyen/store/options.hpp>
#include <taiyen/store/restoration.hpp>

namespace taiyen {

/// What bring_up_to_date() found and left.
struct UpToDateReport {
    Restoration restoration;       ///< what opening it did
    std::uint64_t generation = 0;  ///< of the save that the files hold now
    std::size_t extent_bytes = 0;
};

/// Opens the heap for writing, which replays journal or log and heals what it meets; writes the copy, if one is asked for; closes. Afterwards an opening has nothing to replay.
/// Durability: all of it on return; a crash within leaves the copy whole, or none.
/// Throws: as ArchiveHeap's constructor (missing_procedure: the log calls a procedure of the heap's own program, which has to open it); write_copy.
TAIYEN_EXPORT UpToDateReport bring_up_to_date(const std::filesystem::path& path, const PersistentOptions& options = {},
                                              const std::filesystem::path& copy = {}, const Progress& progress = {});

/// Copies the newest save of a heap that is open for writing; the program goes on with it afterwards. What was not saved is not in the copy: call snapshot() first, also on a TransactionalHeap.
/// Every page is proven by its checksum, and a damaged one comes from the second copy. Durability: the copy and its name are durable on return; a crash before leaves all of it or nothing.
/// Thread rule: as snapshot(). Throws: Error{already_exists (nothing is overwritten) | not_found (its directory) | permission | no_space | corrupt (a page that no copy has whole) | read_only | …}:
/// there is no copy then. Complexity: reads and writes what the heap has in use.
TAIYEN_EXPORT void write_copy(const ArchiveHeap& heap, const std::filesystem::path& to, const Progress& progress = {});

/// As ArchiveHeap::attach_data_file. `progress`: bytes done, and of how many; saves wait for it, so it calls nothing of the heap, and must not throw.
TAIYEN_EXPORT void attach_data_file(ArchiveHeap& heap, const std::filesystem::path& path, const Progress& progress);

}  // namespace taiyen
