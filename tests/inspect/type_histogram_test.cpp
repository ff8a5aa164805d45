// How many values there are of each type, and which blocks they hold, is what the program counts itself.

#include <boost/test/unit_test.hpp>

#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <sstream>

#include <taiyen/taiyen.hpp>

#include "inspect/type_walk.hpp"
#include "scratch_directory.hpp"
#include "seed.hpp"
#include "store/heap_access.hpp"

namespace type_histogram_test {
using namespace taiyen;

struct Place {
    float x = 0;
    float y = 0;
};
struct Part {
    taiyen::string name;
    taiyen::vector<Place> places;
    std::optional<int> count;
    Part* next = nullptr;
    const Place* first = nullptr;
};
struct Drawing {
    taiyen::map<int, Part> parts;
    Part* loose = nullptr;
};
class Closed {
public:
    explicit Closed(int* block) : block_(block) {}

private:
    int* block_;
};

PersistentOptions small() {
    PersistentOptions options;
    options.capacity = 16_MiB;
    return options;
}

std::map<std::string, TypeUse> by_type(const TypeHistogram& histogram) {
    std::map<std::string, TypeUse> types;
    for (const TypeUse& use : histogram.types) {
        std::string type = use.type;
        if (const auto at = type.find("type_histogram_test::"); at != std::string::npos)
            for (std::size_t from = at; from != std::string::npos; from = type.find("type_histogram_test::")) type.erase(from, 21);
        BOOST_TEST(types.emplace(type, use).second, type);
    }
    return types;
}

std::uint64_t blocks_of(const TypeHistogram& histogram) {
    std::uint64_t blocks = histogram.other_blocks;
    for (const TypeUse& use : histogram.types) blocks += use.blocks;
    return blocks;
}
std::uint64_t bytes_of(const TypeHistogram& histogram) {
    std::uint64_t bytes = histogram.other_bytes;
    for (const TypeUse& use : histogram.types) bytes += use.block_bytes;
    return bytes;
}

BOOST_AUTO_TEST_SUITE(type_histograms)

BOOST_AUTO_TEST_CASE(values_and_blocks_are_those_that_the_program_counts) {
    std::mt19937_64 random(taiyen::test::seed_of_run());
    const ScratchDirectory directory;
    ArchiveHeap heap(create_only, directory / "a.tyn", small());
    auto& [parts, loose] = heap.construct<Drawing>("drawing");
    auto& list = heap.construct<taiyen::list<taiyen::string>>("list");
    std::uint64_t strings = 0;
    std::uint64_t long_strings = 0;
    std::uint64_t places = 0;
    std::uint64_t vectors = 0;
    std::uint64_t counts = 0;
    std::uint64_t behind_pointers = 0;
    const auto text = [&] {
        const std::size_t length = random() % 40;
        ++strings;
        long_strings += length > 15 ? 1 : 0;
        return std::string(length, 'x');
    };
    const auto fill = [&](Part& part) {
        part.name = text().c_str();
        part.places.resize(random() % 4);
        places += part.places.size();
        vectors += part.places.empty() ? 0 : 1;
        if (random() % 2 == 0) part.count = 1, ++counts;
        if (!part.places.empty() && random() % 2 == 0) part.first = &part.places[random() % part.places.size()];  // no value of its own
    };
    for (int i = 0; i < 50; ++i) fill(parts[i]);
    for (int i = 0; i < 30; ++i) list.push_back(text().c_str());
    // Parts that only pointers lead to, in a ring that also leads to an element of the map.
    for (int i = 0; i < 20; ++i) {
        Part* const part = heap.make<Part>();
        ++behind_pointers;
        fill(*part);
        part->next = loose;
        loose = part;
    }
    for (Part* part = loose; part != nullptr; part = part->next)
        if (part->next == nullptr) {
            part->next = random() % 2 == 0 ? loose : &parts[7];
            break;
        }
    parts[7].next = &parts[8];
    const std::size_t nobodys = heap.usable_size(heap.allocate(1000));

    const TypeHistogram histogram = type_histogram(heap);
    const auto types = by_type(histogram);
    BOOST_TEST(types.at("string").values == strings);
    BOOST_TEST(types.at("string").value_bytes == sizeof(taiyen::string) * strings);
    BOOST_TEST(types.at("string").blocks == long_strings);
    BOOST_TEST(types.at("Part").values == 50 + behind_pointers);
    BOOST_TEST(types.at("Part").blocks == behind_pointers);
    BOOST_TEST(types.at("Part").block_bytes == behind_pointers * heap.usable_size(loose));
    BOOST_TEST(types.at("Part*").values == 50 + behind_pointers + 1);
    BOOST_TEST(types.at("Place").values == places);
    BOOST_TEST(types.at("Place").blocks == 0U);
    BOOST_TEST(types.at("float").values == 2 * places);
    BOOST_TEST(types.at("vector<Place>").values == 50 + behind_pointers);
    BOOST_TEST(types.at("vector<Place>").blocks == vectors);
    BOOST_TEST(types.at("int32_t").values == 50 + counts);  // keys, and what optionals hold
    BOOST_TEST(types.at("map<int32_t, Part>").values == 1U);
    BOOST_TEST(types.at("map<int32_t, Part>").blocks == 50U);
    BOOST_TEST(types.at("Drawing").blocks == 1U);
    BOOST_TEST(types.at("list<string>").blocks == 31U);
    BOOST_TEST(histogram.other_blocks == 1U);
    BOOST_TEST(histogram.other_bytes == nobodys);
    BOOST_TEST(histogram.opaque.empty());
    BOOST_TEST(blocks_of(histogram) == heap.stats().live_blocks);
    BOOST_TEST(bytes_of(histogram) == heap.stats().live_bytes);
    for (std::size_t i = 1; i < histogram.types.size(); ++i) BOOST_TEST(histogram.types[i - 1].block_bytes >= histogram.types[i].block_bytes);
}

BOOST_AUTO_TEST_CASE(every_kind_of_container_holds_its_blocks) {
    const ScratchDirectory directory;
    ArchiveHeap heap(create_only, directory / "a.tyn", small());
    const auto fill = [](auto& container, auto... keys) { (container.insert(keys), ...); };
    auto& set = heap.construct<taiyen::set<int>>("set");
    auto& table = heap.construct<taiyen::unordered_set<int>>("table");
    auto& fast = heap.construct<taiyen::flat_hash_set<int>>("fast");
    auto& tree = heap.construct<taiyen::btree_set<int>>("tree");
    auto& still = heap.construct<taiyen::ordered_set<int>>("still");
    auto& queue = heap.construct<taiyen::deque<int>>("queue");
    auto& chain = heap.construct<taiyen::forward_list<int>>("chain");
    auto& bits = heap.construct<taiyen::vector<bool>>("bits");
    auto& value = heap.construct<std::variant<int, taiyen::string>>("value");
    for (int i = 0; i < 5000; ++i) {
        fill(set, i), fill(table, i), fill(fast, i), fill(tree, i), fill(still, i);
        queue.push_back(i), chain.push_front(i), bits.push_back(true);
    }
    value.emplace<1>("a text that is longer than what lies in place");
    const TypeHistogram histogram = type_histogram(heap);
    BOOST_TEST(histogram.other_blocks == 0U);
    BOOST_TEST(bytes_of(histogram) == heap.stats().live_bytes);
    const auto types = by_type(histogram);
    BOOST_TEST(types.at("int32_t").values == 7 * 5000U);
    BOOST_TEST(types.at("set<int32_t>").blocks == 5001U);
    BOOST_TEST(types.at("string").values == 1U);
    BOOST_TEST(types.at("string").blocks == 1U);
    BOOST_TEST(types.at("forward_list<int32_t>").blocks == 5001U);
    BOOST_TEST(types.at("unordered_set<int32_t>").blocks == 5002U);
}

BOOST_AUTO_TEST_CASE(pointers_to_what_has_a_name_add_nothing_whichever_comes_first) {
    for (const char* name : {"a", "z"}) {
        const ScratchDirectory directory;
        ArchiveHeap heap(create_only, directory / "a.tyn", small());
        auto& drawing = heap.construct<Drawing>("m");
        Part& part = heap.construct<Part>(name);
        part.name = "a name that is longer than what lies in place";
        drawing.loose = &part;
        const auto types = by_type(type_histogram(heap));
        BOOST_TEST(types.at("Part").values == 1U);
        BOOST_TEST(types.at("Part").blocks == 1U);
        BOOST_TEST(types.at("string").values == 1U);
        BOOST_TEST(types.at("string").blocks == 1U);
    }
}

BOOST_AUTO_TEST_CASE(keys_that_trees_repeat_are_no_values) {
    const ScratchDirectory directory;
    ArchiveHeap heap(create_only, directory / "a.tyn", small());
    auto& tree = heap.construct<taiyen::btree_set<taiyen::string>>("tree");
    for (int i = 0; i < 3000; ++i) tree.insert(("a key that is longer than what lies in place " + std::to_string(i)).c_str());
    const TypeHistogram histogram = type_histogram(heap);
    const auto types = by_type(histogram);
    BOOST_TEST(types.at("string").values == 3000U);
    BOOST_TEST(types.at("string").blocks >= 3000U);  // those of copies, too
    BOOST_TEST(histogram.other_blocks == 0U);
    BOOST_TEST(bytes_of(histogram) == heap.stats().live_bytes);
}

BOOST_AUTO_TEST_CASE(a_pointer_to_what_was_freed_spoils_nothing) {
    const ScratchDirectory directory;
    ArchiveHeap heap(create_only, directory / "a.tyn", small());
    auto& drawing = heap.construct<Drawing>("drawing");
    drawing.loose = heap.make<Part>();
    auto* const gone = drawing.loose;
    std::destroy_at(gone);
    heap.deallocate(gone);
    std::memset(heap.allocate(sizeof(Part)), 0xee, sizeof(Part));  // most likely where it lay
    drawing.parts[1].name = "a name that is longer than what lies in place";
    const auto types = by_type(type_histogram(heap));
    BOOST_TEST(types.at("map<int32_t, Part>").blocks == 1U);
    BOOST_TEST(types.at("string").blocks == 1U);
}

BOOST_AUTO_TEST_CASE(an_array_that_has_a_name_is_an_array) {
    const ScratchDirectory directory;
    ArchiveHeap heap(create_only, directory / "a.tyn", small());
    heap.construct<Place>("one");
    // As a directory may say that somebody else wrote.
    StoredObject object = stored_objects(heap).front();
    object.count = 3;
    object.bytes *= 3;
    inspect::TypeWalk walk(HeapAccess::file(heap), nullptr, {});
    walk.run({object, object});
    std::uint64_t floats = 0;
    for (const TypeUse& use : walk.uses()) floats += use.type == "float" ? use.values : 0;
    BOOST_TEST(floats == 12U);
}

BOOST_AUTO_TEST_CASE(what_is_opaque_and_what_it_may_hold_is_said) {
    const ScratchDirectory directory;
    ArchiveHeap heap(create_only, directory / "a.tyn", small());
    heap.construct<Closed>("closed", static_cast<int*>(heap.allocate(sizeof(int))));
    const TypeHistogram histogram = type_histogram(heap);
    BOOST_TEST_REQUIRE(histogram.opaque.size() == 1U);
    BOOST_TEST(histogram.opaque[0].find("Closed") != std::string::npos);
    BOOST_TEST(histogram.other_blocks == 1U);
    heap.construct<Part*>("part") = heap.make<Part>();  // a pointer alone doesn't tell what it leads to
    BOOST_TEST(type_histogram(heap).opaque.size() == 2U);
}

BOOST_AUTO_TEST_CASE(a_map_has_the_colours_of_the_types_that_hold_most) {
    const ScratchDirectory directory;
    ArchiveHeap heap(create_only, directory / "a.tyn", small());
    heap.construct<taiyen::vector<double>>("long").resize(100'000);
    heap.construct<taiyen::vector<float>>("short").resize(20'000);
    heap.construct<int>("number");
    heap.allocate(400'000);  // nobody's
    MapOptions options;
    options.colour = MapColour::type;
    std::uint64_t told = 0;
    options.progress = [&](std::uint64_t done, std::uint64_t all) { told = all == 0 ? 0 : done; };
    const HeapMap map = map_of(heap, options);
    BOOST_TEST(told != 0U);
    BOOST_TEST_REQUIRE(map.colours.size() == 4U);
    BOOST_TEST(map.colours[0].label == "vector<double>");
    BOOST_TEST(map.colours[0].blocks == 2U);
    BOOST_TEST(map.colours[1].label == "vector<float>");
    BOOST_TEST(map.colours[2].label == "int32_t");
    BOOST_TEST(map.colours[3].bytes >= 400'000U);
    std::array<std::uint64_t, 4> cells{};
    for (const MapCell& cell : map.cells) cells.at(cell.colour) += cell.live_bytes != 0 ? 1 : 0;
    BOOST_TEST(cells[0] >= 190U);
    BOOST_TEST(cells[1] >= 19U);
    BOOST_TEST(cells[3] >= 97U);
    std::uint64_t coloured = 0;
    for (const MapKey& key : map.colours) coloured += key.bytes;
    BOOST_TEST(coloured == heap.stats().live_bytes);
    BOOST_TEST(map_json(map).find("\"colour\": \"type\"") != std::string::npos);
    BOOST_TEST(map_svg(map).find("by the type that holds it") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace type_histogram_test
