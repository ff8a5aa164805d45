#pragma once
/// What a view shows, as text.

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>

#include <taiyen/base/detail/export.hpp>
#include <taiyen/inspect/view.hpp>

namespace taiyen {

/// How much of a value is written.
struct ViewTextOptions {
    /// How many values lie within each other before `…` stands for what is deeper.
    unsigned depth = 64;
    /// How many elements of a container are written before the number of the others is.
    std::uint64_t elements = ~std::uint64_t{0};
    /// How many bytes of a text are written before `…` stands for the others.
    std::uint64_t text_bytes = ~std::uint64_t{0};
    /// Of each level; none: all in one line.
    unsigned indent = 0;
};

/// As JSON (RFC 8259): numbers, booleans and texts as such; structures, and maps whose keys are texts or numbers, as objects; pairs, tuples and all other containers as arrays, other maps as arrays of pairs; an optional or a
/// variant as what it holds, or null. A number that JSON hasn't got is a text ("nan", "inf"). A pointer is null, {"at": offset in the heap} or {"outside": what is stored}; what is opaque is {"opaque": its type}; what the options leave out is {"more": how many
/// elements} or "…". Bytes of a text that are no UTF-8 become U+FFFD. Written as it is read: the first byte comes at once, and memory doesn't grow with the value.
/// Throws: Error{corrupt}: what was written until then stays.
TAIYEN_EXPORT void write_json(std::ostream& to, const ViewValue& value, const ViewTextOptions& options = {});

/// For people: a line for the value, named by the label, and below it one for each value within it, indented by two: fields by name, elements by key or number, so that labels put together are a path (`ViewValue::at`; of
/// several equal keys it leads to the first). Nothing is written that a terminal obeys, whatever the heap holds.
/// Throws: as `write_json`.
TAIYEN_EXPORT void write_tree(std::ostream& to, std::string_view label, const ViewValue& value, const ViewTextOptions& options = {.indent = 2});

}  // namespace taiyen
