/// operator new and delete in all variants of C++20. A request that can't be met calls the new-handler until there is none, then throws or returns null.

#include <bit>
#include <cstddef>
#include <new>

#include "malloc/process_heap.hpp"

namespace {

namespace process = taiyen::process;

void* try_again(std::size_t bytes, std::size_t alignment) {
    for (;;) {
        const std::new_handler handler = std::get_new_handler();
        if (handler == nullptr) return nullptr;
        handler();
        if (void* const block = process::allocate_slowly(bytes, alignment)) return block;
    }
}

void* allocate(std::size_t bytes) {
    void* block = process::allocate(bytes);
    if (block == nullptr) [[unlikely]]
        block = try_again(bytes, taiyen::heap::layout::granule_bytes);
    if (block == nullptr) [[unlikely]]
        throw std::bad_alloc();
    return block;
}

void* allocate(std::size_t bytes, std::align_val_t alignment) {
    const auto wanted = static_cast<std::size_t>(alignment);
    void* block = process::allocate_slowly(bytes, wanted);
    if (block == nullptr) block = try_again(bytes, wanted);
    if (block == nullptr) throw std::bad_alloc();
    return block;
}

template <class... A>
void* or_null(A... arguments) noexcept {
    try {
        return allocate(arguments...);
    } catch (...) {
        return nullptr;
    }
}

}  // namespace

#define TAIYEN_OPERATOR [[gnu::visibility("default")]]

TAIYEN_OPERATOR void* operator new(std::size_t bytes) { return allocate(bytes); }
TAIYEN_OPERATOR void* operator new[](std::size_t bytes) { return allocate(bytes); }
TAIYEN_OPERATOR void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return or_null(bytes); }
TAIYEN_OPERATOR void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept { return or_null(bytes); }
TAIYEN_OPERATOR void* operator new(std::size_t bytes, std::align_val_t alignment) { return allocate(bytes, alignment); }
TAIYEN_OPERATOR void* operator new[](std::size_t bytes, std::align_val_t alignment) { return allocate(bytes, alignment); }
TAIYEN_OPERATOR void* operator new(std::size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
    return or_null(bytes, alignment);
}
TAIYEN_OPERATOR void* operator new[](std::size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
    return or_null(bytes, alignment);
}

TAIYEN_OPERATOR void operator delete(void* block) noexcept { process::free(block); }
TAIYEN_OPERATOR void operator delete[](void* block) noexcept { process::free(block); }
TAIYEN_OPERATOR void operator delete(void* block, std::size_t) noexcept { process::free(block); }
TAIYEN_OPERATOR void operator delete[](void* block, std::size_t) noexcept { process::free(block); }
TAIYEN_OPERATOR void operator delete(void* block, const std::nothrow_t&) noexcept { process::free(block); }
TAIYEN_OPERATOR void operator delete[](void* block, const std::nothrow_t&) noexcept { process::free(block); }
TAIYEN_OPERATOR void operator delete(void* block, std::align_val_t) noexcept { process::free(block); }
TAIYEN_OPERATOR void operator delete[](void* block, std::align_val_t) noexcept { process::free(block); }
TAIYEN_OPERATOR void operator delete(void* block, std::size_t, std::align_val_t) noexcept { process::free(block); }
TAIYEN_OPERATOR void operator delete[](void* block, std::size_t, std::align_val_t) noexcept { process::free(block); }
TAIYEN_OPERATOR void operator delete(void* block, std::align_val_t, const std::nothrow_t&) noexcept { process::free(block); }
TAIYEN_OPERATOR void operator delete[](void* block, std::align_val_t, const std::nothrow_t&) noexcept { process::free(block); }
