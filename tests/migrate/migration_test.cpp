// What becomes of stored objects when their types change: every value is what it was or what a function makes of it, nothing is left behind, and what can't be done changes nothing.

#include <boost/test/unit_test.hpp>

#include <array>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <variant>

#include <taiyen/taiyen.hpp>

#include "scratch_directory.hpp"
#include "throws.hpp"

namespace before {
using namespace taiyen;

enum class Colour : std::uint8_t { red, green };
struct Part {
    taiyen::string name;
    double weight = 0;
    taiyen::vector<taiyen::string> tags;
    Colour colour = Colour::red;
};
struct Box {
    taiyen::map<taiyen::string, Part> parts;
    taiyen::map<int, taiyen::string> words;
    int number = 0;
};
struct Knot {
    int number = 0;
    Knot* next = nullptr;
    Knot* other = nullptr;
    Part* part = nullptr;
    TAIYEN_DESCRIBE(Knot, number, next, other, part)
};
TAIYEN_DESCRIBE(Part, name, weight, tags, colour)
struct Net {
    taiyen::map<taiyen::string, Part> parts;
    taiyen::list<Part> spare;
    Knot* first = nullptr;
    Part* best = nullptr;
    taiyen::vector<Part*> chosen;
    taiyen::string* word = nullptr;
    taiyen::list<taiyen::string> words;
};
}  // namespace before

namespace now {
using namespace taiyen;

enum class Colour : std::int32_t { red, green, blue };
struct Part {
    taiyen::string name;
    int grade = 7;
    float weight = 0;
    taiyen::vector<taiyen::string> tags;
    Colour colour = Colour::red;
};
struct Box {
    int number = 0;
    taiyen::map<taiyen::string, Part> parts;
    taiyen::map<int, taiyen::string> words;
};
struct Knot {
    Knot* next = nullptr;
    Knot* other = nullptr;
    std::int64_t number = 0;
    Part* part = nullptr;
    TAIYEN_DESCRIBE(Knot, next, other, number, part)
};
TAIYEN_DESCRIBE(Part, name, grade, weight, tags, colour)
struct Net {
    taiyen::string title;
    taiyen::map<taiyen::string, Part> parts;
    taiyen::list<Part> spare;
    Knot* first = nullptr;
    Part* best = nullptr;
    taiyen::vector<Part*> chosen;
    taiyen::string* word = nullptr;
    taiyen::list<taiyen::string> words;
};
}  // namespace now

namespace migration_test {
using namespace taiyen;

// A field more, fewer, renamed; numbers wider and narrower; and so on: (what it was, what it is).
struct WasSmall {
    std::int16_t a = 0;
    std::uint32_t b = 0;
    float c = 0;
    bool d = false;
    double e = 0;
    std::uint64_t f = 0;
};
struct IsWide {
    std::int64_t a = 0;
    std::int64_t b = 0;
    double c = 0;
    int d = 0;
    int e = 0;
    std::uint8_t f = 0;
};

// Containers of all kinds that become others.
struct WasContainers {
    taiyen::vector<int> row;
    taiyen::list<int> list;
    taiyen::set<int> set;
    taiyen::map<int, taiyen::string> map;
    taiyen::unordered_map<taiyen::string, int> hashed;
    taiyen::deque<taiyen::string> queue;
    taiyen::forward_list<std::int16_t> chain;
    taiyen::btree_map<int, taiyen::string> tree;
    taiyen::btree_map<taiyen::string, int> tree_of_texts;
    taiyen::btree_set<std::int64_t> numbers;
    taiyen::ordered_map<taiyen::string, taiyen::string> still;
    taiyen::flat_hash_map<int, taiyen::string> fast;
    taiyen::multimap<int, int> many;
    taiyen::vector<bool> bits;
    taiyen::basic_string<char> text;
    char code[8]{};
    std::array<int, 3> three{};
};
struct AreContainers {
    taiyen::deque<long> row;
    taiyen::vector<long> list;
    taiyen::vector<long> set;
    taiyen::unordered_map<long, taiyen::string> map;
    taiyen::btree_map<taiyen::string, long> hashed;
    taiyen::vector<taiyen::string> queue;
    taiyen::list<int> chain;
    taiyen::map<long, taiyen::string> tree;
    taiyen::flat_hash_map<taiyen::string, long> tree_of_texts;
    taiyen::ordered_set<int> numbers;
    taiyen::map<taiyen::string, taiyen::string> still;
    taiyen::btree_map<long, taiyen::string> fast;
    taiyen::unordered_multimap<long, long> many;
    taiyen::list<bool> bits;
    taiyen::vector<char> text;
    taiyen::string code;
    taiyen::vector<long> three;
};

struct WasChoice {
    std::optional<int> maybe;
    std::optional<int> never;
    int sure = 0;
    std::variant<int, taiyen::string> value;
    std::variant<int, taiyen::string> other;
    std::pair<int, taiyen::string> pair;
    std::tuple<int, float> tuple;
};
struct IsChoice {
    std::optional<long> maybe;
    std::optional<long> never;
    std::optional<long> sure;
    std::variant<long, taiyen::string, double> value;
    std::variant<long, taiyen::string, double> other;
    std::pair<long, taiyen::string> pair;
    std::tuple<long, double, int> tuple;
};

// The same bytes, otherwise.
struct WasSwapped {
    int width = 0;
    int height = 0;
};

taiyen::string key(std::size_t number) { return taiyen::string("key " + std::to_string(number)); }

/// Nothing is left that nobody leads to, and all is in order.
void check_whole(const ArchiveHeap& heap) {
    const LeakReport leaks = find_leaks(heap);
    BOOST_TEST(leaks.leaked_blocks == 0);
    BOOST_TEST(leaks.doubtful_blocks == 0);
    BOOST_TEST(heap.verify().ok());
}

void fill(before::Part& part, int number) {
    part.name = "part " + std::to_string(number) + std::string(static_cast<std::size_t>(number % 40), 'x');
    part.weight = number / 4.0;
    for (int i = 0; i != number % 3; ++i) part.tags.emplace_back("tag " + std::to_string(i) + " of quite some length, so that it needs a block");
    part.colour = number % 2 == 0 ? before::Colour::red : before::Colour::green;
}
void check(const now::Part& part, int number) {
    BOOST_TEST(std::string_view(part.name) == "part " + std::to_string(number) + std::string(static_cast<std::size_t>(number % 40), 'x'));
    BOOST_TEST(part.weight == static_cast<float>(number) / 4);
    BOOST_TEST(part.grade == 7);
    BOOST_TEST(part.tags.size() == static_cast<std::size_t>(number % 3));
    BOOST_TEST((part.colour == (number % 2 == 0 ? now::Colour::red : now::Colour::green)));
}

before::Box& make_box(ArchiveHeap& heap, int parts = 200) {
    auto& box = heap.construct<before::Box>("box");
    for (int i = 0; i != parts; ++i) fill(box.parts[key(static_cast<std::size_t>(i))], i);
    for (int i = 0; i != 100; ++i) box.words[i] = "a word that is too long to lie within itself " + std::to_string(i);
    box.number = 42;
    return box;
}

void check_box(const now::Box& box, int parts = 200) {
    BOOST_TEST(box.number == 42);
    BOOST_TEST(box.parts.size() == static_cast<std::size_t>(parts));
    for (int i = 0; i != parts; ++i) check(box.parts.at(key(static_cast<std::size_t>(i))), i);
    BOOST_TEST(box.words.size() == 100U);
    for (const auto& [number, word] : box.words)
        BOOST_TEST(std::string_view(word) == "a word that is too long to lie within itself " + std::to_string(number));
}

BOOST_AUTO_TEST_SUITE(migration)

BOOST_AUTO_TEST_CASE(a_changed_structure_in_a_map_becomes_what_it_is_now_in_a_snapshot_heap_and_undo_takes_it_back) {
    const ScratchDirectory folder;
    const auto path = folder.path() / "x.tyn";
    {
        SnapshotHeap heap(create_only, path);
        make_box(heap);
        heap.snapshot();
    }
    {
        SnapshotHeap heap(open_only, path);
        BOOST_TEST(test::throws(errc::type_mismatch, [&] { heap.find<now::Box>("box"); }));
        const auto* const word = &heap.find<before::Box>("box")->words.at(3);
        heap.attach_undo();
        Migration change(heap);
        change.object<now::Box>("box");
        const MigrationReport tried = change.dry_run();
        BOOST_TEST(heap.find<before::Box>("box")->parts.size() == 200U);
        check_whole(heap);
        std::uint64_t told = 0;
        change.progress([&](std::uint64_t done, std::uint64_t) { told = done; });
        const MigrationReport done = change.run();
        BOOST_TEST(told == done.rebuilt + done.taken);
        BOOST_TEST(done.text() == tried.text());
        BOOST_TEST(done.objects.size() == 1U);
        BOOST_TEST(done.objects.front().is_changed);
        BOOST_TEST(done.freed_blocks > 200U);
        BOOST_TEST(done.left.empty());
        BOOST_TEST(done.unknown.empty());
        check_box(*heap.find<now::Box>("box"));
        BOOST_TEST(&heap.find<now::Box>("box")->words.at(3) == word);  // what hasn't changed was moved
        check_whole(heap);
        BOOST_TEST(heap.undo());
        BOOST_TEST(heap.find<before::Box>("box")->parts.at("key 7").weight == 7 / 4.0);
        check_whole(heap);
        BOOST_TEST(heap.redo());
        check_box(*heap.find<now::Box>("box"));
        heap.snapshot();
    }
    SnapshotHeap heap(open_only, path);
    check_box(*heap.find<now::Box>("box"));
    BOOST_TEST(test::throws(errc::type_mismatch, [&] { heap.find<before::Box>("box"); }));
    check_whole(heap);
    BOOST_TEST(View(heap).find("box")->get<int>("parts[\"key 3\"].grade") == 7);
    Migration again(heap);
    again.object<now::Box>("box");
    BOOST_TEST(!again.run().objects.front().is_changed);
    check_box(*heap.find<now::Box>("box"));
}

BOOST_AUTO_TEST_CASE(so_it_does_in_archives_and_in_transactional_heaps_and_where_addresses_are_distances) {
    const ScratchDirectory folder;
    {
        ArchiveHeap heap(create_only, folder.path() / "a.tyn");
        make_box(heap);
        Migration change(heap);
        change.object<now::Box>("box");
        change.dry_run();
        check_whole(heap);
        BOOST_TEST(heap.find<before::Box>("box")->words.size() == 100U);
        change.run();
        check_box(*heap.find<now::Box>("box"));
        check_whole(heap);
        heap.snapshot();
    }
    {
        const ArchiveHeap heap(open_read_only, folder.path() / "a.tyn");
        check_box(*heap.find<now::Box>("box"));
    }
    {
        TransactionalHeap heap(create_only, folder.path() / "t.tyn");
        Transaction filling(heap);
        make_box(heap);
        filling.commit();
        Migration change(heap);
        change.object<now::Box>("box");
        change.run();
        check_box(*heap.find<now::Box>("box"));
        check_whole(heap);
    }
    {
        TransactionalHeap heap(open_only, folder.path() / "t.tyn");
        check_box(*heap.find<now::Box>("box"));
    }
}

BOOST_AUTO_TEST_CASE(within_a_scope_that_is_cancelled_it_never_happened) {
    const ScratchDirectory folder;
    SnapshotHeap heap(create_only, folder.path() / "x.tyn");
    make_box(heap);
    {
        UndoScope scope(heap);
        Migration change(heap);
        change.object<now::Box>("box");
        change.run();
        check_box(*heap.find<now::Box>("box"));
        scope.cancel();
    }
    BOOST_TEST(heap.find<before::Box>("box")->number == 42);
    check_whole(heap);
}

BOOST_AUTO_TEST_CASE(numbers_become_any_that_hold_them_and_no_others) {
    const ScratchDirectory folder;
    SnapshotHeap heap(create_only, folder.path() / "x.tyn");
    heap.construct<WasSmall>("good") = {-7, 4'000'000'000, 0.5, true, 12, 255};
    heap.construct<WasSmall>("large") = {0, 0, 0, false, 0, 256};
    heap.construct<WasSmall>("broken") = {0, 0, 0, false, 0.5, 0};
    heap.construct<WasSmall>("huge") = {0, 0, 0, false, 1e300, 0};
    Migration good(heap);
    good.object<IsWide>("good").run();
    const auto& wide = *heap.find<IsWide>("good");
    BOOST_TEST(wide.a == -7);
    BOOST_TEST(wide.b == 4'000'000'000);
    BOOST_TEST(wide.c == 0.5);
    BOOST_TEST(wide.d == 1);
    BOOST_TEST(wide.e == 12);
    BOOST_TEST(static_cast<int>(wide.f) == 255);
    for (const char* name : {"large", "broken", "huge"}) {
        Migration bad(heap);
        bad.object<IsWide>(name);
        BOOST_TEST(test::throws(errc::type_mismatch, [&] { bad.run(); }));
        BOOST_TEST(heap.find<WasSmall>(name) != nullptr);
    }
    check_whole(heap);
}

BOOST_AUTO_TEST_CASE(containers_become_containers_of_their_family) {
    const ScratchDirectory folder;
    for (const int count : {0, 1, 5, 3000}) {
        SnapshotHeap heap(create_only, folder.path() / (std::to_string(count) + ".tyn"));
        auto& was = heap.construct<WasContainers>("x");
        const auto text = [](int i) { return taiyen::string("text " + std::to_string(i) + std::string(static_cast<std::size_t>(i % 50), 'y')); };
        for (int i = 0; i != count; ++i) {
            was.row.push_back(i);
            was.list.push_back(i);
            was.set.insert(i);
            was.map[i] = text(i);
            was.hashed[text(i)] = i;
            was.queue.push_back(text(i));
            was.chain.push_front(static_cast<std::int16_t>(i));
            was.tree[i] = text(i);
            was.tree_of_texts[text(i)] = i;
            was.numbers.insert(i);
            was.still[text(i)] = text(i);
            was.fast[i] = text(i);
            was.many.emplace(i / 3, i);
            was.bits.push_back(i % 3 == 0);
            was.text += static_cast<char>('a' + i % 26);
        }
        std::strcpy(was.code, "abc");
        was.three = {1, 2, 3};
        Migration(heap).object<AreContainers>("x").run();
        const auto& are = *heap.find<AreContainers>("x");
        BOOST_TEST(are.row.size() == static_cast<std::size_t>(count));
        BOOST_TEST(are.hashed.size() == static_cast<std::size_t>(count));
        BOOST_TEST(are.many.size() == static_cast<std::size_t>(count));
        BOOST_TEST(are.set.size() == static_cast<std::size_t>(count));
        auto row = are.row.begin();
        auto list = are.list.begin();
        auto queue = are.queue.begin();
        auto chain = are.chain.rbegin();
        auto bits = are.bits.begin();
        for (int i = 0; i != count; ++i) {
            BOOST_REQUIRE(*row++ == i);
            BOOST_REQUIRE(*list++ == i);
            BOOST_REQUIRE(are.map.at(i) == text(i));
            BOOST_REQUIRE(are.hashed.at(text(i)) == i);
            BOOST_REQUIRE(*queue++ == text(i));
            BOOST_REQUIRE(*chain++ == i);
            BOOST_REQUIRE(are.tree.at(i) == text(i));
            BOOST_REQUIRE(are.tree_of_texts.at(text(i)) == i);
            BOOST_REQUIRE(are.numbers.contains(i));
            BOOST_REQUIRE(are.still.at(text(i)) == text(i));
            BOOST_REQUIRE(are.fast.at(i) == text(i));
            BOOST_REQUIRE(*bits++ == (i % 3 == 0));
            BOOST_REQUIRE(are.text[static_cast<std::size_t>(i)] == static_cast<char>('a' + i % 26));
        }
        BOOST_TEST(std::string_view(are.code) == "abc");
        BOOST_TEST((are.three == taiyen::vector<long>{1, 2, 3}));
        check_whole(heap);
    }
}

BOOST_AUTO_TEST_CASE(optionals_variants_pairs_and_tuples_keep_what_they_hold) {
    const ScratchDirectory folder;
    SnapshotHeap heap(create_only, folder.path() / "x.tyn");
    auto& was = heap.construct<WasChoice>("x");
    was.maybe = 3;
    was.sure = 4;
    was.value.emplace<1>("a text that is too long to lie within itself");
    was.other = 9;
    was.pair = {5, taiyen::string("another text that is too long to lie within itself")};
    was.tuple = {6, 0.25F};
    Migration(heap).object<IsChoice>("x").run();
    const auto& is = *heap.find<IsChoice>("x");
    BOOST_TEST((is.maybe == 3));
    BOOST_TEST(!is.never);
    BOOST_TEST((is.sure == 4));
    BOOST_TEST(std::string_view(std::get<1>(is.value)) == "a text that is too long to lie within itself");
    BOOST_TEST(std::get<0>(is.other) == 9);
    BOOST_TEST(is.pair.first == 5);
    BOOST_TEST(std::string_view(is.pair.second) == "another text that is too long to lie within itself");
    BOOST_TEST((is.tuple == std::tuple<long, double, int>(6, 0.25, 0)));
    check_whole(heap);
}

namespace renaming {
struct Was {
    taiyen::string name;
    int weight = 0;
    int unused = 0;
};
struct Is {
    long number = 1;
    int mass = 2;
    taiyen::string name;
};
}  // namespace renaming

BOOST_AUTO_TEST_CASE(no_field_is_lost_unless_it_is_said) {
    const ScratchDirectory folder;
    SnapshotHeap heap(create_only, folder.path() / "x.tyn");
    auto& was = heap.construct<renaming::Was>("x");
    was.name = "a name that is too long to lie within itself";
    was.weight = 11;
    {
        Migration change(heap);
        change.object<renaming::Is>("x");
        BOOST_TEST(test::throws(errc::invalid_argument, [&] { change.run(); }));
        change.renamed<renaming::Is>("weight", "mass");
        BOOST_CHECK_EXCEPTION(change.dry_run(), Error, [&](const Error& error) {
            BOOST_TEST(std::string(error.what()).find("Is.unused (int32_t) is gone") != std::string::npos, error.what());
            return error.code() == errc::invalid_argument;
        });
        BOOST_TEST(test::throws(errc::invalid_argument, [&] { change.renamed<renaming::Is>("weight", "masses"); }));
    }
    Migration change(heap);
    change.object<renaming::Is>("x").renamed<renaming::Is>("weight", "mass").dropped<renaming::Is>("unused").run();
    const auto& is = *heap.find<renaming::Is>("x");
    BOOST_TEST(is.mass == 11);
    BOOST_TEST(is.number == 1);
    BOOST_TEST(std::string_view(is.name) == "a name that is too long to lie within itself");
    check_whole(heap);
}

BOOST_AUTO_TEST_CASE(functions_make_what_fields_alone_can_not) {
    const ScratchDirectory folder;
    SnapshotHeap heap(create_only, folder.path() / "x.tyn");
    make_box(heap, 20);
    int calls = 0;
    Migration change(heap);
    change.object<now::Box>("box");
    change.with<now::Part>([&](const ViewValue& old, now::Part& part) {
        ++calls;
        BOOST_TEST(old.get<std::string>("name") == std::string_view(part.name));  // the old one is whole, and taken over
        part.grade = static_cast<int>(old.at("tags").size());
        part.weight = static_cast<float>(old.get<double>("weight") * 4);
    });
    change.run();
    BOOST_TEST(calls == 20);
    for (int i = 0; i != 20; ++i) {
        const now::Part& part = heap.find<now::Box>("box")->parts.at(key(static_cast<std::size_t>(i)));
        BOOST_TEST(part.weight == static_cast<float>(i));
        BOOST_TEST(part.grade == i % 3);
    }
    check_whole(heap);
}

BOOST_AUTO_TEST_CASE(a_function_may_take_the_old_structure_itself) {
    const ScratchDirectory folder;
    SnapshotHeap heap(create_only, folder.path() / "x.tyn");
    make_box(heap, 20);
    {
        Migration wrong(heap);
        wrong.object<now::Box>("box").with<now::Part, now::Part>([](const now::Part&, now::Part&) {});
        BOOST_TEST(test::throws(errc::type_mismatch, [&] { wrong.run(); }));
        BOOST_TEST(test::throws(errc::invalid_argument, [&] { (wrong.with<now::Part>([](const ViewValue&, now::Part&) {})); }));
    }
    Migration change(heap);
    change.object<now::Box>("box").with<before::Part, now::Part>(
        [](const before::Part& old, now::Part& part) { part.grade = static_cast<int>(old.weight * 8); });
    change.run();
    BOOST_TEST(heap.find<now::Box>("box")->parts.at("key 5").grade == 10);
    check_whole(heap);
}

BOOST_AUTO_TEST_CASE(a_function_that_throws_leaves_all_as_it_was) {
    const ScratchDirectory folder;
    for (const bool has_steps : {true, false}) {
        const auto path = folder.path() / (has_steps ? "s.tyn" : "a.tyn");
        std::optional<SnapshotHeap> steps;
        std::optional<ArchiveHeap> archive;
        if (has_steps)
            steps.emplace(create_only, path);
        else
            archive.emplace(create_only, path);
        ArchiveHeap& heap = has_steps ? *steps : *archive;
        make_box(heap);
        const auto run = [&](auto& of) {
            Migration change(of);
            int calls = 0;
            change.object<now::Box>("box").with<now::Part>([&](const ViewValue&, now::Part&) {
                if (++calls == 100) throw std::runtime_error("no");
            });
            BOOST_CHECK_THROW(change.run(), std::runtime_error);
        };
        if (has_steps)
            run(*steps);
        else
            run(*archive);
        const auto& box = *heap.find<before::Box>("box");
        BOOST_TEST(box.parts.size() == 200U);
        BOOST_TEST(std::string_view(box.parts.at("key 39").name).size() == 7 + 39U);
        BOOST_TEST(box.words.size() == 100U);
        check_whole(heap);
    }
}

BOOST_AUTO_TEST_CASE(the_same_bytes_may_mean_something_else) {
    const ScratchDirectory folder;
    SnapshotHeap heap(create_only, folder.path() / "x.tyn");
    auto& rows = heap.construct<taiyen::vector<WasSwapped>>("x");
    rows.push_back({3, 4});
    // Grams become kilograms, in place of nothing else.
    Migration change(heap);
    change.object<taiyen::vector<WasSwapped>>("x").with<WasSwapped, WasSwapped>([](const WasSwapped& old, WasSwapped& now) {
        now.width = old.height;
        now.height = old.width;
    });
    change.run();
    BOOST_TEST(heap.find<taiyen::vector<WasSwapped>>("x")->front().width == 4);
    BOOST_TEST(heap.find<taiyen::vector<WasSwapped>>("x")->front().height == 3);
    check_whole(heap);
}

BOOST_AUTO_TEST_CASE(pointers_lead_to_what_became_of_things) {
    const ScratchDirectory folder;
    SnapshotHeap heap(create_only, folder.path() / "x.tyn");
    auto& net = heap.construct<before::Net>("net");
    for (int i = 0; i != 50; ++i) fill(net.parts[key(static_cast<std::size_t>(i))], i);
    for (int i = 0; i != 5; ++i) fill(net.spare.emplace_back(), i);
    net.words = {"a word that is too long to lie within itself", "another one"};
    net.word = &net.words.back();
    net.best = &net.parts.at("key 17");
    for (int i = 0; i < 50; i += 7) net.chosen.push_back(&net.parts.at(key(static_cast<std::size_t>(i))));
    net.chosen.push_back(nullptr);
    net.chosen.push_back(&net.spare.back());
    // A ring, with chords and a part of its own.
    before::Knot* last = nullptr;
    for (int i = 0; i != 100; ++i) {
        auto* const knot = heap.make<before::Knot>();
        knot->number = i;
        knot->next = last;
        knot->other = net.first;
        if (i == 0) net.first = knot;
        last = knot;
    }
    net.first->next = last;
    last->part = heap.make<before::Part>();
    fill(*last->part, 77);
    net.first->part = net.best;
    auto& outside = heap.construct<before::Part*>("best");
    outside = net.best;
    check_whole(heap);

    {
        Migration change(heap);
        change.object<now::Net>("net");
        BOOST_TEST(test::throws(errc::invalid_argument, [&] { change.run(); }));  // 'best' leads there, too, and to a part as it was
    }
    Migration change(heap);
    change.object<now::Net>("net").object<now::Part*>("best");
    BOOST_TEST(change.dry_run().text() == change.dry_run().text());
    const MigrationReport report = change.run();
    BOOST_TEST(report.left.empty());
    const auto& is = *heap.find<now::Net>("net");
    for (int i = 0; i != 50; ++i) check(is.parts.at(key(static_cast<std::size_t>(i))), i);
    BOOST_TEST(is.word == &is.words.back());
    BOOST_TEST(is.best == &is.parts.at("key 17"));
    BOOST_TEST(is.chosen.size() == 10U);
    for (std::size_t i = 0; i != 8; ++i) BOOST_TEST(is.chosen[i] == &is.parts.at(key(7 * i)));
    BOOST_TEST(is.chosen[8] == nullptr);
    BOOST_TEST(is.chosen[9] == &is.spare.back());
    int count = 0;
    for (const now::Knot* knot = is.first->next; count != 100; knot = knot->next, ++count) {
        BOOST_REQUIRE(knot->number == 99 - count);
        BOOST_TEST(knot->other == (knot == is.first ? nullptr : is.first));
    }
    check(*is.first->next->part, 77);
    BOOST_TEST(is.first->part == is.best);
    BOOST_TEST(*heap.find<now::Part*>("best") == is.best);
    check_whole(heap);
}

BOOST_AUTO_TEST_CASE(what_leads_into_things_that_go_is_refused) {
    const ScratchDirectory folder;
    SnapshotHeap heap(create_only, folder.path() / "x.tyn");
    auto& box = make_box(heap, 5);
    auto& weight = heap.construct<double*>("weight");
    weight = &box.parts.at("key 3").weight;
    {
        Migration change(heap);
        change.object<now::Box>("box");
        BOOST_TEST(test::throws(errc::invalid_argument, [&] { change.run(); }));
    }
    BOOST_TEST(heap.find<before::Box>("box")->parts.size() == 5U);
    BOOST_TEST(*weight == 0.75);
    weight = nullptr;
    Migration change(heap);
    change.object<now::Box>("box");
    change.run();
    check_box(*heap.find<now::Box>("box"), 5);
}

BOOST_AUTO_TEST_CASE(what_can_not_be_is_told_by_its_path) {
    const ScratchDirectory folder;
    SnapshotHeap heap(create_only, folder.path() / "x.tyn");
    make_box(heap, 5).parts.at("key 2").weight = 0.1;  // no float
    Migration change(heap);
    change.object<now::Box>("box");
    BOOST_CHECK_EXCEPTION(change.run(), Error, [](const Error& error) {
        BOOST_TEST(std::string(error.what()).find("at box.parts.weight: a double, 0.1, can't become a float") != std::string::npos, error.what());
        return error.code() == errc::type_mismatch;
    });
    BOOST_TEST(test::throws(errc::not_found, [&] { Migration(heap).object<now::Box>("boxes").run(); }));
    BOOST_TEST(test::throws(errc::invalid_argument, [&] { change.object<now::Box>("box"); }));
    BOOST_TEST(heap.find<before::Box>("box")->number == 42);
    check_whole(heap);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace migration_test
