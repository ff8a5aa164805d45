#pragma once
/// Figures about a heap.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <taiyen/base/detail/export.hpp>

namespace taiyen {

/// How much of the free space can be used for blocks of a size: those that fit, in bytes, ÷ all free bytes. 1 where nothing is free.
struct Availability {
    std::size_t bytes = 0;
    double share = 1;
};

/// How much of a heap is used for what, now.
struct HeapStats {
    std::size_t capacity_bytes = 0;
    std::size_t extent_bytes = 0;
    std::size_t live_bytes = 0;
    std::size_t free_bytes = 0;
    std::size_t released_bytes = 0;  ///< of the free ones: those that are said to have no disk blocks
    std::size_t metadata_bytes = 0;
    std::size_t largest_free_bytes = 0;
    std::uint64_t live_blocks = 0;
    double page_efficiency = 1;              ///< live bytes ÷ bytes of the pages that hold blocks
    std::vector<Availability> availability;  ///< for blocks of 64 B, 4 KiB, 64 KiB and 1 MiB
    std::size_t huge_bytes = 0;              ///< of the mapped heap: those that the system maps by huge pages
    std::size_t dirty_bytes = 0;             ///< written since the last save
    std::size_t held_blocks =
        0;  ///< that objects of this program outside the heap have taken along; those of steps that are undone since are among them
    std::size_t file_bytes = 0;          ///< st_size of the backing file
    std::size_t allocated_bytes = 0;     ///< its disk blocks
    std::uint64_t generation = 0;        ///< of the last save
    std::uint64_t serial = 0;            ///< newest transaction that the files hold
    std::size_t log_capacity_bytes = 0;  ///< of the transaction log that is attached; 0: none
    std::string page_tracker;            ///< "PAGEMAP_SCAN" or "pagemap"
    std::string read_ahead;              ///< "normal" or "random" (`ReadAhead`): how pages come in now
};

}  // namespace taiyen
