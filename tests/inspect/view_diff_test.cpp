// What differs between two values, or two heaps, is said by paths, and nothing else is.

#include <boost/test/unit_test.hpp>

#include <array>
#include <filesystem>
#include <limits>
#include <map>
#include <random>
#include <sstream>

#include <taiyen/taiyen.hpp>

#include "scratch_directory.hpp"
#include "seed.hpp"
#include "throws.hpp"

namespace view_diff_test {
using namespace taiyen;

struct Part {
    taiyen::string name;
    taiyen::vector<int> sizes;
    std::optional<double> weight;
    std::variant<int, taiyen::string> value;
    Part* next = nullptr;
    std::pair<int, int> place;
};
struct Drawing {
    taiyen::map<taiyen::string, Part> parts;
    taiyen::unordered_map<int, taiyen::string> names;
    taiyen::set<int> numbers;
    taiyen::multimap<int, int> many;
    taiyen::flat_hash_map<int, int> fast;
    taiyen::map<std::pair<const int, int>, int> odd;
    taiyen::vector<bool> bits;
    taiyen::btree_map<int, int> tree;
};

PersistentOptions small() {
    PersistentOptions options;
    options.capacity = 8_MiB;
    return options;
}

std::string text_of(const std::optional<ViewValue>& value) {
    std::ostringstream to;
    if (value) write_json(to, *value);
    return to.str();
}

/// "path: before -> after", one behind the other.
std::string differences(const std::filesystem::path& before, const std::filesystem::path& after, std::size_t most = 1000) {
    std::string text;
    const auto unknown = for_each_difference(before, after, [&](const ViewDifference& difference) {
        text += (text.empty() ? "" : "; ") + difference.path + ": " + text_of(difference.before) + " -> " + text_of(difference.after);
        return --most != 0;
    });
    BOOST_TEST(unknown.empty());
    return text;
}

BOOST_AUTO_TEST_SUITE(view_diff)

BOOST_AUTO_TEST_CASE(each_kind_of_difference_has_a_path) {
    const ScratchDirectory directory;
    const auto before = directory / "before.tyn";
    const auto after = directory / "after.tyn";
    {
        ArchiveHeap heap(create_only, before, small());
        Drawing& drawing = heap.construct<Drawing>("drawing");
        for (const char* const name : {"axle", "bolt", "nut", "wheel"}) {
            Part& part = drawing.parts[name];
            part.name = name;
            part.sizes = {1, 2, 3};
            part.next = &drawing.parts.begin()->second;
        }
        for (int i = 0; i < 20; ++i) {
            drawing.names[i] = "name";
            drawing.numbers.insert(i);
            drawing.many.emplace(i / 3, i);
            drawing.fast[i] = i;
            drawing.odd[{i, i}] = i;
            drawing.bits.push_back(i % 2 == 0);
            drawing.tree[i] = i;
        }
        heap.construct<int>("revision") = 1;
        heap.construct<int>("gone") = 1;
        heap.snapshot();
    }
    std::filesystem::copy_file(before, after);
    BOOST_TEST(differences(before, after) == "");
    const auto change = [&](auto&& edit) {
        std::filesystem::remove(after);
        std::filesystem::copy_file(before, after);
        ArchiveHeap heap(open_only, after, small());
        edit(heap, *heap.find<Drawing>("drawing"));
        heap.snapshot();
        heap.close();
        return differences(before, after);
    };
    BOOST_TEST(change([](auto&, Drawing& d) { d.parts["bolt"].sizes[1] = 7; }) == R"(drawing.parts["bolt"].sizes[1]: 2 -> 7)");
    BOOST_TEST(change([](auto&, Drawing& d) { d.parts["bolt"].sizes.push_back(7); }) == R"(drawing.parts["bolt"].sizes[3]:  -> 7)");
    BOOST_TEST(change([](auto&, Drawing& d) { d.parts["bolt"].weight = 2.5; }) == R"(drawing.parts["bolt"].weight: null -> 2.5)");
    BOOST_TEST(change([](auto&, Drawing& d) { d.parts["nut"].value = 5; }) == R"(drawing.parts["nut"].value: 0 -> 5)");
    BOOST_TEST(change([](auto&, Drawing& d) { d.parts["nut"].value.emplace<taiyen::string>("x", d.parts["nut"].name.get_allocator()); }) ==
               R"(drawing.parts["nut"].value: 0 -> "x")");
    BOOST_TEST(change([](auto&, Drawing& d) { d.parts["nut"].next = nullptr; }).ends_with("} -> null"));
    BOOST_TEST(change([](auto&, Drawing& d) { d.parts["nut"].place.second = 3; }) == R"(drawing.parts["nut"].place.second: 0 -> 3)");
    BOOST_TEST(change([](auto&, Drawing& d) { d.parts["axle"].name = "another"; }) == R"(drawing.parts["axle"].name: "axle" -> "another")");
    BOOST_TEST(change([](auto&, Drawing& d) { d.parts.erase("bolt"); }).starts_with(R"(drawing.parts["bolt"]: {"name": "bolt")"));
    BOOST_TEST(change([](auto&, Drawing& d) { d.parts["a"].name = "first"; }).starts_with(R"(drawing.parts["a"]:  -> {"name": "first")"));
    BOOST_TEST(change([](auto&, Drawing& d) { d.names.erase(7), d.names[30] = "new"; }) ==
               R"(drawing.names[7]: "name" -> ; drawing.names[30]:  -> "new")");
    BOOST_TEST(change([](auto&, Drawing& d) { d.numbers.erase(3); }) == "drawing.numbers[3]: 3 -> ");
    BOOST_TEST(change([](auto&, Drawing& d) { d.many.begin()->second = 9; }) == "drawing.many[0]: 0 -> ; drawing.many[0]:  -> 9");
    BOOST_TEST(change([](auto&, Drawing& d) { d.many.emplace(0, 9); }) == "drawing.many[0]:  -> 9");
    BOOST_TEST(change([](auto&, Drawing& d) { d.fast[5] = 6; }) == "drawing.fast[5]: 5 -> 6");
    BOOST_TEST(change([](auto&, Drawing& d) { d.odd[{5, 5}] = 6; }) == "drawing.odd[[5, 5]]: 5 -> 6");
    BOOST_TEST(change([](auto&, Drawing& d) { d.bits[3] = true; }) == "drawing.bits[3]: false -> true");
    BOOST_TEST(change([](auto&, Drawing& d) { d.tree.erase(0), d.tree[7] = 8; }) == "drawing.tree[0]: 0 -> ; drawing.tree[7]: 7 -> 8");
    BOOST_TEST(change([](auto& heap, Drawing&) {
                   heap.template destroy<int>("gone");
                   heap.template construct<int>("made") = 2;
                   *heap.template find<int>("revision") = 2;
               }) == "gone: 1 -> ; made:  -> 2; revision: 1 -> 2");
    BOOST_TEST(differences(before, after, 1) == "gone: 1 -> ");
}

struct Opaque {
    explicit Opaque(int given = 0) : number(given) {}
    bool operator<(const Opaque& other) const { return number < other.number; }

private:
    int number;
};
struct Odd {
    taiyen::set<taiyen::string> words;
    taiyen::set<Opaque> opaque;
    taiyen::unordered_multimap<int, int> loose;
    taiyen::map<std::variant<int, double>, int> chosen;
    std::array<char, 8> digest;
    taiyen::u16string wide;
    taiyen::vector<double> numbers;
};

/// What is printed alike is not the same.
BOOST_AUTO_TEST_CASE(values_are_told_apart_by_their_bytes) {
    const ScratchDirectory directory;
    ArchiveHeap heap(create_only, directory / "a.tyn", small());
    const auto fill = [](Odd& odd) {
        odd.words = {"a", "b"};
        odd.opaque = {Opaque(1), Opaque(2)};
        odd.loose.emplace(1, 1);
        odd.loose.emplace(1, 2);
        odd.chosen[1] = 1;
        odd.digest = {'a', 0, 'b'};
        odd.wide = u"x";
        odd.numbers = {0.0, std::numeric_limits<double>::quiet_NaN()};
    };
    Odd& one = heap.construct<Odd>("one");
    Odd& other = heap.construct<Odd>("other");
    fill(one);
    const View view(heap);
    const auto paths = [&](auto&& change) {
        other.loose.clear();
        other.chosen.clear();
        fill(other);
        change(other);
        std::string all;
        for_each_difference(view.find("one").value(), view.find("other").value(), [&](const ViewDifference& difference) {
            all += (all.empty() ? "" : " ") + difference.path;
            return true;
        });
        return all;
    };
    BOOST_TEST(paths([](Odd&) {}) == "");
    BOOST_TEST(paths([](Odd& o) { o.words = {"\xe4"}, o.words.insert("b"); }) == "words[\"a\"] words[\"\uFFFD\"]");
    BOOST_TEST(paths([](Odd& o) { o.opaque = {Opaque(1), Opaque(3)}; }) ==
               R"(opaque[{"opaque": "view_diff_test::view_diff::Opaque"}] opaque[{"opaque": "view_diff_test::view_diff::Opaque"}])");
    BOOST_TEST(paths([](Odd& o) {
                   o.loose.clear();
                   o.loose.emplace(1, 2);
                   o.loose.emplace(1, 1);
               }) == "");
    BOOST_TEST(paths([](Odd& o) {
                   o.chosen.clear();
                   o.chosen[1.0] = 1;
               }) == "chosen[1] chosen[1]");
    BOOST_TEST(paths([](Odd& o) { o.digest[2] = 'c'; }) == "digest");
    BOOST_TEST(paths([](Odd& o) { o.wide[0] = 0xd800; }) == "wide");
    BOOST_TEST(paths([](Odd& o) { o.numbers[0] = -0.0; }) == "numbers[0]");
}

/// Of a transactional heap that was not closed, the newer state is in the log; of one that may lie anywhere, links are distances; a moved copy has another address.
BOOST_AUTO_TEST_CASE(heaps_of_every_kind_and_place_are_compared) {
    const ScratchDirectory directory;
    struct Counter {
        std::uint64_t value;
    };
    {
        TransactionalHeap heap(create_only, directory / "t.tyn", small());
        transact(heap, [&] { heap.construct<Counter>("counter").value = 1; });
        transact(heap, [&] { heap.construct<taiyen::map<int, int>>("map")[1] = 2; });
        heap.snapshot();
        transact(heap, [&] { heap.find<Counter>("counter")->value = 2; });
        for (const char* const suffix : {"", ".log"})
            std::filesystem::copy_file(directory / (std::string("t.tyn") + suffix), directory / (std::string("u.tyn") + suffix));
        transact(heap, [&] { (*heap.find<taiyen::map<int, int>>("map"))[1] = 3; });
    }
    BOOST_TEST(differences(directory / "t.tyn", directory / "u.tyn") == "map[1]: 3 -> 2");
    BOOST_TEST(differences(directory / "t.tyn", directory / "t.tyn") == "");
    {
        PersistentOptions anywhere = small();
        anywhere.position_independent = true;
        ArchiveHeap heap(create_only, directory / "p.tyn", anywhere);
        heap.construct<Counter>("counter").value = 1;
        heap.snapshot();
        for (const char* const suffix : {"", ".journal"})
            std::filesystem::copy_file(directory / (std::string("p.tyn") + suffix), directory / (std::string("q.tyn") + suffix));
        heap.find<Counter>("counter")->value = 5;
        heap.snapshot();
    }
    BOOST_TEST(differences(directory / "p.tyn", directory / "q.tyn") == "counter.value: 5 -> 1");
}

/// Random changes of two maps: what is told makes the first one the second.
BOOST_AUTO_TEST_CASE(differences_of_maps_make_one_the_other) {
    std::mt19937_64 random(taiyen::test::seed_of_run());
    const ScratchDirectory directory;
    ArchiveHeap heap(create_only, directory / "a.tyn", small());
    auto& one = heap.construct<taiyen::unordered_map<int, int>>("one");
    auto& other = heap.construct<taiyen::unordered_map<int, int>>("other");
    auto& sorted = heap.construct<taiyen::map<int, int>>("sorted");
    auto& other_sorted = heap.construct<taiyen::map<int, int>>("other sorted");
    const View view(heap);
    for (int round = 0; round < 100; ++round) {
        for (auto* const map : {&one, &other}) {
            for (std::uint64_t i = random() % 20; i-- != 0;) (*map)[static_cast<int>(random() % 50)] = static_cast<int>(random() % 3);
            for (std::uint64_t i = random() % 15; i-- != 0;) map->erase(static_cast<int>(random() % 50));
        }
        sorted = {one.begin(), one.end()};
        other_sorted = {other.begin(), other.end()};
        const std::map<int, int> after(other.begin(), other.end());
        for (const bool is_sorted : {false, true}) {
            std::map<int, int> patched(one.begin(), one.end());
            for_each_difference(view.find(is_sorted ? "sorted" : "one").value(), view.find(is_sorted ? "other sorted" : "other").value(),
                                [&](const ViewDifference& difference) {
                                    const int key = std::stoi(difference.path.substr(1));
                                    BOOST_TEST(patched.contains(key) == difference.before.has_value());
                                    if (difference.after)
                                        patched[key] = difference.after->get<int>();
                                    else
                                        patched.erase(key);
                                    return true;
                                });
            BOOST_TEST_REQUIRE((patched == after));
        }
    }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace view_diff_test
