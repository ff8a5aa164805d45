#pragma once
/// Words of a class that its shape doesn't tell: a class with TAIYEN_DESCRIBE may leave members out, and bases.

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include <taiyen/base/units.hpp>
#include <taiyen/shape/shape.hpp>

namespace taiyen::shape {

/// Whether a structure has eight bytes, at a multiple of eight, that no field has a part of: something may lie there, or it is padding of more than that.
inline bool has_hidden_words(const Shape& shape, std::uint32_t number) {
    const ShapeNode& node = shape.nodes[number];
    if (node.kind != ShapeKind::structure) return false;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> told;
    for (const ShapePart& part : node.parts) told.emplace_back(part.offset, part.offset + shape.nodes[part.node].bytes);
    std::ranges::sort(told);
    told.emplace_back(node.bytes, node.bytes);
    constexpr std::uint64_t word = sizeof(std::uint64_t);
    std::uint64_t end = 0;
    for (const auto& [begin, part_end] : told) {
        if (round_up(end, word) + word <= begin) return true;
        end = std::max(end, part_end);
    }
    return false;
}

}  // namespace taiyen::shape
