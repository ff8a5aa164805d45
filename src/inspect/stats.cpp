#include <taiyen/inspect/stats.hpp>

#include <utility>

#include <taiyen/inspect/heap_map.hpp>

#include "heap/system_view.hpp"
#include "store/heap_access.hpp"
#include "txn/transaction_service.hpp"

namespace taiyen {

HeapStats ArchiveHeap::stats() const {
    const store::HeapFile& file = HeapAccess::file(*this);
    file.check_usable(true);
    MapOptions whole;
    whole.cells_max = 1;
    HeapMap map = map_of(*this, whole);
    const txn::Reading reading(file);
    const heap::EngineStats engine = file.engine().stats();
    const io::FileInfo info = file.files().backing().file().info();
    HeapStats stats;
    stats.capacity_bytes = engine.capacity_bytes;
    stats.extent_bytes = engine.extent_bytes;
    stats.live_bytes = engine.live_bytes;
    stats.free_bytes = engine.free_bytes;
    stats.metadata_bytes = engine.metadata_bytes;
    stats.largest_free_bytes = engine.largest_free_bytes;
    stats.live_blocks = engine.live_blocks;
    stats.dirty_bytes = map.sum.dirty_bytes;
    stats.released_bytes = map.sum.released_bytes;
    stats.page_efficiency = map.page_efficiency;
    stats.availability = std::move(map.availability);
    stats.huge_bytes = heap::system_view(file.ranges().durable, file.ranges().durable + file.image().mapped()).huge_bytes;
    file.held().settle();
    stats.held_blocks = file.held().size();
    stats.file_bytes = info.size_bytes;
    stats.allocated_bytes = info.allocated_bytes;
    stats.generation = file.files().point().generation.value;
    stats.serial = file.files().durable_serial().value;
    stats.log_capacity_bytes = file.files().log_bytes();
    stats.page_tracker = file.image().tracker().name();
    stats.read_ahead = file.image().read_ahead() == ReadAhead::random ? "random" : "normal";
    return stats;
}

}  // namespace taiyen
