#pragma once
/// Scratch memory: the volatile memory of containers outside every heap. One range for the process, made when it is first needed, never given up, never saved.
///
/// It is a volatile heap that no slot leads to, so its threads own segments, and what lies in it counts as outside every heap. Saves look for pointers to it (foreign_pointers.hpp).
/// (S1) It outlives every heap, every thread and the statics.
/// Thread rule: safe; so are forks.

#include <cstdint>
#include <utility>

#include <taiyen/base/units.hpp>
#include <taiyen/heap/scratch.hpp>

namespace taiyen::heap {

/// Whether a live scratch block starts at the address.
bool is_scratch_block_start(const void* address) noexcept;
/// The part of the range that can hold blocks now: [begin, end) as addresses; empty if none was needed yet.
std::pair<std::uintptr_t, std::uintptr_t> scratch_used() noexcept;
/// How many live; no other thread may be in scratch memory.
std::uint64_t scratch_live_blocks();
/// False: the address is none of scratch memory. A bad free within is reported.
bool deallocate_scratch(void* block) noexcept;

}  // namespace taiyen::heap
