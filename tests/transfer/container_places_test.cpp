// Which words prove to be links of a container: each shape as it should be, and with one word that doesn't agree.

#include <boost/test/unit_test.hpp>

#include <bit>
#include <cstring>

#include "heap/core.hpp"
#include "heap/test_span.hpp"
#include "transfer/container_places.hpp"

namespace taiyen::transfer {
namespace {

constexpr ByteCount places_span_bytes = ByteCount{4} << 20U;
constexpr std::uintptr_t places_base = 0x4600'0000'0000;

/// A span whose words the test lays itself.
struct PlacesFixture {
    heap::test::SpanMemory memory{places_span_bytes};
    heap::test::TestHost host;
    std::unique_ptr<heap::Engine> engine;
    std::filesystem::path path = "places.tyn";

    PlacesFixture() {
        heap::Engine::format(memory.base(), places_span_bytes, host);
        engine = std::make_unique<heap::Engine>(memory.base(), places_span_bytes, host);
    }
    std::uint64_t allocate(ByteCount bytes) {
        auto* const block = static_cast<std::byte*>(engine->allocate(bytes, 16));
        std::memset(block, 0, engine->usable_size(block));
        return static_cast<std::uint64_t>(block - memory.base());
    }
    void number(std::uint64_t place, std::uint64_t value) { std::memcpy(memory.base() + place, &value, sizeof value); }
    void link(std::uint64_t place, std::uint64_t to) { number(place, places_base + to); }
    /// Those of the words at `place` that are proven, by their index.
    std::vector<unsigned> proven(std::uint64_t place, unsigned words) {
        const HeapView view{*engine, memory.base(), places_base, places_span_bytes, path};
        PointerPlaces pointers(view);
        RebaseReport report;
        RelocationWords(view).find(pointers, nullptr, report, 0, {});
        const ContainerPlaces containers(view, pointers);
        std::vector<unsigned> found;
        for (unsigned i = 0; i < words; ++i)
            if (containers.has(place + 8 * i)) found.push_back(i);
        return found;
    }
};

using Words = std::vector<unsigned>;

BOOST_FIXTURE_TEST_SUITE(container_places, PlacesFixture)

BOOST_AUTO_TEST_CASE(one_word_that_is_an_address_proves_nothing) {
    const std::uint64_t head = allocate(64);
    const std::uint64_t other = allocate(64);
    for (const std::uint64_t to : {other, other + 8, other + 64, head, head + 8, head + 16}) {
        std::memset(memory.base() + head, 0, 64);
        link(head + 16, to);
        BOOST_TEST((proven(head, 8) == Words{}), to);
    }
}

BOOST_AUTO_TEST_CASE(nodes_of_a_list_lead_back) {
    const std::uint64_t head = allocate(64);
    const std::uint64_t node = allocate(32);
    link(head + 16, node);
    link(head + 24, node);
    link(node, head + 16);
    link(node + 8, head + 16);
    BOOST_TEST((proven(head, 8) == Words{2, 3}));
    BOOST_TEST((proven(node, 4) == Words{0, 1}));
    link(node, head + 40);
    link(node + 8, head + 40);
    BOOST_TEST((proven(head, 8) == Words{}));
    BOOST_TEST((proven(node, 4) == Words{}));
    link(head + 16, head + 16);  // an empty one
    BOOST_TEST((proven(head, 8) == Words{}));
    link(head + 24, head + 16);
    BOOST_TEST((proven(head, 8) == Words{2, 3}));
}

BOOST_AUTO_TEST_CASE(nodes_of_a_tree_lead_back_and_its_header_to_both_ends) {
    const std::uint64_t head = allocate(64);
    const std::uint64_t root = allocate(48);
    const std::uint64_t left = allocate(48);
    const auto lay = [&] {
        link(head + 8, root);
        link(head + 16, left);
        link(head + 24, root);
        link(root + 8, head);
        link(root + 16, left);
        link(left + 8, root);
    };
    lay();
    BOOST_TEST((proven(head, 8) == Words{1, 2, 3}));
    BOOST_TEST((proven(root, 6) == Words{1, 2}));
    BOOST_TEST((proven(left, 6) == Words{1}));
    link(left + 8, left + 40);
    BOOST_TEST((proven(left, 6) == Words{}));
    BOOST_TEST((proven(head, 8) == Words{1, 2, 3}));
    lay();
    link(root + 8, left);
    BOOST_TEST((proven(head, 8) == Words{}));
}

BOOST_AUTO_TEST_CASE(the_words_of_a_vector_ascend_within_a_block_from_its_beginning_on) {
    const std::uint64_t head = allocate(64);
    const std::uint64_t elements = allocate(128);
    const std::uint64_t other = allocate(128);
    const auto lay = [&](std::uint64_t begin, std::uint64_t end, std::uint64_t room_end) {
        link(head + 8, begin);
        link(head + 16, end);
        link(head + 24, room_end);
        return proven(head, 8);
    };
    link(elements, other);
    link(elements + 64, other);  // in reserve
    BOOST_TEST((lay(elements, elements + 64, elements + 128) == Words{1, 2, 3}));
    BOOST_TEST((proven(elements, 16) == Words{8}));
    BOOST_TEST((lay(elements, elements, elements + 128) == Words{1, 2, 3}));
    BOOST_TEST((lay(elements + 8, elements + 64, elements + 128) == Words{}));
    BOOST_TEST((lay(elements, elements + 64, elements + 56) == Words{}));
    BOOST_TEST((lay(elements, other + 8, other + 64) == Words{}));
    BOOST_TEST((lay(elements, elements, elements) == Words{}));
    BOOST_TEST((lay(head, head + 8, head + 16) == Words{}));
}

BOOST_AUTO_TEST_CASE(the_length_of_a_string_fits_its_room_and_that_its_block) {
    const std::uint64_t head = allocate(64);
    const std::uint64_t text = allocate(128);
    const ByteCount bytes = engine->usable_size(memory.base() + text);
    const auto lay = [&](std::uint64_t length, std::uint64_t room) {
        std::memset(memory.base() + text, 'x', bytes);
        if (length < bytes) memory.base()[text + length] = std::byte{0};
        link(head + 8, text);
        number(head + 16, length);
        number(head + 24, room);
        return proven(head, 8);
    };
    BOOST_TEST((lay(100, bytes - 1) == Words{1}));
    BOOST_TEST((lay(100, bytes - 10) == Words{1}));
    BOOST_TEST((lay(100, bytes) == Words{}));
    BOOST_TEST((lay(100, 99) == Words{}));
    BOOST_TEST((lay(10, 30) == Words{}));  // nobody asks for so much then
    lay(100, bytes - 1);
    memory.base()[text + 100] = std::byte{'x'};
    BOOST_TEST((proven(head, 8) == Words{}));
    link(head + 8, head + 24);  // in itself
    for (const auto& [length, words] : std::vector<std::pair<std::uint64_t, Words>>{{15, {1}}, {16, {}}}) {
        number(head + 16, length);
        BOOST_TEST((proven(head, 8) == words), length);
    }
}

BOOST_AUTO_TEST_CASE(a_hash_table_has_as_many_nodes_as_it_says) {
    const std::uint64_t head = allocate(128);
    const std::uint64_t buckets = allocate(13 * 8);
    const std::uint64_t first = allocate(32);
    const std::uint64_t second = allocate(32);
    const auto lay = [&](std::uint64_t count, std::uint64_t elements) {
        link(head + 8, buckets);
        number(head + 16, count);
        link(head + 24, first);
        number(head + 32, elements);
        number(head + 40, std::bit_cast<std::uint32_t>(1.0F));
        link(first, second);
        link(buckets + 16, head + 24);
        link(buckets + 40, first);
        link(buckets + 48, second + 8);  // no link
        return proven(head, 16);
    };
    BOOST_TEST((lay(13, 2) == Words{1, 3}));
    BOOST_TEST((proven(first, 4) == Words{0}));
    BOOST_TEST((proven(buckets, 13) == Words{2, 5}));
    for (const std::uint64_t elements : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{3}, ~std::uint64_t{0}}) {
        BOOST_TEST(lay(13, elements) == Words{}, boost::test_tools::per_element());
        BOOST_TEST((proven(first, 4) == Words{}), elements);
        BOOST_TEST((proven(buckets, 13) == Words{}), elements);
    }
    BOOST_TEST(lay(1'000, 2) == Words{}, boost::test_tools::per_element());
    lay(13, 2);
    number(head + 40, 0);  // no load that a table may have
    BOOST_TEST((proven(head, 16) == Words{}));
    lay(13, 2);
    link(second, first);  // a ring
    BOOST_TEST((proven(head, 16) == Words{}));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace taiyen::transfer
