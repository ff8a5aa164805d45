#include <taiyen/inspect/objects.hpp>

#include <algorithm>
#include <map>
#include <span>

#include <taiyen/base/error.hpp>

#include "inspect/objects_of.hpp"
#include "inspect/type_text.hpp"
#include "inspect/volatile_access.hpp"
#include "store/heap_access.hpp"
#include "txn/transaction_service.hpp"

namespace taiyen {

namespace {

std::shared_ptr<const Shape> shape_of(const heap::Engine& engine, const std::string& fingerprint) {
    const std::optional<std::string> stored = engine.shape_of(fingerprint);
    if (!stored) return nullptr;
    try {
        return std::make_shared<const Shape>(Shape::decode(std::as_bytes(std::span(*stored))));
    } catch (const Error&) {
        return nullptr;
    }
}

}  // namespace

std::vector<StoredObject> inspect::objects_of(const heap::Engine& engine) {
    std::vector<StoredObject> objects;
    std::map<std::string, std::shared_ptr<const Shape>> shapes;
    for (heap::Root& root : engine.roots()) {
        const auto [found, is_new] = shapes.try_emplace(root.fingerprint);
        if (is_new) found->second = shape_of(engine, root.fingerprint);
        std::shared_ptr<const Shape> shape = found->second;
        if (shape != nullptr && shape->nodes.front().bytes != root.bytes) shape = nullptr;
        objects.push_back({std::move(root.name), inspect::type_text(root.fingerprint), root.fingerprint, root.object.value, root.bytes, root.count,
                           std::move(shape)});
    }
    std::sort(objects.begin(), objects.end(), [](const StoredObject& a, const StoredObject& b) { return a.name < b.name; });
    return objects;
}

std::vector<StoredObject> stored_objects(const ArchiveHeap& heap) {
    const store::HeapFile& file = HeapAccess::file(heap);
    file.check_usable(true);
    const txn::Reading reading(file);
    return inspect::objects_of(file.engine());
}

std::vector<StoredObject> stored_objects(const VolatileHeap& heap) {
    const heap::HeapCore& core = inspect::volatile_core(heap);
    const auto lock = core.lock_engine();
    return inspect::objects_of(core.engine());
}

}  // namespace taiyen
