#include <taiyen/inspect/stats.hpp>

#include "store/heap_access.hpp"
#include "txn/transaction_service.hpp"

namespace taiyen {

HeapStats ArchiveHeap::stats() const {
    const store::HeapFile& file = HeapAccess::file(*this);
    file.check_usable(true);
    const txn::Reading reading(file);
    const heap::EngineStats engine = file.engine().stats();
    const io::FileInfo info = file.backing().file().info();
    HeapStats stats;
    stats.capacity_bytes = engine.capacity_bytes;
    stats.extent_bytes = engine.extent_bytes;
    stats.live_bytes = engine.live_bytes;
    stats.free_bytes = engine.free_bytes;
    stats.metadata_bytes = engine.metadata_bytes;
    stats.largest_free_bytes = engine.largest_free_bytes;
    stats.live_blocks = engine.live_blocks;
    stats.dirty_bytes = dirty_bytes();
    for (const heap::Root& root : file.engine().roots()) stats.held_blocks += heap::HeldBlocks::is_entry(root) ? 1 : 0;
    stats.file_bytes = info.size_bytes;
    stats.allocated_bytes = info.allocated_bytes;
    stats.generation = file.generation().value;
    stats.page_tracker = file.tracker().name();
    return stats;
}

}  // namespace taiyen
