// Pointers that shapes tell: the very words that declared types tell, for all containers; and heaps that move by them, full of numbers that look like pointers.

#include <boost/test/unit_test.hpp>

#include <array>
#include <optional>
#include <random>
#include <regex>
#include <sstream>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include <taiyen/taiyen.hpp>

#include "scratch_directory.hpp"
#include "seed.hpp"
#include "store/heap_access.hpp"
#include "throws.hpp"
#include "transfer/pointer_finder.hpp"
#include "transfer/shape_types.hpp"

namespace shape_types_test {
using namespace taiyen;

struct Leaf {
    taiyen::string text;
    std::uint64_t number = 0;
    Leaf* other = nullptr;
    TAIYEN_DESCRIBE(Leaf, text, number, other)
};
struct Wide {
    alignas(32) double numbers[4] = {};
};
struct Everything {
    taiyen::vector<Leaf> row;
    taiyen::deque<Leaf> queue;
    taiyen::deque<std::array<char, 700>> large;
    taiyen::list<Leaf> list;
    taiyen::list<Wide> wide;
    taiyen::forward_list<taiyen::string> chain;
    taiyen::map<taiyen::string, Leaf> map;
    taiyen::multimap<int, taiyen::string> many;
    taiyen::set<taiyen::string> set;
    taiyen::multiset<int> bag;
    taiyen::unordered_map<taiyen::string, Leaf> hashed;
    taiyen::unordered_map<int, int> numbers;
    taiyen::unordered_multimap<int, taiyen::string> hashed_many;
    taiyen::unordered_set<taiyen::string> hashed_set;
    taiyen::unordered_multiset<int> hashed_bag;
    taiyen::btree_map<taiyen::string, Leaf> tree;
    taiyen::btree_map<int, taiyen::string> tree_of_numbers;
    taiyen::btree_map<double, int> tree_of_doubles;
    taiyen::btree_map<std::pair<int, int>, taiyen::vector<int>> tree_of_pairs;
    taiyen::btree_multimap<taiyen::string, int> tree_many;
    taiyen::btree_set<taiyen::string> tree_set;
    taiyen::btree_multiset<std::int16_t> tree_bag;
    taiyen::ordered_map<taiyen::string, Leaf> still;
    taiyen::ordered_multimap<int, int> still_many;
    taiyen::ordered_set<taiyen::string> still_set;
    taiyen::ordered_multiset<int> still_bag;
    taiyen::flat_hash_map<int, Leaf> fast;
    taiyen::flat_hash_set<taiyen::string> fast_set;
    taiyen::flat_hash_map<int, Wide> fast_wide;
    taiyen::vector<bool> bits;
    taiyen::u16string letters;
    std::optional<taiyen::string> maybe;
    std::variant<int, taiyen::string, Leaf> either;
    std::tuple<int, taiyen::string, std::array<taiyen::string, 2>> tuple;
    taiyen::vector<taiyen::vector<taiyen::map<int, taiyen::string>>> deep;
    Leaf* first = nullptr;
    taiyen::vector<Leaf*> leaves;
    taiyen::string* text = nullptr;
    TAIYEN_DESCRIBE(Everything, row, queue, large, list, wide, chain, map, many, set, bag, hashed, numbers, hashed_many, hashed_set, hashed_bag, tree,
                    tree_of_numbers, tree_of_doubles, tree_of_pairs, tree_many, tree_set, tree_bag, still, still_many, still_set, still_bag, fast,
                    fast_set, fast_wide, bits, letters, maybe, either, tuple, deep, first, leaves, text)
};
}  // namespace shape_types_test

template <>
struct taiyen::pointers_of<shape_types_test::Leaf> {
    static void describe(auto& leaf, auto visit) { visit(leaf.text, leaf.other); }
};
template <>
struct taiyen::pointers_of<shape_types_test::Wide> : taiyen::no_pointers {};
template <>
struct taiyen::pointers_of<shape_types_test::Everything> {
    static void describe(auto& all, auto visit) {
        visit(all.row, all.queue, all.large, all.list, all.wide, all.chain, all.map, all.many, all.set, all.bag, all.hashed, all.numbers,
              all.hashed_many, all.hashed_set, all.hashed_bag, all.tree, all.tree_of_numbers, all.tree_of_doubles, all.tree_of_pairs, all.tree_many,
              all.tree_set, all.tree_bag, all.still, all.still_many, all.still_set, all.still_bag, all.fast, all.fast_set, all.fast_wide, all.bits,
              all.letters, all.maybe, all.either, all.tuple, all.deep, all.first, all.leaves, all.text);
    }
};

namespace shape_types_test {

taiyen::string text(std::mt19937_64& random) {
    return taiyen::string(std::string(random() % 40, static_cast<char>('a' + random() % 26)) + std::to_string(random() % 100'000));
}

/// A number, often one that is the address of something in the heap.
std::uint64_t number(std::mt19937_64& random, const ArchiveHeap& heap) {
    const std::uintptr_t base = heap.core() == nullptr ? 0 : HeapAccess::file(heap).ranges().durable;
    return random() % 3 == 0 ? random() : base + random() % (1U << 20U) / 8 * 8;
}

void fill(Everything& all, std::mt19937_64& random, ArchiveHeap& heap, int most) {
    const auto count = [&] { return static_cast<int>(random() % static_cast<unsigned>(most + 1)); };
    const auto key = [&] { return static_cast<int>(random() % 10'000); };
    std::vector<Leaf*> leaves;
    const auto set = [&](Leaf& leaf) {
        leaf.text = text(random);
        leaf.number = number(random, heap);
        if (random() % 2 == 0 && !leaves.empty()) leaf.other = leaves[random() % leaves.size()];
    };
    for (int n = count(); n-- > 0;) leaves.push_back(heap.make<Leaf>());
    for (Leaf* const leaf : leaves) {
        set(*leaf);
        all.leaves.push_back(leaf);
    }
    if (!leaves.empty()) all.first = leaves.front();
    for (int n = count(); n-- > 0;) set(all.row.emplace_back());
    for (int n = count(); n-- > 0;) set(all.queue.emplace_back());
    for (int n = count(); n-- > 0;) set(all.queue.emplace_front());
    for (int n = count() / 3; n-- > 0 && !all.queue.empty();) all.queue.pop_front();
    for (int n = count() / 4; n-- > 0;) all.large.emplace_back();
    for (int n = count(); n-- > 0;) set(all.list.emplace_back());
    for (int n = count(); n-- > 0;) all.wide.emplace_back();
    for (int n = count(); n-- > 0;) all.chain.push_front(text(random));
    for (int n = count(); n-- > 0;) set(all.map[text(random)]);
    for (int n = count(); n-- > 0;) all.many.emplace(key(), text(random));
    for (int n = count(); n-- > 0;) all.set.insert(text(random));
    for (int n = count(); n-- > 0;) all.bag.insert(key());
    for (int n = count(); n-- > 0;) set(all.hashed[text(random)]);
    for (int n = count(); n-- > 0;) all.numbers[key()] = n;
    for (int n = count(); n-- > 0;) all.hashed_many.emplace(key() % 10, text(random));
    for (int n = count(); n-- > 0;) all.hashed_set.insert(text(random));
    for (int n = count(); n-- > 0;) all.hashed_bag.insert(key() % 10);
    for (int n = count(); n-- > 0;) set(all.tree[text(random)]);
    for (int n = count(); n-- > 0;) all.tree_of_numbers[key()] = text(random);
    for (int n = count(); n-- > 0;) all.tree_of_doubles[key()] = n;
    for (int n = count(); n-- > 0;) all.tree_of_pairs[{key(), key()}] = {1, 2, 3};
    for (int n = count(); n-- > 0;) all.tree_many.emplace(text(random), n);
    for (int n = count(); n-- > 0;) all.tree_set.insert(text(random));
    for (int n = count(); n-- > 0;) all.tree_bag.insert(static_cast<std::int16_t>(key()));
    for (int n = count(); n-- > 0;) set(all.still[text(random)]);
    for (int n = count(); n-- > 0;) all.still_many.emplace(key(), n);
    for (int n = count(); n-- > 0;) all.still_set.insert(text(random));
    for (int n = count(); n-- > 0;) all.still_bag.insert(key());
    for (int n = count(); n-- > 0;) set(all.fast[key()]);
    for (int n = count(); n-- > 0;) all.fast_set.insert(text(random));
    for (int n = count(); n-- > 0;) all.fast_wide[key()] = {};
    for (int n = count(); n-- > 0;) all.bits.push_back(random() % 2 == 0);
    all.letters.assign(static_cast<std::size_t>(count()), u'x');
    const taiyen::string copied = text(random);
    if (random() % 2 == 0) all.maybe.emplace(copied);
    if (random() % 3 == 0) all.either.emplace<1>(copied);
    if (random() % 3 == 0) set(all.either.emplace<2>());
    std::get<1>(all.tuple) = text(random);
    std::get<2>(all.tuple)[1] = text(random);
    for (int n = count() % 10; n-- > 0;) all.deep.emplace_back().emplace_back()[key()] = text(random);
    if (!all.row.empty()) all.text = &all.row.back().text;
}

/// What pointers lead to, wherever that lies.
std::string led_to(const Everything& all) {
    std::string text;
    const auto add = [&](const Leaf* leaf) {
        for (int steps = 0; leaf != nullptr && steps != 5; leaf = leaf->other, ++steps)
            text.append(leaf->text).append(std::to_string(leaf->number)).append(" ");
        text += '\n';
    };
    for (const Leaf* leaf : all.leaves) add(leaf);
    for (const auto& [key, leaf] : all.map) add(&leaf);
    for (const auto& [key, leaf] : all.tree) add(&leaf);
    for (const auto& [key, leaf] : all.still) add(&leaf);
    for (const Leaf& leaf : all.list) add(&leaf);
    add(all.first);
    return text;
}

transfer::HeapView view_of(const ArchiveHeap& heap) {
    const store::HeapFile& file = HeapAccess::file(heap);
    return {file.engine(), reinterpret_cast<const std::byte*>(file.ranges().durable), file.ranges().durable, file.ranges().durable_bytes,
            file.path()};
}

/// Offset, and whether it is an end.
using Places = std::vector<std::pair<std::uint64_t, bool>>;
Places places_by(const ArchiveHeap& heap, const DeclaredTypes& types, std::uint64_t& unreached) {
    const transfer::HeapView view = view_of(heap);
    PointerOptions options;
    options.types = types;
    RebaseReport report;
    report.old_address = report.new_address = view.base;
    const transfer::FoundPointers found = transfer::find_by_types(view, options, report, true);
    Places places;
    found.places->visit(0, view.engine.extent(), [&](std::uint64_t place, std::uint64_t, bool is_end) { places.emplace_back(place, is_end); });
    unreached = report.unreached_blocks;
    return places;
}

/// All of a heap, pointers as paths.
std::string shown(const ArchiveHeap& heap, bool are_offsets_known = true) {
    std::ostringstream text;
    const View view(heap);
    for (const std::string& name : view.names()) {
        text << name << ' ';
        write_json(text, *view.find(name));
    }
    if (!are_offsets_known) return std::regex_replace(text.str(), std::regex("\"at\": [0-9]+"), "");
    return text.str();
}

BOOST_AUTO_TEST_SUITE(shape_types)

BOOST_AUTO_TEST_CASE(shapes_tell_the_very_words_that_declared_types_tell) {
    const ScratchDirectory folder;
    std::mt19937_64 random(test::seed_of_run());
    for (const int most : {0, 1, 3, 20, 60, 300, 3000}) {
        ArchiveHeap heap(create_only, folder.path() / (std::to_string(most) + ".tyn"));
        fill(heap.construct<Everything>("all"), random, heap, most);
        heap.construct<taiyen::map<int, Leaf*>>("leaves")[1] = heap.find<Everything>("all")->first;
        DeclaredTypes declared;
        declared.add<Everything, taiyen::map<int, Leaf*>>();
        const transfer::ShapeTypes shapes(HeapAccess::file(heap).engine(), {});
        BOOST_TEST_REQUIRE(shapes.are_all(), shapes.unknown());
        std::uint64_t unreached[2] = {};
        const Places by_types = places_by(heap, declared, unreached[0]);
        const Places by_shapes = places_by(heap, shapes.types(), unreached[1]);
        BOOST_TEST(unreached[0] == 0);
        BOOST_TEST(unreached[1] == 0);
        BOOST_TEST(!by_types.empty());
        BOOST_TEST((by_types == by_shapes), "with up to " << most << " elements");
    }
}

BOOST_AUTO_TEST_CASE(heaps_full_of_numbers_that_look_like_pointers_move_by_their_shapes) {
    const ScratchDirectory folder;
    const int heaps = 40;
    std::mt19937_64 random(test::seed_of_run());
    for (int i = 0; i != heaps; ++i) {
        const auto path = folder.path() / (std::to_string(i) + ".tyn");
        std::string before;
        {
            ArchiveHeap heap(create_only, path);
            auto& numbers = heap.construct<taiyen::vector<std::uint64_t>>("numbers");
            for (int n = 0; n != 1000; ++n) numbers.push_back(number(random, heap));
            fill(heap.construct<Everything>("all"), random, heap, 20);
            before = shown(heap);
            heap.snapshot();
        }
        const RebaseReport report = rebase(path, anywhere);
        BOOST_TEST(report.moved);
        BOOST_TEST(report.by_declared_types);
        BOOST_TEST(report.guessed_words == 0U);
        BOOST_TEST(report.old_address != report.new_address);
        ArchiveHeap heap(open_only, path);
        BOOST_TEST((shown(heap) == before), "heap " << i);
        BOOST_TEST(heap.verify().ok());
        const LeakReport leaks = find_leaks(heap);
        BOOST_TEST(leaks.leaked_blocks == 0U);
        // And it works.
        auto& all = *heap.find<Everything>("all");
        fill(all, random, heap, 20);
        heap.snapshot();
    }
}

namespace opaque {
class Closed {
public:
    explicit Closed(const char* text = "") : text_(text) {}

private:
    taiyen::string text_;
};
}  // namespace opaque

BOOST_AUTO_TEST_CASE(what_shapes_do_not_tell_is_not_guessed_unless_somebody_asks_for_it) {
    const ScratchDirectory folder;
    const auto path = folder.path() / "x.tyn";
    {
        ArchiveHeap heap(create_only, path);
        heap.construct<taiyen::string>("known", "a text that is too long to lie within itself");
        heap.construct<opaque::Closed>("closed", "another text that is too long for that");
        heap.snapshot();
    }
    BOOST_CHECK_EXCEPTION(rebase(path, anywhere), Error, [](const Error& error) {
        BOOST_TEST(std::string(error.what()).find("'closed'") != std::string::npos, error.what());
        BOOST_TEST(std::string(error.what()).find("Closed is opaque") != std::string::npos, error.what());
        return error.code() == errc::type_mismatch;
    });
    RebaseOptions options;
    options.conservative = true;
    const RebaseReport report = rebase(path, anywhere, options);
    BOOST_TEST(report.moved);
    ArchiveHeap heap(open_only, path);
    BOOST_TEST(std::string_view(*heap.find<taiyen::string>("known")) == "a text that is too long to lie within itself");
}

BOOST_AUTO_TEST_CASE(an_array_behind_a_pointer_is_not_taken_for_one_object) {
    const ScratchDirectory folder;
    for (const int count : {1, 3}) {
        const auto path = folder.path() / (std::to_string(count) + ".tyn");
        {
            ArchiveHeap heap(create_only, path);
            auto* const leaves = static_cast<Leaf*>(heap.allocate(static_cast<std::size_t>(count) * sizeof(Leaf)));
            for (int i = 0; i != count; ++i) {
                new (leaves + i) Leaf();
                leaves[i].text = "a text that is too long to lie within itself";
            }
            heap.construct<Leaf*>("leaves") = leaves;
            heap.snapshot();
            const LeakReport leaks = find_leaks(heap);
            BOOST_TEST(leaks.is_by_shapes == (count == 1), leaks.why_not);
            BOOST_TEST(leaks.hidden_blocks == 0U);
        }
        if (count == 1) {
            BOOST_TEST(rebase(path, anywhere).moved);
            continue;
        }
        BOOST_TEST(test::throws(errc::type_mismatch, [&] { rebase(path, anywhere); }));
        RebaseOptions options;
        options.conservative = true;
        BOOST_TEST(rebase(path, anywhere, options).moved);
        const ArchiveHeap heap(open_read_only, path);
        BOOST_TEST(std::string_view((*heap.find<Leaf*>("leaves"))[2].text) == "a text that is too long to lie within itself");
    }
}

class Hiding {
public:
    TAIYEN_DESCRIBE(Hiding, name)
    taiyen::string name;
    void hide(Leaf* leaf) { hidden_ = leaf; }
    Leaf* hidden() const { return hidden_; }

private:
    Leaf* hidden_ = nullptr;
};
struct ByFactor {
    std::uint64_t factor = 1;
    bool operator()(std::uint64_t a, std::uint64_t b) const { return a * factor < b * factor; }
};
/// A key that is inline in inner nodes, and looks like what leads to a key.
struct Reference {
    Leaf* leaf = nullptr;
    bool operator<(const Reference& other) const { return leaf < other.leaf; }
};

BOOST_AUTO_TEST_CASE(classes_that_hide_something_are_not_known) {
    BOOST_CHECK((shape_of<taiyen::map<std::uint64_t, int, ByFactor>>().nodes.front().kind == ShapeKind::other_container));
    const ScratchDirectory folder;
    {
        ArchiveHeap heap(create_only, folder.path() / "hiding.tyn");
        auto& hiding = heap.construct<Hiding>("hiding");
        hiding.hide(heap.make<Leaf>());
        heap.snapshot();
        const LeakReport leaks = find_leaks(heap);
        BOOST_TEST(!leaks.is_by_shapes);
        BOOST_TEST(leaks.why_not.find("Hiding has more than the fields") != std::string::npos, leaks.why_not);
        CompactOptions options;
        options.known_types = true;
        BOOST_TEST(compact(heap, options).moved_blocks == 0U);
    }
    BOOST_TEST(test::throws(errc::type_mismatch, [&] { rebase(folder.path() / "hiding.tyn", anywhere); }));
    {
        ArchiveHeap heap(create_only, folder.path() / "keys.tyn");
        auto& tree = heap.construct<taiyen::btree_map<Reference, int>>("tree");
        for (int i = 0; i != 2000; ++i) tree[{heap.make<Leaf>()}] = i;
        heap.snapshot();
    }
    try {
        rebase(folder.path() / "keys.tyn", anywhere);
    } catch (const Error& error) {
        BOOST_TEST((error.code() == errc::type_mismatch), error.what());
    }
    ArchiveHeap heap(open_only, folder.path() / "keys.tyn");
    int sum = 0;
    for (const auto& [key, value] : *heap.find<taiyen::btree_map<Reference, int>>("tree")) sum += key.leaf->other == nullptr ? value : 0;
    BOOST_TEST(sum == 1999 * 1000);
    BOOST_TEST(heap.verify().ok());
}

struct Span {
    double* first = nullptr;
    double* last = nullptr;
};

BOOST_AUTO_TEST_CASE(ends_that_nobody_tells_from_beginnings_stay) {
    const ScratchDirectory folder;
    ArchiveHeap heap(create_only, folder.path() / "x.tyn");
    auto& spans = heap.construct<taiyen::vector<Span>>("spans");
    std::vector<void*> holes;
    for (int i = 0; i != 3000; ++i) {
        auto* const first = static_cast<double*>(heap.allocate(64));
        for (int n = 0; n != 8; ++n) first[n] = i + n / 8.0;
        if (i % 3 == 0)
            spans.push_back({first, first + 8});
        else
            holes.push_back(first);
    }
    for (void* const hole : holes) heap.deallocate(hole);
    CompactOptions options;
    options.known_types = true;
    for (int steps = 0; steps != 100 && compact(heap, options).moved_blocks != 0; ++steps) {}
    for (std::size_t i = 0; i != spans.size(); ++i) {
        BOOST_REQUIRE(spans[i].last - spans[i].first == 8);
        for (int n = 0; n != 8; ++n) BOOST_REQUIRE(spans[i].first[n] == static_cast<double>(3 * i) + n / 8.0);
    }
    BOOST_TEST(heap.verify().ok());
}

BOOST_AUTO_TEST_CASE(what_only_a_number_leads_to_is_hidden) {
    const ScratchDirectory folder;
    ArchiveHeap heap(create_only, folder.path() / "x.tyn");
    auto& numbers = heap.construct<taiyen::vector<std::uint64_t>>("numbers");
    heap.construct<taiyen::map<int, taiyen::string>>("texts")[1] = "a text that is too long to lie within itself";
    numbers.push_back(reinterpret_cast<std::uint64_t>(heap.allocate(300)));
    const LeakReport leaks = find_leaks(heap);
    BOOST_TEST(leaks.is_by_shapes, leaks.why_not);
    BOOST_TEST(leaks.leaked_blocks == 0U);
    BOOST_TEST(leaks.hidden_blocks == 1U);
    BOOST_TEST(leaks.hidden_bytes >= 300U);
    BOOST_TEST_REQUIRE(leaks.leaks.size() == 1U);
    BOOST_TEST((leaks.leaks.front().kind == LeakKind::hidden));
}

BOOST_AUTO_TEST_CASE(compacting_by_shapes_moves_what_they_tell_whole) {
    const ScratchDirectory folder;
    std::mt19937_64 random(test::seed_of_run());
    for (const bool known : {false, true}) {
        ArchiveHeap heap(create_only, folder.path() / (known ? "known.tyn" : "unknown.tyn"));
        fill(heap.construct<Everything>("all"), random, heap, 300);
        fill(heap.construct<Everything>("holes"), random, heap, 300);
        heap.destroy<Everything>("holes");
        heap.snapshot();
        const std::string before = shown(heap, false);
        const std::string led_before = led_to(*heap.find<Everything>("all"));
        CompactOptions options;
        options.known_types = known;
        std::uint64_t moved = 0;
        for (CompactReport done; (done = compact(heap, options)).moved_blocks != 0;) moved += done.moved_blocks;
        BOOST_TEST((moved != 0) == known);
        BOOST_TEST((shown(heap, false) == before));
        BOOST_TEST((led_to(*heap.find<Everything>("all")) == led_before));
        BOOST_TEST(heap.verify().ok());
        fill(*heap.find<Everything>("all"), random, heap, 50);
        heap.snapshot();
    }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace shape_types_test
