#include <taiyen/inspect/objects.hpp>

#include <algorithm>

#include "inspect/type_text.hpp"
#include "store/heap_access.hpp"
#include "txn/transaction_service.hpp"

namespace taiyen {

std::vector<StoredObject> stored_objects(const ArchiveHeap& heap) {
    const store::HeapFile& file = HeapAccess::file(heap);
    file.check_usable(true);
    const txn::Reading reading(file);
    std::vector<StoredObject> objects;
    for (heap::Root& root : file.engine().roots()) {
        objects.push_back({std::move(root.name), inspect::type_text(root.fingerprint), root.fingerprint, root.object.value, root.bytes, root.count});
    }
    std::sort(objects.begin(), objects.end(), [](const StoredObject& a, const StoredObject& b) { return a.name < b.name; });
    return objects;
}

}  // namespace taiyen
