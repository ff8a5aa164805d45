#include "outline.hpp"

#include <algorithm>

namespace cad {
namespace {

constexpr int points_per_span = 16;

/// A point in homogeneous coordinates: (w·x, w·y, w).
struct Weighted {
    double x, y, w;
};

Weighted mixed(const Weighted& a, const Weighted& b, double t) { return {a.x + (b.x - a.x) * t, a.y + (b.y - a.y) * t, a.w + (b.w - a.w) * t}; }

/// De Boor's algorithm in knot span `span`: knots[span] <= t <= knots[span + 1].
Point2 point_on(const Spline& spline, std::size_t span, double t) {
    const std::size_t degree = spline.degree;
    std::vector<Weighted> d;
    for (std::size_t j = 0; j <= degree; ++j) {
        const ControlPoint& c = spline.control_points[span - degree + j];
        d.push_back({c.at.x * c.weight, c.at.y * c.weight, c.weight});
    }
    for (std::size_t round = 1; round <= degree; ++round) {
        for (std::size_t j = degree; j >= round; --j) {
            const double left = spline.knots[span - degree + j];
            const double right = spline.knots[span + 1 + j - round];
            d[j] = mixed(d[j - 1], d[j], right > left ? (t - left) / (right - left) : 0);
        }
    }
    return {d[degree].x / d[degree].w, d[degree].y / d[degree].w};
}

bool can_be_evaluated(const Spline& spline) {
    const std::size_t points = spline.control_points.size();
    return spline.degree >= 1 && points > spline.degree && spline.knots.size() >= points + spline.degree + 1 &&
           std::is_sorted(spline.knots.begin(), spline.knots.end()) &&
           std::all_of(spline.control_points.begin(), spline.control_points.end(), [](const ControlPoint& c) { return c.weight > 0; });
}

/// A curve through all points whose tangent at each is parallel to the line between its neighbours (Catmull and Rom, 1974).
Path smooth_through(const taiyen::vector<Point2>& points) {
    Path path;
    for (std::size_t i = 0; i < points.size(); ++i) {
        if (i == 0) {
            path.move_to(points[0]);
            continue;
        }
        const Point2 before = points[i >= 2 ? i - 2 : 0];
        const Point2 after = points[std::min(i + 1, points.size() - 1)];
        path.steps.emplace_back(
            CurveTo{points[i - 1] + (points[i] - before) * (1.0 / 6), points[i] - (after - points[i - 1]) * (1.0 / 6), points[i]});
    }
    return path;
}

/// Appends an edge without lifting the pen where the outline can go on.
void continue_with(Path& loop, const HatchEdge& edge) {
    const Path path = std::visit([](const auto& e) { return outline(e); }, edge);
    for (const PathStep& step : path.steps)
        if (const auto* move = std::get_if<MoveTo>(&step); move != nullptr && !loop.steps.empty())
            loop.line_to(move->to);
        else if (!std::holds_alternative<ClosePath>(step))
            loop.steps.push_back(step);
}

}  // namespace

Path outline(const Line& line) { return {{MoveTo{line.from}, LineTo{line.to}}}; }

Path outline(const Circle& circle) {
    Path path;
    path.arc(circular_arc(circle.centre, circle.radius, 0, full_turn));
    path.close();
    return path;
}

Path outline(const Arc& arc) {
    Path path;
    path.arc(circular_arc(arc.centre, arc.radius, arc.start, arc.sweep));
    return path;
}

Path outline(const Ellipse& ellipse) {
    Path path;
    path.arc({ellipse.centre, ellipse.major, turned_left(ellipse.major) * ellipse.ratio, ellipse.start, ellipse.sweep});
    if (std::abs(ellipse.sweep) >= full_turn) path.close();
    return path;
}

Path outline(const Polyline& polyline) {
    Path path;
    const auto& vertices = polyline.vertices;
    if (vertices.empty()) return path;
    path.move_to(vertices.front().at);
    const std::size_t edges = vertices.size() - (polyline.closed ? 0 : 1);
    for (std::size_t i = 0; i < edges; ++i) {
        const Vertex& from = vertices[i];
        const Vertex& to = vertices[(i + 1) % vertices.size()];
        if (from.bulge != 0 && from.at != to.at)
            path.arc(bulged(from.at, to.at, from.bulge));
        else
            path.line_to(to.at);
    }
    if (polyline.closed) path.close();
    return path;
}

Path outline(const Spline& spline) {
    if (!can_be_evaluated(spline)) return smooth_through(spline.fit_points);
    Path path;
    for (std::size_t span = spline.degree; span < spline.control_points.size(); ++span) {
        const double from = spline.knots[span];
        const double to = spline.knots[span + 1];
        if (!(from < to)) continue;
        for (int i = path.steps.empty() ? 0 : 1; i <= points_per_span; ++i) {
            const Point2 p = point_on(spline, span, from + (to - from) * i / points_per_span);
            path.steps.empty() ? path.move_to(p) : path.line_to(p);
        }
    }
    return path;
}

Path outline(const Solid& solid) {
    const auto& c = solid.corners;
    return {{MoveTo{c[0]}, LineTo{c[1]}, LineTo{c[3]}, LineTo{c[2]}, ClosePath{}}};
}

Path outline(const Hatch& hatch) {
    Path path;
    for (const HatchLoop& loop : hatch.loops) {
        Path closed;
        for (const HatchEdge& edge : loop.edges) continue_with(closed, edge);
        if (!closed.steps.empty()) {
            closed.close();
            path.append(closed);
        }
    }
    return path;
}

Path outline(const Image& image) {
    const Point2 right = image.u * image.pixels.x;
    const Point2 up = image.v * image.pixels.y;
    return {{MoveTo{image.at}, LineTo{image.at + right}, LineTo{image.at + right + up}, LineTo{image.at + up}, ClosePath{}}};
}

Affine placement(const Insert& insert, std::int32_t column, std::int32_t row) {
    const Point2 cell{insert.spacing.x * column, insert.spacing.y * row};
    const Affine turned = Affine::translation(insert.at).after(Affine::rotation(insert.angle));
    const Affine scaled = turned.after(Affine::translation(cell)).after(Affine::scaling(insert.scale));
    return scaled.after(Affine::translation(insert.block->second.base * -1));
}

}  // namespace cad
