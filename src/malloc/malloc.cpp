/// The C functions of libtaiyen-malloc.so, as their manual pages tell. None of them throws or aborts.

#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "malloc/process_heap.hpp"

#define TAIYEN_MALLOC_FUNCTION extern "C" [[gnu::visibility("default")]]

namespace {

namespace process = taiyen::process;

constexpr std::size_t page = 4096;

void* aligned(std::size_t alignment, std::size_t bytes) noexcept {
    return alignment <= taiyen::heap::layout::granule_bytes ? process::allocate(bytes) : process::allocate_slowly(bytes, alignment);
}

void* refuse(int error) noexcept {
    errno = error;
    return nullptr;
}

}  // namespace

TAIYEN_MALLOC_FUNCTION void* malloc(std::size_t bytes) noexcept { return process::allocate(bytes); }

TAIYEN_MALLOC_FUNCTION void free(void* block) noexcept { process::free(block); }

TAIYEN_MALLOC_FUNCTION void* calloc(std::size_t count, std::size_t size) noexcept {
    std::size_t bytes = 0;
    if (__builtin_mul_overflow(count, size, &bytes)) return refuse(ENOMEM);
    return process::allocate_zeros(bytes);
}

TAIYEN_MALLOC_FUNCTION void* realloc(void* block, std::size_t bytes) noexcept {
    if (block == nullptr) return process::allocate(bytes);
    if (bytes == 0) {
        process::free(block);
        return nullptr;
    }
    return process::resize(block, bytes);
}

TAIYEN_MALLOC_FUNCTION void* reallocarray(void* block, std::size_t count, std::size_t size) noexcept {
    std::size_t bytes = 0;
    return __builtin_mul_overflow(count, size, &bytes) ? refuse(ENOMEM) : realloc(block, bytes);
}

TAIYEN_MALLOC_FUNCTION int posix_memalign(void** result, std::size_t alignment, std::size_t bytes) noexcept {
    if (!std::has_single_bit(alignment) || alignment % sizeof(void*) != 0) return EINVAL;
    const int before = errno;
    void* const block = aligned(alignment, bytes);
    errno = before;
    if (block == nullptr) return ENOMEM;
    *result = block;
    return 0;
}

TAIYEN_MALLOC_FUNCTION void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept {
    return std::has_single_bit(alignment) ? aligned(alignment, bytes) : refuse(EINVAL);
}

TAIYEN_MALLOC_FUNCTION void* memalign(std::size_t alignment, std::size_t bytes) noexcept { return aligned_alloc(alignment, bytes); }

TAIYEN_MALLOC_FUNCTION void* valloc(std::size_t bytes) noexcept { return aligned(page, bytes); }

TAIYEN_MALLOC_FUNCTION void* pvalloc(std::size_t bytes) noexcept {
    if (bytes > SIZE_MAX - page) return refuse(ENOMEM);
    return aligned(page, (bytes + page - 1) / page * page);
}

TAIYEN_MALLOC_FUNCTION std::size_t malloc_usable_size(void* block) noexcept { return process::usable_size(block); }

TAIYEN_MALLOC_FUNCTION int malloc_trim(std::size_t) noexcept {
    process::trim();
    return 1;
}
