#include "spatial_index.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

namespace cad {
namespace {

/// Inclusive ranges of cell coordinates.
struct CellRange {
    std::int64_t left, bottom, right, top;
    /// Below 2^63: a coordinate is within ±10^9.
    std::int64_t count() const { return (right - left + 1) * (top - bottom + 1); }
};

/// Empty when the box is empty, not finite or too far out.
std::optional<CellRange> cells_of(const Box& box, double size) {
    constexpr double reach = 1e9;
    const double left = std::floor(box.low.x / size);
    const double bottom = std::floor(box.low.y / size);
    const double right = std::floor(box.high.x / size);
    const double top = std::floor(box.high.y / size);
    if (!(left <= right && bottom <= top && left > -reach && bottom > -reach && right < reach && top < reach)) return std::nullopt;
    return CellRange{static_cast<std::int64_t>(left), static_cast<std::int64_t>(bottom), static_cast<std::int64_t>(right),
                     static_cast<std::int64_t>(top)};
}

SpatialIndex::Cell cell_at(std::int64_t column, std::int64_t row) {
    return (static_cast<std::uint64_t>(static_cast<std::uint32_t>(column)) << 32U) | static_cast<std::uint32_t>(row);
}

template <class Visit>
void for_each_cell(const CellRange& range, Visit visit) {
    for (std::int64_t row = range.bottom; row <= range.top; ++row)
        for (std::int64_t column = range.left; column <= range.right; ++column) visit(cell_at(column, row));
}

}  // namespace

void SpatialIndex::reset(double size) {
    cells.clear();
    large.clear();
    cell_size = size > 0 && std::isfinite(size) ? size : 1;
}

void SpatialIndex::insert(Number number, const Box& box) {
    const std::optional<CellRange> range = cells_of(box, cell_size);
    if (!range || range->count() > cells_max) {
        large.push_back(number);
        return;
    }
    for_each_cell(*range, [&](Cell cell) { cells[cell].push_back(number); });
}

void SpatialIndex::remove(Number number, const Box& box) {
    const std::optional<CellRange> range = cells_of(box, cell_size);
    if (!range || range->count() > cells_max) {
        std::erase(large, number);
        return;
    }
    for_each_cell(*range, [&](Cell cell) {
        if (const auto at = cells.find(cell); at != cells.end()) {
            std::erase(at->second, number);
            if (at->second.empty()) cells.erase(at);
        }
    });
}

void SpatialIndex::close_gap(Number gone) {
    const auto lower = [gone](taiyen::vector<Number>& numbers) {
        for (Number& number : numbers)
            if (number > gone) --number;
    };
    for (auto& [cell, numbers] : cells) lower(numbers);
    lower(large);
}

std::vector<SpatialIndex::Number> SpatialIndex::candidates(const Box& window) const {
    std::vector<Number> found(large.begin(), large.end());
    const auto take = [&](const auto& numbers) { found.insert(found.end(), numbers.begin(), numbers.end()); };
    const std::optional<CellRange> range = cells_of(window, cell_size);
    if (range && range->count() <= static_cast<std::int64_t>(cells.size())) {
        for_each_cell(*range, [&](Cell cell) {
            if (const auto at = cells.find(cell); at != cells.end()) take(at->second);
        });
    } else {
        for (const auto& [cell, numbers] : cells) take(numbers);
    }
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
}

}  // namespace cad
