/// DXF in, DXF out.

#include <fstream>

#include "cad_heap.hpp"
#include "census.hpp"
#include "dxf_export.hpp"

namespace {

using namespace cad;
using namespace cad::test;

fs::path write_dxf(const fs::path& folder, const std::string& entities) {
    const fs::path file = folder / "drawing.dxf";
    std::ofstream(file) << "0\nSECTION\n2\nENTITIES\n" << entities << "0\nENDSEC\n0\nEOF\n";
    return file;
}

template <class Shape>
const Shape& only_shape(const Drawing& drawing) {
    BOOST_REQUIRE_EQUAL(drawing.entities.size(), 1U);
    BOOST_REQUIRE(std::holds_alternative<Shape>(drawing.entities.front().shape));
    return std::get<Shape>(drawing.entities.front().shape);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(dxf)

BOOST_AUTO_TEST_CASE(the_whole_library_has_the_counts_that_dxflib_alone_has, *boost::unit_test::precondition(library_is_installed)) {
    DocumentInHeap in_heap;
    import_library(in_heap.document, library_folder);
    const auto files = dxf_files(library_folder);
    BOOST_TEST(in_heap.document.drawings.size() == files.size());
    const Census kept = census_of(in_heap.document);
    const Census bare = census_of_files(files);
    for (std::size_t i = 0; i < kind_count; ++i) {
        BOOST_TEST(kept.counts[i] == bare.counts[i], name_of(static_cast<Kind>(i))
                                                         << ": " << kept.counts[i] << " kept, " << bare.counts[i] << " in the files");
    }
    BOOST_TEST(kept.entities() > 0U);
    BOOST_TEST(broken_invariant(in_heap.document) == "");
}

BOOST_AUTO_TEST_CASE(an_exported_drawing_is_read_again_with_the_same_counts_and_extents, *boost::unit_test::precondition(library_is_installed)) {
    DocumentInHeap in_heap;
    const fs::path library = library_folder;
    for (const std::string name : {"plan/vegetation/v21", "plan/architect/Complete-Lib-V", "misc/a3", "misc/tux", "elektro/power/pe25"}) {
        Document& document = in_heap.document;
        document.drawings.clear();
        const Drawing& original = import_dxf(document, name, library / (name + ".dxf"));
        Census before = census_of(document);
        before[Kind::image] = 0;  // they are not exported
        const fs::path file = in_heap.folder.path() / "exported.dxf";
        std::ofstream(file) << dxf_text(original);
        const Box extents = original.extents;
        document.drawings.clear();
        const Drawing& again = import_dxf(document, name, file);
        const Census after = census_of(document);
        for (std::size_t i = 0; i < kind_count; ++i) {
            BOOST_TEST(after.counts[i] == before.counts[i], name << " has " << after.counts[i] << ' ' << name_of(static_cast<Kind>(i))
                                                                 << " after export and import, " << before.counts[i] << " before");
        }
        const double tolerance = 1e-9 * std::max(1.0, extents.width() + extents.height());
        BOOST_TEST(length(again.extents.low - extents.low) <= tolerance, name);
        BOOST_TEST(length(again.extents.high - extents.high) <= tolerance, name);
    }
}

BOOST_AUTO_TEST_CASE(a_clockwise_hatch_edge_runs_clockwise) {
    DocumentInHeap in_heap;
    const fs::path file = write_dxf(
        in_heap.folder.path(),
        "0\nHATCH\n8\n0\n10\n0\n20\n0\n30\n0\n2\nSOLID\n70\n1\n71\n0\n91\n1\n92\n1\n93\n1\n72\n2\n10\n1\n20\n2\n40\n3\n50\n0\n51\n90\n73\n0\n"
        "97\n0\n75\n0\n76\n1\n98\n0\n");
    const auto& hatch = only_shape<Hatch>(import_dxf(in_heap.document, "hatch", file));
    const auto& arc = std::get<Arc>(hatch.loops.at(0).edges.at(0));
    BOOST_TEST(std::abs(arc.start) < 1e-12);
    BOOST_TEST(std::abs(arc.sweep + full_turn / 4) < 1e-12);
}

BOOST_AUTO_TEST_CASE(an_arc_over_the_zero_angle_keeps_its_length) {
    DocumentInHeap in_heap;
    const fs::path file = write_dxf(in_heap.folder.path(), "0\nARC\n8\n0\n10\n0\n20\n0\n40\n1\n50\n350\n51\n10\n");
    const auto& arc = only_shape<Arc>(import_dxf(in_heap.document, "arc", file));
    BOOST_TEST(std::abs(arc.sweep - radians(20)) < 1e-12);
}

BOOST_AUTO_TEST_CASE(text_of_an_old_code_page_becomes_utf8) {
    DocumentInHeap in_heap;
    const fs::path file = in_heap.folder.path() / "russian.dxf";
    std::ofstream(file) << "0\nSECTION\n2\nHEADER\n9\n$ACADVER\n1\nAC1015\n9\n$DWGCODEPAGE\n3\nANSI_1251\n0\nENDSEC\n"
                        << "0\nSECTION\n2\nENTITIES\n0\nTEXT\n8\n0\n10\n0\n20\n0\n40\n1\n1\n\xcb\xe8\xf1\xf2\n0\nENDSEC\n0\nEOF\n";
    BOOST_TEST(std::string_view(only_shape<Text>(import_dxf(in_heap.document, "russian", file)).content) == "\u041b\u0438\u0441\u0442");
}

BOOST_AUTO_TEST_CASE(a_file_that_cannot_be_read_leaves_no_drawing) {
    DocumentInHeap in_heap;
    BOOST_CHECK_THROW(import_dxf(in_heap.document, "nothing", in_heap.folder.path() / "missing.dxf"), std::runtime_error);
    BOOST_TEST(in_heap.document.drawings.empty());
}

BOOST_AUTO_TEST_CASE(a_name_that_is_taken_is_refused_and_the_drawing_stays) {
    DocumentInHeap in_heap;
    const fs::path file = write_dxf(in_heap.folder.path(), "0\nPOINT\n8\n0\n10\n1\n20\n2\n");
    import_dxf(in_heap.document, "twice", file);
    BOOST_CHECK_THROW(import_dxf(in_heap.document, "twice", file), std::invalid_argument);
    BOOST_TEST(in_heap.document.drawings.begin()->second.entities.size() == 1U);
}

BOOST_AUTO_TEST_SUITE_END()
