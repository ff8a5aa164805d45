#include <taiyen/inspect/objects.hpp>

#include <algorithm>

#include "inspect/type_text.hpp"
#include "inspect/volatile_access.hpp"
#include "store/heap_access.hpp"
#include "txn/transaction_service.hpp"

namespace taiyen {

namespace {

std::vector<StoredObject> by_name(const heap::Engine& engine) {
    std::vector<StoredObject> objects;
    for (heap::Root& root : engine.roots())
        objects.push_back({std::move(root.name), inspect::type_text(root.fingerprint), root.fingerprint, root.object.value, root.bytes, root.count});
    std::sort(objects.begin(), objects.end(), [](const StoredObject& a, const StoredObject& b) { return a.name < b.name; });
    return objects;
}

}  // namespace

std::vector<StoredObject> stored_objects(const ArchiveHeap& heap) {
    const store::HeapFile& file = HeapAccess::file(heap);
    file.check_usable(true);
    const txn::Reading reading(file);
    return by_name(file.engine());
}

std::vector<StoredObject> stored_objects(const VolatileHeap& heap) {
    const heap::HeapCore& core = inspect::volatile_core(heap);
    const auto lock = core.lock_engine();
    return by_name(core.engine());
}

}  // namespace taiyen
