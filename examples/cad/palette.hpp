#pragma once
/// DXF's colour numbers as seen on a dark screen.

#include <cstdint>

namespace cad {

struct Rgb {
    std::uint8_t red = 0;
    std::uint8_t green = 0;
    std::uint8_t blue = 0;
    bool operator==(const Rgb&) const = default;
};

inline constexpr Rgb screen{0x14, 0x1a, 0x22};
/// Colour 7: black on paper, white on a screen.
inline constexpr Rgb foreground{0xec, 0xe8, 0xdf};

/// The colour of a number from 1 to 255; any other is `foreground`.
Rgb palette_colour(std::int32_t number);
/// `a` with `share` (0…1) of `b` in it.
Rgb mixed(Rgb a, Rgb b, double share);

}  // namespace cad
