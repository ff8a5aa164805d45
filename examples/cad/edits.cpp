#include "edits.hpp"

#include <iterator>

namespace cad {
namespace {

constexpr std::string_view sketch_prefix = "sketches/";

/// SplitMix64 (Steele, Lea and Flood, 2014).
class Random {
public:
    explicit Random(std::uint64_t seed) : state_(seed) {}
    std::uint64_t operator()() {
        state_ += 0x9e37'79b9'7f4a'7c15U;
        std::uint64_t z = state_;
        z = (z ^ (z >> 30U)) * 0xbf58'476d'1ce4'e5b9U;
        z = (z ^ (z >> 27U)) * 0x94d0'49bb'1331'11ebU;
        return z ^ (z >> 31U);
    }
    std::uint64_t below(std::uint64_t bound) { return (*this)() % bound; }
    /// In [0, 1).
    double fraction() { return static_cast<double>((*this)() >> 11U) * 0x1p-53; }
    Point2 point_in(const Box& box) {
        const double x = fraction();
        const double y = fraction();
        return {box.low.x + x * box.width(), box.low.y + y * box.height()};
    }

private:
    std::uint64_t state_;
};

/// Where a drawing shows things; a square if it is empty or so big that numbers lose their meaning.
Box canvas(const Drawing& drawing) {
    const bool usable = !drawing.extents.empty() && std::isfinite(drawing.extents.width() + drawing.extents.height());
    return usable ? drawing.extents : Box{{0, 0}, {100, 100}};
}

NamedLayer* first_layer(Drawing& drawing) { return &*drawing.layers.try_emplace("0").first; }

void draw_line(Drawing& drawing, Random& random) {
    const Box box = canvas(drawing);
    const Point2 from = random.point_in(box);
    add(drawing, Entity{.layer = first_layer(drawing), .shape = Line{from, random.point_in(box)}});
}

/// A cloud of arcs around a remark that fits no small string.
void draw_note(Drawing& drawing, Random& random) {
    const Box box = canvas(drawing);
    Polyline cloud{{}, true};
    for (std::uint64_t corner = 0, corners = 3 + random.below(40); corner < corners; ++corner)
        cloud.vertices.push_back({random.point_in(box), random.fraction()});
    NamedLayer* layer = first_layer(drawing);
    add(drawing, Entity{.layer = layer, .colour = {1, -1}, .shape = std::move(cloud)});
    taiyen::string remark("please check the tolerance of this part, remark ");
    remark += std::to_string(random.below(1'000'000));
    add(drawing, Entity{.layer = layer, .colour = {1, -1}, .shape = MText{random.point_in(box), 1, random.fraction(), 0, 1, 1, std::move(remark)}});
}

void rename_some_layer(Drawing& drawing, Random& random) {
    const auto at = std::next(drawing.layers.begin(), static_cast<std::ptrdiff_t>(random.below(drawing.layers.size())));
    const std::string from(at->first);
    rename_layer(drawing, from, "layer with a long name, number " + std::to_string(random.below(1'000'000)));
}

void move_all(Drawing& drawing, Random& random) {
    const double far = 1e6;  // back and forth, so that thousands of steps stay near the origin
    const double side = drawing.extents.empty() || drawing.extents.low.x < far ? 1 : -1;
    translate(drawing, {side * random.fraction(), random.fraction() - 0.5});
}

void sketch(Drawing& drawing, Random& random) {
    NamedLayer* layer = first_layer(drawing);
    const Box box{{0, 0}, {100, 100}};
    for (std::uint64_t i = 0, shapes = 1 + random.below(60); i < shapes; ++i) {
        const Point2 centre = random.point_in(box);
        const double radius = 10 * random.fraction();
        if (random.below(2) == 0) {
            add(drawing, Entity{.layer = layer, .shape = Circle{centre, radius}});
        } else {
            const double start = full_turn * random.fraction();
            add(drawing, Entity{.layer = layer, .shape = Arc{centre, radius, start, full_turn * random.fraction()}});
        }
    }
    reindex(drawing);
}

/// The steps within one drawing; where there is nothing to rename or erase, a line is drawn.
void change(Drawing& drawing, Edit::Kind kind, Random& random) {
    switch (kind) {
        case Edit::Kind::draw_note: draw_note(drawing, random); return;
        case Edit::Kind::move: move_all(drawing, random); return;
        case Edit::Kind::rename_layer:
            if (!drawing.layers.empty()) {
                rename_some_layer(drawing, random);
                return;
            }
            break;
        case Edit::Kind::erase_entity:
            if (!drawing.entities.empty()) {
                erase(drawing, static_cast<EntityNumber>(random.below(drawing.entities.size())));
                return;
            }
            break;
        default: break;
    }
    draw_line(drawing, random);
}

}  // namespace

Edit next_edit(const Document& document, std::uint64_t seed) {
    Random random(seed ^ (document.revision * 0xd134'2543'de82'ef95U));
    Edit edit;
    edit.kind = static_cast<Edit::Kind>(random.below(edit_kind_count));
    edit.random = random();
    const auto sketches = document.drawings.lower_bound(sketch_prefix);
    const bool has_sketch = sketches != document.drawings.end() && std::string_view(sketches->first).starts_with(sketch_prefix);
    if (edit.kind == Edit::Kind::remove_drawing && !has_sketch) edit.kind = Edit::Kind::new_drawing;
    if (edit.kind == Edit::Kind::new_drawing) {
        edit.drawings.push_back(std::string(sketch_prefix) + std::to_string(document.revision) + ", drawn at random");
        return edit;
    }
    if (edit.kind == Edit::Kind::remove_drawing) {
        edit.drawings.emplace_back(sketches->first);
        return edit;
    }
    // Now and then a good part of the library moves: a save of megabytes.
    constexpr std::uint64_t many = 250;
    const std::uint64_t wanted = edit.kind == Edit::Kind::move && random.below(2) == 0 ? many : 1;
    auto at = std::next(document.drawings.begin(), static_cast<std::ptrdiff_t>(random.below(document.drawings.size())));
    for (; at != document.drawings.end() && edit.drawings.size() < wanted; ++at) edit.drawings.emplace_back(at->first);
    return edit;
}

void apply(Document& document, const Edit& edit) {
    Random random(edit.random);
    ++document.revision;
    for (const std::string& name : edit.drawings)
        if (edit.kind == Edit::Kind::new_drawing)
            sketch(document.drawings.try_emplace(taiyen::string(name)).first->second, random);
        else if (const auto at = document.drawings.find(std::string_view(name)); at == document.drawings.end())
            continue;
        else if (edit.kind == Edit::Kind::remove_drawing)
            document.drawings.erase(at);
        else
            change(at->second, edit.kind, random);
}

}  // namespace cad
