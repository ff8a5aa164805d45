/// Zones: blocks begin there only when nothing else is left. They are many here, so that small spans have some.

#include <optional>
#include <vector>

#include "heap/geometry.hpp"
#include "heap/page_map.hpp"
#include "test_span.hpp"

BOOST_AUTO_TEST_SUITE(zones)

namespace {

using namespace taiyen;
using namespace taiyen::heap;
using namespace taiyen::heap::test;
using namespace taiyen::literals;

constexpr Page distance_pages = 1024;
constexpr Page no_zones = Page{1} << 31U;

struct ZonedHeap {
    explicit ZonedHeap(Page distance = distance_pages, ByteCount capacity_bytes = 64_MiB)
        : capacity(capacity_bytes), zone_distance(distance), geometry(capacity_bytes, distance), memory(capacity_bytes) {
        Engine::format(memory.base(), capacity, host);
        reopen();
    }
    ~ZonedHeap() { BOOST_TEST(damage_text(*engine) == ""); }
    void reopen() {
        engine.reset();
        engine.emplace(memory.base(), capacity, host, nullptr, false, zone_distance);
    }
    Page page_of(const void* block) const {
        return static_cast<Page>(static_cast<ByteCount>(static_cast<const std::byte*>(block) - memory.base()) / page_bytes);
    }
    bool begins_in_zone(const void* block) const { return geometry.in_zone(page_of(block)); }
    std::byte* at(std::uint64_t offset) const { return memory.base() + offset; }
    /// Blocks of that size until HeapFull.
    std::vector<void*> fill(ByteCount bytes) {
        std::vector<void*> blocks;
        try {
            for (;;) blocks.push_back(engine->allocate(bytes));
        } catch (const HeapFull&) {}
        return blocks;
    }
    /// User pages of zones that are available, though no block lies there.
    Page open_pages() const {
        const Span span(memory.base(), nullptr);
        PageMap pages(span, geometry, true);
        pages.reload();
        Page count = 0;
        geometry.for_each_zone(0, pages.extent(), [&](Page first, Page end) {
            for (Page page = first; page < end; ++page) count += pages.is_available(page) ? 1 : 0;
        });
        return count;
    }

    ByteCount capacity;
    Page zone_distance;
    Geometry geometry;
    SpanMemory memory;
    TestHost host;
    std::optional<Engine> engine;
};

}  // namespace

BOOST_AUTO_TEST_CASE(zones_are_the_first_mebibyte_at_each_multiple_of_the_distance_but_0) {
    const Geometry geometry(16_GiB);
    constexpr Page gibibyte = Page{1} << 18U;
    for (const Page zone : {2 * gibibyte, 6 * gibibyte, 14 * gibibyte}) {
        BOOST_TEST(!geometry.in_zone(zone - 1));
        BOOST_TEST(geometry.in_zone(zone));
        BOOST_TEST(geometry.in_zone(zone + 255));
        BOOST_TEST(!geometry.in_zone(zone + 256));
    }
    BOOST_TEST(!geometry.in_zone(0));
    BOOST_TEST(!geometry.in_zone(3 * gibibyte));
}

BOOST_AUTO_TEST_CASE(no_block_begins_in_a_zone_until_nothing_else_is_left_and_the_heap_is_full_no_earlier) {
    for (const ByteCount bytes : {ByteCount{100}, ByteCount{4096}, ByteCount{12288}}) {
        const std::size_t most = ZonedHeap(no_zones).fill(bytes).size();
        ZonedHeap heap;
        for (int round = 0; round < (bytes < 4096 ? 1 : 2); ++round) {  // a page that a class was filling stays its own
            const std::vector<void*> blocks = heap.fill(bytes);
            // Runs of several pages may lie otherwise beside zones.
            BOOST_TEST(blocks.size() + (bytes > 4096 ? 32U : 0U) >= most);
            std::size_t first = 0;
            while (first < blocks.size() && !heap.begins_in_zone(blocks[first])) ++first;
            BOOST_TEST(first < blocks.size());
            // A zone is a quarter of each distance.
            BOOST_TEST(first > blocks.size() * 2 / 3);
            if (bytes == 4096)
                for (std::size_t i = first; i < blocks.size(); ++i) BOOST_TEST_REQUIRE(heap.begins_in_zone(blocks[i]));
            BOOST_TEST(damage_text(*heap.engine) == "");
            for (void* block : blocks) BOOST_TEST_REQUIRE((heap.engine->deallocate(block) == FreeResult::freed));
            heap.engine->release_empty_pages();
            BOOST_TEST(heap.open_pages() == 0U);
            heap.reopen();
        }
    }
}

BOOST_AUTO_TEST_CASE(a_block_may_lie_over_zones_and_leaves_them_closed) {
    ZonedHeap heap;
    for (int round = 0; round < 3; ++round) {
        void* const block = heap.engine->allocate(20_MiB);
        BOOST_TEST(!heap.begins_in_zone(block));
        BOOST_TEST(heap.open_pages() == 0U);
        BOOST_TEST(damage_text(*heap.engine) == "");
        void* const other = heap.engine->allocate(2_MiB);
        BOOST_TEST(!heap.begins_in_zone(other));
        BOOST_TEST((heap.engine->deallocate(block) == FreeResult::freed));
        BOOST_TEST((heap.engine->deallocate(other) == FreeResult::freed));
        BOOST_TEST(heap.open_pages() == 0U);
    }
    BOOST_TEST(heap.engine->page_totals().used == 0U);
}

BOOST_AUTO_TEST_CASE(a_run_that_fits_between_zones_lies_there) {
    ZonedHeap heap;
    for (int i = 0; i < 8; ++i) {
        const Page page = heap.page_of(heap.engine->allocate(2_MiB));
        for (Page behind = page; behind < page + 512; ++behind) BOOST_TEST_REQUIRE(!heap.geometry.in_zone(behind));
    }
}

BOOST_AUTO_TEST_CASE(the_largest_block_is_one_that_can_be_had) {
    for (const Page distance : {distance_pages, no_zones}) {
        ZonedHeap heap(distance);
        const ByteCount largest = heap.engine->stats().largest_free_bytes;
        BOOST_TEST(largest == ZonedHeap(no_zones).engine->stats().largest_free_bytes);
        void* const block = heap.engine->allocate(largest);
        BOOST_TEST((heap.engine->deallocate(block) == FreeResult::freed));
        BOOST_TEST(heap.engine->stats().largest_free_bytes == largest);
        BOOST_TEST(heap.engine->allocate(largest) == block);
        BOOST_CHECK_THROW(heap.engine->allocate(largest), HeapFull);
    }
}

BOOST_AUTO_TEST_CASE(blocks_grow_and_shrink_in_place_over_zones) {
    ZonedHeap heap;
    void* const block = heap.engine->allocate(18_MiB);
    const Page page = heap.page_of(block);
    for (const ByteCount bytes : {19_MiB, 22_MiB, 25_MiB, 20_MiB}) {
        BOOST_TEST(heap.engine->resize(block, bytes) == block);
        BOOST_TEST(damage_text(*heap.engine) == "");
        BOOST_TEST(heap.open_pages() == 0U);
    }
    heap.engine->resize(block, 1_MiB);
    BOOST_TEST(heap.open_pages() == 0U);
    BOOST_TEST(!heap.geometry.in_zone(page));
}

BOOST_AUTO_TEST_CASE(a_place_in_a_zone_can_be_had_by_name) {
    ZonedHeap heap;
    constexpr std::uint64_t zone = 36_MiB;
    BOOST_TEST(heap.engine->allocate_at(heap.at(zone + 64), 100));
    BOOST_TEST(heap.engine->allocate_at(heap.at(zone + 4096), 40, 8));
    BOOST_TEST(heap.engine->allocate_at(heap.at(zone + 8192), 10000));
    BOOST_TEST(heap.engine->allocate_at(heap.at(zone - 8192), 12288 - 4096));
    BOOST_TEST(!heap.engine->allocate_at(heap.at(zone + 8192), 4096));
    BOOST_TEST(damage_text(*heap.engine) == "");
    BOOST_TEST(heap.open_pages() == 0U);
    heap.reopen();
    for (const std::uint64_t offset : {zone + 64, zone + 4096, zone + 8192, zone - 8192})
        BOOST_TEST((heap.engine->deallocate(heap.at(offset)) == FreeResult::freed));
    // Freed ones can be had again, whatever has become of their pages.
    BOOST_TEST(heap.engine->allocate_at(heap.at(zone), 20000));
    BOOST_TEST((heap.engine->deallocate(heap.at(zone)) == FreeResult::freed));
    heap.engine->release_empty_pages();
    BOOST_TEST(heap.open_pages() == 0U);
}

BOOST_AUTO_TEST_CASE(a_page_outside_zones_that_is_nobodys_is_damage) {
    ZonedHeap heap;
    BOOST_TEST((heap.engine->deallocate(heap.engine->allocate(20_MiB)) == FreeResult::freed));
    const Span span(heap.memory.base(), nullptr);
    PageMap pages(span, heap.geometry, false);
    pages.reload();
    const Page page = pages.extent() - 300;
    BOOST_TEST_REQUIRE(!heap.geometry.in_zone(page));
    const PageState before = pages.state(page);
    pages.set_states({page, 1}, PageState::absent);
    BOOST_TEST(damage_text(*heap.engine) != "");
    BOOST_TEST_REQUIRE((before == PageState::available));
    pages.set_states({page, 1}, before);
}

BOOST_AUTO_TEST_CASE(in_a_large_heap_no_small_block_has_an_address_of_small_halves) {
    // Nobody writes the large blocks, so only metadata has memory.
    constexpr ByteCount capacity = 16_GiB;
    ZonedHeap heap(Engine::zone_distance_pages, capacity);
    void* const huge = heap.engine->allocate(5_GiB);
    BOOST_TEST(!heap.begins_in_zone(huge));
    std::vector<void*> blocks;
    for (int i = 0; i < 12; ++i) blocks.push_back(heap.engine->allocate(500_MiB));
    for (int i = 0; i < 200'000; ++i) blocks.push_back(heap.engine->allocate(i % 3 == 0 ? 100 : 3000));
    for (void* block : blocks)
        BOOST_TEST_REQUIRE((static_cast<std::byte*>(block) - heap.memory.base()) % (2_GiB) >= (heap.page_of(block) < (1U << 19U) ? 0 : 1_MiB));
}

BOOST_AUTO_TEST_SUITE_END()
