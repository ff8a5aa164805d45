#include <cstdio>
#include <sstream>
#include <string>

#include "checksum.hpp"
#include "demo/console.hpp"
#include "demo/stages.hpp"

namespace cad::next {

struct Block;
using NamedBlock = std::pair<const taiyen::string, Block>;

struct Insert {
    NamedBlock* block = nullptr;
    Point2 at{};
    Point2 scale{1, 1};
    double angle = 0;
    std::int32_t columns = 1;
    std::int32_t rows = 1;
    Point2 spacing{};
};
using Shape = std::variant<Line, Arc, Circle, Ellipse, Polyline, Spline, Text, MText, Insert, PointMark, Solid, Hatch, Image>;

/// With a remark, which the next version of this program could want.
struct Entity {
    NamedLayer* layer = nullptr;
    NamedLinetype* linetype = nullptr;
    Colour colour{};
    std::int32_t line_width = width_by_layer;
    EntityId id = 0;
    double linetype_scale = 1;
    Shape shape{};
    taiyen::string remark;
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
    std::uint32_t unsupported = 0;
    EntityId last_id = 0;
};
struct Document {
    taiyen::map<taiyen::string, Drawing> drawings;
    std::uint64_t revision = 0;
};

}  // namespace cad::next

namespace cad::demo {
namespace {

/// Whether all that was drawn is drawn, and each pointer leads to where it did.
bool is_the_same(const cad::Document& before, const next::Document& now) {
    bool is_same = before.drawings.size() == now.drawings.size();
    for (const auto& [name, drawing] : now.drawings) {
        const auto old = before.drawings.find(name);
        if (old == before.drawings.end() || old->second.entities.size() != drawing.entities.size()) return false;
        for (std::size_t i = 0; i != drawing.entities.size(); ++i) {
            const next::Entity& entity = drawing.entities[i];
            const cad::Entity& was = old->second.entities[i];
            is_same &= entity.id == was.id && entity.shape.index() == was.shape.index() && entity.line_width == was.line_width;
            is_same &= entity.layer == &*drawing.layers.find(entity.layer->first) && entity.layer->first == was.layer->first;
            if (const auto* const insert = std::get_if<next::Insert>(&entity.shape))
                is_same &= insert->block == &*drawing.blocks.find(insert->block->first) &&
                           insert->block->first == std::get<cad::Insert>(was.shape).block->first;
        }
    }
    return is_same;
}

}  // namespace

bool migrate_to_next_version(const Setting& setting) {
    heading("8. The next version: an entity gets a field");
    const std::filesystem::path file = setting.out / "next.tyn";
    remove_heap(file);
    taiyen::expand_file(setting.out / "library.tyz", file);
    // Elsewhere, so that both are open at once: the shapes of its types tell which words are pointers.
    taiyen::rebase(file, taiyen::anywhere);
    const taiyen::SnapshotHeap old_heap(taiyen::open_read_only, setting.heap_file());
    const auto& before = *old_heap.find<cad::Document>("document");
    taiyen::SnapshotHeap heap(taiyen::open_only, file);

    const std::string path = std::string("drawings[\"") + edited_drawing + "\"].entities[0]";
    std::ostringstream shown;
    taiyen::write_tree(shown, path, taiyen::View(heap).find("document")->at(path), {.depth = 2, .elements = 4, .text_bytes = 80, .indent = 2});
    say("What `taiyen show` prints of it, without this program:");
    std::printf("%s", shown.str().c_str());

    const Clock::time_point start = Clock::now();
    //[ the entities of a stored document get a field
    taiyen::Migration change(heap);
    change.object<next::Document>("document");
    change.with<next::Entity>([](const taiyen::ViewValue& old, next::Entity& entity) {
        entity.remark = "entity " + std::to_string(old.get<EntityId>("id")) + " of the first version";
    });
    const taiyen::MigrationReport report = change.run();
    //]
    const double took = microseconds_since(start);
    const bool fine =
        is_the_same(before, *heap.find<next::Document>("document")) && heap.verify().ok() && taiyen::find_leaks(heap).leaked_blocks == 0;
    row("migrated", time_text(took),
        std::to_string(report.rebuilt) + " values rebuilt, " + std::to_string(report.taken) + " taken as they are, " +
            std::to_string(report.pointers) + " pointers set");
    row("the same drawings, nothing left over", fine ? "yes" : "NO",
        report.objects.front().changes.empty() ? "" : report.objects.front().changes.front().text);
    heap.snapshot();
    return fine;
}

}  // namespace cad::demo
