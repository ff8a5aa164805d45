#pragma once
/// Another capacity for a heap that is there: addresses, names, uuid, type notes and undo history stay.

#include <cstddef>
#include <filesystem>

#include <taiyen/base/detail/export.hpp>
#include <taiyen/store/options.hpp>

namespace taiyen {

/// Gives the heap, of whatever kind, that nobody has open, another capacity: bytes, a multiple of 4 KiB from 256 KiB to 8 TiB; 0: the least that what is in use allows, the next power of two. Returns the one before.
/// A capacity is address space that the heap may grow into, not disk. A heap whose user crashed is recovered first. Where everything lies follows from the capacity, so it can't change once the part is in use that a capacity
/// between two powers of two cuts short; `convert` makes a heap of another one then. `files`: where companions are that don't lie beside the heap.
/// Durability: on return; a crash leaves the heap with the old capacity or the new one, whole. Complexity: constant, but for opening.
/// Throws: Error{invalid_argument}: it can't have that capacity, and why; what opening it for writing throws. Unless it is io_error, the heap is as it was.
TAIYEN_EXPORT std::size_t set_capacity(const std::filesystem::path& path, std::size_t capacity, const PersistentOptions& files = {});

}  // namespace taiyen
