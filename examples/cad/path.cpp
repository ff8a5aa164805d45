#include "path.hpp"

#include <optional>

namespace cad {
namespace {

template <class... Functions>
struct overloaded : Functions... {
    using Functions::operator()...;
};

std::optional<Point2> end_of(const PathStep& step) {
    return std::visit(overloaded{[](const MoveTo& s) { return std::optional(s.to); }, [](const LineTo& s) { return std::optional(s.to); },
                                 [](const CurveTo& s) { return std::optional(s.to); }, [](const ArcTo& s) { return std::optional(s.to()); },
                                 [](const ClosePath&) { return std::optional<Point2>(); }},
                      step);
}

void add_arc(Box& box, const ArcTo& arc) {
    box.add(arc.from());
    box.add(arc.to());
    // An ellipse turns around in x where tan t = v.x / u.x, and half a turn later; likewise in y.
    for (const double turning : {std::atan2(arc.v.x, arc.u.x), std::atan2(arc.v.y, arc.u.y)}) {
        for (const double t : {turning, turning + full_turn / 2}) {
            const double way = arc.sweep >= 0 ? sweep_between(arc.start, t) : sweep_between(t, arc.start);
            if (way <= std::abs(arc.sweep)) box.add(arc.at(t));
        }
    }
}

}  // namespace

void Path::arc(const ArcTo& arc) {
    const std::optional<Point2> pen = steps.empty() ? std::nullopt : end_of(steps.back());
    const double tolerance = 1e-6 * (length(arc.u) + length(arc.v));
    if (!pen || length(*pen - arc.from()) > tolerance) move_to(arc.from());
    steps.emplace_back(arc);
}

ArcTo circular_arc(Point2 centre, double radius, double start, double sweep) { return {centre, {radius, 0}, {0, radius}, start, sweep}; }

ArcTo bulged(Point2 from, Point2 to, double bulge) {
    // The centre lies on the chord's perpendicular bisector, (1 − b²) / 4b of the chord to its left.
    const Point2 chord = to - from;
    const Point2 centre = (from + to) * 0.5 + turned_left(chord) * ((1 - bulge * bulge) / (4 * bulge));
    const Point2 spoke = from - centre;
    return circular_arc(centre, length(spoke), std::atan2(spoke.y, spoke.x), 4 * std::atan(bulge));
}

Path transformed(const Path& path, const Affine& map) {
    Path result;
    result.steps.reserve(path.steps.size());
    for (const PathStep& step : path.steps) {
        std::visit(
            overloaded{[&](const MoveTo& s) { result.steps.emplace_back(MoveTo{map(s.to)}); },
                       [&](const LineTo& s) { result.steps.emplace_back(LineTo{map(s.to)}); },
                       [&](const CurveTo& s) { result.steps.emplace_back(CurveTo{map(s.control1), map(s.control2), map(s.to)}); },
                       [&](const ArcTo& s) { result.steps.emplace_back(ArcTo{map(s.centre), map.vector(s.u), map.vector(s.v), s.start, s.sweep}); },
                       [&](const ClosePath& s) { result.steps.emplace_back(s); }},
            step);
    }
    return result;
}

Box bounds(const Path& path) {
    Box box;
    for (const PathStep& step : path.steps) {
        std::visit(overloaded{[&](const MoveTo& s) { box.add(s.to); }, [&](const LineTo& s) { box.add(s.to); },
                              [&](const CurveTo& s) {
                                  box.add(s.control1);
                                  box.add(s.control2);
                                  box.add(s.to);
                              },
                              [&](const ArcTo& s) { add_arc(box, s); }, [](const ClosePath&) {}},
                   step);
    }
    return box;
}

}  // namespace cad
