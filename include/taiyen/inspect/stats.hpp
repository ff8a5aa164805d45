#pragma once
/// Figures about a heap.

#include <cstddef>
#include <cstdint>
#include <string>

#include <taiyen/base/export.hpp>

namespace taiyen {

/// How much of a heap is used for what, now.
struct HeapStats {
    std::size_t capacity_bytes = 0;
    std::size_t extent_bytes = 0;
    std::size_t live_bytes = 0;
    std::size_t free_bytes = 0;
    std::size_t metadata_bytes = 0;
    std::size_t largest_free_bytes = 0;
    std::uint64_t live_blocks = 0;
    std::size_t dirty_bytes = 0;     ///< written since the last save
    std::size_t held_blocks =
        0;  ///< of the live blocks: those that objects outside have taken along, or had in a process that died; freed when they die, or by the next process
    std::size_t file_bytes = 0;       ///< st_size of the backing file
    std::size_t allocated_bytes = 0;  ///< its disk blocks
    std::uint64_t generation = 0;     ///< of the last save
    std::string page_tracker;         ///< "PAGEMAP_SCAN" or "pagemap"
};

}  // namespace taiyen
