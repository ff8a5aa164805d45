#pragma once
/// What differs between two heaps: a heap and an older copy of it. Named objects, blocks, bytes; free space is no content, and neither is the undo history.
///
/// Blocks are compared place by place: the same offset in both heaps. So it tells what changed between two copies of one heap; of heaps that were filled independently nearly everything differs.
/// A block counts for the named object that holds it, as taiyen/inspect/leaks.hpp says: what several objects reach counts for the first of them by name. All bytes of a live block are compared, also
/// padding and unused capacity. Checksums are not looked at: `verify` does that.
/// Thread rule: values.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <taiyen/base/detail/export.hpp>
#include <taiyen/inspect/report.hpp>
#include <taiyen/store/options.hpp>

namespace taiyen {

/// What a comparison lists, and whom it tells how far it is.
struct DiffOptions {
    std::size_t listed_max = 0;  ///< blocks that are listed one by one
    bool pages = false;          ///< list the pages that differ
    Progress progress;           ///< may be empty
};

enum class ObjectChange {
    same,
    changed,  ///< blocks that it holds differ
    added,    ///< only the second heap has the name
    removed,  ///< only the first heap has the name
    retyped   ///< it has another type, or another number of elements
};

/// A named object in both heaps, and the blocks that it holds: its own and all that can be reached from it.
struct ObjectDiff {
    std::string name;
    ObjectChange change = ObjectChange::same;
    std::string type_before;  ///< empty: not there
    std::string type_after;
    std::uint64_t blocks_added = 0;
    std::uint64_t blocks_removed = 0;
    std::uint64_t blocks_changed = 0;  ///< in both heaps, with other bytes or another size
    std::size_t bytes_added = 0;
    std::size_t bytes_removed = 0;
    std::size_t bytes_changed = 0;  ///< that differ within changed blocks; what one of them is longer counts too
};

/// A block that is in one of the heaps only, or differs.
struct BlockDiff {
    ObjectChange change = ObjectChange::changed;  ///< changed, added or removed
    std::uint64_t offset = 0;
    std::size_t bytes = 0;          ///< in the second heap; removed: in the first
    std::size_t bytes_changed = 0;  ///< added, removed: all of them
    std::string holder;             ///< the named object; empty: none
};

/// Pages in which live bytes differ: multiples of 4 KiB.
struct PageRunDiff {
    std::uint64_t offset = 0;
    std::size_t bytes = 0;
};

/// What differs between a heap and an older copy of it.
struct HeapDiff {
    bool same_heap = false;     ///< both files are of one heap (uuid)
    bool same_address = false;  ///< if not, every pointer in them differs; of position-independent heaps always
    std::uint64_t live_blocks_before = 0;
    std::uint64_t live_blocks_after = 0;
    std::size_t extent_before = 0;
    std::size_t extent_after = 0;
    std::vector<ObjectDiff> objects;  ///< of both heaps, by name; those that are the same, too
    ObjectDiff unheld;                ///< blocks that no named object holds
    ObjectDiff sum;                   ///< all of them: `change` says whether there is a difference
    std::uint64_t pages_changed = 0;
    std::vector<PageRunDiff> pages;  ///< if asked for, ascending
    std::vector<BlockDiff> blocks;   ///< the first ones, by holder and offset
    bool same() const { return sum.change == ObjectChange::same; }
};

/// Opens both for reading, one after the other: copies of a heap have the same address. After a crash the content is what an opening would bring back. Nothing is written.
/// Throws: as ArchiveHeap's constructors, for either; Error{corrupt}, std::bad_alloc. Memory: sets of block addresses, and what only a journal or log holds of the first heap.
/// Complexity: reads every live block of both.
TAIYEN_EXPORT HeapDiff diff_heaps(const std::filesystem::path& before, const std::filesystem::path& after,
                                  const PersistentOptions& options_before = {}, const PersistentOptions& options_after = {},
                                  const DiffOptions& how = {});

}  // namespace taiyen
