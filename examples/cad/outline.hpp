#pragma once
/// From shapes to paths.

#include "document.hpp"
#include "path.hpp"

namespace cad {

/// Each shape that is a curve has an outline; the others (text, inserts, images) are put together by whoever draws them.
Path outline(const Line& line);
Path outline(const Circle& circle);
Path outline(const Arc& arc);
Path outline(const Ellipse& ellipse);
Path outline(const Polyline& polyline);
/// Evaluated at a fixed number of points per knot span; without control points a smooth curve through the fit points.
Path outline(const Spline& spline);
Path outline(const Solid& solid);
/// The loops, each closed.
Path outline(const Hatch& hatch);
/// The frame.
Path outline(const Image& image);

/// Where the block's own coordinates land for one cell of the insert's array.
Affine placement(const Insert& insert, std::int32_t column, std::int32_t row);

}  // namespace cad
