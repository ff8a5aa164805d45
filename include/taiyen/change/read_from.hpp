#pragma once
/// `read_from(heap, descriptor, target, bytes)`: read(2) into a heap.
///
/// While writes of a heap are captured through page protection its pages are read-only, and the system doesn't fault when it writes into them on a program's behalf: read(2) fails with EFAULT
/// or stops short at the first such page, fread(3) gives nothing. The same holds for every system call with an output pointer.
/// Thread rule: as the heap.

#include <cstddef>

#include <taiyen/base/detail/export.hpp>
#include <taiyen/heap/detail/access.hpp>

namespace taiyen {

/// Reads from a file descriptor into heap memory until `bytes` bytes are there or the input ends, and returns how many there are. Interrupted calls go on.
/// Throws: Error{invalid_argument} (the range is not in the heap), Error{io_error} (read(2) failed; what was read so far is in place), and why the heap can't be changed now.
TAIYEN_EXPORT std::size_t read_from(heap::HeapCore& heap, int descriptor, void* target, std::size_t bytes);

/// The same for a heap object.
template <class Heap>
    requires requires(Heap& heap) { *heap.core(); }
std::size_t read_from(Heap& heap, int descriptor, void* target, std::size_t bytes) {
    heap::HeapCore* const core = heap.core();
    if (core == nullptr) heap::throw_closed();
    return read_from(*core, descriptor, target, bytes);
}

}  // namespace taiyen
