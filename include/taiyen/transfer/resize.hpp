#pragma once
/// Another capacity for a heap that is there: addresses, names, uuid, type notes and undo history stay.

#include <cstddef>
#include <filesystem>

#include <taiyen/base/detail/export.hpp>
#include <taiyen/store/options.hpp>

namespace taiyen {

/// Gives the heap, of whatever kind, that nobody has open, another capacity: bytes, a multiple of 4 KiB from 256 KiB to 8 TiB; 0: the least one that is possible. Returns the one before.
/// A capacity is address space that the heap may grow into, not disk. A heap whose user crashed is recovered first. `files`: where companions are that don't lie beside the heap.
/// Possible is each capacity, also between two powers of two, from the power of two on that ends the part in use. Where everything lies follows from the capacity, so there is no other one once a heap whose capacity is
/// no power of two has grown beyond the last power of two below it: `convert` makes a heap of another one then. doc/moving.md has a table.
/// Durability: on return; a crash leaves the heap with the old capacity or the new one, whole. Complexity: constant, but for opening.
/// Throws: Error{invalid_argument}: it can't have that capacity, and why; what opening it for writing throws. Unless it is io_error, the heap is as it was.
TAIYEN_EXPORT std::size_t set_capacity(const std::filesystem::path& path, std::size_t capacity, const PersistentOptions& files = {});

}  // namespace taiyen
