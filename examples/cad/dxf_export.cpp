#include "dxf_export.hpp"

#include <charconv>

namespace cad {
namespace {

/// Appends group codes and values.
class Writer {
public:
    std::string text;

    void group(int code, std::string_view value) {
        number(code);
        text += value;
        text += '\n';
    }
    void group(int code, double value) {
        number(code);
        number(value);
    }
    void group(int code, std::int32_t value) {
        number(code);
        number(value);
    }
    /// `code` for x, `code` + 10 for y.
    void point(int code, Point2 p) {
        group(code, p.x);
        group(code + 10, p.y);
    }

private:
    template <class Number>
    void number(Number value) {
        char digits[32];
        text.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
        text += '\n';
    }
};

std::int32_t count_of(std::size_t size) { return static_cast<std::int32_t>(size); }

void write_shape(Writer& out, const Line& s) {
    out.point(10, s.from);
    out.point(11, s.to);
}
void write_shape(Writer& out, const Circle& s) {
    out.point(10, s.centre);
    out.group(40, s.radius);
}
void write_shape(Writer& out, const Arc& s) {
    // DXF's arcs run counterclockwise.
    const double start = s.sweep >= 0 ? s.start : s.start + s.sweep;
    out.point(10, s.centre);
    out.group(40, s.radius);
    out.group(50, degrees(start));
    out.group(51, degrees(start + std::abs(s.sweep)));
}
void write_shape(Writer& out, const Ellipse& s) {
    const double start = s.sweep >= 0 ? s.start : s.start + s.sweep;
    out.point(10, s.centre);
    out.point(11, s.major);
    out.group(40, s.ratio);
    out.group(41, start);
    out.group(42, start + std::abs(s.sweep));
}
void write_shape(Writer& out, const Polyline& s) {
    out.group(90, count_of(s.vertices.size()));
    out.group(70, s.closed ? 1 : 0);
    for (const Vertex& vertex : s.vertices) {
        out.point(10, vertex.at);
        out.group(42, vertex.bulge);
    }
}
void write_shape(Writer& out, const Spline& s) {
    out.group(70, s.closed ? 1 : 0);
    out.group(71, static_cast<std::int32_t>(s.degree));
    out.group(72, count_of(s.knots.size()));
    out.group(73, count_of(s.control_points.size()));
    out.group(74, count_of(s.fit_points.size()));
    for (const double knot : s.knots) out.group(40, knot);
    for (const ControlPoint& control : s.control_points) {
        out.point(10, control.at);
        out.group(41, control.weight);
    }
    for (const Point2& fit : s.fit_points) out.point(11, fit);
}
void write_shape(Writer& out, const Text& s) {
    out.point(10, s.at);
    out.group(40, s.height);
    out.group(1, s.content);
    out.group(50, degrees(s.angle));
    out.group(41, s.width_factor);
    out.group(72, s.horizontal);
    out.point(11, s.at);
    out.group(73, s.vertical);
}
void write_shape(Writer& out, const MText& s) {
    constexpr std::size_t chunk = 250;
    out.point(10, s.at);
    out.group(40, s.height);
    out.group(41, s.box_width);
    out.group(71, s.attachment);
    std::string_view rest = s.content;
    for (; rest.size() > chunk; rest.remove_prefix(chunk)) out.group(3, rest.substr(0, chunk));
    out.group(1, rest);
    out.group(50, degrees(s.angle));
    out.group(44, s.line_spacing);
}
void write_shape(Writer& out, const Insert& s) {
    out.group(2, s.block->first);
    out.point(10, s.at);
    out.group(41, s.scale.x);
    out.group(42, s.scale.y);
    out.group(50, degrees(s.angle));
    out.group(70, s.columns);
    out.group(71, s.rows);
    out.group(44, s.spacing.x);
    out.group(45, s.spacing.y);
}
void write_shape(Writer& out, const PointMark& s) { out.point(10, s.at); }
void write_shape(Writer& out, const Solid& s) {
    for (int i = 0; i < 4; ++i) out.point(10 + i, s.corners[static_cast<std::size_t>(i)]);
}
void write_shape(Writer&, const Image&) {}

void write_edge(Writer& out, const Line& e) {
    out.group(72, 1);
    write_shape(out, e);
}
void write_edge(Writer& out, const Arc& e) {
    const double side = e.sweep >= 0 ? 1 : -1;
    out.group(72, 2);
    out.point(10, e.centre);
    out.group(40, e.radius);
    out.group(50, degrees(side * e.start));
    out.group(51, degrees(side * (e.start + e.sweep)));
    out.group(73, e.sweep >= 0 ? 1 : 0);
}
void write_edge(Writer& out, const Ellipse& e) {
    const double side = e.sweep >= 0 ? 1 : -1;
    out.group(72, 3);
    out.point(10, e.centre);
    out.point(11, e.major);
    out.group(40, e.ratio);
    out.group(50, degrees(side * e.start));
    out.group(51, degrees(side * (e.start + e.sweep)));
    out.group(73, e.sweep >= 0 ? 1 : 0);
}
void write_edge(Writer& out, const Spline& e) {
    out.group(72, 4);
    out.group(94, static_cast<std::int32_t>(e.degree));
    out.group(73, 1);
    out.group(74, e.closed ? 1 : 0);
    out.group(95, count_of(e.knots.size()));
    out.group(96, count_of(e.control_points.size()));
    for (const double knot : e.knots) out.group(40, knot);
    for (const ControlPoint& control : e.control_points) {
        out.point(10, control.at);
        out.group(42, control.weight);
    }
}
void write_edge(Writer&, const Polyline&) {}  // a loop of its own

void write_loop(Writer& out, const HatchLoop& loop) {
    constexpr std::int32_t external = 1;
    constexpr std::int32_t polyline = 2;
    const auto* boundary = loop.edges.size() == 1 ? std::get_if<Polyline>(&loop.edges.front()) : nullptr;
    if (boundary != nullptr) {
        out.group(92, external | polyline);
        out.group(72, 1);
        out.group(73, 1);
        out.group(93, count_of(boundary->vertices.size()));
        for (const Vertex& vertex : boundary->vertices) {
            out.point(10, vertex.at);
            out.group(42, vertex.bulge);
        }
    } else {
        out.group(92, external);
        out.group(93, count_of(loop.edges.size()));
        for (const HatchEdge& edge : loop.edges) std::visit([&](const auto& e) { write_edge(out, e); }, edge);
    }
    out.group(97, 0);
}

void write_shape(Writer& out, const Hatch& s) {
    out.point(10, {});
    out.group(2, s.pattern);
    out.group(70, s.solid ? 1 : 0);
    out.group(71, 0);
    out.group(91, count_of(s.loops.size()));
    for (const HatchLoop& loop : s.loops) write_loop(out, loop);
    out.group(75, 0);
    out.group(76, 1);
    if (!s.solid) {
        out.group(52, degrees(s.angle));
        out.group(41, s.scale);
        out.group(77, 0);
        out.group(78, 0);
    }
    out.group(98, 0);
}

/// The entity's name in DXF and the subclass marker that versions since AC1015 want.
struct Names {
    std::string_view entity;
    std::string_view subclass;
};
constexpr Names names(const Line&) { return {"LINE", "AcDbLine"}; }
constexpr Names names(const Arc&) { return {"ARC", "AcDbArc"}; }
constexpr Names names(const Circle&) { return {"CIRCLE", "AcDbCircle"}; }
constexpr Names names(const Ellipse&) { return {"ELLIPSE", "AcDbEllipse"}; }
constexpr Names names(const Polyline&) { return {"LWPOLYLINE", "AcDbPolyline"}; }
constexpr Names names(const Spline&) { return {"SPLINE", "AcDbSpline"}; }
constexpr Names names(const Text&) { return {"TEXT", "AcDbText"}; }
constexpr Names names(const MText&) { return {"MTEXT", "AcDbMText"}; }
constexpr Names names(const Insert&) { return {"INSERT", "AcDbBlockReference"}; }
constexpr Names names(const PointMark&) { return {"POINT", "AcDbPoint"}; }
constexpr Names names(const Solid&) { return {"SOLID", "AcDbTrace"}; }
constexpr Names names(const Hatch&) { return {"HATCH", "AcDbHatch"}; }
constexpr Names names(const Image&) { return {"IMAGE", "AcDbRasterImage"}; }

void write_colour(Writer& out, const Colour& colour) {
    out.group(62, colour.index);
    if (colour.rgb >= 0) out.group(420, colour.rgb);
}

void write_entity(Writer& out, const Entity& entity) {
    if (std::holds_alternative<Image>(entity.shape)) return;
    const Names named = std::visit([](const auto& shape) { return names(shape); }, entity.shape);
    out.group(0, named.entity);
    out.group(100, "AcDbEntity");
    out.group(8, entity.layer->first);
    if (entity.linetype != nullptr) {
        out.group(6, entity.linetype->first);
        out.group(48, entity.linetype_scale);
    }
    write_colour(out, entity.colour);
    out.group(370, entity.line_width);
    out.group(100, named.subclass);
    std::visit([&](const auto& shape) { write_shape(out, shape); }, entity.shape);
}

void write_header(Writer& out, const Drawing& drawing) {
    out.group(0, "SECTION");
    out.group(2, "HEADER");
    out.group(9, "$ACADVER");
    out.group(1, "AC1021");
    out.group(9, "$LTSCALE");
    out.group(40, drawing.linetype_scale);
    out.group(0, "ENDSEC");
}

void write_linetypes(Writer& out, const Drawing& drawing) {
    out.group(0, "TABLE");
    out.group(2, "LTYPE");
    out.group(70, count_of(drawing.linetypes.size()));
    for (const auto& [name, type] : drawing.linetypes) {
        double pattern = 0;
        for (const double dash : type.dashes) pattern += std::abs(dash);
        out.group(0, "LTYPE");
        out.group(2, name);
        out.group(70, 0);
        out.group(3, "");
        out.group(72, 65);
        out.group(73, count_of(type.dashes.size()));
        out.group(40, pattern);
        for (const double dash : type.dashes) out.group(49, dash);
    }
    out.group(0, "ENDTAB");
}

void write_layers(Writer& out, const Drawing& drawing) {
    out.group(0, "TABLE");
    out.group(2, "LAYER");
    out.group(70, count_of(drawing.layers.size()));
    for (const auto& [name, layer] : drawing.layers) {
        out.group(0, "LAYER");
        out.group(2, name);
        out.group(70, layer.visible ? 0 : 1);
        write_colour(out, layer.colour);
        out.group(6, "CONTINUOUS");
        out.group(370, layer.line_width);
    }
    out.group(0, "ENDTAB");
}

void write_blocks(Writer& out, const Drawing& drawing) {
    out.group(0, "SECTION");
    out.group(2, "BLOCKS");
    for (const auto& [name, block] : drawing.blocks) {
        out.group(0, "BLOCK");
        out.group(8, "0");
        out.group(2, name);
        out.group(70, 0);
        out.point(10, block.base);
        out.group(3, name);
        for (const Entity& entity : block.entities) write_entity(out, entity);
        out.group(0, "ENDBLK");
        out.group(8, "0");
    }
    out.group(0, "ENDSEC");
}

}  // namespace

std::string dxf_text(const Drawing& drawing) {
    Writer out;
    write_header(out, drawing);
    out.group(0, "SECTION");
    out.group(2, "TABLES");
    write_linetypes(out, drawing);
    write_layers(out, drawing);
    out.group(0, "ENDSEC");
    write_blocks(out, drawing);
    out.group(0, "SECTION");
    out.group(2, "ENTITIES");
    for (const Entity& entity : drawing.entities) write_entity(out, entity);
    out.group(0, "ENDSEC");
    out.group(0, "EOF");
    return std::move(out.text);
}

}  // namespace cad
