#pragma once
/// The drawing database: plain structs and standard containers, nested, without a word about storage.
///
/// A document is drawings by name; a drawing has layers, line types and blocks by name, entities in drawing order, a spatial index and extents. An entity
/// points at its layer and line type, an insert at its block: raw pointers to nodes of the drawing's own maps, so renaming touches one node. They hold as long
/// as the node lives, in the next process too, because a heap reopens at its address. Because of them a drawing must not be copied as a whole.
///
/// (D1) every pointer in a drawing leads into the same drawing's maps; (D2) `index` lists the entity numbers of `entities`; (D3) `extents` covers them;
/// (D4) the ids of `entities` ascend, from 1 to at most `last_id`.
/// Thread rule: as any container.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <taiyen/taiyen.hpp>

#include "geometry.hpp"
#include "spatial_index.hpp"

namespace cad {

/// Blocks that contain each other would recurse for ever.
inline constexpr int insert_depth_max = 8;

/// A DXF colour number: 0 as the block that is inserted, 256 as the layer, otherwise an entry of the palette; `rgb` wins if it is not negative.
struct Colour {
    std::int32_t index = 256;
    std::int32_t rgb = -1;
    bool operator==(const Colour&) const = default;
};

/// A pen's width in hundredths of a millimetre, or one of these.
inline constexpr std::int32_t width_by_layer = -1;
inline constexpr std::int32_t width_by_block = -2;
inline constexpr std::int32_t width_default = -3;

struct Layer {
    Colour colour{7, -1};
    std::int32_t line_width = width_default;
    bool visible = true;
};

/// Dash lengths in drawing units: positive a stroke, negative a gap, zero a dot. Empty: a continuous line.
struct Linetype {
    taiyen::vector<double> dashes;
};

struct Block;
struct Entity;
using NamedLayer = std::pair<const taiyen::string, Layer>;
using NamedLinetype = std::pair<const taiyen::string, Linetype>;
using NamedBlock = std::pair<const taiyen::string, Block>;

struct Line {
    Point2 from{};
    Point2 to{};
};
struct Circle {
    Point2 centre{};
    double radius = 0;
};
/// `sweep` is positive counterclockwise.
struct Arc {
    Point2 centre{};
    double radius = 0;
    double start = 0;
    double sweep = 0;
};
/// centre + major·cos t + minor·sin t for t from `start` over `sweep`; minor is `major` turned left by a quarter times `ratio`.
struct Ellipse {
    Point2 centre{};
    Point2 major{};
    double ratio = 1;
    double start = 0;
    double sweep = full_turn;
};
/// `bulge` is the tangent of a quarter of the arc's sweep to the next vertex; 0: a straight line.
struct Vertex {
    Point2 at{};
    double bulge = 0;
};
struct Polyline {
    taiyen::vector<Vertex> vertices;
    bool closed = false;
};
struct ControlPoint {
    Point2 at{};
    double weight = 1;
};
struct Spline {
    std::uint32_t degree = 3;
    bool closed = false;
    taiyen::vector<double> knots;
    taiyen::vector<ControlPoint> control_points;
    taiyen::vector<Point2> fit_points;
};
/// One line of text, justified as DXF's codes 72 and 73 say; raw, with DXF's escapes.
struct Text {
    Point2 at{};
    double height = 1;
    double angle = 0;
    double width_factor = 1;
    std::int32_t horizontal = 0;
    std::int32_t vertical = 0;
    taiyen::string content;
};
/// Text in a box; `attachment` 1…9 is the corner, edge or centre that lies at `at`, row by row from the top left.
struct MText {
    Point2 at{};
    double height = 1;
    double angle = 0;
    double box_width = 0;
    double line_spacing = 1;
    std::int32_t attachment = 1;
    taiyen::string content;
};
struct Insert {
    NamedBlock* block = nullptr;
    Point2 at{};
    Point2 scale{1, 1};
    double angle = 0;
    std::int32_t columns = 1;
    std::int32_t rows = 1;
    Point2 spacing{};
};
struct PointMark {
    Point2 at{};
};
/// Three or four corners in DXF's order: the last two are crossed.
struct Solid {
    std::array<Point2, 4> corners{};
};
using HatchEdge = std::variant<Line, Arc, Ellipse, Spline, Polyline>;
struct HatchLoop {
    taiyen::vector<HatchEdge> edges;
};
struct Hatch {
    taiyen::string pattern;
    double scale = 1;
    double angle = 0;
    bool solid = false;
    taiyen::vector<HatchLoop> loops;
};
/// A placed picture: `u` and `v` are one pixel's vectors.
struct Image {
    Point2 at{};
    Point2 u{};
    Point2 v{};
    Point2 pixels{};
    taiyen::string file;
};

using Shape = std::variant<Line, Arc, Circle, Ellipse, Polyline, Spline, Text, MText, Insert, PointMark, Solid, Hatch, Image>;

/// What an entity is called for as long as its drawing lives: never given twice, not even after it is erased. 0: not in a drawing (yet), or a block's.
using EntityId = std::uint32_t;

struct Entity {
    NamedLayer* layer = nullptr;
    NamedLinetype* linetype = nullptr;  ///< null: as the layer (drawn continuous)
    Colour colour{};
    std::int32_t line_width = width_by_layer;
    EntityId id = 0;
    double linetype_scale = 1;
    Shape shape{};
};

struct Block {
    Point2 base{};
    taiyen::vector<Entity> entities;
};

struct Drawing {
    taiyen::map<taiyen::string, Layer> layers;
    taiyen::map<taiyen::string, Linetype> linetypes;
    taiyen::map<taiyen::string, Block> blocks;
    taiyen::vector<Entity> entities;
    SpatialIndex index;
    Box extents{};
    double linetype_scale = 1;
    std::uint32_t unsupported = 0;  ///< entities of the file it came from that no shape here can hold
    EntityId last_id = 0;           ///< the last one given
};

struct Document {
    taiyen::map<taiyen::string, Drawing> drawings;
    std::uint64_t revision = 0;  ///< number of edits since the import
};

/// An entity's place in the drawing order.
using EntityNumber = SpatialIndex::Number;

/// The box around an entity; a text's is estimated from its height and length. Complexity: linear in its points; an insert's in its block's entities.
Box bounds(const Entity& entity);

/// Appends an entity, gives it the next id, and keeps index and extents. Invalidates: references to entities, as `vector::push_back`.
Entity& add(Drawing& drawing, Entity entity);
/// Removes an entity; the numbers of those behind it become one less. Complexity: linear in the drawing.
void erase(Drawing& drawing, EntityNumber number);
/// Where the entity of that id is; nothing if it was erased or never was. Complexity: logarithmic.
std::optional<EntityNumber> number_of(const Drawing& drawing, EntityId id);
/// Moves one entity. Complexity: linear in its points; in the drawing if it lay at the border of the extents.
void move(Drawing& drawing, EntityNumber number, Point2 by);
/// Turns one entity about a point. Complexity: as `move`.
void rotate(Drawing& drawing, EntityNumber number, Point2 about, double angle);
/// Moves every entity. Complexity: linear in the drawing.
void translate(Drawing& drawing, Point2 by);
/// Gives a layer another name; entities follow without being touched. Returns false if there is no such layer or the new name is taken.
bool rename_layer(Drawing& drawing, std::string_view from, std::string_view to);
/// Recomputes index and extents.
void reindex(Drawing& drawing);
/// Numbers of the entities whose bounds meet `window`, ascending.
std::vector<EntityNumber> entities_in(const Drawing& drawing, const Box& window);

/// Whether (D1)–(D4) hold, for every drawing; the text says what is wrong first, empty if nothing is.
std::string broken_invariant(const Document& document);

}  // namespace cad
