#pragma once
/// Where histories lie: beside the span of a heap file, saved with it, or in memory that ends with the process.

#include <memory>

#include "store/heap_file.hpp"
#include "undo/history.hpp"

namespace taiyen::undo {

/// The heap's annex. `bytes`: of a new one. Throws: HeapFull, Error.
std::unique_ptr<HistoryMemory> annex_history_memory(store::HeapFile& file, ByteCount bytes);
/// The annex for who only looks: to write there is an error. Requires: as HeapFile::view_annex. Throws: HeapFull{address_space}, Error{io_error}.
std::unique_ptr<HistoryMemory> viewed_history_memory(const store::HeapFile& file);

}  // namespace taiyen::undo
