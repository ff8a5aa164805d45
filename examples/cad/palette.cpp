#include "palette.hpp"

#include <array>
#include <cmath>

namespace cad {
namespace {

std::uint8_t channel(double value) { return static_cast<std::uint8_t>(std::lround(value * 255)); }

/// The pure colour of `hue`, one of 24 steps around the circle from red by yellow.
std::array<double, 3> pure(int hue) {
    // Each channel is a trapezoid of the hue, a third of the circle apart from the next.
    const auto trapezoid = [](int steps_from_peak) {
        const int distance = std::abs((steps_from_peak % 24 + 36) % 24 - 12);
        return distance <= 4 ? 1.0 : distance >= 8 ? 0.0 : (8 - distance) / 4.0;
    };
    return {trapezoid(hue), trapezoid(hue - 8), trapezoid(hue - 16)};
}

}  // namespace

Rgb palette_colour(std::int32_t number) {
    constexpr std::array<Rgb, 9> first{{{255, 77, 77},
                                        {255, 224, 82},
                                        {96, 214, 112},
                                        {88, 214, 222},
                                        {104, 140, 255},
                                        {226, 110, 226},
                                        foreground,
                                        {140, 146, 152},
                                        {190, 194, 198}}};
    constexpr std::array<std::uint8_t, 6> greys{0x50, 0x69, 0x82, 0xa0, 0xbe, 0xf4};
    constexpr std::array<double, 5> brightness{1.0, 0.74, 0.58, 0.44, 0.32};
    if (number >= 1 && number <= 9) return first[static_cast<std::size_t>(number - 1)];
    if (number >= 250 && number <= 255) {
        const std::uint8_t grey = greys[static_cast<std::size_t>(number - 250)];
        return {grey, grey, grey};
    }
    if (number < 10 || number > 255) return foreground;
    // Tens walk around the circle; within ten, every second is half as saturated and each pair darker.
    const std::array<double, 3> hue = pure(number / 10 - 1);
    const bool pale = number % 2 != 0;
    const double value = brightness[static_cast<std::size_t>(number % 10 / 2)];
    const auto shade = [&](double part) { return channel(value * (pale ? 0.5 + part / 2 : part)); };
    return {shade(hue[0]), shade(hue[1]), shade(hue[2])};
}

Rgb mixed(Rgb a, Rgb b, double share) {
    const auto mix = [share](std::uint8_t from, std::uint8_t to) { return static_cast<std::uint8_t>(std::lround(from + (to - from) * share)); };
    return {mix(a.red, b.red), mix(a.green, b.green), mix(a.blue, b.blue)};
}

}  // namespace cad
