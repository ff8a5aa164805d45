#pragma once
/// A drawing as a list of strokes and fills in pixels, ready for any output.

#include <string>
#include <string_view>
#include <vector>

#include "document.hpp"
#include "palette.hpp"
#include "path.hpp"
#include "stroke_font.hpp"

namespace cad {

/// How an item is painted. `width` 0: filled, inside by the even-odd rule.
struct Paint {
    Rgb colour;
    double width = 0;
    std::vector<double> dashes;
    bool operator==(const Paint&) const = default;
};

struct PictureItem {
    std::string layer;  ///< empty: not part of the drawing
    Paint paint;
    Path path;
    Path clip;  ///< no steps: not clipped
};

/// Painted in order over `background`; x to the right, y downwards.
struct Picture {
    std::string title;
    double width = 0;
    double height = 0;
    Rgb background = screen;
    std::vector<PictureItem> items;
};

struct PictureOptions {
    double long_side = 1600;
    double margin = 56;
    double pen = 2.2;  ///< pixels of the default line width
    bool grid = true;
    const StrokeFont* font = nullptr;  ///< null or empty: a text is drawn as its box and there is no caption
};

Picture picture_of(const Drawing& drawing, std::string_view title, const PictureOptions& options = {});

}  // namespace cad
