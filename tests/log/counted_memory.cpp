#include "counted_memory.hpp"

#include <cstddef>
#include <cstdlib>
#include <new>

constinit thread_local std::uint64_t allocations = 0;

namespace {
void* allocate(std::size_t size, std::size_t alignment) {
    ++allocations;
    void* const bytes = std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
    if (bytes == nullptr) throw std::bad_alloc();
    return bytes;
}
}  // namespace

void* operator new(std::size_t size) { return allocate(size, alignof(std::max_align_t)); }
void* operator new(std::size_t size, std::align_val_t alignment) { return allocate(size, static_cast<std::size_t>(alignment)); }
void operator delete(void* bytes) noexcept { std::free(bytes); }
void operator delete(void* bytes, std::size_t) noexcept { std::free(bytes); }
void operator delete(void* bytes, std::align_val_t) noexcept { std::free(bytes); }
void operator delete(void* bytes, std::size_t, std::align_val_t) noexcept { std::free(bytes); }
