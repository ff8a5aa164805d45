#include "census.hpp"

namespace cad {
namespace {

void count(Census& census, const Line&) { ++census[Kind::line]; }
void count(Census& census, const Arc&) { ++census[Kind::arc]; }
void count(Census& census, const Circle&) { ++census[Kind::circle]; }
void count(Census& census, const Ellipse&) { ++census[Kind::ellipse]; }
void count(Census& census, const Polyline& s) {
    ++census[Kind::polyline];
    census[Kind::vertex] += s.vertices.size();
}
void count(Census& census, const Spline& s) {
    ++census[Kind::spline];
    census[Kind::control_point] += s.control_points.size();
    census[Kind::knot] += s.knots.size();
    census[Kind::fit_point] += s.fit_points.size();
}
void count(Census& census, const Text&) { ++census[Kind::text]; }
void count(Census& census, const MText&) { ++census[Kind::mtext]; }
void count(Census& census, const Insert&) { ++census[Kind::insert]; }
void count(Census& census, const PointMark&) { ++census[Kind::point]; }
void count(Census& census, const Solid&) { ++census[Kind::solid]; }
void count(Census& census, const Hatch& s) {
    ++census[Kind::hatch];
    census[Kind::hatch_loop] += s.loops.size();
    for (const HatchLoop& loop : s.loops) census[Kind::hatch_edge] += loop.edges.size();
}
void count(Census& census, const Image&) { ++census[Kind::image]; }

void count_all(Census& census, const taiyen::vector<Entity>& entities) {
    for (const Entity& entity : entities) std::visit([&](const auto& shape) { count(census, shape); }, entity.shape);
}

}  // namespace

std::string_view name_of(Kind kind) {
    constexpr std::array<std::string_view, kind_count> names{
        "layers", "line types",       "blocks",      "lines",       "arcs",       "circles", "ellipses", "polylines",         "splines",
        "texts",  "multi-line texts", "inserts",     "points",      "solids",     "hatches", "images",   "polyline vertices", "control points",
        "knots",  "fit points",       "hatch loops", "hatch edges", "unsupported"};
    return names[static_cast<std::size_t>(kind)];
}

std::uint64_t Census::entities() const {
    std::uint64_t sum = (*this)[Kind::unsupported];
    for (auto kind = static_cast<std::size_t>(Kind::line); kind <= static_cast<std::size_t>(Kind::image); ++kind) sum += counts[kind];
    return sum;
}

Census census_of(const Document& document) {
    Census census;
    for (const auto& [name, drawing] : document.drawings) {
        census[Kind::layer] += drawing.layers.size();
        census[Kind::linetype] += drawing.linetypes.size();
        census[Kind::block] += drawing.blocks.size();
        census[Kind::unsupported] += drawing.unsupported;
        count_all(census, drawing.entities);
        for (const auto& [block_name, block] : drawing.blocks) count_all(census, block.entities);
    }
    return census;
}

}  // namespace cad
