#pragma once
/// A heap as it was before or behind a step of its history, for who only looks.

#include <cstdint>

#include "store/heap_file.hpp"

namespace taiyen::undo {

enum class StepSide { before, behind };

/// Undoes or redoes in a reader's view what lies between now and there. Requires: open for reading only. Throws: Error{not_found}: the heap's files hold no such step; Error{mismatch}: a procedure's call
/// lies between, which only its program can take back; Error{history_conflict | corrupt}. Then the view is worth nothing. Complexity: linear in the bytes of the steps between.
void view_at_step(store::HeapFile& file, std::uint64_t step, StepSide side);

}  // namespace taiyen::undo
