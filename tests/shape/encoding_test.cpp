// The stored form of shapes: a file that version 1 wrote is read and written anew byte for byte, and no bytes are too bad to be refused.
// TAIYEN_WRITE_GOLDEN=directory writes the file (for a new version, beside the old one).

#include "shape/encoding.hpp"

#include <boost/test/unit_test.hpp>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

#include <taiyen/base/error.hpp>

#include "golden_bytes.hpp"
#include "seed.hpp"
#include "shape/shapes.hpp"

using namespace taiyen;
using taiyen::test::number_at;
using taiyen::test::read_golden;

BOOST_AUTO_TEST_SUITE(shape_encoding)

namespace {

const std::filesystem::path golden = std::filesystem::path(TAIYEN_TESTS_DIR) / "shape/golden/node-v1.bin";

auto has_code(errc code) {
    return [code](const Error& error) { return error.code() == code; };
}

std::vector<std::byte> bytes_of(const std::string& text) {
    const auto bytes = std::as_bytes(std::span(text));
    return {bytes.begin(), bytes.end()};
}

/// With a head that fits the body, as only the library or a forger makes it.
std::vector<std::byte> sealed(std::vector<std::byte> bytes) {
    shape::seal(bytes);
    return bytes;
}

Shape decoded(const std::vector<std::byte>& bytes) { return Shape::decode(bytes); }

void require_refused(const Shape& shape) { BOOST_CHECK_EXCEPTION(decoded(bytes_of(shape::encode(shape))), Error, has_code(errc::corrupt)); }

ShapeNode number_node(std::uint64_t bytes = 4) { return {ShapeKind::signed_integer, false, false, bytes, 4, 0, {}, {}}; }
ShapeNode structure_node(std::uint64_t bytes, std::vector<ShapePart> parts) {
    return {ShapeKind::structure, false, false, bytes, 4, 0, "1A", std::move(parts)};
}

}  // namespace

BOOST_AUTO_TEST_CASE(what_version_1_wrote_is_read) {
    const std::string& now = stl::encoded_shape<shape_test::Node>();
    if (const char* const directory = std::getenv("TAIYEN_WRITE_GOLDEN"))
        std::ofstream(std::filesystem::path(directory) / golden.filename(), std::ios::binary) << now;
    const std::vector<std::byte> bytes = read_golden(golden);
    BOOST_TEST((bytes == bytes_of(now)), "another text than version 1 gave the type");
    BOOST_TEST(number_at(bytes, 0, 4) == 0x4853'5954U);
    BOOST_TEST(number_at(bytes, 4, 2) == 1U);
    BOOST_TEST(number_at(bytes, 6, 2) == 0U);
    BOOST_TEST(number_at(bytes, 8, 4) == bytes.size() - 24);
    BOOST_TEST(number_at(bytes, 24, 1) == 7U);  // a structure
    BOOST_TEST(number_at(bytes, 25, 1) == 0U);
    BOOST_TEST(number_at(bytes, 26, 2) == 0x01B8U);  // of 184 bytes
    BOOST_TEST(number_at(bytes, 28, 1) == 3U);       // aligned to 8
    BOOST_TEST(number_at(bytes, 30, 1) == 19U);      // the length of its name
    const Shape shape = decoded(bytes);
    BOOST_TEST(shape.nodes.size() == number_at(bytes, 12, 4));
    BOOST_TEST(shape.type() == "shape_test::Node");
    BOOST_TEST(shape.nodes[0].parts.at(5).name == "is_done");
    BOOST_TEST(shape::encode(shape) == now);
}

BOOST_AUTO_TEST_CASE(another_version_says_so) {
    std::vector<std::byte> bytes = bytes_of(stl::encoded_shape<shape_test::Bolt>());
    bytes[4] = std::byte{2};
    BOOST_CHECK_EXCEPTION(decoded(bytes), Error, has_code(errc::unsupported_version));
}

BOOST_AUTO_TEST_CASE(each_changed_bit_and_each_lost_end_is_noticed) {
    const std::vector<std::byte> bytes = bytes_of(stl::encoded_shape<shape_test::Node>());
    for (std::size_t i = 0; i < bytes.size() * 8; ++i) {
        std::vector<std::byte> changed = bytes;
        changed[i / 8] ^= static_cast<std::byte>(1U << i % 8);
        BOOST_CHECK_THROW(decoded(changed), Error);
    }
    for (std::size_t size = 0; size < bytes.size(); ++size)
        BOOST_CHECK_EXCEPTION(decoded({bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)}), Error, has_code(errc::corrupt));
}

/// Whatever stands behind a checksum that is right: a shape that keeps its promises, or an error.
BOOST_AUTO_TEST_CASE(hostile_bytes_give_a_sound_shape_or_an_error) {
    std::mt19937_64 random(test::seed_of_run());
    const std::vector<std::byte> bytes = bytes_of(stl::encoded_shape<shape_test::Containers>());
    std::size_t sound = 0;
    for (int round = 0; round < 20'000; ++round) {
        std::vector<std::byte> changed = bytes;
        for (std::uint64_t edits = 1 + random() % 4; edits-- != 0;) {
            const std::size_t at = 12 + random() % (changed.size() - 12);
            switch (random() % 4) {
                case 0: changed[at] = static_cast<std::byte>(random()); break;
                case 1: changed[at] = static_cast<std::byte>(random() % 8); break;
                case 2: changed.erase(changed.begin() + static_cast<std::ptrdiff_t>(std::max<std::size_t>(at, 24))); break;
                default:
                    changed.insert(changed.begin() + static_cast<std::ptrdiff_t>(std::max<std::size_t>(at, 24)), static_cast<std::byte>(random()));
                    break;
            }
        }
        try {
            const Shape shape = decoded(sealed(std::move(changed)));
            ++sound;
            for (const ShapeNode& node : shape.nodes)
                for (const ShapePart& part : node.parts) {
                    BOOST_REQUIRE(part.node < shape.nodes.size());
                    if (holds_in_place(node.kind)) BOOST_REQUIRE(part.offset + shape.nodes[part.node].bytes <= node.bytes);
                }
            BOOST_REQUIRE(shape.text().size() < 1'000'000);
        } catch (const Error& error) {
            BOOST_REQUIRE((error.code() == errc::corrupt || error.code() == errc::unsupported_version));
        }
    }
    BOOST_TEST(sound > 0U);
}

BOOST_AUTO_TEST_CASE(what_a_newer_library_says_is_told_from_damage) {
    ShapeNode later = number_node();
    later.kind = static_cast<ShapeKind>(100);
    BOOST_CHECK_EXCEPTION(decoded(bytes_of(shape::encode({{later}}))), Error, has_code(errc::unsupported_version));
    std::vector<std::byte> flagged = bytes_of(shape::encode({{number_node()}}));
    flagged.at(sizeof(shape::EncodedHead) + 1) = std::byte{64};
    BOOST_CHECK_EXCEPTION(decoded(sealed(flagged)), Error, has_code(errc::unsupported_version));
    const std::string newer = shape::encode({{later}});
    BOOST_TEST(!shape::is_wanted(shape::encode({{number_node()}}), newer));
}

BOOST_AUTO_TEST_CASE(what_could_not_lie_in_memory_is_refused) {
    BOOST_TEST(decoded(bytes_of(shape::encode({{structure_node(8, {{"a", 4, 1}}), number_node()}}))).nodes.size() == 2U);
    require_refused({{structure_node(8, {{"a", 5, 1}}), number_node()}});                     // ends behind it
    require_refused({{structure_node(8, {{"a", ~std::uint64_t{0}, 1}}), number_node()}});     // far behind it
    require_refused({{structure_node(8, {{"a", 0, 0}})}});                                    // lies within itself
    require_refused({{structure_node(8, {{"a", 0, 1}}), structure_node(8, {{"b", 0, 0}})}});  // by way of another
    require_refused({{structure_node(8, {{"a", 0, 2}}), number_node()}});                     // no such node
    require_refused({{number_node(0)}});
    require_refused({{number_node(17)}});
    require_refused({{number_node(3)}});
    for (const ShapeKind kind : {ShapeKind::character, ShapeKind::boolean}) {
        ShapeNode wide = number_node(8);
        wide.kind = kind;
        require_refused({{wide}});
    }
    ShapeNode real = number_node(4);
    real.kind = ShapeKind::floating_point;
    BOOST_TEST(decoded(bytes_of(shape::encode({{real}}))).nodes.size() == 1U);
    require_refused({{{ShapeKind::enumeration, false, false, 4, 4, 0, "5Color", {{"", 0, 1}}}, real}});
    real.bytes = 2;
    require_refused({{real}});
    ShapeNode array{ShapeKind::array, false, false, 8, 4, 3, {}, {{"", 0, 1}}};
    require_refused({{array, number_node()}});
    array.count = 2;
    BOOST_TEST(decoded(bytes_of(shape::encode({{array, number_node()}}))).type() == "int32_t[2]");
    array.count = 0;
    require_refused({{array, number_node()}});
    array.count = ~std::uint64_t{0};
    require_refused({{array, number_node()}});
    const ShapeNode pointer{ShapeKind::pointer, false, false, 8, 8, 0, {}, {{"", 0, 0}}};
    BOOST_TEST(decoded(bytes_of(shape::encode({{pointer}}))).type().size() < 200U);  // to itself: finite
    ShapeNode flagged = number_node();
    flagged.distances = true;
    require_refused({{flagged}});
    flagged = pointer;
    flagged.distances = true;
    BOOST_TEST(decoded(bytes_of(shape::encode({{flagged}}))).nodes[0].distances);
    flagged.keeps_hashes = true;
    require_refused({{flagged}});
    ShapeNode tree{ShapeKind::btree_set, false, false, 48, 8, 256 + 4 * 8, {}, {{"", 0, 1}}};
    BOOST_TEST(decoded(bytes_of(shape::encode({{tree, number_node()}}))).nodes[0].count == 256U + 4 * 8);
    for (const std::uint64_t form : {0U, 255U, 256U + 4 * 17}) {
        tree.count = form;
        require_refused({{tree, number_node()}});
    }
    ShapeNode opaque{ShapeKind::opaque, false, false, std::uint64_t{1} << 47U, 8, 0, "5Thing", {}};
    BOOST_TEST(decoded(bytes_of(shape::encode({{opaque}}))).nodes[0].bytes == std::uint64_t{1} << 47U);
    for (const std::uint64_t bytes : {(std::uint64_t{1} << 47U) + 1, ~std::uint64_t{0} - 7, ~std::uint64_t{0}}) {  // sums with it would be small
        opaque.bytes = bytes;
        require_refused({{opaque}});
    }
    const ShapeNode map{ShapeKind::map, false, false, 48, 8, 0, {}, {{"", 0, 1}}};
    require_refused({{map, number_node()}});
}

/// Tuples of tuples of tuples: 2^40 names.
BOOST_AUTO_TEST_CASE(the_text_of_a_hostile_shape_is_short) {
    Shape shape;
    for (std::uint32_t i = 0; i < 40; ++i) shape.nodes.push_back({ShapeKind::tuple, false, false, 0, 1, 0, {}, {{"", 0, i + 1}, {"", 0, i + 1}}});
    shape.nodes.push_back({ShapeKind::structure, false, false, 0, 1, 0, "3\nxx", {}});
    const Shape read = decoded(bytes_of(shape::encode(shape)));
    BOOST_TEST(read.type().size() < 10'000U);
    BOOST_TEST(read.type(40) == "\\u000axx");
}

BOOST_AUTO_TEST_SUITE_END()
