#include <utility>

#include <taiyen/base/error.hpp>
#include <taiyen/stl/durable_allocator.hpp>

namespace taiyen {

namespace {

thread_local constinit DurableScope* innermost = nullptr;

}  // namespace

DurableScope::DurableScope(heap::HeapCore* core) : core_(core), slot_(core == nullptr ? 0 : heap::slot_of(*core)), before_(innermost) {
    if (core == nullptr) heap::throw_closed();
    innermost = this;
}

DurableScope::~DurableScope() { innermost = before_; }

heap::HeapCore& DurableScope::current() {
    if (innermost == nullptr)
        throw Error(errc::invalid_argument,
                    "a durable_allocator was asked for memory and no heap is named; open a DurableScope on this thread first");
    if (heap::core_of_slot(innermost->slot_) != innermost->core_) heap::throw_closed();
    return *innermost->core_;
}

}  // namespace taiyen
