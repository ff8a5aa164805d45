// Maps: every byte of the heap in use is in one cell under one heading, whatever the heap's size; pictures stay small and are well formed.

#include <boost/property_tree/json_parser.hpp>
#include <boost/property_tree/xml_parser.hpp>
#include <boost/test/unit_test.hpp>

#include <taiyen/inspect/heap_map.hpp>
#include <taiyen/taiyen.hpp>

#include <random>
#include <sstream>

#include "scratch_directory.hpp"
#include "seed.hpp"

BOOST_AUTO_TEST_SUITE(heap_map)

namespace {
using namespace taiyen;

PersistentOptions small(std::size_t capacity = 64U << 20U) {
    PersistentOptions options;
    options.capacity = capacity;
    return options;
}

void check_sums(const ArchiveHeap& heap, const HeapMap& map) {
    const HeapStats stats = heap.stats();
    std::uint64_t bytes = 0;
    for (const MapCell& cell : map.cells) {
        BOOST_TEST(cell.bytes() <= map.cell_bytes);
        BOOST_TEST(cell.colour < map.colours.size());
        bytes += cell.bytes();
    }
    BOOST_TEST(bytes == stats.extent_bytes);
    BOOST_TEST(map.sum.bytes() == stats.extent_bytes);
    BOOST_TEST(map.sum.live_bytes == stats.live_bytes);
    BOOST_TEST(map.live_blocks == stats.live_blocks);
    BOOST_TEST(map.sum.free_bytes + map.sum.released_bytes + map.sum.growth_bytes + map.sum.metadata_bytes == stats.extent_bytes - stats.live_bytes);
    BOOST_TEST(map.sum.dirty_bytes == stats.dirty_bytes);
    BOOST_TEST(stats.dirty_bytes == heap.dirty_bytes());
    BOOST_TEST(stats.released_bytes == map.sum.released_bytes);
    BOOST_TEST(stats.page_efficiency == map.page_efficiency);
    BOOST_TEST_REQUIRE(stats.availability.size() == map.availability.size());
    for (std::size_t i = 0; i < map.availability.size(); ++i) {
        BOOST_TEST(stats.availability[i].bytes == map.availability[i].bytes);
        BOOST_TEST(stats.availability[i].share == map.availability[i].share);
    }
    BOOST_TEST(stats.huge_bytes <= stats.extent_bytes);
    std::uint64_t coloured = 0;
    for (const MapKey& key : map.colours) coloured += key.bytes;
    BOOST_TEST(coloured == stats.live_bytes);
}
}  // namespace

BOOST_AUTO_TEST_CASE(every_byte_is_in_one_cell_after_random_work) {
    std::mt19937_64 random(taiyen::test::seed_of_run());
    const ScratchDirectory dir;
    ArchiveHeap heap(create_only, dir / "a.tyn", small());
    std::vector<void*> blocks;
    for (int round = 0; round < 12; ++round) {
        for (int i = 0; i < 500; ++i) {
            const std::size_t bytes = random() % 3 == 0 ? random() % 60'000 : 1 + random() % 600;
            blocks.push_back(heap.allocate(bytes, random() % 2 == 0 ? 8 : 16));
            if (random() % 3 == 0) blocks.back() = heap.resize(blocks.back(), bytes + random() % 20'000);
        }
        for (std::size_t i = 0; i < blocks.size() / 3; ++i) {
            const std::size_t at = random() % blocks.size();
            heap.deallocate(blocks[at]);
            blocks[at] = blocks.back();
            blocks.pop_back();
        }
        if (round % 3 == 2) heap.snapshot();
        for (const std::size_t cells : {1U, 7U, 100U, 100'000U}) {
            MapOptions options;
            options.cells_max = cells;
            const HeapMap map = map_of(heap, options);
            BOOST_TEST(map.cells.size() <= cells);
            BOOST_TEST(map.page_efficiency > 0);
            BOOST_TEST(map.page_efficiency <= 1);
            for (const Availability& available : map.availability) BOOST_TEST((available.share >= 0 && available.share <= 1));
            check_sums(heap, map);
        }
    }
}

BOOST_AUTO_TEST_CASE(cells_have_the_colour_of_the_object_that_holds_most_of_them) {
    const ScratchDirectory dir;
    ArchiveHeap heap(create_only, dir / "a.tyn", small());
    heap.construct<taiyen::vector<double>>("long").resize(100'000);
    heap.construct<taiyen::vector<double>>("short").resize(10'000);
    heap.allocate(400'000);  // nobody's
    MapOptions options;
    options.colour = MapColour::owner;
    const HeapMap map = map_of(heap, options);
    check_sums(heap, map);
    BOOST_TEST_REQUIRE(map.colours.size() == 3U);
    BOOST_TEST(map.colours[0].label == "long");
    BOOST_TEST(map.colours[1].label == "short");
    BOOST_TEST(map.colours[2].bytes >= 400'000U);
    std::array<std::uint64_t, 3> cells{};
    for (const MapCell& cell : map.cells) cells[cell.colour] += cell.live_bytes != 0 ? 1 : 0;
    BOOST_TEST(cells[0] >= 190U);
    BOOST_TEST(cells[1] >= 19U);
    BOOST_TEST(cells[2] >= 97U);
}

BOOST_AUTO_TEST_CASE(pictures_are_well_formed_whatever_objects_are_called) {
    const ScratchDirectory dir;
    ArchiveHeap heap(create_only, dir / "a.tyn", small());
    for (const char* name : {"<&>\"'", "\xff\xfe\xc0\x80", "a\nb\tc\x01", "\xe2\x82\xac uro and a very, very long name that goes on", "plain"})
        heap.construct<taiyen::vector<int>>(name).resize(5000);
    for (int i = 0; i < 20; ++i) heap.construct<int>("number " + std::to_string(i));
    MapOptions options;
    options.colour = MapColour::owner;
    const HeapMap map = map_of(heap, options);
    boost::property_tree::ptree tree;
    std::istringstream svg(map_svg(map));
    BOOST_CHECK_NO_THROW(boost::property_tree::read_xml(svg, tree));
    std::istringstream json(map_json(map));
    BOOST_CHECK_NO_THROW(boost::property_tree::read_json(json, tree));
    BOOST_TEST(tree.get_child("cells").size() == map.cells.size());
    BOOST_TEST(map_text(map, 40).find("a.tyn") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(the_picture_of_a_heap_of_a_hundred_gibibytes_is_no_larger_than_that_of_a_small_one) {
    // A map is a value, so its picture needs no such heap.
    HeapMap map;
    map.path = "large.tyn";
    map.extent_bytes = std::size_t{100} << 30U;
    map.capacity_bytes = std::size_t{1} << 40U;
    map.cell_bytes = std::size_t{32} << 20U;
    for (int i = 0; i < 9; ++i) map.colours.push_back({"size " + std::to_string(i), 1, 1});
    std::mt19937_64 random(taiyen::test::seed_of_run());
    for (std::size_t i = 0; i < map.extent_bytes / map.cell_bytes; ++i) {
        MapCell cell;
        cell.live_bytes = random() % map.cell_bytes;
        cell.free_bytes = map.cell_bytes - cell.live_bytes;
        cell.colour = static_cast<std::uint32_t>(random() % 9);
        map.cells.push_back(cell);
    }
    const std::string svg = map_svg(map);
    BOOST_TEST(svg.size() < 1'000'000U);
    BOOST_TEST(svg.find("32 MiB") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_map_without_cells_is_refused) {
    const ScratchDirectory dir;
    const ArchiveHeap heap(create_only, dir / "a.tyn", small());
    MapOptions options;
    options.cells_max = 0;
    BOOST_CHECK_THROW(map_of(heap, options), Error);
    BOOST_TEST(map_of(heap).cells.size() == 2U);
}

BOOST_AUTO_TEST_SUITE_END()
