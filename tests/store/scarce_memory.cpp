#include "scarce_memory.hpp"

#include <cstddef>
#include <cstdlib>
#include <new>

constinit thread_local ScarceMemory scarce_memory;

namespace {
void* allocate_or_fail(std::size_t size, std::size_t alignment) {
    ScarceMemory& memory = scarce_memory;
    if (memory.armed && --memory.left < 0 && (memory.sticky || memory.left == -1)) {
        ++memory.failed;
        throw std::bad_alloc();
    }
    void* const bytes = std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
    if (bytes == nullptr) throw std::bad_alloc();
    return bytes;
}
}  // namespace

void* operator new(std::size_t size) { return allocate_or_fail(size, alignof(std::max_align_t)); }
void* operator new(std::size_t size, std::align_val_t alignment) { return allocate_or_fail(size, static_cast<std::size_t>(alignment)); }
void operator delete(void* bytes) noexcept { std::free(bytes); }
void operator delete(void* bytes, std::size_t) noexcept { std::free(bytes); }
void operator delete(void* bytes, std::align_val_t) noexcept { std::free(bytes); }
void operator delete(void* bytes, std::size_t, std::align_val_t) noexcept { std::free(bytes); }
