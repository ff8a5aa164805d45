#pragma once
/// Outlines made of straight lines, Bézier curves and elliptical arcs; they survive affine maps exactly.

#include <variant>
#include <vector>

#include "geometry.hpp"

namespace cad {

struct MoveTo {
    Point2 to;
};
struct LineTo {
    Point2 to;
};
struct CurveTo {
    Point2 control1;
    Point2 control2;
    Point2 to;
};
/// centre + u·cos t + v·sin t for t from `start` over `sweep`. The pen is at the arc's first point before it.
struct ArcTo {
    Point2 centre;
    Point2 u;
    Point2 v;
    double start = 0;
    double sweep = 0;

    Point2 at(double t) const { return centre + u * std::cos(t) + v * std::sin(t); }
    Point2 from() const { return at(start); }
    Point2 to() const { return at(start + sweep); }
};
struct ClosePath {};

using PathStep = std::variant<MoveTo, LineTo, CurveTo, ArcTo, ClosePath>;

/// Steps in drawing order; the first is a MoveTo.
struct Path {
    std::vector<PathStep> steps;

    void move_to(Point2 to) { steps.emplace_back(MoveTo{to}); }
    void line_to(Point2 to) { steps.emplace_back(LineTo{to}); }
    void close() { steps.emplace_back(ClosePath{}); }
    /// Draws an arc; a pen that is elsewhere is lifted to the arc's first point.
    void arc(const ArcTo& arc);
    void append(const Path& other) { steps.insert(steps.end(), other.steps.begin(), other.steps.end()); }
};

/// The arc of a circle.
ArcTo circular_arc(Point2 centre, double radius, double start, double sweep);
/// The arc from `from` to `to` whose sweep is four times the arc tangent of `bulge`, which is not 0.
ArcTo bulged(Point2 from, Point2 to, double bulge);

Path transformed(const Path& path, const Affine& map);
/// Exact for lines and arcs; for curves the box of their control points.
Box bounds(const Path& path);

}  // namespace cad
