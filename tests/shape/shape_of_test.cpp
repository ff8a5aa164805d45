#include <boost/test/unit_test.hpp>

#include <taiyen/shape/detail/builder.hpp>

#include "shape/shapes.hpp"

using namespace taiyen;

BOOST_AUTO_TEST_SUITE(shape_of)

namespace {

template <class T>
Shape shape_of_type() {
    return Shape::decode(std::as_bytes(std::span(stl::encoded_shape<T>())));
}

const ShapePart& field(const Shape& shape, std::string_view name, std::uint32_t node = 0) {
    for (const ShapePart& part : shape.nodes.at(node).parts)
        if (part.name == name) return part;
    BOOST_FAIL("no field " << name);
    std::abort();
}

template <class Class, class Field>
void require_field(const Shape& shape, std::string_view name, Field Class::* member) {
    const Class object{};
    const ShapePart& part = field(shape, name);
    BOOST_TEST(static_cast<std::ptrdiff_t>(part.offset) ==
               reinterpret_cast<const std::byte*>(&(object.*member)) - reinterpret_cast<const std::byte*>(&object));
    BOOST_TEST(shape.nodes.at(part.node).bytes == sizeof(Field));
    BOOST_TEST(shape.nodes.at(part.node).alignment == alignof(Field));
}

}  // namespace

BOOST_AUTO_TEST_CASE(fields_of_aggregates_have_their_names_offsets_and_types) {
    const Shape shape = shape_of_type<shape_test::Bolt>();
    BOOST_TEST(shape.text() ==
               "shape_test::Bolt, 80 bytes\n"
               "  0 name: string\n"
               "  40 tags: vector<string>\n"
               "  72 weight: double\n");
    BOOST_TEST(shape.nodes[0].bytes == sizeof(shape_test::Bolt));
    require_field(shape, "name", &shape_test::Bolt::name);
    require_field(shape, "tags", &shape_test::Bolt::tags);
    require_field(shape, "weight", &shape_test::Bolt::weight);
}

BOOST_AUTO_TEST_CASE(arrays_are_written_as_they_are_declared) {
    BOOST_TEST(shape_of_type<shape_test::Arrays>().text() ==
               "shape_test::Arrays, 72 bytes\n"
               "  0 rows: int32_t[2][3]\n"
               "  24 pairs: char[5][2]\n"
               "  40 pointers: int32_t*[2]\n"
               "  56 to_array: int32_t(*)[4]\n"
               "  64 twice: int32_t(**)[2][3]\n");
}

BOOST_AUTO_TEST_CASE(types_that_lead_to_themselves_or_to_incomplete_ones_are_finite) {
    const Shape shape = shape_of_type<shape_test::Node>();
    BOOST_TEST(shape.text() ==
               "shape_test::Node, 184 bytes\n"
               "  0 next: shape_test::Node*\n"
               "  8 leaf: shape_test::Leaf*\n"
               "  16 bolts: shape_test::Bolt[2]\n"
               "  176 thread: int16_t[3]\n"
               "  182 colour: shape_test::Colour\n"
               "  183 is_done: bool\n"
               "shape_test::Bolt, 80 bytes\n"
               "  0 name: string\n"
               "  40 tags: vector<string>\n"
               "  72 weight: double\n");
    const ShapeNode& next = shape.nodes[field(shape, "next").node];
    BOOST_TEST(next.parts.front().node == 0U);
    const ShapeNode& leaf = shape.nodes[shape.nodes[field(shape, "leaf").node].parts.front().node];
    BOOST_TEST((leaf.kind == ShapeKind::opaque));
    BOOST_TEST(leaf.bytes == 0U);
    BOOST_TEST(leaf.name == "N10shape_test4LeafE");
}

BOOST_AUTO_TEST_CASE(values_of_the_standard_library_are_looked_into) {
    using shape_test::Values;
    const Shape shape = shape_of_type<Values>();
    const auto type_of = [&](std::string_view name) { return shape.type(field(shape, name).node); };
    BOOST_TEST(type_of("optional") == "optional<int64_t>");
    BOOST_TEST(type_of("variant") == "variant<std::monostate, int32_t, string>");
    BOOST_TEST(type_of("pair") == "pair<char, float>");
    BOOST_TEST(type_of("tuple") == "tuple<uint16_t, long double>");
    BOOST_TEST(type_of("complex") == "float[2]");
    BOOST_TEST(type_of("letter") == "char32_t");
    require_field(shape, "time", &Values::time);
    const std::uint32_t time = field(shape, "time").node;
    BOOST_TEST(shape.type(field(shape, "count", time).node) == "int64_t");
    const Values values{};
    const auto begin = reinterpret_cast<const std::byte*>(&values.tuple);
    const ShapeNode& tuple = shape.nodes[field(shape, "tuple").node];
    BOOST_TEST(static_cast<std::ptrdiff_t>(tuple.parts.at(0).offset) == reinterpret_cast<const std::byte*>(&std::get<0>(values.tuple)) - begin);
    BOOST_TEST(static_cast<std::ptrdiff_t>(tuple.parts.at(1).offset) == reinterpret_cast<const std::byte*>(&std::get<1>(values.tuple)) - begin);
    BOOST_TEST(shape.nodes[field(shape, "pair").node].parts.at(1).offset == 4U);
}

BOOST_AUTO_TEST_CASE(every_container_is_known_with_its_element) {
    const Shape shape = shape_of_type<shape_test::Containers>();
    for (const ShapePart& part : shape.nodes[0].parts) {
        const std::string name = part.name == "bits" ? "vector<bool>" : part.name;
        BOOST_TEST(shape.type(part.node).starts_with(name), shape.type(part.node) << " in the place of " << name);
    }
    BOOST_TEST(shape.type(field(shape, "map").node) == "map<string, shape_test::Bolt>");
    BOOST_TEST(shape.type(field(shape, "unordered_map").node) == "unordered_map<int32_t, int32_t>");
    BOOST_TEST(shape.type(field(shape, "btree_set").node) == "btree_set<int32_t>");
    BOOST_TEST(shape.type(field(shape, "flat_hash_map").node) == "flat_hash_map<int32_t, int32_t>");
    const ShapeNode& map = shape.nodes[field(shape, "map").node];
    const ShapeNode& pair = shape.nodes[map.parts.front().node];
    BOOST_TEST((pair.kind == ShapeKind::pair));
    BOOST_TEST(pair.parts.at(1).offset == sizeof(taiyen::string));
}

/// As libstdc++ lays nodes of hash tables: the hash behind the value, or none.
BOOST_AUTO_TEST_CASE(unordered_containers_say_whether_nodes_hold_hashes) {
    const auto keeps = []<class T>(const T&) { return shape_of_type<T>().nodes[0].keeps_hashes; };
    using Text = taiyen::unordered_set<taiyen::string>;
    using Number = taiyen::unordered_set<int, std::hash<int>>;
    BOOST_TEST(keeps(Text()));  // the hash of a string is not noexcept
    BOOST_TEST(!keeps(Number()));
}

BOOST_AUTO_TEST_CASE(a_class_is_opaque_until_it_describes_itself) {
    const Shape hidden = shape_of_type<shape_test::Hidden>();
    BOOST_TEST((hidden.nodes[0].kind == ShapeKind::opaque));
    BOOST_TEST(hidden.text() == "shape_test::Hidden, 4 bytes\n");
    BOOST_TEST((shape_of_type<shape_test::BitFields>().nodes[0].kind == ShapeKind::opaque));
    BOOST_TEST(shape_of_type<shape_test::Told>().text() ==
               "shape_test::Told, 24 bytes\n"
               "  0 serial: int32_t\n"
               "  8 first_: double\n"
               "  16 second_: float\n");
    BOOST_TEST(shape_of_type<shape_test::ToldOutside>().text() ==
               "shape_test::ToldOutside, 40 bytes\n"
               "  0 count: int32_t\n"
               "  8 others: vector<shape_test::ToldOutside*>\n");
}

BOOST_AUTO_TEST_CASE(what_pointers_lead_to_may_be_anything) {
    const Shape shape = shape_of_type<shape_test::Pointers>();
    const auto target_of = [&](std::string_view name) { return shape.nodes.at(shape.nodes.at(field(shape, name).node).parts.front().node); };
    for (const char* const name : {"foreign", "abstract", "allocator_only", "referring", "either", "nothing"}) {
        BOOST_TEST((target_of(name).kind == ShapeKind::opaque), name);
        BOOST_TEST(target_of(name).bytes == 0U);
    }
    BOOST_TEST((target_of("told").kind == ShapeKind::structure));
    BOOST_TEST(target_of("told").parts.size() == 3U);
    BOOST_TEST(shape.type(field(shape, "nothing").node) == "void*");
    BOOST_TEST(shape.type(field(shape, "text").node) == "char*");
    BOOST_TEST(shape.type(field(shape, "twice").node) == "shape_test::Pointers**");
    BOOST_TEST((shape.nodes.at(field(shape, "member").node).kind == ShapeKind::opaque));
}

BOOST_AUTO_TEST_CASE(a_type_that_is_used_often_is_told_once) {
    const Shape shape = shape_of_type<std::pair<taiyen::map<taiyen::string, taiyen::string>, taiyen::vector<taiyen::string>>>();
    std::size_t strings = 0;
    for (const ShapeNode& node : shape.nodes) strings += node.kind == ShapeKind::string ? 1 : 0;
    BOOST_TEST(strings == 1U);
}

BOOST_AUTO_TEST_CASE(a_shape_that_could_not_be_read_is_opaque) {
    shape::Builder builder;
    const std::uint32_t root = builder.enter("P4Root", ShapeKind::structure, 16, 8).node;
    builder.part(root, "pointer", 0, builder.enter("PPv", ShapeKind::pointer, 16, 8).node);
    const std::string text = builder.encoded();
    const Shape shape = Shape::decode(std::as_bytes(std::span(text)));
    BOOST_TEST(shape.text() == "Root, 16 bytes\n");
}

BOOST_AUTO_TEST_CASE(a_type_whose_shape_is_too_long_is_opaque) {
    const auto with_fields = [](std::size_t count) {
        shape::Builder builder;
        const std::uint32_t root = builder.enter("P4Root", ShapeKind::structure, count * 4, 4).node;
        for (std::size_t i = 0; i < count; ++i) {
            const auto [node, is_new] = builder.enter(("P" + std::string(300, 'n') + std::to_string(i)).c_str(), ShapeKind::structure, 4, 4);
            BOOST_TEST(is_new);
            builder.part(root, "field", i * 4, node);
        }
        const std::string text = builder.encoded();
        return Shape::decode(std::as_bytes(std::span(text)));
    };
    const Shape some = with_fields(200);
    BOOST_TEST(some.nodes.size() == 201U);
    BOOST_TEST(some.nodes.at(1).name.size() == 255U);
    const Shape many = with_fields(300);
    BOOST_TEST(many.nodes.size() == 1U);
    BOOST_TEST((many.nodes[0].kind == ShapeKind::opaque));
    BOOST_TEST(many.nodes[0].name == "4Root");
    BOOST_TEST(many.nodes[0].bytes == 1200U);
}

BOOST_AUTO_TEST_SUITE_END()
