#pragma once
/// Memory for whoever may not ask the process's heap: the dynamic loader before that heap exists, and the heap's own code, which asks while it holds its locks.
///
/// One range of address space, blocks of powers of two with a header, a spin lock. Few and short-lived blocks: lists of free runs, exceptions, the engine's indexes.
/// Works before any constructor has run. Thread rule: safe.

#include <cstddef>
#include <cstdint>

namespace taiyen::inner {

/// At a multiple of `alignment` (a power of two); null: the range is used up, or there was none to be had.
/// Zeros if that is asked for, without touching memory that never was in use.
void* allocate(std::size_t bytes, std::size_t alignment, bool zeros = false) noexcept;
/// False: no live block of this memory starts there, nothing happened. Requires: owns(block).
bool free(void* block) noexcept;
bool owns(const void* address) noexcept;
/// Bytes from the block's beginning to its end. Requires: owns(block); 0: no live block.
std::size_t usable_size(const void* block) noexcept;

/// For fork(): the child must not find the lock taken by a thread that it hasn't.
void lock() noexcept;
void unlock() noexcept;

}  // namespace taiyen::inner
