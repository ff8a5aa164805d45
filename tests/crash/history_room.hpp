#pragma once
/// The room of the undo history that lies in an open heap.

#include <memory>
#include <optional>

#include "store/heap_file.hpp"
#include "undo/history.hpp"
#include "undo/history_memory.hpp"

namespace taiyen::crash {

/// In bytes; 0: there is none.
inline ByteCount history_room(const store::HeapFile& file) {
    std::unique_ptr<undo::HistoryMemory> memory = undo::viewed_history_memory(file);
    const std::optional<undo::UndoHistory> history = undo::UndoHistory::resume(memory);
    return history ? history->capacity() : 0;
}

}  // namespace taiyen::crash
