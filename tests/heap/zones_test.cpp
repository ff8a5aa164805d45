/// Zones: blocks begin there only when nothing else is left. They are many here, so that small spans have some.

#include <array>
#include <cstddef>
#include <cstring>
#include <optional>
#include <utility>
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

/// Refuses to let pages be used, if told so.
class MeagreHost : public TestHost {
public:
    void about_to_use(ByteCount length) override {
        if (refuses) throw HeapFull(length, 0, HeapFull::Cause::disk);
    }
    bool refuses = false;
};

struct ZonedHeap {
    explicit ZonedHeap(Page distance = distance_pages, ByteCount capacity_bytes = 64_MiB, ByteCount limit = ~ByteCount{0})
        : capacity(capacity_bytes), zone_distance(distance), geometry(capacity_bytes, distance), memory(capacity_bytes) {
        host.limit = limit;
        Engine::format(memory.base(), capacity, host);
        reopen();
    }
    ~ZonedHeap() { BOOST_TEST(damage_text(*engine) == ""); }
    void reopen() {
        engine.reset();
        engine.emplace(memory.base(), capacity, host, observer, false, zone_distance);
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
    MeagreHost host;
    WriteObserver* observer = nullptr;
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

BOOST_AUTO_TEST_CASE(a_heap_whose_end_lies_in_or_near_a_zone_is_full_no_earlier) {
    constexpr Page zone = 5 * distance_pages;  // not where a region begins
    for (const Page end : {zone - 1, zone, zone + 1, zone + 2, zone + 17, zone + 64, zone + 255, zone + 256, zone + 257, zone + 300}) {
        const ByteCount bytes = std::uint64_t{end} * page_bytes;
        for (const ByteCount block : {4_KiB, 12_KiB}) {
            // The capacity ends there, or the disk.
            for (const auto& [capacity, limit] : {std::pair{bytes, ~ByteCount{0}}, std::pair{ByteCount{64_MiB}, bytes}}) {
                const std::size_t most = ZonedHeap(no_zones, capacity, limit).fill(block).size();
                ZonedHeap heap(distance_pages, capacity, limit);
                const std::size_t blocks = heap.fill(block).size();
                // Runs of several pages may lie otherwise beside zones.
                BOOST_TEST(blocks + (block > 4096 ? 16U : 0U) >= most,
                           "end " << end << ", capacity " << capacity << ": " << blocks << " of " << most);
                BOOST_TEST(heap.open_pages() == 0U);
                BOOST_TEST(damage_text(*heap.engine) == "");
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(small_heaps_that_end_around_the_first_zone_are_full_no_earlier) {
    for (const Page distance : {256U, 512U, 1024U})
        for (Page end = distance - 2; end < distance + 300; end += end % 64 < 3 ? 1 : 13) {
            const ByteCount bytes = std::uint64_t{end} * page_bytes;
            BOOST_TEST(ZonedHeap(distance, bytes).fill(4096).size() == ZonedHeap(no_zones, bytes).fill(4096).size(),
                       "distance " << distance << ", end " << end);
        }
}

BOOST_AUTO_TEST_CASE(zones_are_closed_after_a_refused_use) {
    ZonedHeap heap;
    while (!heap.begins_in_zone(heap.engine->allocate(4096))) {}
    heap.host.refuses = true;
    for (const ByteCount bytes : {4_KiB, 8_KiB, 12_KiB, 100_KiB}) {
        BOOST_CHECK_THROW(heap.engine->allocate(bytes), HeapFull);
        BOOST_TEST(heap.open_pages() == 0U);
    }
    heap.fill(16);
    BOOST_TEST(heap.open_pages() == 0U);
    constexpr std::uint64_t free_zone = 52_MiB;
    for (const unsigned bytes : {16U, 100U, 4096U, 10000U}) {
        BOOST_CHECK_THROW(heap.engine->allocate_at(heap.at(free_zone), bytes), HeapFull);
        BOOST_TEST(heap.open_pages() == 0U);
    }
    BOOST_TEST(damage_text(*heap.engine) == "");
    heap.host.refuses = false;
    BOOST_TEST(heap.engine->allocate_at(heap.at(free_zone), 10'000));
    BOOST_TEST(heap.open_pages() == 0U);
}

BOOST_AUTO_TEST_CASE(a_refused_allocation_of_a_full_heap_writes_nothing) {
    ZonedHeap heap;
    TestObserver observer;
    heap.observer = &observer;
    heap.reopen();
    while (!heap.begins_in_zone(heap.engine->allocate(4096))) {}
    BOOST_CHECK_THROW(heap.engine->allocate(10_MiB), HeapFull);  // zones are left, and don't suffice
    observer.announced.clear();
    BOOST_CHECK_THROW(heap.engine->allocate(10_MiB), HeapFull);
    BOOST_TEST(observer.announced.size() == 0U);
    // A page out of a zone: no other zone is touched.
    BOOST_TEST(heap.begins_in_zone(heap.engine->allocate(4096)));
    BOOST_TEST(observer.announced.size() < 16U);
    heap.fill(4096);
    observer.announced.clear();
    BOOST_CHECK_THROW(heap.engine->allocate(4096), HeapFull);
    BOOST_TEST(observer.announced.size() == 0U);
}

BOOST_AUTO_TEST_CASE(pages_of_zones_are_given_back_after_use) {
    ZonedHeap heap;
    const auto given_back = [&] {
        Page pages = 0;
        for (const FreeRun& run : heap.engine->release_free_pages(page_bytes))
            for (ByteCount at = 0; at < run.length; at += page_bytes)
                pages += heap.geometry.in_zone(static_cast<Page>((run.offset.value + at) / page_bytes)) ? 1 : 0;
        return pages;
    };
    const std::vector<void*> blocks = heap.fill(4096);
    BOOST_TEST(given_back() == 0U);
    Page freed = 0;
    for (void* block : blocks) {
        heap.engine->deallocate(block);
        freed += heap.begins_in_zone(block) ? 1 : 0;
    }
    BOOST_TEST(freed > 0U);
    BOOST_TEST(given_back() >= freed);
    BOOST_TEST(given_back() == 0U);  // once
    BOOST_TEST(heap.open_pages() == 0U);
    BOOST_TEST(heap.fill(4096).size() == blocks.size());
}

BOOST_AUTO_TEST_CASE(the_longest_run_over_zones_is_what_looking_at_each_page_says) {
    std::mt19937_64 random(taiyen::test::seed_of_run());
    for (const Page distance : {512U, 1024U, 4096U}) {
        ZonedHeap heap(distance);
        std::vector<void*> blocks;
        for (int round = 0; round < 60; ++round) {
            try {
                blocks.push_back(heap.engine->allocate(page_bytes * (1 + random() % (round % 3 == 0 ? 2000 : 40))));
            } catch (const HeapFull&) {}
            if (random() % 3 == 0) {
                std::swap(blocks[random() % blocks.size()], blocks.back());
                heap.engine->deallocate(blocks.back());
                blocks.pop_back();
            }
            const Span span(heap.memory.base(), nullptr);
            PageMap pages(span, heap.geometry, true);
            pages.reload();
            Page longest = 0;
            Page run = 0;
            for (Page page = 0; page < pages.extent(); ++page) {
                const bool begins = page == heap.geometry.region(Geometry::region_of(page)).first;
                const bool open =
                    pages.is_user(page) && (pages.is_available(page) || (heap.geometry.in_zone(page) && pages.state(page) == PageState::absent));
                run = open ? (begins ? 0 : run) + 1 : 0;
                longest = std::max(longest, run);
                if (!open) continue;
                if (random() % 64 != 0) continue;
                BOOST_TEST_REQUIRE(pages.count_over_zones_before(page + 1, page + 1) == run);
                BOOST_TEST_REQUIRE(pages.count_over_zones(page + 1 - run, run) == run);
            }
            BOOST_TEST_REQUIRE(pages.longest_available() == longest);
        }
        for (void* block : blocks) heap.engine->deallocate(block);
    }
}

BOOST_AUTO_TEST_CASE(damage_around_zones_ends_in_errors_not_in_crashes) {
    std::mt19937_64 random(taiyen::test::seed_of_run());
    constexpr ByteCount capacity = 16_MiB;
    constexpr Page distance = 512;
    const Geometry geometry(capacity, distance);
    for (int round = 0; round < 60; ++round) {
        SpanMemory memory(capacity);
        MeagreHost host;
        Engine::format(memory.base(), capacity, host);
        std::optional<Engine> engine(std::in_place, memory.base(), capacity, host, nullptr, false, distance);
        const auto use = [&](int steps) {
            std::vector<void*> blocks;
            for (int i = 0; i < steps; ++i) {
                try {
                    switch (random() % 6) {
                        case 0: blocks.push_back(engine->allocate(random() % 6_MiB)); break;
                        case 1: engine->allocate_at(memory.base() + random() % capacity / page_bytes * page_bytes, random() % 60'000); break;
                        case 2: engine->deallocate(memory.base() + random() % capacity / page_bytes * page_bytes); break;
                        case 3:
                            if (!blocks.empty()) blocks.back() = engine->resize(blocks.back(), random() % 4_MiB);
                            break;
                        case 4: engine->release_free_pages(page_bytes); break;
                        default: blocks.push_back(engine->allocate(random() % 20'000));
                    }
                } catch (const HeapFull&) {
                } catch (const Error& error) {
                    BOOST_TEST((error.code() == errc::corrupt || error.code() == errc::double_free));
                }
            }
        };
        use(60);
        for (unsigned hits = 1 + static_cast<unsigned>(random() % 4); hits != 0; --hits) {
            const Page zone = distance * static_cast<Page>(1 + random() % (capacity / page_bytes / distance - 1));
            const Page page = zone + static_cast<Page>(random() % 300);
            const Region& region = geometry.region(Geometry::region_of(page));
            const std::uint64_t word = region.states + (page - region.first) / layout::segment_pages * sizeof(std::uint64_t);
            const std::uint64_t summary = region.level_offset[0] + (page - region.first) / 256 * sizeof(layout::Summary);
            const std::uint64_t line = region.lines + std::uint64_t{std::max(page, region.first_user) - region.first_user} * sizeof(layout::Line);
            const std::uint64_t root = offsetof(layout::SuperBlock, regions) + random() % geometry.count() * sizeof(layout::Summary);
            const std::array places{word, region.levels == 0 ? root : summary, line, root};
            const std::uint64_t bytes = random() >> (random() % 64);
            std::memcpy(memory.base() + places[random() % places.size()], &bytes, sizeof bytes);
        }
        if (random() % 2 == 0) {
            engine.reset();
            try {
                engine.emplace(memory.base(), capacity, host, nullptr, false, distance);
            } catch (const Error& error) {
                BOOST_TEST((error.code() == errc::corrupt));
                continue;
            }
        }
        BOOST_TEST(engine->check(5).size() <= 5U);
        engine->stats();
        use(60);
        BOOST_TEST(engine->check(5).size() <= 5U);
        engine->stats();
    }
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
