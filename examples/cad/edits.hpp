#pragma once
/// A user who never tires: editing steps that follow from a seed and the document's revision alone, so that any run can be repeated.

#include <cstdint>
#include <string>
#include <vector>

#include "document.hpp"

namespace cad {

/// What one step does, and to which drawings: one of them for all kinds but `move`.
struct Edit {
    enum class Kind { draw_line, draw_note, rename_layer, move, erase_entity, new_drawing, remove_drawing };
    Kind kind = Kind::draw_line;
    std::vector<std::string> drawings;
    std::uint64_t random = 0;  ///< decides the details
};
inline constexpr int edit_kind_count = 7;

/// The step that leads to revision + 1. The document must have a drawing.
Edit next_edit(const Document& document, std::uint64_t seed);
/// Carries it out and counts the revision. Allocates temporaries from the thread's current heap.
void apply(Document& document, const Edit& edit);

}  // namespace cad
