#pragma once
/// Shape: what a stored type is made of, as a value: kinds, fields with names and offsets, elements of containers. A heap keeps the shape of each type that has a name in it.
///
/// (I1) Node 0 is the type itself. Parts are indices, so that types that lead back to themselves are finite; a node never lies within itself.
/// (I2) What lies in place (fields, elements of arrays, alternatives) ends within the node that holds it.
/// Both hold for every decoded shape, whatever the bytes were. Encoding: src/shape/FORMAT.md. Thread rule: values.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <taiyen/base/detail/export.hpp>
#include <taiyen/shape/shape_kind.hpp>

namespace taiyen {

/// What a node consists of, or leads to.
struct ShapePart {
    std::string name;          ///< of a field; empty for all else
    std::uint64_t offset = 0;  ///< bytes from the beginning of what holds it; 0 for what doesn't lie in place
    std::uint32_t node = 0;    ///< index into Shape::nodes

    bool operator==(const ShapePart&) const = default;
};

/// One type within a shape.
struct ShapeNode {
    ShapeKind kind = ShapeKind::opaque;
    bool distances = false;     ///< of pointers, and of containers: links say how far away they lead, not where to
    bool keeps_hashes = false;  ///< of unordered containers: nodes hold the hashes of their keys
    std::uint64_t bytes = 0;    ///< 0: not known where the type was used
    std::uint32_t alignment = 1;
    std::uint64_t count = 0;  ///< of an array; of a B-tree, how its leaves hold elements (src/shape/FORMAT.md)
    std::string name;  ///< mangled, as GCC and Clang write it; of structures, enumerations, other containers and what is opaque, cut to 255 bytes
    std::vector<ShapePart> parts;

    bool operator==(const ShapeNode&) const = default;
};

/// A type that is stored in a heap, and the types that it consists of.
struct Shape {
    std::vector<ShapeNode> nodes;

    /// The node's type as a person writes it: "map<string, Part>". Requires: `node` is an index. Complexity: linear in the text, of at most a few KiB.
    TAIYEN_EXPORT std::string type(std::uint32_t node = 0) const;
    /// The type, and below it each structure that it consists of or leads to, a line for each field: offset in bytes, name, type. Complexity: linear in the text.
    TAIYEN_EXPORT std::string text() const;
    /// Throws: Error{corrupt | unsupported_version}. Bytes that no library wrote are refused, never followed. Complexity: linear.
    TAIYEN_EXPORT static Shape decode(std::span<const std::byte> bytes);

    bool operator==(const Shape&) const = default;
};

/// One thing by which two shapes of a type differ.
struct ShapeChange {
    std::string text;         ///< "shop::Part.weight was float, is double"
    bool is_certain = false;  ///< the same bytes mean something else; false: one of the shapes may only say less, or name something otherwise
};

/// What became of a type, field by field: those that are gone, new, of another type or in another place. Below pointers and in elements, too. Empty: both tell the same, but for names of fields that are new in one place.
/// What is opaque in one of them is compared by its size only. Complexity: linear in the shapes, as a rule; a hundred changes at most.
TAIYEN_EXPORT std::vector<ShapeChange> changes(const Shape& before, const Shape& after);

}  // namespace taiyen
