#pragma once
/// Scratch memory: where containers outside every heap keep their elements. It is the process's own, volatile, and goes with the process.
///
/// A program needs none of this: `taiyen::string key("…");` on a stack, in a global or in malloc's memory just works, in any thread, and in forked children.
/// Thread rule: safe.

#include <cstddef>

#include <taiyen/base/detail/export.hpp>
#include <taiyen/heap/volatile_heap.hpp>

namespace taiyen {

/// Figures about the process's scratch memory; zeros as long as none was needed. Complexity: linear in what was ever in use.
TAIYEN_EXPORT VolatileStats scratch_stats();

namespace heap {

/// Throws: HeapFull: the system has no more memory or addresses, or the range is used up (twice the machine's memory); Error{invalid_argument}.
TAIYEN_EXPORT void* allocate_scratch(std::size_t bytes, std::size_t alignment);
/// Whether the address lies in the process's scratch memory.
TAIYEN_EXPORT bool in_scratch(const void* address) noexcept;

}  // namespace heap
}  // namespace taiyen
