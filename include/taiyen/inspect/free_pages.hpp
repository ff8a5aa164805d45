#pragma once
/// What the free pages of a heap take on the disk, and giving that back. No type is needed: no block moves.
///
/// A program that has saved gives free pages back when it closes the heap, in runs of 64 KiB and more: shorter ones, and what a crash kept it from giving back, stay reserved for the heap.
/// Thread rule: values.

#include <cstdint>
#include <filesystem>

#include <taiyen/base/detail/export.hpp>
#include <taiyen/base/progress.hpp>
#include <taiyen/store/options.hpp>

namespace taiyen {

/// How free pages are given back.
struct FreePagesOptions {
    bool dry_run = false;     ///< tell what there is; writes nothing at all, not even repairs after a crash
    PersistentOptions files;  ///< where companions of the heap are that don't lie beside it
    Progress progress;        ///< bytes of free pages; may be empty, must not throw
};

/// What give_back_free_pages() found and did.
struct FreePagesReport {
    bool has_history = false;             ///< its steps remember what free pages hold: all of them are kept
    std::uint64_t disk_bytes_before = 0;  ///< of the heap's file and its second copy; logs keep their size
    std::uint64_t disk_bytes_after = 0;
    std::uint64_t live_bytes = 0;
    std::uint64_t live_blocks = 0;
    std::uint64_t free_pages = 0;      ///< of 4 KiB, up to the last page in use
    std::uint64_t released_pages = 0;  ///< of these, without disk blocks already before
    std::uint64_t pages_in_use = 0;    ///< with live blocks or names
    std::uint64_t pages_needed =
        0;  ///< the same if no byte lay free between blocks: compact(), which needs a program that declares its types, can come close to that
};

/// Opens the heap for writing, which recovers it after a crash, and closes it so that each free page is a hole in its file and in the second copy. Blocks get their disk blocks again where they are
/// allocated later. A heap with a history is only recovered and closed.
/// Durability: on return the heap is closed as always; a crash leaves every block as it was saved, and maybe free pages that still have disk blocks: the next call gives them back.
/// Throws: as ArchiveHeap's constructor; Error{corrupt}: what says which pages are free is damaged, nothing was given back; Error{no_space | io_error}.
/// Complexity: reads the metadata of what is in use; asks the file system once for each run of free pages, in each file.
TAIYEN_EXPORT FreePagesReport give_back_free_pages(const std::filesystem::path& path, const FreePagesOptions& options = {});

}  // namespace taiyen
