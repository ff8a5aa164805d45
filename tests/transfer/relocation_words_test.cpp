// Which words of a heap are pointers, one condition at a time, over a span whose blocks the test lays itself.

#include <boost/test/unit_test.hpp>

#include <cstring>
#include <random>

#include "heap/core.hpp"
#include "heap/test_span.hpp"
#include "seed.hpp"
#include "transfer/pointer_places.hpp"

namespace taiyen::transfer {
namespace {

constexpr ByteCount capacity = ByteCount{4} << 20U;
constexpr std::uintptr_t base = 0x4600'0000'0000;

/// An empty heap for an address where nothing of this process lies.
struct WordsFixture {
    heap::test::SpanMemory memory{capacity};
    heap::test::TestHost host;
    std::unique_ptr<heap::Engine> engine;
    std::filesystem::path path = "words.tyn";

    WordsFixture() {
        heap::Engine::format(memory.base(), capacity, host);
        engine = std::make_unique<heap::Engine>(memory.base(), capacity, host);
    }
    std::uint64_t allocate(ByteCount bytes, ByteCount alignment = 16) {
        auto* const block = static_cast<std::byte*>(engine->allocate(bytes, alignment));
        const auto found = engine->find_block(block);
        BOOST_REQUIRE(found.has_value());
        std::memset(block, 0, found->usable_bytes);
        return found->offset.value;
    }
    ByteCount usable(std::uint64_t offset) const { return engine->usable_size(memory.base() + offset); }
    void put(std::uint64_t place, std::uint64_t value) { std::memcpy(memory.base() + place, &value, sizeof value); }
    std::uint64_t get(std::uint64_t place) const {
        std::uint64_t value = 0;
        std::memcpy(&value, memory.base() + place, sizeof value);
        return value;
    }
    HeapView view() const { return {*engine, memory.base(), base, capacity, path}; }
    RebaseReport look(const PlaceBits* known = nullptr) {
        const HeapView at = view();
        RelocationWords words(at);
        RebaseReport report;
        PointerPlaces places(at);
        words.find(places, known, report, 1000, {});
        pages = places.pages();
        for (const PointerPlaces::Page& page : pages) report.pointers += page.pointers;
        return report;
    }
    /// The whole span with its pointers rewritten, page by page.
    std::vector<std::byte> patched(const Relocation& relocation, std::uint64_t& count) {
        const HeapView at = view();
        RelocationWords words(at);
        RebaseReport report;
        PointerPlaces places(at);
        words.find(places, nullptr, report, 1000, {});
        std::vector<std::byte> image(memory.base(), memory.base() + engine->extent());
        for (std::uint64_t page = 0; page < engine->extent() / page_bytes; ++page)
            count += places.patch({page}, std::span(image).subspan(page * page_bytes, page_bytes), relocation);
        return image;
    }
    std::vector<PointerPlaces::Page> pages;
};

BOOST_FIXTURE_TEST_SUITE(relocation_words, WordsFixture)

BOOST_AUTO_TEST_CASE(a_value_is_a_pointer_from_the_first_byte_of_a_live_block_to_its_end_and_nowhere_else) {
    // Of granules, of packed slots, over pages with a tail; every second one goes again.
    std::mt19937_64 random(taiyen::test::seed_of_run());
    std::vector<std::uint64_t> blocks;
    for (int i = 0; i < 400; ++i) blocks.push_back(allocate(1 + random() % (i % 40 == 0 ? 20'000 : 300), i % 3 == 0 ? 8 : 16));
    for (std::size_t i = 0; i < blocks.size(); i += 2) engine->deallocate(memory.base() + blocks[i]);
    std::vector<bool> expected(engine->extent() + 1, false);
    engine->for_each_block([&](const heap::Block& block) {
        for (std::uint64_t at = block.offset.value; at <= block.offset.value + block.usable_bytes; ++at) expected[at] = true;
        return true;
    });
    const HeapView at = view();
    RelocationWords words(at);
    for (std::uint64_t offset = 0; offset < expected.size(); ++offset)
        BOOST_REQUIRE_MESSAGE(words.is_pointer(base + offset) == expected[offset], offset);
    // In another order, so that nothing depends on what was asked before.
    for (int i = 0; i < 20'000; ++i) {
        const std::uint64_t offset = random() % expected.size();
        BOOST_REQUIRE_MESSAGE(words.is_pointer(base + offset) == expected[offset], offset);
    }
    for (const std::uint64_t beyond : {engine->extent() + 1, engine->extent() + page_bytes, capacity, ByteCount{1} << 40U})
        BOOST_TEST(!words.is_pointer(base + beyond));
    BOOST_TEST(!words.is_pointer(base - 1));
    BOOST_TEST(!words.is_pointer(0));
}

BOOST_AUTO_TEST_CASE(the_end_of_a_block_that_ends_with_what_is_in_use_is_a_pointer) {
    // Runs until one ends where the extent does.
    for (int i = 0; i < 200; ++i) {
        const std::uint64_t run = allocate(3 * page_bytes);
        if (run + usable(run) != engine->extent()) continue;
        const HeapView at = view();
        RelocationWords words(at);
        BOOST_TEST(words.is_pointer(base + engine->extent()));
        BOOST_TEST(!words.is_pointer(base + engine->extent() + 1));
        return;
    }
    BOOST_ERROR("no block ends with the extent");
}

BOOST_AUTO_TEST_CASE(what_is_no_pointer_is_told_by_where_it_leads) {
    const std::uint64_t live = allocate(64);
    const std::uint64_t gone = allocate(5000);
    engine->deallocate(memory.base() + gone);
    const HeapView at = view();
    RelocationWords words(at);
    BOOST_CHECK(words.ambiguity(base) == AmbiguousTarget::metadata);
    BOOST_CHECK(words.ambiguity(base + 4095) == AmbiguousTarget::metadata);
    BOOST_CHECK(words.ambiguity(base + gone) == AmbiguousTarget::free_space);
    BOOST_CHECK(words.ambiguity(base + gone + 4999) == AmbiguousTarget::free_space);
    BOOST_CHECK(words.ambiguity(base + engine->extent() - 1) != AmbiguousTarget::beyond);
    BOOST_CHECK(words.ambiguity(base + engine->extent()) == AmbiguousTarget::beyond);
    const ByteCount range = capacity;
    BOOST_CHECK(words.ambiguity(base + range - 1) == AmbiguousTarget::beyond);
    BOOST_CHECK(!words.ambiguity(base + range).has_value());
    BOOST_CHECK(!words.ambiguity(base - 1).has_value());
    BOOST_TEST(words.is_pointer(base + live));
}

BOOST_AUTO_TEST_CASE(only_whole_words_in_live_blocks_change) {
    const std::uint64_t target = allocate(64);
    const std::uint64_t holder = allocate(256);
    const std::uint64_t packed = allocate(40, 8);
    const std::uint64_t run = allocate(2 * page_bytes + 100);
    const std::uint64_t gone = allocate(1000);
    engine->add_root({"name", "type", {target}, 64, 1});
    const std::uint64_t value = base + target;
    std::vector<std::uint64_t> places{
        holder, holder + 8, holder + 248, packed, packed + 32, run, run + page_bytes - 8, run + 2 * page_bytes, run + usable(run) - 8};
    for (const std::uint64_t place : places) put(place, value);
    for (std::uint64_t at = 0; at < 1000 / 8; ++at) put(gone + 8 * at, value);
    engine->deallocate(memory.base() + gone);
    put(holder + 101, value);  // in no word
    put(holder + 200, value << 1U);
    const Relocation moved(base, capacity, base + (std::uintptr_t{1} << 40U));
    std::uint64_t count = 0;
    const std::vector<std::byte> image = patched(moved, count);
    BOOST_TEST(count == places.size());
    std::vector<std::byte> expected(memory.base(), memory.base() + engine->extent());
    for (const std::uint64_t place : places) {
        const std::uint64_t now = moved.map(value);
        std::memcpy(expected.data() + place, &now, sizeof now);
    }
    BOOST_TEST((image == expected));

    // What find() tells is what patch() does.
    const RebaseReport report = look();
    BOOST_TEST(report.pointers == places.size());
    std::uint64_t on_pages = 0;
    for (std::size_t i = 0; i < pages.size(); ++i) {
        on_pages += pages[i].pointers;
        if (i != 0) BOOST_TEST(pages[i - 1].number < pages[i].number);
        const auto here = std::count_if(places.begin(), places.end(), [&](std::uint64_t place) { return place / page_bytes == pages[i].number; });
        BOOST_TEST(pages[i].pointers == here);
    }
    BOOST_TEST(on_pages == places.size());
    BOOST_TEST_REQUIRE(report.ambiguous.size() == 1U);
    BOOST_TEST(report.ambiguous[0].offset == holder + 101);
}

BOOST_AUTO_TEST_CASE(a_pointer_between_two_words_is_told_by_its_place_unless_one_of_them_is_a_pointer) {
    const std::uint64_t target = allocate(64);
    const std::uint64_t holder = allocate(64);
    const std::uint64_t value = base + target;
    for (unsigned shift = 1; shift < 8; ++shift) {
        std::memset(memory.base() + holder, 0, usable(holder));
        put(holder + 16 + shift, value);
        const RebaseReport report = look();
        BOOST_TEST(report.pointers == 0U);
        BOOST_TEST_REQUIRE(report.ambiguous.size() == 1U);
        BOOST_TEST(report.ambiguous[0].offset == holder + 16 + shift);
        BOOST_TEST(report.ambiguous[0].value == value);
        BOOST_CHECK(report.ambiguous[0].target == AmbiguousTarget::unaligned);
    }
    // Beside a word that is a pointer by itself nothing is made of its bytes and its neighbour's.
    std::memset(memory.base() + holder, 0, usable(holder));
    put(holder, value);
    put(holder + 8, value);
    put(holder + 24, value);
    const RebaseReport report = look();
    BOOST_TEST(report.pointers == 3U);
    BOOST_TEST(report.ambiguous_words == 0U);
}

BOOST_AUTO_TEST_CASE(bytes_of_a_pointer_and_of_the_word_beside_it_are_no_address) {
    const std::uint64_t target = allocate(256, 256);
    const std::uint64_t holder = allocate(64);
    const std::uint64_t value = base + target;
    BOOST_REQUIRE(value % 256 == 0U);
    const auto expect = [&](std::uint64_t first, std::uint64_t second, std::uint64_t pointers, std::uint64_t doubts) {
        put(holder + 16, first);
        put(holder + 24, second);
        const RebaseReport report = look();
        BOOST_TEST(report.pointers == pointers);
        BOOST_TEST(report.ambiguous_words == doubts);
    };
    // The address lies from the first word's last byte on, or up to the second one's first byte: both are zeros.
    expect(17, value >> 8U, 0, 1);
    expect(value, value >> 8U, 1, 0);
    expect(value << 8U, 256, 0, 1);
    expect(value << 8U, value, 1, 0);
    // Nor do two words make one whose bits lie side by side.
    expect(0x4000'0000'0000, value - 0x4000'0000'0000, 0, 0);
}

BOOST_AUTO_TEST_CASE(between_two_words_only_what_leads_to_a_live_block_is_told) {
    const std::uint64_t holder = allocate(64);
    const std::uint64_t gone = allocate(5000);
    engine->deallocate(memory.base() + gone);
    for (const std::uint64_t target : {std::uint64_t{0}, gone, gone + 64, engine->extent() + 8, capacity}) {
        for (unsigned shift = 1; shift < 8; ++shift) {
            std::memset(memory.base() + holder, 0, usable(holder));
            put(holder + 16 + shift, base + target);
            const RebaseReport report = look();
            BOOST_TEST(report.pointers == 0U);
            BOOST_TEST(report.ambiguous_words == 0U);
        }
    }
}

BOOST_AUTO_TEST_CASE(the_last_word_of_a_block_and_the_first_of_the_next_both_change) {
    const std::uint64_t target = allocate(64);
    const std::uint64_t first = allocate(64);
    const std::uint64_t second = allocate(64);
    BOOST_REQUIRE(second == first + usable(first));
    put(second - 8, base + target);
    put(second, base + target);
    const Relocation moved(base, capacity, base + (std::uintptr_t{1} << 40U));
    std::uint64_t count = 0;
    const std::vector<std::byte> image = patched(moved, count);
    BOOST_TEST(count == 2U);
    for (const std::uint64_t place : {second - 8, second}) {
        std::uint64_t now = 0;
        std::memcpy(&now, image.data() + place, sizeof now);
        BOOST_TEST(now == moved.map(base + target));
    }
}

BOOST_AUTO_TEST_CASE(words_that_are_known_are_neither_pointers_nor_ambiguous) {
    const std::uint64_t target = allocate(64);
    const std::uint64_t holder = allocate(64);
    put(holder, base + target);
    put(holder + 8, base + 8);  // metadata
    put(holder + 24 + 3, base + target);
    BOOST_TEST(look().pointers == 1U);
    BOOST_TEST(look().ambiguous_words == 2U);
    PlaceBits known(engine->extent());
    known.set(holder);
    BOOST_TEST(look(&known).pointers == 0U);
    BOOST_TEST(look(&known).ambiguous_words == 2U);
    known.set(holder + 8);
    known.set(holder + 32);
    BOOST_TEST(look(&known).ambiguous_words == 0U);
}

BOOST_AUTO_TEST_CASE(nothing_straddles_the_beginning_of_a_block) {
    const std::uint64_t target = allocate(256, 256);
    const std::uint64_t holder = allocate(64);
    BOOST_REQUIRE(target % 256 == 0U);
    put(holder, (base + target) >> 8U);  // with a zero byte in front it would be the address
    const RebaseReport report = look();
    BOOST_TEST(report.pointers == 0U);
    BOOST_TEST(report.ambiguous_words == 0U);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace taiyen::transfer
