#pragma once
/// What lies directly in a value: one step of every walk over values.

#include "inspect/view_memory.hpp"

namespace taiyen::inspect {

/// Whether it is a container, whatever is known of its elements.
inline bool is_container(ShapeKind kind) { return kind >= ShapeKind::string; }
/// Whether nobody knows what lies in it: opaque, or a container whose elements can't be told.
inline bool is_closed(const ViewValue& value) { return value.kind() == ShapeKind::opaque || (is_container(value.kind()) && !value.has_elements()); }

/// Calls `take` with each part, with each element, and with what an optional or a variant holds. Not what pointers lead to, and no characters and bits of texts and `vector<bool>`s. Throws: Error{corrupt}.
template <class Take>
void for_each_inner(const ViewValue& value, Take&& take) {
    const ShapeKind kind = value.kind();
    if (kind == ShapeKind::optional || kind == ShapeKind::variant) {
        if (const auto held = value.target()) take(*held);
    } else if (!is_container(kind)) {
        for (std::size_t i = 0; i != value.parts(); ++i) take(value.part(i));
    } else if (kind != ShapeKind::bit_vector && value.has_elements() && !(kind == ShapeKind::string && value.is_text())) {
        for (const ViewValue& element : value.elements()) take(element);
    }
}

}  // namespace taiyen::inspect
