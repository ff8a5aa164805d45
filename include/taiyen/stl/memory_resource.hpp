#pragma once
/// memory_resource: a VolatileHeap for the containers of std::pmr.
///
/// Equality: two resources are equal if they serve the same heap. The resource must live as long as the containers that use it, the heap as long as the resource.
/// Thread rule: as the heap: safe.

#include <memory_resource>

#include <taiyen/heap/volatile_heap.hpp>

namespace taiyen {

class memory_resource final : public std::pmr::memory_resource {
public:
    explicit memory_resource(VolatileHeap& heap) noexcept : heap_(&heap) {}

    VolatileHeap& heap() const noexcept { return *heap_; }

private:
    /// Throws: HeapFull, Error{invalid_argument (an alignment above 2 MiB) | closed}.
    void* do_allocate(std::size_t bytes, std::size_t alignment) override { return heap_->allocate(bytes, alignment); }
    void do_deallocate(void* block, std::size_t, std::size_t) override { heap_->deallocate(block); }
    bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
        const auto* const same = dynamic_cast<const memory_resource*>(&other);
        return same != nullptr && same->heap_ == heap_;
    }

    VolatileHeap* heap_;
};

}  // namespace taiyen
