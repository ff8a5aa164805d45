#include <taiyen/inspect/walk.hpp>

#include <algorithm>

#include <taiyen/heap/volatile_heap.hpp>

#include "inspect/type_text.hpp"
#include "inspect/volatile_access.hpp"
#include "store/heap_access.hpp"
#include "txn/transaction_service.hpp"
#include "volatile/volatile_core.hpp"

namespace taiyen {

void for_each_block(const ArchiveHeap& heap, const BlockVisitor& visit) {
    const store::HeapFile& file = HeapAccess::file(heap);
    file.check_usable(true);
    const txn::Reading reading(file);
    file.image().will_read_metadata();
    auto* const base = reinterpret_cast<std::byte*>(file.ranges().durable);
    file.engine().for_each_block([&](const heap::Block& block) {
        return visit({base + block.offset.value, block.offset.value, block.usable_bytes, block.content == heap::Content::pointer_free});
    });
}

void for_each_block(const VolatileHeap& heap, const BlockVisitor& visit) {
    const heap::VolatileCore& core = inspect::volatile_core(heap);
    auto* const base = reinterpret_cast<std::byte*>(core.ranges().durable);
    for (const heap::Block& block : core.blocks())
        if (!visit({base + block.offset.value, block.offset.value, block.usable_bytes, false})) return;
}

void for_each_name(const ArchiveHeap& heap, const NameVisitor& visit) {
    for (const StoredObject& object : stored_objects(heap))
        if (!visit(object)) return;
}

void for_each_name(const VolatileHeap& heap, const NameVisitor& visit) {
    for (const StoredObject& object : stored_objects(heap))
        if (!visit(object)) return;
}

}  // namespace taiyen
