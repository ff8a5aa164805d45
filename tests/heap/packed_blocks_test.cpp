/// Pages of packed blocks, through the engine: what they save, who gets them, how they begin and end, what is detected in them.

#include "heap/packed_page.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include "heap/geometry.hpp"
#include "test_span.hpp"

BOOST_AUTO_TEST_SUITE(packed_blocks)

namespace {

using namespace taiyen;
using namespace taiyen::heap;
using namespace taiyen::heap::test;
using namespace taiyen::literals;

struct Heap {
    explicit Heap(ByteCount capacity_bytes) : capacity(capacity_bytes), memory(capacity_bytes) {
        Engine::format(memory.base(), capacity, host);
        reopen();
    }
    void reopen() {
        engine.reset();
        engine.emplace(memory.base(), capacity, host);
    }
    std::byte* base() const { return memory.base(); }
    std::byte* packed(ByteCount bytes) { return static_cast<std::byte*>(engine->allocate(bytes, 8)); }
    std::vector<std::byte> copy() const { return {base(), base() + host.extent}; }
    layout::PackedLine& line_of(const void* block) const {
        const auto page = static_cast<Page>(static_cast<ByteCount>(static_cast<const std::byte*>(block) - base()) / page_bytes);
        const Geometry geometry(capacity);
        const Region& region = geometry.region(Geometry::region_of(page));
        return reinterpret_cast<layout::PackedLine*>(base() + region.lines)[page - region.first_user];
    }

    ByteCount capacity;
    SpanMemory memory;
    TestHost host;
    std::optional<Engine> engine;
};

constexpr ByteCount packed_sizes[] = {24, 40, 56, 72, 88, 104, 120};

}  // namespace

BOOST_AUTO_TEST_CASE(a_packed_block_costs_its_size_and_a_thirtieth_part) {
    for (const ByteCount bytes : packed_sizes) {
        Heap heap(64_MiB);
        constexpr std::size_t count = 100'000;
        for (std::size_t i = 0; i < count; ++i) BOOST_REQUIRE(heap.engine->usable_size(heap.packed(bytes)) == bytes);
        const EngineStats stats = heap.engine->stats();
        const ByteCount used = stats.extent_bytes - stats.free_bytes + heap.engine->stats().live_bytes - count * bytes;
        BOOST_TEST(stats.live_bytes == count * bytes);
        BOOST_TEST(used * 30 < count * bytes * 31);
        // A map's million nodes: what the file grows by.
        BOOST_TEST(stats.extent_bytes * 100 < count * bytes * 120);
        BOOST_TEST(damage_text(*heap.engine) == "");
    }
}

BOOST_AUTO_TEST_CASE(only_sizes_that_granules_would_round_up_are_packed_and_only_with_an_alignment_of_8) {
    Heap heap(16_MiB);
    for (ByteCount bytes = 0; bytes <= 300; ++bytes) {
        const bool odd_words = (bytes + 7) / 8 % 2 == 1 && bytes > 16 && bytes <= 120;
        for (const ByteCount alignment : {1U, 2U, 4U, 8U}) {
            const void* block = heap.engine->allocate(bytes, alignment);
            BOOST_TEST(heap.engine->usable_size(block) % 16 == (odd_words ? 8U : 0U));
            BOOST_TEST(reinterpret_cast<std::uintptr_t>(block) % 8 == 0U);
        }
        for (const ByteCount alignment : {16U, 32U, 64U, 4096U}) {
            const void* block = heap.engine->allocate(bytes, alignment);
            BOOST_TEST(heap.engine->usable_size(block) % 16 == 0U);
            BOOST_TEST(reinterpret_cast<std::uintptr_t>(block) % alignment == 0U);
        }
        BOOST_TEST(heap.engine->usable_size(heap.engine->allocate(bytes)) % 16 == 0U);
    }
}

BOOST_AUTO_TEST_CASE(bad_frees_in_packed_pages_are_told_and_change_nothing) {
    for (const ByteCount bytes : packed_sizes) {
        Heap heap(1_MiB);
        Engine& engine = *heap.engine;
        std::byte* first = heap.packed(bytes);
        std::byte* second = heap.packed(bytes);
        BOOST_TEST(second == first + bytes);
        BOOST_TEST((engine.deallocate(second) == FreeResult::freed));
        const auto before = heap.copy();
        BOOST_TEST((engine.deallocate(second) == FreeResult::not_a_block));
        for (ByteCount inside = 1; inside < bytes; ++inside) BOOST_TEST((engine.deallocate(first + inside) == FreeResult::not_a_block));
        for (ByteCount at = bytes; at < page_bytes; ++at) BOOST_REQUIRE((engine.deallocate(first + at) == FreeResult::not_a_block));
        BOOST_TEST(engine.usable_size(first + 8) == 0U);
        BOOST_CHECK_EXCEPTION(engine.resize(second, 10), Error, [](const Error& error) { return error.code() == errc::double_free; });
        BOOST_TEST((heap.copy() == before));
        BOOST_TEST((engine.deallocate(first) == FreeResult::freed));
        heap.reopen();
        BOOST_TEST((heap.engine->deallocate(first) == FreeResult::not_a_block));
    }
}

BOOST_AUTO_TEST_CASE(a_full_page_of_packed_blocks_is_found_again_when_one_of_them_went) {
    for (const ByteCount bytes : packed_sizes) {
        Heap heap(1_MiB);
        std::vector<std::byte*> blocks;
        for (std::size_t i = 0; i < 10 * (page_bytes / bytes); ++i) blocks.push_back(heap.packed(bytes));
        BOOST_TEST(blocks[page_bytes / bytes] == blocks[0] + page_bytes);  // ten full pages
        const std::vector<std::byte*> gone{blocks[3], blocks[4 * (page_bytes / bytes)], blocks.back()};
        for (const bool reopened : {false, true}) {
            for (std::byte* block : gone) BOOST_TEST((heap.engine->deallocate(block) == FreeResult::freed));
            if (reopened) heap.reopen();
            std::vector<std::byte*> again;
            for (std::size_t i = 0; i < gone.size(); ++i) again.push_back(heap.packed(bytes));
            BOOST_TEST(std::is_permutation(again.begin(), again.end(), gone.begin(), gone.end()));
        }
        BOOST_TEST(damage_text(*heap.engine) == "");
    }
}

BOOST_AUTO_TEST_CASE(packed_pages_without_blocks_serve_other_blocks) {
    Heap heap(1_MiB);
    for (const ByteCount bytes : packed_sizes) {
        std::vector<std::byte*> blocks;
        while (heap.engine->stats().free_bytes > 64_KiB || heap.engine->extent() < 1_MiB)
            for (unsigned i = 0; i < 100; ++i) blocks.push_back(heap.packed(bytes));
        for (std::byte* block : blocks) BOOST_REQUIRE((heap.engine->deallocate(block) == FreeResult::freed));
        BOOST_TEST(damage_text(*heap.engine) == "");
        void* large = heap.engine->allocate(400'000);  // nearly the largest there is
        BOOST_TEST((heap.engine->deallocate(large) == FreeResult::freed));
    }
    BOOST_TEST(heap.engine->stats().live_blocks == 0U);
}

BOOST_AUTO_TEST_CASE(granules_serve_when_no_page_is_left_to_pack) {
    Heap heap(256_KiB);
    std::vector<void*> pages;
    void* const some = heap.engine->allocate(64);  // a page of small blocks with room
    try {
        for (;;) pages.push_back(heap.engine->allocate(4096));
    } catch (const HeapFull&) {}
    std::byte* block = heap.packed(40);
    BOOST_TEST(heap.engine->usable_size(block) == 48U);
    BOOST_TEST((heap.engine->deallocate(pages.back()) == FreeResult::freed));
    BOOST_TEST(heap.engine->usable_size(heap.packed(40)) == 40U);
    BOOST_TEST((heap.engine->deallocate(block) == FreeResult::freed));
    BOOST_TEST((heap.engine->deallocate(some) == FreeResult::freed));
    BOOST_TEST(damage_text(*heap.engine) == "");
}

BOOST_AUTO_TEST_CASE(a_packed_block_grows_by_moving_and_keeps_its_content) {
    Heap heap(1_MiB);
    std::byte* block = heap.packed(40);
    std::memset(block, 0x33, 40);
    BOOST_TEST(heap.engine->resize(block, 25) == block);
    BOOST_TEST(heap.engine->resize(block, 40) == block);
    auto* moved = static_cast<std::byte*>(heap.engine->resize(block, 41));
    BOOST_TEST(moved != block);
    BOOST_TEST(std::all_of(moved, moved + 40, [](std::byte byte) { return byte == std::byte{0x33}; }));
    BOOST_TEST((heap.engine->deallocate(block) == FreeResult::not_a_block));
    block = heap.packed(40);
    std::memset(block, 0x44, 40);
    moved = static_cast<std::byte*>(heap.engine->resize(block, 100'000));
    BOOST_TEST(std::all_of(moved, moved + 40, [](std::byte byte) { return byte == std::byte{0x44}; }));
    BOOST_TEST(damage_text(*heap.engine) == "");
}

BOOST_AUTO_TEST_CASE(a_place_that_no_packed_block_can_have_is_refused) {
    Heap heap(1_MiB);
    std::byte* block = heap.packed(40);
    std::byte* const page = block;
    const auto before = heap.copy();
    BOOST_TEST(!heap.engine->allocate_at(page + 40, 40));       // aligned to 16: no slot
    BOOST_TEST(!heap.engine->allocate_at(page + 48, 40, 8));    // off a slot
    BOOST_TEST(!heap.engine->allocate_at(page + 4080, 40, 8));  // behind the last one
    BOOST_TEST(!heap.engine->allocate_at(page + 96, 24, 8));    // another class's page
    BOOST_TEST(!heap.engine->allocate_at(page, 40, 8));         // taken
    BOOST_TEST((heap.copy() == before));
    BOOST_TEST(heap.engine->allocate_at(page + 4040, 40, 8));
    BOOST_TEST(heap.engine->allocate_at(page + 4096 + 24, 24, 8));
    BOOST_TEST(!heap.engine->allocate_at(page + 4096 + 48 + 16, 16, 8));
    BOOST_TEST(damage_text(*heap.engine) == "");
}

BOOST_AUTO_TEST_CASE(a_packed_pair_of_calls_changes_at_most_32_bytes_beside_page_turns) {
    for (const ByteCount bytes : packed_sizes) {
        Heap heap(1_MiB);
        std::vector<std::byte*> blocks;
        for (unsigned i = 0; i < 20; ++i) blocks.push_back(heap.packed(bytes));
        const auto before = heap.copy();
        heap.engine->deallocate(blocks[7]);
        const auto between = heap.copy();
        const auto differ = [](const std::vector<std::byte>& a, const std::vector<std::byte>& b) {
            std::size_t count = 0;
            for (std::size_t i = 0; i < a.size(); ++i) count += a[i] != b[i] ? 1 : 0;
            return count;
        };
        BOOST_TEST(differ(before, between) == 1U);
        BOOST_TEST(heap.packed(bytes) == blocks[7]);
        BOOST_TEST((heap.copy() == before));
    }
}

BOOST_AUTO_TEST_CASE(check_finds_each_contradiction_of_a_packed_page) {
    Heap heap(1_MiB);
    std::byte* block = heap.packed(40);
    layout::PackedLine& line = heap.line_of(block);
    const layout::PackedLine sound = line;
    const auto damage_of = [&](const auto& change) {
        change(line);
        const std::string text = damage_text(*heap.engine);
        line = sound;
        return text;
    };
    const auto begins = [](const std::string& text, const char* expected) { return text.rfind(expected, 0) == 0; };
    BOOST_TEST(damage_of([](layout::PackedLine&) {}) == "");
    for (const std::uint32_t bytes : {0U, 8U, 16U, 32U, 48U, 136U, 0xFFFF'FFF8U})
        BOOST_TEST(
            begins(damage_of([bytes](layout::PackedLine& l) { l.slot_bytes = bytes; }), "a page of packed blocks has slots of an impossible size"));
    BOOST_TEST(begins(damage_of([](layout::PackedLine& l) { l.occupied[1] |= std::uint64_t{1} << 38U; }),
                      "a packed page has blocks behind its last slot"));  // slot 102
    BOOST_TEST(begins(damage_of([](layout::PackedLine& l) { l.occupied[2] = 1; }), "a packed page has blocks behind its last slot"));
    BOOST_TEST(begins(damage_of([](layout::PackedLine& l) { l.content = 2; }), "a page of packed blocks has slots of an impossible size"));
    BOOST_TEST(begins(damage_of([](layout::PackedLine& l) { l.content = 1; }), "a pointer-free block in a heap whose version has none"));
    BOOST_TEST(begins(damage_of([](layout::PackedLine& l) { l.zero[3] = 1; }), "padding of a packed page's line"));
    BOOST_TEST(begins(damage_of([](layout::PackedLine& l) {
                          l.occupied[0] = ~std::uint64_t{0};
                          l.occupied[1] = (std::uint64_t{1} << 38U) - 1;
                      }),
                      "a page's state and its line differ about room"));
}

BOOST_AUTO_TEST_SUITE_END()
