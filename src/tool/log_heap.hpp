#pragma once
/// What commands say of a log heap (taiyen/logheap/log_heap.hpp), which is no heap of blocks.

#include <taiyen/logheap/log_heap.hpp>

#include "tool/command.hpp"

namespace taiyen::tool {

/// Of the first file; false also if it can't be read: the command itself says why.
bool is_of_log_heap(const Given& given);
/// For reading. Throws: as LogHeap.
LogHeap open_log_heap(const Given& given);

Exit log_heap_info(const Given& given);
Exit log_heap_stats(const Given& given);
Exit log_heap_verify(const Given& given);

}  // namespace taiyen::tool
