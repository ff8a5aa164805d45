#pragma once
/// A grid over the plane: which entities may touch a box.
///
/// (G1) every number that was inserted with a box is listed in each cell that the box touches, or in `large` if those would be more than `cells_max`.
/// Thread rule: as any container.

#include <cstdint>
#include <vector>

#include <taiyen/taiyen.hpp>

#include "geometry.hpp"

namespace cad {

struct SpatialIndex {
    using Number = std::uint32_t;
    /// Two cell coordinates in one word.
    using Cell = std::uint64_t;

    double cell_size = 1;
    taiyen::unordered_map<Cell, taiyen::vector<Number>> cells;
    taiyen::vector<Number> large;

    /// Forgets everything; cells become `size` wide.
    void reset(double size);
    void insert(Number number, const Box& box);
    /// Forgets a number; `box` is the one it was inserted with.
    void remove(Number number, const Box& box);
    /// Lowers all numbers above `gone`, which is not listed any more, by one. Complexity: linear in the index.
    void close_gap(Number gone);
    /// A superset of the numbers whose boxes meet `window`: ascending, each once.
    std::vector<Number> candidates(const Box& window) const;

    static constexpr std::int64_t cells_max = 64;
};

}  // namespace cad
