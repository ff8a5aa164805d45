/// Outlines, text escapes, SVG and PNG.

#include <fstream>
#include <sstream>

#include "cad_heap.hpp"
#include "code_page.hpp"
#include "outline.hpp"
#include "picture.hpp"
#include "render_png.hpp"
#include "render_svg.hpp"

namespace {

using namespace cad;
using namespace cad::test;

bool close_to(Point2 a, Point2 b) { return length(a - b) < 1e-9; }

/// What is wrong with the text as XML, empty if nothing: one root, tags balanced, attributes quoted and unique, nothing unescaped.
std::string xml_fault(std::string_view text) {
    std::vector<std::string> open;
    std::size_t roots = 0;
    std::size_t at = text.starts_with("<?xml") ? text.find("?>") + 2 : 0;
    while (at < text.size()) {
        if (text[at] == '&') {
            const std::string_view entity = text.substr(at, text.find(';', at) - at + 1);
            if (entity != "&amp;" && entity != "&lt;" && entity != "&gt;" && entity != "&quot;") return "bad entity " + std::string(entity);
            at += entity.size();
            continue;
        }
        if (text[at] != '<') {
            if (text[at] == '>' || (open.empty() && text[at] != '\n')) return "text where none may be, at " + std::to_string(at);
            ++at;
            continue;
        }
        const std::size_t end = text.find('>', at);
        if (end == std::string_view::npos) return "a tag without an end";
        std::string_view tag = text.substr(at + 1, end - at - 1);
        at = end + 1;
        if (tag.starts_with('/')) {
            if (open.empty() || open.back() != tag.substr(1)) return "unbalanced </" + std::string(tag.substr(1)) + ">";
            open.pop_back();
            continue;
        }
        const bool empty = tag.ends_with('/');
        tag.remove_suffix(empty ? 1 : 0);
        const std::string name(tag.substr(0, tag.find(' ')));
        tag.remove_prefix(name.size());
        std::vector<std::string> attributes;
        while (!tag.empty()) {
            const std::size_t equals = tag.find("=\"");
            if (tag[0] != ' ' || equals == std::string_view::npos) return "bad attributes of <" + name + ">";
            attributes.emplace_back(tag.substr(1, equals - 1));
            const std::size_t quote = tag.find('"', equals + 2);
            if (quote == std::string_view::npos || tag.substr(equals + 2, quote - equals - 2).find('<') != std::string_view::npos)
                return "bad value in <" + name + ">";
            tag.remove_prefix(quote + 1);
        }
        std::sort(attributes.begin(), attributes.end());
        if (std::adjacent_find(attributes.begin(), attributes.end()) != attributes.end()) return "an attribute twice in <" + name + ">";
        roots += open.empty() ? 1 : 0;
        if (!empty) open.push_back(name);
    }
    return !open.empty() ? "<" + open.back() + "> is not closed" : roots != 1 ? "not one root" : "";
}

std::string svg_of(const Drawing& drawing, std::string_view title, const StrokeFont& font) {
    PictureOptions options;
    options.font = &font;
    std::ostringstream out;
    write_svg(picture_of(drawing, title, options), out);
    return out.str();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(picture)

BOOST_AUTO_TEST_CASE(a_positive_bulge_bends_to_the_right_of_its_chord) {
    // Counterclockwise from (0, 0) to (2, 0): the half circle below the chord.
    const ArcTo half = bulged({0, 0}, {2, 0}, 1);
    BOOST_TEST(close_to(half.from(), {0, 0}));
    BOOST_TEST(close_to(half.at(half.start + half.sweep / 2), {1, -1}));
    BOOST_TEST(close_to(half.to(), {2, 0}));
    const ArcTo quarter = bulged({0, 0}, {1, 1}, -std::tan(radians(90) / 4));
    BOOST_TEST(close_to(quarter.centre, {1, 0}));
    BOOST_TEST(close_to(quarter.to(), {1, 1}));
}

BOOST_AUTO_TEST_CASE(bounds_of_an_arc_reach_to_where_it_turns_and_no_farther) {
    const Box right = bounds(outline(Arc{{0, 0}, 1, radians(-30), radians(60)}));
    BOOST_TEST(std::abs(right.high.x - 1) < 1e-12);
    BOOST_TEST(std::abs(right.low.x - std::cos(radians(30))) < 1e-12);
    BOOST_TEST(std::abs(right.high.y - 0.5) < 1e-12);
    const Box clockwise = bounds(outline(Arc{{0, 0}, 1, radians(30), radians(-60)}));
    BOOST_TEST(length(clockwise.low - right.low) + length(clockwise.high - right.high) < 1e-12);
    const Box left = bounds(outline(Arc{{0, 0}, 1, radians(30), radians(300)}));
    BOOST_TEST(std::abs(left.low.x + 1) < 1e-12);
    BOOST_TEST(std::abs(left.high.x - std::cos(radians(30))) < 1e-12);
}

BOOST_AUTO_TEST_CASE(a_turned_ellipse_has_the_bounds_of_its_sampled_points) {
    const Ellipse ellipse{{3, -2}, {2, 1}, 0.4, 0.3, 4};
    const Box exact = bounds(outline(ellipse));
    const Point2 minor = turned_left(ellipse.major) * ellipse.ratio;
    Box sampled;
    for (int i = 0; i <= 100'000; ++i) {
        const double t = ellipse.start + ellipse.sweep * i / 100'000;
        sampled.add(ellipse.centre + ellipse.major * std::cos(t) + minor * std::sin(t));
    }
    BOOST_TEST(length(exact.low - sampled.low) < 1e-8);
    BOOST_TEST(length(exact.high - sampled.high) < 1e-8);
}

BOOST_AUTO_TEST_CASE(a_spline_of_one_span_is_its_bezier_curve) {
    DocumentInHeap in_heap;
    const Spline spline{3, false, {0, 0, 0, 0, 1, 1, 1, 1}, {{{0, 0}, 1}, {{0, 1}, 1}, {{1, 1}, 1}, {{1, 0}, 1}}, {}};
    const Path path = outline(spline);
    BOOST_REQUIRE_EQUAL(path.steps.size(), 17U);
    BOOST_TEST(close_to(std::get<LineTo>(path.steps[8]).to, {0.5, 0.75}));
    BOOST_TEST(close_to(std::get<LineTo>(path.steps[16]).to, {1, 0}));
}

BOOST_AUTO_TEST_CASE(an_insert_turns_scales_and_moves_its_block) {
    DocumentInHeap in_heap;
    Drawing& drawing = in_heap.document.drawings.try_emplace("drawing").first->second;
    NamedLayer* const layer = &*drawing.layers.try_emplace("0").first;
    NamedBlock& block = *drawing.blocks.try_emplace("block").first;
    block.second.base = {1, 1};
    block.second.entities.push_back(Entity{.layer = layer, .shape = Line{{1, 1}, {2, 1}}});
    const Insert insert{&block, {10, 20}, {3, 1}, radians(90), 2, 1, {100, 0}};
    BOOST_TEST(close_to(placement(insert, 0, 0)({2, 1}), {10, 23}));
    BOOST_TEST(close_to(placement(insert, 1, 0)({1, 1}), {10, 120}));
    const Entity& added = add(drawing, Entity{.layer = layer, .shape = insert});
    BOOST_TEST(close_to(bounds(added).low, {10, 20}));
    BOOST_TEST(close_to(bounds(added).high, {10, 123}));
}

BOOST_AUTO_TEST_CASE(a_block_that_contains_itself_is_drawn_and_measured_in_bounded_time) {
    DocumentInHeap in_heap;
    Drawing& drawing = in_heap.document.drawings.try_emplace("drawing").first->second;
    NamedLayer* const layer = &*drawing.layers.try_emplace("0").first;
    NamedBlock& block = *drawing.blocks.try_emplace("block").first;
    block.second.entities.push_back(Entity{.layer = layer, .shape = Line{{0, 0}, {1, 1}}});
    block.second.entities.push_back(Entity{.layer = layer, .shape = Insert{.block = &block, .at = {1, 0}}});
    add(drawing, Entity{.layer = layer, .shape = Insert{.block = &block}});
    BOOST_TEST(!picture_of(drawing, "snake").items.empty());
}

BOOST_AUTO_TEST_CASE(escapes_of_texts_become_the_characters_they_stand_for) {
    BOOST_TEST((plain_text("%%c20%%p0.1 %%d %%%") == U"\u230020\u00b10.1 \u00b0 %"));
    BOOST_TEST((plain_text("{\\fArial|b0;a}\\Pb\\~c\\H2.5;d\\\\") == U"a\nb\u00a0cd\\"));
    BOOST_TEST((plain_text("\\U+041b\\U+0438\\S1^2;") == U"\u041b\u04381/2"));
    BOOST_TEST((plain_text("\xff\xc3") == U"\ufffd\ufffd"));
    BOOST_TEST((plain_text("\\").empty()));
}

BOOST_AUTO_TEST_CASE(svg_is_well_formed_for_the_library_and_for_names_that_need_escapes, *boost::unit_test::precondition(library_is_installed)) {
    DocumentInHeap in_heap;
    const StrokeFont font(fs::path(font_folder) / "standard.lff");
    const fs::path library = library_folder;
    for (const std::string name : {"plan/vegetation/v21", "plan/architect/Complete-Lib-V", "misc/a3", "misc/tux"}) {
        const Drawing& drawing = import_dxf(in_heap.document, name, library / (name + ".dxf"));
        const std::string svg = svg_of(drawing, "<" + name + "> & \"more\"", font);
        BOOST_TEST(xml_fault(svg) == "", name << ": " << xml_fault(svg));
        BOOST_TEST(svg.find(" viewBox=\"0 0 ") != std::string::npos);
        BOOST_TEST(svg.find("nan") == std::string::npos);
        BOOST_TEST(svg.find("inf") == std::string::npos);
    }
}

BOOST_AUTO_TEST_CASE(the_xml_check_finds_faults) {
    BOOST_TEST(xml_fault("<a b=\"1\"><c/></a>") == "");
    for (const char* bad : {"<a>", "<a></b>", "<a b=1/>", "<a/><b/>", "<a>&</a>", "<a b=\"1\" b=\"2\"/>", "<a b=\"<\"/>"})
        BOOST_TEST(xml_fault(bad) != "", bad);
}

BOOST_AUTO_TEST_CASE(an_svg_arc_passes_through_its_middle_on_the_right_side) {
    DocumentInHeap in_heap;
    Drawing& drawing = in_heap.document.drawings.try_emplace("drawing").first->second;
    NamedLayer* const layer = &*drawing.layers.try_emplace("0").first;
    add(drawing, Entity{.layer = layer, .shape = Arc{{0, 0}, 1, 0, radians(90)}});
    PictureOptions options;
    options.long_side = 1000;
    options.margin = 0;
    options.grid = false;
    std::ostringstream out;
    write_svg(picture_of(drawing, "quarter", options), out);
    // From the right end to the top, counterclockwise as seen: with y downwards that is sweep flag 0.
    const std::string middle = "A1000 1000 0 0 0 707.11 292.89A1000 1000 0 0 0 0 0\"";
    BOOST_TEST(out.str().find("M1000 1000" + middle) != std::string::npos, out.str());
}

BOOST_AUTO_TEST_CASE(a_png_has_the_size_of_its_picture) {
    DocumentInHeap in_heap;
    Drawing& drawing = in_heap.document.drawings.try_emplace("drawing").first->second;
    NamedLayer* const layer = &*drawing.layers.try_emplace("0").first;
    add(drawing, Entity{.layer = layer, .shape = Circle{{0, 0}, 1}});
    add(drawing, Entity{.layer = layer, .shape = Ellipse{{0, 0}, {1, 0}, 0, 0, full_turn}});  // flat
    const Picture picture = picture_of(drawing, "circle");
    const fs::path file = in_heap.folder.path() / "circle.png";
    write_png(picture, file);
    std::ifstream in(file, std::ios::binary);
    std::string head(24, '\0');
    in.read(head.data(), static_cast<std::streamsize>(head.size()));
    const auto number_at = [&](std::size_t at) {
        std::uint32_t value = 0;
        for (std::size_t i = 0; i < 4; ++i) value = value << 8U | static_cast<unsigned char>(head[at + i]);
        return value;
    };
    BOOST_TEST(head.substr(1, 3) == "PNG");
    BOOST_TEST(number_at(16) == static_cast<std::uint32_t>(picture.width));
    BOOST_TEST(number_at(20) == static_cast<std::uint32_t>(picture.height));
}

BOOST_AUTO_TEST_SUITE_END()
