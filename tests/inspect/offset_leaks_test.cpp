// Leaks of position-independent heaps: reachability goes along distances, wherever the heap is mapped.

#include <boost/test/unit_test.hpp>

#include <taiyen/inspect/leaks.hpp>
#include <taiyen/taiyen.hpp>

#include <cstring>
#include <random>
#include <set>

#include "containers/document.hpp"
#include "containers/offset_family.hpp"
#include "heap/core.hpp"
#include "scratch_directory.hpp"
#include "seed.hpp"

namespace offset_leaks_test {
using namespace taiyen;
using taiyen::test::InOffsetHeap;
using Stored = taiyen::test::Document<InOffsetHeap>;
using Tree = offset::map<int, offset::list<offset::map<int, offset::list<double>>>>;
struct Wrong {
    Wrong() {}  // NOLINT: a raw pointer that the compiler doesn't see
    int value = 0;
    int* self = &value;
};
}  // namespace offset_leaks_test
using namespace offset_leaks_test;

BOOST_AUTO_TEST_SUITE(offset_leaks)

BOOST_AUTO_TEST_CASE(none_is_invented_where_everything_is_held_by_distances) {
    std::mt19937_64 random(taiyen::test::seed_of_run());
    const ScratchDirectory dir;
    ArchiveHeap heap(create_only, dir / "a.tyn", taiyen::test::position_independent_heap());
    const auto check = [](ArchiveHeap& checked) {
        const LeakReport report = find_leaks(checked);
        BOOST_TEST(report.position_independent);
        BOOST_TEST_REQUIRE(report.leaked_blocks == 0U);
        BOOST_TEST_REQUIRE(report.doubtful_blocks == 0U);
        BOOST_TEST_REQUIRE(report.dangling_pointers == 0U);
        std::uint64_t held = 0;
        for (const Holding& holding : report.holdings) held += holding.blocks;
        BOOST_TEST_REQUIRE(held == report.live_blocks);
    };
    for (int round = 0; round < 5; ++round) {
        taiyen::test::change(heap.find_or_construct<Stored>("document"), static_cast<unsigned>(random()));
        taiyen::test::change(heap.find_or_construct<Stored>("another"), static_cast<unsigned>(random()));
        check(heap);
    }
    heap.snapshot();
    heap.close();
    const vm::Reservation other = taiyen::test::take_place_of(dir / "a.tyn");
    ArchiveHeap elsewhere(open_only, dir / "a.tyn");
    check(elsewhere);
}

BOOST_AUTO_TEST_CASE(a_capacity_in_front_of_a_distance_makes_no_end_of_it) {
    const ScratchDirectory dir;
    ArchiveHeap heap(create_only, dir / "a.tyn", taiyen::test::position_independent_heap());
    constexpr std::size_t bytes = 224;
    auto* const holder = static_cast<std::byte*>(heap.allocate(bytes));
    std::byte* neighbour = static_cast<std::byte*>(heap.allocate(bytes));
    std::byte* held = static_cast<std::byte*>(heap.allocate(bytes));
    BOOST_TEST_REQUIRE(held == neighbour + heap.usable_size(neighbour));
    for (std::byte* block : {holder, neighbour, held}) std::memset(block, 0, bytes);
    const auto lead = [&](std::size_t word, const std::byte* to) {
        const std::uint64_t distance = static_cast<std::uint64_t>(to - (holder + word * 8));
        std::memcpy(holder + word * 8, &distance, sizeof distance);
    };
    lead(4, neighbour + 16);  // a length
    lead(5, neighbour);       // a capacity
    lead(6, held);            // where the text is
    heap::add_named(*heap.core(), "text", {holder, bytes, 1, "text"});
    const LeakReport report = find_leaks(heap);
    BOOST_TEST(report.leaked_blocks == 0U);
    BOOST_TEST(report.doubtful_blocks == 0U);
}

BOOST_AUTO_TEST_CASE(planted_ones_are_found_wherever_the_heap_is_mapped) {
    std::mt19937_64 random(taiyen::test::seed_of_run());
    const ScratchDirectory dir;
    std::multiset<std::pair<std::size_t, std::uint64_t>> planted;
    {
        ArchiveHeap heap(create_only, dir / "a.tyn", taiyen::test::position_independent_heap());
        auto& tree = heap.construct<Tree>("tree");
        for (std::uint64_t i = 0; i < 300; ++i) {
            auto& lists = tree[static_cast<int>(random() % 20)];
            if (lists.size() < 3) lists.emplace_back();
            lists.back()[static_cast<int>(random() % 20)].push_back(1.5);
            if (i % 3 != 0) continue;
            auto* const block = static_cast<std::uint64_t*>(heap.allocate(16 + random() % (i % 5 == 0 ? 20'000 : 300), 8));
            block[0] = 0xfeed'0001U + 2 * i;  // odd: leads nowhere
            planted.emplace(heap.usable_size(block), block[0]);
        }
        heap.snapshot();
        heap.close();
    }
    LeakOptions options;
    options.listed_max = 1000;
    const auto check = [&](const ArchiveHeap& heap) {
        const LeakReport report = find_leaks(heap, options);
        std::multiset<std::pair<std::size_t, std::uint64_t>> found;
        for (const LeakedBlock& leak : report.leaks) {
            std::uint64_t first = 0;
            std::memcpy(&first, leak.beginning.data(), sizeof first);
            found.emplace(leak.bytes, first);
        }
        BOOST_TEST((found == planted));
        BOOST_TEST(report.leaked_blocks == planted.size());
    };
    {
        const ArchiveHeap heap(open_read_only, dir / "a.tyn");
        check(heap);
    }
    const vm::Reservation other = taiyen::test::take_place_of(dir / "a.tyn");
    const ArchiveHeap elsewhere(open_read_only, dir / "a.tyn");
    check(elsewhere);
}

BOOST_AUTO_TEST_CASE(an_address_in_it_is_told) {
    const ScratchDirectory dir;
    ArchiveHeap heap(create_only, dir / "a.tyn", taiyen::test::position_independent_heap());
    heap.construct<Wrong>("wrong");
    const LeakReport report = find_leaks(heap);
    BOOST_TEST_REQUIRE(report.dangling_pointers == 1U);
    BOOST_TEST(report.dangling[0].holder == "wrong");
    BOOST_TEST(report.dangling[0].offset == report.dangling[0].target + 8);
}

BOOST_AUTO_TEST_SUITE_END()
