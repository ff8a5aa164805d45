#pragma once
/// Sizes of small blocks (of packed ones: packed_page.hpp): 1–16 granules exactly, then 8 steps per doubling up to 128 granules (2 KiB): 40 classes.

#include <array>
#include <bit>
#include <cstdint>

#include "heap/engine_layout.hpp"

namespace taiyen::heap {

inline constexpr unsigned class_count = 40;
inline constexpr unsigned class_granules_max = 128;
/// Blocks of fewer granules than a page lie in pages of small blocks; those above class_granules_max have no class.
inline constexpr unsigned small_granules_max = layout::page_granules - 1;
inline constexpr std::uint8_t no_class = class_count;

constexpr unsigned class_granules(unsigned size_class) {
    if (size_class < 16) return size_class + 1;
    const unsigned doubling = (size_class - 16) / 8;
    const unsigned step = (size_class - 16) % 8 + 1;
    return (16U << doubling) + step * (2U << doubling);
}

/// Smallest class of at least `granules` (1 … 128).
constexpr unsigned class_for(unsigned granules) {
    if (granules <= 16) return granules - 1;
    const unsigned doubling = static_cast<unsigned>(std::bit_width(granules - 1)) - 5;
    const unsigned unit = 2U << doubling;
    return 16 + doubling * 8 + (granules - (16U << doubling) + unit - 1) / unit - 1;
}

struct ClassTables {
    std::array<std::uint8_t, class_granules_max + 1> rounded{};  ///< [granules] smallest class that holds them
    std::array<std::uint8_t, class_granules_max + 1> exact{};    ///< [granules] class of exactly that size, or no_class
    constexpr ClassTables() {
        exact[0] = no_class;
        for (unsigned granules = 1; granules <= class_granules_max; ++granules) {
            rounded[granules] = static_cast<std::uint8_t>(class_for(granules));
            exact[granules] = class_granules(rounded[granules]) == granules ? rounded[granules] : no_class;
        }
    }
};
inline constexpr ClassTables class_tables{};

static_assert(class_granules(15) == 16 && class_granules(16) == 18 && class_granules(23) == 32 && class_granules(24) == 36);
static_assert(class_granules(class_count - 1) == class_granules_max && class_for(class_granules_max) == class_count - 1);
static_assert(class_for(17) == 16 && class_for(18) == 16 && class_for(19) == 17 && class_for(33) == 24 && class_for(65) == 32);

}  // namespace taiyen::heap
