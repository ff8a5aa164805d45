#pragma once
/// What memory checkers know of our blocks: the address sanitizer and Valgrind see one large mapping unless they are told.
///
/// The sanitizer's functions are found at run time (weak symbols), so a library built without it serves programs built with it. Valgrind's requests are a few
/// instructions without effect outside Valgrind; they are compiled in where its headers are.
/// Thread rule: safe for ranges that nobody else uses.

#include <atomic>
#include <cstddef>

#include <taiyen/base/units.hpp>

namespace taiyen::heap {

enum class MemoryTool { none, address_sanitizer, valgrind };

/// Tests of what heaps do without a checker switch this off, to run under one all the same.
extern constinit std::atomic<bool> memory_tools_wanted;

/// The checker that this process runs under.
MemoryTool running_tool() noexcept;

/// The range may be used.
void tool_open(MemoryTool tool, const void* begin, ByteCount bytes) noexcept;
/// Touching the range is an error. The sanitizer's shadow is exact where the range ends at a multiple of 8.
void tool_close(MemoryTool tool, const void* begin, ByteCount bytes) noexcept;
/// [block, block + bytes) is a block from now on, with `red_zone` bytes before and behind it that nobody may touch.
void tool_block_begins(MemoryTool tool, const void* block, ByteCount bytes, ByteCount red_zone) noexcept;
void tool_block_ends(MemoryTool tool, const void* block, ByteCount bytes, ByteCount red_zone) noexcept;
/// Whatever lies in the range, deciding by it is no error.
void tool_defined(MemoryTool tool, const void* begin, ByteCount bytes) noexcept;
/// Pointers in the range keep malloc's blocks from being leaks.
void tool_root(const void* begin, ByteCount bytes, bool is_root) noexcept;

}  // namespace taiyen::heap
