#pragma once
/// Which containers' bytes are known by heart: libstdc++ 12's and taiyen's, as far as their sizes confirm it.

#include <cstdint>

#include <taiyen/shape/shape.hpp>

namespace taiyen::shape {

/// Of a container with empty functions and no allocator's state, in bytes; 0: not known.
constexpr std::uint64_t bare_bytes(ShapeKind kind) noexcept {
    switch (kind) {
        case ShapeKind::string: return 32;
        case ShapeKind::vector: return 24;
        case ShapeKind::bit_vector: return 40;
        case ShapeKind::deque: return 80;
        case ShapeKind::list: return 24;
        case ShapeKind::forward_list: return 8;
        case ShapeKind::map:
        case ShapeKind::multimap:
        case ShapeKind::set:
        case ShapeKind::multiset: return 48;
        case ShapeKind::unordered_map:
        case ShapeKind::unordered_multimap:
        case ShapeKind::unordered_set:
        case ShapeKind::unordered_multiset: return 56;
        case ShapeKind::btree_map:
        case ShapeKind::btree_multimap:
        case ShapeKind::btree_set:
        case ShapeKind::btree_multiset:
        case ShapeKind::ordered_map:
        case ShapeKind::ordered_multimap:
        case ShapeKind::ordered_set:
        case ShapeKind::ordered_multiset: return 40;
        case ShapeKind::flat_hash_map:
        case ShapeKind::flat_hash_set: return 32;
        default: return 0;
    }
}

/// Whether a container's words lie at its end, behind the allocator and whatever else is empty, and its elements are of a size that is known.
inline bool is_known_container(const Shape& shape, std::uint32_t number) noexcept {
    const ShapeNode& node = shape.nodes[number];
    const std::uint64_t bare = bare_bytes(node.kind);
    const bool is_bare = bare != 0 && (node.bytes == bare || node.bytes == bare + sizeof(std::uint64_t));
    if (node.kind == ShapeKind::bit_vector) return is_bare && !node.distances;
    return is_bare && node.parts.size() == 1 && shape.nodes[node.parts.front().node].bytes != 0;
}

}  // namespace taiyen::shape
