/// The document in another process, and what edits leave behind.

#include <sys/wait.h>

#include <cstdio>

#include "cad_heap.hpp"
#include "checksum.hpp"
#include "edits.hpp"

namespace {

using namespace cad;
using namespace cad::test;

/// What the demo's reading child says about `key`.
std::string told_by_another_process(const fs::path& out, const std::string& library, const std::string& key) {
    const std::string command = std::string(TAIYEN_CAD_DEMO) + " --reopen --out '" + out.string() + "' --library '" + library + "'";
    FILE* const pipe = popen(command.c_str(), "r");
    BOOST_REQUIRE(pipe != nullptr);
    std::string value;
    char line[512];
    while (fgets(line, sizeof line, pipe) != nullptr) {
        const std::string text(line);
        if (text.starts_with(key + ' ')) value = text.substr(key.size() + 1, text.size() - key.size() - 2);
    }
    const int status = pclose(pipe);
    BOOST_REQUIRE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    return value;
}

/// A few drawings with entities of many kinds.
void fill(Document& document, std::uint64_t seed, int steps) {
    for (int i = 0; i < 5; ++i) document.drawings.try_emplace(taiyen::string("a drawing with a name that is not small, " + std::to_string(i)));
    for (int i = 0; i < steps; ++i) apply(document, next_edit(document, seed));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(round_trip)

BOOST_AUTO_TEST_CASE(another_process_finds_the_document_that_was_saved, *boost::unit_test::precondition(library_is_installed)) {
    const TemporaryFolder folder;
    // One small folder of parts is enough; the child wants the drawing that the demo shows.
    const std::string library = std::string(library_folder) + "/plan/vegetation";
    std::uint64_t saved = 0;
    {
        taiyen::SnapshotHeap heap(taiyen::create_only, folder.path() / "library.tyn");
        Document& document = heap.construct<Document>("document");
        import_dxf(document, "plan/vegetation/v21", library + "/v21.dxf");
        fill(document, taiyen::test::seed_of_run(), 200);
        heap.snapshot();
        saved = checksum(document);
        apply(document, next_edit(document, 1));  // not saved
    }
    BOOST_TEST(told_by_another_process(folder.path(), library, "checksum") == std::to_string(saved));
    BOOST_TEST(told_by_another_process(folder.path(), library, "broken") == "nothing");
}

BOOST_AUTO_TEST_CASE(the_heap_knows_what_a_document_is_made_of_in_less_than_two_kilobytes) {
    BOOST_TEST(taiyen::stl::encoded_shape<Document>().size() <= 2048U);
    const taiyen::Shape shape = taiyen::shape_of<Document>();
    BOOST_TEST(shape.nodes[0].parts.at(0).name == "drawings");
    BOOST_TEST(shape.type(shape.nodes[0].parts.at(0).node) == "map<string, cad::Drawing>");
    for (const taiyen::ShapeNode& node : shape.nodes) BOOST_TEST((node.kind != taiyen::ShapeKind::opaque || node.name == "v"), shape.text());
}

BOOST_AUTO_TEST_CASE(edits_keep_pointers_index_and_extents) {
    DocumentInHeap in_heap;
    fill(in_heap.document, taiyen::test::seed_of_run(), 500);
    BOOST_TEST(broken_invariant(in_heap.document) == "");
    BOOST_TEST(in_heap.document.revision == 500U);
    in_heap.heap.snapshot();
    BOOST_TEST(in_heap.heap.verify().ok());
}

BOOST_AUTO_TEST_CASE(the_same_seed_makes_the_same_document) {
    const std::uint64_t value = taiyen::test::seed_of_run();
    DocumentInHeap one;
    fill(one.document, value, 120);
    DocumentInHeap two;
    fill(two.document, value, 120);
    BOOST_TEST(checksum(one.document) == checksum(two.document));
    apply(two.document, next_edit(two.document, value));
    BOOST_TEST(checksum(one.document) != checksum(two.document));
}

BOOST_AUTO_TEST_CASE(a_renamed_layer_takes_its_entities_along) {
    DocumentInHeap in_heap;
    Drawing& drawing = in_heap.document.drawings.try_emplace("drawing").first->second;
    NamedLayer* const walls = &*drawing.layers.try_emplace("walls").first;
    drawing.layers.try_emplace("doors");
    add(drawing, Entity{.layer = walls, .shape = Line{{0, 0}, {1, 1}}});
    BOOST_TEST(!rename_layer(drawing, "walls", "doors"));
    BOOST_TEST(!rename_layer(drawing, "windows", "glass"));
    BOOST_TEST(rename_layer(drawing, "walls", "walls that carry the roof"));
    BOOST_TEST(std::string_view(drawing.entities.front().layer->first) == "walls that carry the roof");
    BOOST_TEST(drawing.entities.front().layer == walls);
    BOOST_TEST(broken_invariant(in_heap.document) == "");
}

BOOST_AUTO_TEST_CASE(the_checksum_sees_every_part_of_a_drawing) {
    DocumentInHeap in_heap;
    Drawing& drawing = in_heap.document.drawings.try_emplace("drawing").first->second;
    NamedLayer* const layer = &*drawing.layers.try_emplace("0").first;
    drawing.linetypes.try_emplace("dashed");
    drawing.blocks.try_emplace("block");
    add(drawing, Entity{.layer = layer, .shape = Text{.content = "text"}});
    const std::uint64_t before = checksum(in_heap.document);
    const auto changes = [&](auto change, auto undo) {
        change();
        const bool seen = checksum(in_heap.document) != before;
        undo();
        return seen && checksum(in_heap.document) == before;
    };
    auto& text = std::get<Text>(drawing.entities.front().shape);
    BOOST_TEST(changes([&] { text.content[0] = 'T'; }, [&] { text.content[0] = 't'; }));
    BOOST_TEST(changes([&] { layer->second.visible = false; }, [&] { layer->second.visible = true; }));
    BOOST_TEST(changes([&] { drawing.linetypes.begin()->second.dashes.push_back(1); }, [&] { drawing.linetypes.begin()->second.dashes.clear(); }));
    BOOST_TEST(changes([&] { drawing.blocks.begin()->second.base.x = 1; }, [&] { drawing.blocks.begin()->second.base.x = 0; }));
    BOOST_TEST(changes([&] { drawing.index.large.push_back(7); }, [&] { drawing.index.large.pop_back(); }));
    BOOST_TEST(changes([&] { drawing.extents.high.x += 1; }, [&] { drawing.extents.high.x -= 1; }));
    BOOST_TEST(changes([&] { ++in_heap.document.revision; }, [&] { --in_heap.document.revision; }));
}

BOOST_AUTO_TEST_SUITE_END()
