#include "document.hpp"

#include <algorithm>
#include <string>
#include <string_view>

#include "code_page.hpp"
#include "outline.hpp"

namespace cad {
namespace {

Box bounds_within(const Entity& entity, int depth);

Box transformed_box(const Box& box, const Affine& map) {
    Box result;
    if (!box.empty())
        for (const Point2 corner : {box.low, box.high, Point2{box.low.x, box.high.y}, Point2{box.high.x, box.low.y}}) result.add(map(corner));
    return result;
}

/// A box of text whose lower left corner would be at `offset` from `at` if it were not turned.
Box text_box(Point2 at, double angle, Point2 offset, Point2 size) {
    Box box;
    box.add(offset);
    box.add(offset + size);
    return transformed_box(box, Affine::translation(at).after(Affine::rotation(angle)));
}

/// Width and height of text of height 1: about a square per character, which is as wide as stroke fonts get.
Point2 text_size(std::string_view content) {
    constexpr double line_step = 5.0 / 3;
    std::size_t longest = 0;
    std::size_t lines = 1;
    std::size_t length = 0;
    for (const char32_t character : plain_text(content)) {
        lines += character == U'\n' ? 1 : 0;
        length = character == U'\n' ? 0 : length + 1;
        longest = std::max(longest, length);
    }
    return {static_cast<double>(longest), 1 + line_step * static_cast<double>(lines - 1)};
}

Box bounds_of(const Text& text, int) {
    const Point2 unit = text_size(text.content);
    const Point2 size{text.height * text.width_factor * unit.x, text.height * 1.4};
    const double left = text.horizontal == 0 ? 0 : text.horizontal == 2 ? -size.x : -size.x / 2;
    const double bottom = text.vertical == 3 ? -size.y : text.vertical == 2 ? -size.y / 2 : -text.height * 0.4;
    return text_box(text.at, text.angle, {left, bottom}, size);
}

Box bounds_of(const MText& text, int) {
    const Point2 size = text_size(text.content) * text.height;
    const int column = (text.attachment - 1) % 3;
    const int row = (text.attachment - 1) / 3;
    return text_box(text.at, text.angle, {-size.x * column / 2, size.y * (row - 2) / 2}, size);
}

Box bounds_of(const Insert& insert, int depth) {
    Box box;
    if (insert.block == nullptr || depth == insert_depth_max) return box;
    Box content;
    for (const Entity& entity : insert.block->second.entities) content.add(bounds_within(entity, depth + 1));
    for (const std::int32_t column : {0, insert.columns - 1})
        for (const std::int32_t row : {0, insert.rows - 1}) box.add(transformed_box(content, placement(insert, column, row)));
    return box;
}

Box bounds_of(const PointMark& point, int) { return {point.at, point.at}; }

template <class Curve>
Box bounds_of(const Curve& curve, int) {
    return bounds(outline(curve));
}

Box bounds_within(const Entity& entity, int depth) {
    return std::visit([depth](const auto& shape) { return bounds_of(shape, depth); }, entity.shape);
}

/// Cells so wide that a drawing's entities fill about one cell each.
double cell_size_for(const Drawing& drawing) {
    if (drawing.extents.empty() || drawing.entities.empty()) return 1;
    const double side = std::max(drawing.extents.width(), drawing.extents.height());
    return side / std::ceil(std::sqrt(static_cast<double>(drawing.entities.size())));
}

template <class Map>
bool leads_into(const Map& map, const typename Map::value_type* named) {
    const auto at = map.find(named->first);
    return at != map.end() && &*at == named;
}

std::string broken_pointer(const Drawing& drawing, const taiyen::vector<Entity>& entities) {
    for (const Entity& entity : entities) {
        if (entity.layer == nullptr || !leads_into(drawing.layers, entity.layer)) return "an entity's layer is not the drawing's";
        if (entity.linetype != nullptr && !leads_into(drawing.linetypes, entity.linetype)) return "an entity's line type is not the drawing's";
        const auto* insert = std::get_if<Insert>(&entity.shape);
        if (insert != nullptr && (insert->block == nullptr || !leads_into(drawing.blocks, insert->block)))
            return "an insert's block is not the drawing's";
    }
    return {};
}

std::string broken_id(const Drawing& drawing) {
    EntityId last = 0;
    for (const Entity& entity : drawing.entities) {
        if (entity.id <= last || entity.id > drawing.last_id) return "an entity's id does not follow the one before it";
        last = entity.id;
    }
    return {};
}

std::string broken_index(const Drawing& drawing) {
    const auto out_of_range = [&](EntityNumber number) { return number >= drawing.entities.size(); };
    for (const auto& [cell, numbers] : drawing.index.cells)
        if (std::any_of(numbers.begin(), numbers.end(), out_of_range)) return "the spatial index lists an entity that does not exist";
    for (std::size_t i = 0; i < drawing.entities.size(); ++i) {
        const Box box = bounds(drawing.entities[i]);
        if (box.empty()) continue;
        const auto found = drawing.index.candidates(box);
        if (!std::binary_search(found.begin(), found.end(), static_cast<EntityNumber>(i)))
            return "the spatial index does not find entity " + std::to_string(i);
        Box covered = drawing.extents;
        covered.add(box);
        if (covered != drawing.extents) return "the extents do not cover entity " + std::to_string(i);
    }
    return {};
}

std::string broken_invariant(const Drawing& drawing) {
    if (std::string broken = broken_pointer(drawing, drawing.entities); !broken.empty()) return broken;
    for (const auto& [name, block] : drawing.blocks)
        if (std::string broken = broken_pointer(drawing, block.entities); !broken.empty()) return broken;
    if (std::string broken = broken_id(drawing); !broken.empty()) return broken;
    return broken_index(drawing);
}

}  // namespace

Box bounds(const Entity& entity) { return bounds_within(entity, 0); }

Entity& add(Drawing& drawing, Entity entity) {
    const auto number = static_cast<EntityNumber>(drawing.entities.size());
    const Box box = bounds(entity);
    entity.id = ++drawing.last_id;
    Entity& added = drawing.entities.emplace_back(std::move(entity));
    drawing.index.insert(number, box);
    drawing.extents.add(box);
    return added;
}

std::optional<EntityNumber> number_of(const Drawing& drawing, EntityId id) {
    const auto at =
        std::lower_bound(drawing.entities.begin(), drawing.entities.end(), id, [](const Entity& e, EntityId wanted) { return e.id < wanted; });
    if (at == drawing.entities.end() || at->id != id) return std::nullopt;
    return static_cast<EntityNumber>(at - drawing.entities.begin());
}

namespace {

/// The extents without `gone`: only a box at their border could have held them open.
void shrink_extents(Drawing& drawing, const Box& gone) {
    const Box& all = drawing.extents;
    const bool inside = gone.empty() || (gone.low.x > all.low.x && gone.low.y > all.low.y && gone.high.x < all.high.x && gone.high.y < all.high.y);
    if (inside) return;
    Box extents;
    for (const Entity& entity : drawing.entities) extents.add(bounds(entity));
    drawing.extents = extents;
}

/// Changes one entity's shape in place; only the cells it leaves and enters are written.
template <class Change>
void reshape(Drawing& drawing, EntityNumber number, Change change) {
    Entity& entity = drawing.entities[number];
    const Box before = bounds(entity);
    std::visit(change, entity.shape);
    const Box after = bounds(entity);
    drawing.index.remove(number, before);
    drawing.index.insert(number, after);
    drawing.extents.add(after);
    shrink_extents(drawing, before);
}

void move(Line& s, Point2 by) {
    s.from = s.from + by;
    s.to = s.to + by;
}
void move(Polyline& s, Point2 by) {
    for (Vertex& vertex : s.vertices) vertex.at = vertex.at + by;
}
void move(Spline& s, Point2 by) {
    for (ControlPoint& control : s.control_points) control.at = control.at + by;
    for (Point2& point : s.fit_points) point = point + by;
}
void move(Solid& s, Point2 by) {
    for (Point2& corner : s.corners) corner = corner + by;
}
template <class Shape>
    requires requires(Shape s) { s.centre; }
void move(Shape& s, Point2 by) {
    s.centre = s.centre + by;
}
template <class Shape>
    requires requires(Shape s) { s.at; }
void move(Shape& s, Point2 by) {
    s.at = s.at + by;
}
void move(Hatch& s, Point2 by) {
    for (HatchLoop& loop : s.loops)
        for (HatchEdge& edge : loop.edges) std::visit([by](auto& e) { move(e, by); }, edge);
}

void turn(Line& s, const Affine& map, double) {
    s.from = map(s.from);
    s.to = map(s.to);
}
void turn(Circle& s, const Affine& map, double) { s.centre = map(s.centre); }
void turn(Arc& s, const Affine& map, double angle) {
    s.centre = map(s.centre);
    s.start = std::fmod(s.start + angle, full_turn);
}
void turn(Ellipse& s, const Affine& map, double) {
    s.centre = map(s.centre);
    s.major = map.vector(s.major);
}
void turn(Polyline& s, const Affine& map, double) {
    for (Vertex& vertex : s.vertices) vertex.at = map(vertex.at);
}
void turn(Spline& s, const Affine& map, double) {
    for (ControlPoint& control : s.control_points) control.at = map(control.at);
    for (Point2& point : s.fit_points) point = map(point);
}
void turn(PointMark& s, const Affine& map, double) { s.at = map(s.at); }
void turn(Solid& s, const Affine& map, double) {
    for (Point2& corner : s.corners) corner = map(corner);
}
void turn(Image& s, const Affine& map, double) {
    s.at = map(s.at);
    s.u = map.vector(s.u);
    s.v = map.vector(s.v);
}
/// Texts and inserts.
template <class Shape>
    requires requires(Shape s) { s.at, s.angle; }
void turn(Shape& s, const Affine& map, double angle) {
    s.at = map(s.at);
    s.angle = std::fmod(s.angle + angle, full_turn);
}
void turn(Hatch& s, const Affine& map, double angle) {
    s.angle = std::fmod(s.angle + angle, full_turn);
    for (HatchLoop& loop : s.loops)
        for (HatchEdge& edge : loop.edges) std::visit([&](auto& e) { turn(e, map, angle); }, edge);
}

}  // namespace

void erase(Drawing& drawing, EntityNumber number) {
    const Box gone = bounds(drawing.entities[number]);
    drawing.index.remove(number, gone);
    drawing.index.close_gap(number);
    drawing.entities.erase(drawing.entities.begin() + number);
    shrink_extents(drawing, gone);
}

void move(Drawing& drawing, EntityNumber number, Point2 by) {
    reshape(drawing, number, [by](auto& shape) { move(shape, by); });
}

void rotate(Drawing& drawing, EntityNumber number, Point2 about, double angle) {
    const Affine map = Affine::translation(about).after(Affine::rotation(angle)).after(Affine::translation(about * -1));
    reshape(drawing, number, [&](auto& shape) { turn(shape, map, angle); });
}

void translate(Drawing& drawing, Point2 by) {
    for (Entity& entity : drawing.entities) std::visit([by](auto& shape) { move(shape, by); }, entity.shape);
    reindex(drawing);
}

bool rename_layer(Drawing& drawing, std::string_view from, std::string_view to) {
    const auto at = drawing.layers.find(from);
    if (at == drawing.layers.end() || drawing.layers.find(to) != drawing.layers.end()) return false;
    auto node = drawing.layers.extract(at);
    node.key() = to;
    drawing.layers.insert(std::move(node));
    return true;
}

void reindex(Drawing& drawing) {
    std::vector<Box> boxes;
    boxes.reserve(drawing.entities.size());
    drawing.extents = {};
    for (const Entity& entity : drawing.entities) drawing.extents.add(boxes.emplace_back(bounds(entity)));
    drawing.index.reset(cell_size_for(drawing));
    for (std::size_t i = 0; i < boxes.size(); ++i) drawing.index.insert(static_cast<EntityNumber>(i), boxes[i]);
}

std::vector<EntityNumber> entities_in(const Drawing& drawing, const Box& window) {
    std::vector<EntityNumber> found = drawing.index.candidates(window);
    std::erase_if(found, [&](EntityNumber number) { return !bounds(drawing.entities[number]).intersects(window); });
    return found;
}

std::string broken_invariant(const Document& document) {
    for (const auto& [name, drawing] : document.drawings)
        if (const std::string broken = broken_invariant(drawing); !broken.empty()) return std::string(name) + ": " + broken;
    return {};
}

}  // namespace cad
