#include "command/description.hpp"

#include <cstdio>

#include "command/words.hpp"

namespace cad::command {
namespace {

/// The texts one after the other.
template <class... Texts>
std::string joined(const Texts&... texts) {
    std::string all;
    (all.append(std::string_view(texts)), ...);
    return all;
}

std::string angle_text(double radians_value) { return joined(number_text(degrees(radians_value)), " degrees"); }

std::string at_angle(Point2 at, double angle) {
    return joined("at ", point_text(at), angle == 0 ? "" : " turned ", angle == 0 ? std::string() : angle_text(angle));
}

template <class AnyText>
std::string text_place(const AnyText& s) {
    return joined(as_typed(s.content), " ", at_angle(s.at, s.angle), " height ", number_text(s.height));
}

std::string place(const Line& s) { return joined("from ", point_text(s.from), " to ", point_text(s.to)); }
std::string place(const Circle& s) { return joined("around ", point_text(s.centre), " radius ", number_text(s.radius)); }
std::string place(const Arc& s) {
    return joined("around ", point_text(s.centre), " radius ", number_text(s.radius), " from ", number_text(degrees(s.start)), " over ",
                  angle_text(s.sweep));
}
std::string place(const Ellipse& s) {
    return joined("around ", point_text(s.centre), " radii ", number_text(length(s.major)), " and ", number_text(length(s.major) * s.ratio));
}
std::string place(const Polyline& s) {
    const std::string begin = s.vertices.empty() ? std::string() : joined(", from ", point_text(s.vertices.front().at));
    return joined(counted(s.vertices.size(), "vertex", "vertices"), s.closed ? ", closed" : "", begin);
}
std::string place(const Spline& s) {
    return joined("degree ", std::to_string(s.degree), ", ", counted(s.control_points.size(), "control point", "control points"));
}
std::string place(const Text& s) { return text_place(s); }
std::string place(const MText& s) { return text_place(s); }
std::string place(const Insert& s) {
    const std::string array = s.columns * s.rows > 1 ? joined(" ", std::to_string(s.columns), " x ", std::to_string(s.rows)) : std::string();
    return joined(s.block == nullptr ? std::string("nothing") : as_typed(s.block->first), " ", at_angle(s.at, s.angle), array);
}
std::string place(const PointMark& s) { return joined("at ", point_text(s.at)); }
std::string place(const Solid& s) { return joined("corner ", point_text(s.corners[0])); }
std::string place(const Hatch& s) {
    return joined(s.solid ? std::string("solid") : as_typed(s.pattern), ", ", counted(s.loops.size(), "loop", "loops"));
}
std::string place(const Image& s) { return joined(as_typed(s.file), " at ", point_text(s.at)); }

std::string_view kind(const Line&) { return "line"; }
std::string_view kind(const Circle&) { return "circle"; }
std::string_view kind(const Arc&) { return "arc"; }
std::string_view kind(const Ellipse&) { return "ellipse"; }
std::string_view kind(const Polyline&) { return "polyline"; }
std::string_view kind(const Spline&) { return "spline"; }
std::string_view kind(const Text&) { return "text"; }
std::string_view kind(const MText&) { return "mtext"; }
std::string_view kind(const Insert&) { return "insert"; }
std::string_view kind(const PointMark&) { return "point"; }
std::string_view kind(const Solid&) { return "solid"; }
std::string_view kind(const Hatch&) { return "hatch"; }
std::string_view kind(const Image&) { return "image"; }

}  // namespace

std::string number_text(double value) {
    char text[32];
    // Rounding errors of a turn are no news, and no minus sign before a zero either.
    const double rounded = std::abs(value) < 5e-10 ? 0 : value;
    std::snprintf(text, sizeof text, "%.6g", rounded);
    return text;
}

std::string point_text(Point2 point) { return joined(number_text(point.x), ",", number_text(point.y)); }

std::string box_text(const Box& box) { return box.empty() ? "empty" : joined("from ", point_text(box.low), " to ", point_text(box.high)); }

std::string counted(std::size_t count, std::string_view one, std::string_view many) {
    return joined(std::to_string(count), " ", count == 1 ? one : many);
}

std::string_view kind_of(const Shape& shape) {
    return std::visit([](const auto& one) { return kind(one); }, shape);
}

std::string place_of(const Entity& entity) {
    return std::visit([](const auto& shape) { return place(shape); }, entity.shape);
}

}  // namespace cad::command
