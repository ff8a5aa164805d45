// What became of a type is told field by field, and what only may have changed isn't taken for certain.
#include <boost/test/unit_test.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <variant>

#include <taiyen/taiyen.hpp>

#include "shape/encoding.hpp"

namespace changes_test {
using namespace taiyen;
using shape::contradict;

struct Opaque {
    Opaque() = default;
    int first() const { return number_; }

private:
    int number_ = 0;
};
struct OpaqueToo {
    OpaqueToo() = default;
    int first() const { return number_[0]; }

private:
    int number_[2] = {};
};

namespace before {
struct Item {
    std::int32_t number;
    float weight;
};
struct Part {
    std::int32_t id;
    float weight;
    taiyen::string name;
    taiyen::vector<Item> items;
    Item* first;
    taiyen::map<std::int32_t, float> sizes;
    std::variant<std::int32_t, float> value;
    std::array<std::int16_t, 4> places;
    Opaque hidden;
};
struct Point {
    double x;
    double y;
};
}  // namespace before

namespace after {
struct Item {
    std::int32_t number;
    std::int32_t weight;
};
struct Part {
    std::int32_t id;
    double weight;
    taiyen::string title;
    taiyen::vector<Item> items;
    Item* first;
    taiyen::map<std::int32_t, double> sizes;
    std::variant<std::int32_t, float, double> value;
    std::array<std::int16_t, 5> places;
    OpaqueToo hidden;
    taiyen::set<std::int32_t> tags;
};
struct Point {
    double y;
    double x;
};
struct Renamed {
    double x;
    double height;
};
}  // namespace after

template <class A, class B>
std::set<std::string> told() {
    std::set<std::string> texts;
    for (const ShapeChange& change : changes(shape_of<A>(), shape_of<B>())) texts.insert((change.is_certain ? "! " : "? ") + change.text);
    return texts;
}

/// One under the other.
std::string lines_of(const std::set<std::string>& texts) {
    std::string all;
    for (const std::string& text : texts) all += "\n  " + text;
    return all;
}

BOOST_AUTO_TEST_SUITE(shape_changes)

void test_told(const std::set<std::string>& found, const std::set<std::string>& expected) {
    BOOST_TEST((found == expected), "told:" << lines_of(found) << "\nbut not:" << lines_of(expected));
}

BOOST_AUTO_TEST_CASE(each_kind_of_change_has_a_sentence) {
    test_told(told<before::Part, after::Part>(),
              {
                  "! changes_test::after::Item.weight was float, is int32_t",
                  "! changes_test::after::Part took 168 bytes, takes 248",
                  "! changes_test::after::Part.hidden took 4 bytes, takes 8",
                  "! changes_test::after::Part.places was int16_t[4], is int16_t[5]",
                  "! changes_test::after::Part.sizes[*] was pair<int32_t, float>, is pair<int32_t, double>",
                  "! changes_test::after::Part.value was variant<int32_t, float>, is variant<int32_t, float, double>",
                  "! changes_test::after::Part.weight was float, is double",
                  "? changes_test::after::Part.name (string) is gone",
                  "? changes_test::after::Part.tags (set<int32_t>) is new",
                  "? changes_test::after::Part.title (string) is new",
              });
}

BOOST_AUTO_TEST_CASE(what_is_the_same_is_no_change) {
    test_told(told<before::Part, before::Part>(), {});
    test_told(told<taiyen::vector<before::Item>, taiyen::vector<before::Item>>(), {});
}

/// Of one size and the same kinds in the same places.
BOOST_AUTO_TEST_CASE(fields_that_change_places_are_told_and_those_that_get_another_name_are_not) {
    test_told(told<before::Point, after::Point>(),
              {"! changes_test::after::Point.x lay at byte 0, lies at 8", "! changes_test::after::Point.y lay at byte 8, lies at 0"});
    test_told(told<before::Point, after::Renamed>(), {});
    BOOST_TEST(contradict(shape_of<taiyen::list<before::Point>>(), shape_of<taiyen::list<after::Point>>()));
    BOOST_TEST(!contradict(shape_of<taiyen::list<before::Point>>(), shape_of<taiyen::list<after::Renamed>>()));
}

/// A program may describe fewer fields, or none.
BOOST_AUTO_TEST_CASE(a_shape_that_says_less_contradicts_none) {
    const Shape whole = shape_of<before::Part>();
    for (std::size_t node = 0; node != whole.nodes.size(); ++node) {
        if (whole.nodes[node].kind != ShapeKind::structure) continue;
        Shape fewer = whole;
        fewer.nodes[node].parts.pop_back();
        BOOST_TEST(!contradict(whole, fewer));
        BOOST_TEST(!contradict(fewer, whole));
        BOOST_TEST(changes(whole, fewer).size() == 1U);
        Shape none = whole;
        none.nodes[node].kind = ShapeKind::opaque;
        none.nodes[node].parts.clear();
        BOOST_TEST(!contradict(whole, none));
        BOOST_TEST(!contradict(none, whole));
        BOOST_TEST(changes(whole, none).empty());
        none.nodes[node].bytes += 8;
        BOOST_TEST(contradict(whole, none));
    }
}

/// Bases have fields of the same name; some have none.
BOOST_AUTO_TEST_CASE(fields_whose_names_say_nothing_are_known_by_their_places) {
    const ShapeNode number{ShapeKind::signed_integer, false, false, 4, 4, 0, "i", {}};
    const auto with = [&](const std::string& first, const std::string& second) {
        return Shape{{{ShapeKind::structure, false, false, 8, 4, 0, "1S", {{first, 0, 1}, {second, 4, 1}}}, number}};
    };
    BOOST_TEST(changes(with("", ""), with("", "")).empty());
    BOOST_TEST(changes(with("x", "x"), with("x", "x")).empty());
    BOOST_TEST(changes(with("x", "y"), with("", "y")).empty());
    BOOST_TEST(changes(with("x", "y"), with("y", "x")).size() == 2U);
    BOOST_TEST(changes(with("x", "x"), with("x", "y")).empty());
    BOOST_TEST(changes(with("x", "y"), with("y", "y")).empty());
}

enum Unsigned { first };
enum Signed { unknown = -1 };
enum class Scoped : std::int32_t {};
enum class Small : std::uint8_t {};

BOOST_AUTO_TEST_CASE(an_enumeration_is_as_good_as_its_integer) {
    for (const Shape& shape : {shape_of<Unsigned>(), shape_of<Signed>(), shape_of<Scoped>(), shape_of<std::int32_t>(), shape_of<std::uint32_t>()}) {
        BOOST_TEST(changes(shape, shape_of<Scoped>()).empty());
        BOOST_TEST(changes(shape_of<Unsigned>(), shape).empty());
        BOOST_TEST(contradict(shape, shape_of<Small>()));
        BOOST_TEST(contradict(shape, shape_of<float>()));
    }
    BOOST_TEST(contradict(shape_of<std::int32_t>(), shape_of<std::uint32_t>()));
}

/// As where one of the two is a member of a union, and another one was described before.
BOOST_AUTO_TEST_CASE(a_field_of_another_name_and_type_in_one_place_is_not_certain) {
    const ShapeNode number{ShapeKind::signed_integer, false, false, 4, 4, 0, "i", {}};
    const ShapeNode real{ShapeKind::floating_point, false, false, 4, 4, 0, "f", {}};
    const auto with = [&](const std::string& name, const ShapeNode& node) {
        return Shape{{{ShapeKind::structure, false, false, 8, 4, 0, "1S", {{name, 0, 1}}}, node}};
    };
    BOOST_TEST(changes(with("f", real), with("i", number)).size() == 1U);
    BOOST_TEST(!contradict(with("f", real), with("i", number)));
    BOOST_TEST(contradict(with("i", real), with("i", number)));
}

/// Types that lead to each other in every way, with shapes that no compiler made.
BOOST_AUTO_TEST_CASE(hostile_shapes_are_compared_in_bounded_time) {
    const auto web = [](std::size_t count, std::size_t step) {
        Shape shape;
        for (std::uint32_t i = 0; i != count; ++i)
            shape.nodes.push_back({ShapeKind::variant, false, false, 16, 8, 0, {}, {{{}, 0, static_cast<std::uint32_t>((i * step + 1) % count)}}});
        return shape;
    };
    BOOST_TEST(changes(web(4001, 2), web(4003, 3)).size() <= 100U);
    Shape many{{{ShapeKind::structure, false, false, 20'000, 1, 0, "1S", {}}, {ShapeKind::boolean, false, false, 1, 1, 0, "b", {}}}};
    for (std::uint64_t i = 0; i != 20'000; ++i) many.nodes[0].parts.push_back({std::to_string(i), i, 1});
    Shape moved = many;
    for (ShapePart& part : moved.nodes[0].parts) part.name += "x";
    moved.nodes[0].parts.resize(100);
    BOOST_TEST(changes(many, moved).size() <= 101U);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace changes_test
