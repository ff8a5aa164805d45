#pragma once
/// The one volatile heap that serves malloc and operator new of a process, made at the first request and never closed.
///
/// (M1) The heap's own code allocates, too (lists, exceptions), while it holds its locks. So each way into it past the magazines is marked by `Inside`, and whoever asks from
///      within gets inner memory. The magazines need no mark: nothing in them allocates.
/// (M2) errno is left as it was, but for failures that the interface names.
/// (M3) Nothing is thrown and nothing aborts: a request that can't be met is null with ENOMEM, a bad pointer is reported and left alone.
/// Thread rule: safe. Fork: the heap's and the inner memory's locks are taken around it.

#include <atomic>
#include <cstddef>

#include "volatile/volatile_core.hpp"

namespace taiyen::process {

/// Null until the first request has made it.
extern constinit std::atomic<heap::VolatileCore*> heap;

[[gnu::noinline]] void* allocate_slowly(std::size_t bytes, std::size_t alignment) noexcept;
[[gnu::noinline]] void free_slowly(void* block) noexcept;
/// Null with errno: the block stays as it was.
void* resize(void* block, std::size_t bytes) noexcept;
std::size_t usable_size(const void* block) noexcept;
/// A block of zeros.
void* allocate_zeros(std::size_t bytes) noexcept;
/// Gives what is free back to the system.
void trim() noexcept;

[[gnu::always_inline]] inline void* allocate(std::size_t bytes) noexcept {
    heap::ThreadBlocks* const mine = heap::thread_table.process;
    if (mine != nullptr && bytes <= heap::class_granules_max * heap::layout::granule_bytes) [[likely]]
        if (void* const block = mine->allocate_parked(bytes)) [[likely]]
            return block;
    return allocate_slowly(bytes, heap::layout::granule_bytes);
}

[[gnu::always_inline]] inline void free(void* block) noexcept {
    heap::ThreadBlocks* const mine = heap::thread_table.process;
    if (mine != nullptr && mine->park(block)) [[likely]]
        return;
    free_slowly(block);
}

}  // namespace taiyen::process
