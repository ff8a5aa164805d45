#pragma once
/// Points, boxes and affine maps of the plane. Angles are radians, counterclockwise; the y axis points up.

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace cad {

struct Point2 {
    double x = 0;
    double y = 0;
    bool operator==(const Point2&) const = default;
};

constexpr Point2 operator+(Point2 a, Point2 b) { return {a.x + b.x, a.y + b.y}; }
constexpr Point2 operator-(Point2 a, Point2 b) { return {a.x - b.x, a.y - b.y}; }
constexpr Point2 operator*(Point2 a, double factor) { return {a.x * factor, a.y * factor}; }
inline double length(Point2 a) { return std::hypot(a.x, a.y); }
/// `a` turned by a quarter, counterclockwise.
constexpr Point2 turned_left(Point2 a) { return {-a.y, a.x}; }
inline Point2 direction(double angle) { return {std::cos(angle), std::sin(angle)}; }

inline constexpr double full_turn = 2 * std::numbers::pi;
constexpr double radians(double degrees) { return degrees * (std::numbers::pi / 180); }
constexpr double degrees(double radians) { return radians * (180 / std::numbers::pi); }

/// The counterclockwise way from `start` to `end`, in (0, full_turn].
inline double sweep_between(double start, double end) {
    const double sweep = std::fmod(end - start, full_turn);
    return sweep > 0 ? sweep : sweep + full_turn;
}

/// An axis-parallel box, borders included; empty until something is added.
struct Box {
    Point2 low{std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()};
    Point2 high{-std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()};

    bool empty() const { return !(low.x <= high.x && low.y <= high.y); }
    double width() const { return high.x - low.x; }
    double height() const { return high.y - low.y; }
    Point2 centre() const { return (low + high) * 0.5; }
    bool intersects(const Box& other) const {
        return low.x <= other.high.x && other.low.x <= high.x && low.y <= other.high.y && other.low.y <= high.y;
    }
    void add(Point2 p) {
        low = {std::min(low.x, p.x), std::min(low.y, p.y)};
        high = {std::max(high.x, p.x), std::max(high.y, p.y)};
    }
    void add(const Box& other) {
        if (!other.empty()) {
            add(other.low);
            add(other.high);
        }
    }
    bool operator==(const Box&) const = default;
};

/// p ↦ x·p.x + y·p.y + origin.
struct Affine {
    Point2 x{1, 0};
    Point2 y{0, 1};
    Point2 origin{};

    constexpr Point2 vector(Point2 v) const { return x * v.x + y * v.y; }
    constexpr Point2 operator()(Point2 p) const { return vector(p) + origin; }
    /// First `inner`, then this.
    constexpr Affine after(const Affine& inner) const { return {vector(inner.x), vector(inner.y), (*this)(inner.origin)}; }
    /// The factor by which areas grow, under a root: how long a length of 1 becomes on average.
    double scale() const { return std::sqrt(std::abs(x.x * y.y - x.y * y.x)); }

    static constexpr Affine translation(Point2 by) { return {{1, 0}, {0, 1}, by}; }
    static Affine rotation(double angle) {
        const Point2 d = direction(angle);
        return {d, turned_left(d), {}};
    }
    static constexpr Affine scaling(Point2 factors) { return {{factors.x, 0}, {0, factors.y}, {}}; }
};

}  // namespace cad
