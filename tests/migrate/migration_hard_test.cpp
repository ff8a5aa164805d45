// Migrations that look easy: names that change places, pointers to what nobody migrates, keys that look like pointers, heaps without room. What can't be done right is refused, and nothing happens.

#include <boost/test/unit_test.hpp>

#include <array>
#include <chrono>
#include <optional>
#include <string>

#include <taiyen/taiyen.hpp>

#include "scratch_directory.hpp"
#include "throws.hpp"

namespace migration_hard_test {
using namespace taiyen;

/// Each in a heap of its own.
struct Fixture {
    ScratchDirectory folder;
    SnapshotHeap heap{create_only, folder.path() / "x.tyn"};

    void check_whole() const {
        const LeakReport leaks = find_leaks(heap);
        BOOST_TEST(leaks.leaked_blocks == 0U);
        BOOST_TEST(heap.verify().ok());
    }
};
constexpr const char* long_text = "a text that is too long to lie within itself";

BOOST_FIXTURE_TEST_SUITE(migration_hard, Fixture)

struct AB {
    double a = 0;
    double b = 0;
};
struct XY {
    double x = 0;
    double y = 0;
};
struct BA {
    double b = 0;
    double a = 0;
};

BOOST_AUTO_TEST_CASE(fields_of_one_size_change_their_names_as_it_is_said) {
    heap.construct<AB>("p") = {1, 2};
    BOOST_TEST(test::throws(errc::invalid_argument, [&] { Migration(heap).object<XY>("p").run(); }));
    BOOST_TEST(test::throws(errc::invalid_argument, [&] { Migration(heap).object<XY>("p").renamed<XY>("a", "x").renamed<XY>("a", "y").run(); }));
    Migration(heap).object<XY>("p").renamed<XY>("a", "y").renamed<XY>("b", "x").run();
    BOOST_TEST(heap.find<XY>("p")->x == 2);
    BOOST_TEST(heap.find<XY>("p")->y == 1);
    heap.construct<AB>("q") = {1, 2};
    Migration(heap).object<BA>("q").run();
    BOOST_TEST(heap.find<BA>("q")->a == 1);
    heap.construct<AB>("r") = {1, 2};
    Migration(heap).object<XY>("r").dropped<XY>("a").dropped<XY>("b").run();
    BOOST_TEST(heap.find<XY>("r")->x == 0);
    check_whole();
}

struct WithPointer {
    int* number = nullptr;
    taiyen::string text;
};
struct WithWider {
    long* number = nullptr;
    taiyen::string text;
};
struct WithNumber {
    int number = 0;
    taiyen::string text;
};

BOOST_AUTO_TEST_CASE(pointers_do_not_lead_to_other_types_by_themselves) {
    heap.construct<WithPointer>("p").number = heap.make<int>(7);
    BOOST_TEST(test::throws(errc::invalid_argument, [&] { Migration(heap).object<WithWider>("p").run(); }));
    heap.construct<WithNumber>("n");
    BOOST_TEST(test::throws(errc::type_mismatch, [&] { Migration(heap).object<WithPointer>("n").run(); }));
    BOOST_TEST(*heap.find<WithPointer>("p")->number == 7);
    check_whole();
}

struct OldItem {
    taiyen::string name;
    int weight = 0;
    TAIYEN_DESCRIBE(OldItem, name, weight)
};
struct NewItem {
    long weight = 0;
    taiyen::string name;
    taiyen::string note;
    TAIYEN_DESCRIBE(NewItem, weight, name, note)
};
struct OldShelf {
    taiyen::vector<OldItem> items;
    OldItem* best = nullptr;
};
struct NewShelf {
    taiyen::vector<NewItem> items;
    NewItem* best = nullptr;
};

OldShelf& make_shelf(SnapshotHeap& heap, const char* name = "shelf") {
    auto& shelf = heap.construct<OldShelf>(name);
    for (int i = 0; i != 10; ++i) {
        shelf.items.emplace_back().name = long_text;
        shelf.items.back().weight = i;
    }
    shelf.best = &shelf.items[7];
    return shelf;
}

BOOST_AUTO_TEST_CASE(what_a_function_moves_is_not_pointed_to_from_elsewhere) {
    make_shelf(heap);
    const auto add = [](const ViewValue&, NewShelf& shelf) { shelf.items.emplace_back(); };
    BOOST_TEST(test::throws(errc::invalid_argument, [&] { Migration(heap).object<NewShelf>("shelf").with<NewShelf>(add).run(); }));
    heap.find<OldShelf>("shelf")->best = nullptr;
    Migration(heap).object<NewShelf>("shelf").with<NewShelf>(add).run();
    BOOST_TEST(heap.find<NewShelf>("shelf")->items.size() == 11U);
    BOOST_TEST(std::string_view(heap.find<NewShelf>("shelf")->items[3].name) == long_text);
    check_whole();
}

BOOST_AUTO_TEST_CASE(what_a_function_leaves_in_its_place_is_led_to) {
    make_shelf(heap);
    Migration(heap)
        .object<NewShelf>("shelf")
        .with<NewShelf>([](const ViewValue&, NewShelf& shelf) { shelf.items[7].note = long_text; })
        .with<NewItem>([](const ViewValue&, NewItem& item) { ++item.weight; })
        .run();
    const auto& shelf = *heap.find<NewShelf>("shelf");
    BOOST_TEST(shelf.best == &shelf.items[7]);
    BOOST_TEST(shelf.best->weight == 8);
    check_whole();
}

BOOST_AUTO_TEST_CASE(functions_find_old_values_whole_wherever_they_lie) {
    make_shelf(heap);
    make_shelf(heap, "other");
    std::size_t met = 0;
    Migration change(heap);
    change.object<NewShelf>("other").object<NewShelf>("shelf");
    change.with<NewItem>([&](const ViewValue&, NewItem& item) {
        const View view(heap);
        met += view.find("other")->get<std::string>("items[3].name") == long_text ? 1U : 0U;
        item.note = view.find("shelf")->get<std::string>("best.name");
    });
    change.run();
    BOOST_TEST(met == 20U);
    BOOST_TEST(heap.find<NewShelf>("shelf")->best == &heap.find<NewShelf>("shelf")->items[7]);
    BOOST_TEST(std::string_view(heap.find<NewShelf>("shelf")->best->note) == long_text);
    BOOST_TEST(test::throws(errc::invalid_argument, [&] { change.run(); }));
    check_whole();
}

struct OldLink {
    OldItem* item = nullptr;
    int number = 0;
};
struct NewLink {
    NewItem* item = nullptr;
    long number = 0;
};

BOOST_AUTO_TEST_CASE(what_belongs_to_somebody_else_is_not_made_anew) {
    auto& alone = heap.construct<taiyen::vector<OldItem>>("alone");
    alone.reserve(1);
    alone.emplace_back().name = long_text;
    heap.construct<OldLink>("link").item = &alone.front();
    BOOST_TEST(test::throws(errc::invalid_argument, [&] { Migration(heap).object<NewLink>("link").run(); }));
    BOOST_TEST(std::string_view(heap.find<taiyen::vector<OldItem>>("alone")->front().name) == long_text);
    Migration(heap).object<NewLink>("link").object<taiyen::vector<NewItem>>("alone").run();
    BOOST_TEST(heap.find<NewLink>("link")->item == &heap.find<taiyen::vector<NewItem>>("alone")->front());
    heap.construct<OldLink>("named").item = &heap.construct<OldItem>("item");
    BOOST_TEST(test::throws(errc::invalid_argument, [&] { Migration(heap).object<NewLink>("named").run(); }));
    auto* const several = static_cast<OldItem*>(heap.allocate(3 * sizeof(OldItem)));
    for (int i = 0; i != 3; ++i) new (several + i) OldItem();
    heap.construct<OldLink>("several").item = several;
    BOOST_TEST(test::throws(errc::invalid_argument, [&] { Migration(heap).object<NewLink>("several").run(); }));
    check_whole();
}

struct OldIndex {
    taiyen::btree_map<OldItem*, int> counts;
    taiyen::btree_map<std::uint64_t, int> addresses;
    taiyen::list<OldItem> items;
};
struct NewIndex {
    taiyen::btree_map<NewItem*, long> counts;
    taiyen::btree_map<std::uint64_t, long> addresses;
    taiyen::list<NewItem> items;
};

BOOST_AUTO_TEST_CASE(keys_that_look_like_pointers_are_keys) {
    auto& index = heap.construct<OldIndex>("index");
    for (int i = 0; i != 2000; ++i) {
        index.items.emplace_back().weight = i;
        index.addresses[reinterpret_cast<std::uint64_t>(&index.items.back())] = i;
    }
    Migration(heap).object<NewIndex>("index").run();
    BOOST_TEST(heap.find<NewIndex>("index")->addresses.size() == 2000U);
    BOOST_TEST(heap.find<NewIndex>("index")->items.back().weight == 1999);
    check_whole();
}

BOOST_AUTO_TEST_CASE(trees_ordered_by_pointers_are_refused_or_right) {
    auto& counts = heap.construct<taiyen::btree_map<OldItem*, int>>("counts");
    for (int i = 0; i != 2000; ++i) counts[heap.make<OldItem>()] = i;
    // The keys lead elsewhere now, so that another order is theirs: nobody promises that it works, but nothing is freed that is in use.
    Migration change(heap);
    change.object<taiyen::btree_map<OldItem*, long>>("counts");
    change.run();
    BOOST_TEST((heap.find<taiyen::btree_map<OldItem*, long>>("counts")->size() == 2000U));
    check_whole();
}

struct OldOdd {
    taiyen::btree_map<int, taiyen::string> map;
    char letter = 'a';
    taiyen::vector<char> bytes;
    taiyen::string text;
    std::array<char, 8> code{};
};
struct OddArray {
    std::array<std::pair<int, taiyen::string>, 4> map;
    char letter = 'a';
    taiyen::vector<char> bytes;
    taiyen::string text;
    std::array<char, 8> code{};
};
struct OddText {
    taiyen::btree_map<int, taiyen::string> map;
    int letter = 0;
    taiyen::string bytes;
    taiyen::u16string text;
    std::array<char, 8> code{};
};
struct OddLetter {
    taiyen::btree_map<int, taiyen::string> map;
    int letter = 0;
    taiyen::string bytes;
    taiyen::string text;
    taiyen::string code;
};

BOOST_AUTO_TEST_CASE(texts_and_letters_keep_every_byte) {
    auto& odd = heap.construct<OldOdd>("odd");
    odd.map[1] = long_text;
    odd.letter = static_cast<char>(-1);
    odd.bytes = {static_cast<char>(0xc3), 'x'};
    odd.text = "gr\xc3\xbc\xc3\x9f";
    odd.code = {'a', 0, 'b'};
    BOOST_TEST(test::throws(errc::type_mismatch, [&] { Migration(heap).object<OddArray>("odd").run(); }));
    BOOST_TEST(test::throws(errc::type_mismatch, [&] { Migration(heap).object<OddText>("odd").run(); }));
    BOOST_TEST(test::throws(errc::type_mismatch, [&] { Migration(heap).object<OddLetter>("odd").run(); }));
    heap.find<OldOdd>("odd")->code = {'a', 'b'};
    Migration(heap).object<OddLetter>("odd").run();
    const auto& now = *heap.find<OddLetter>("odd");
    BOOST_TEST(now.letter == static_cast<int>(static_cast<char>(-1)));
    BOOST_TEST(std::string_view(now.bytes) == "\xc3x");
    BOOST_TEST(std::string_view(now.code) == "ab");
    BOOST_TEST(std::string_view(now.map.at(1)) == long_text);
    check_whole();
}

class Closed {
public:
    Closed() = default;
    explicit Closed(const char* text) : text_(text) {}
    const taiyen::string& text() const { return text_; }

private:
    taiyen::string text_;
};
class Half {
public:
    TAIYEN_DESCRIBE(Half, shown)
    taiyen::string shown;
    void hide(const char* text) { hidden_ = text; }
    const taiyen::string& hidden() const { return hidden_; }

private:
    taiyen::string hidden_;
};
struct OldSafe {
    Closed closed;
    Half half;
    std::variant<int, taiyen::string> either;
    int number = 0;
};
struct NewSafe {
    long number = 0;
    Closed closed;
    Half half;
    std::variant<int, taiyen::string> either;
};

template <class Heap>
void check_safe(Heap& heap, bool has_function) {
    auto& safe = heap.template construct<OldSafe>("safe");
    heap.template destroy<OldSafe>("safe");
    auto& made = heap.template construct<OldSafe>("safe", OldSafe{Closed(long_text), {}, {}, 0});
    static_cast<void>(safe);
    made.half.shown = long_text;
    made.half.hide(long_text);
    made.either.template emplace<1>(long_text);
    Migration change(heap);
    change.template object<NewSafe>("safe");
    if (has_function) change.template with<NewSafe>([](const ViewValue&, NewSafe& now) { now.number = 5; });
    const MigrationReport report = change.run();
    BOOST_TEST(report.left.empty());
    const auto& now = *heap.template find<NewSafe>("safe");
    BOOST_TEST(std::string_view(now.closed.text()) == long_text);
    BOOST_TEST(std::string_view(now.half.shown) == long_text);
    BOOST_TEST(std::string_view(now.half.hidden()) == long_text);
    BOOST_TEST(std::string_view(std::get<1>(now.either)) == long_text);
    BOOST_TEST(now.number == (has_function ? 5 : 0));
    const LeakReport leaks = find_leaks(heap);
    BOOST_TEST(leaks.leaked_blocks == 0U);
    heap.snapshot();
    BOOST_TEST(heap.verify().ok());
}

BOOST_AUTO_TEST_CASE(what_classes_hide_goes_along) {
    check_safe(heap, false);
    SnapshotHeap with_function(create_only, folder.path() / "f.tyn");
    check_safe(with_function, true);
    ArchiveHeap archive(create_only, folder.path() / "a.tyn");
    check_safe(archive, false);
}

struct OldHalf {
    Half half;
    int number = 0;
};
class OtherHalf {
public:
    TAIYEN_DESCRIBE(OtherHalf, shown)
    taiyen::string shown;
    void hide(const char* text) { hidden_ = text; }

private:
    taiyen::string hidden_;
    taiyen::string more_;
};
struct NewHalf {
    OtherHalf half;
    long number = 0;
};

BOOST_AUTO_TEST_CASE(what_classes_hide_is_not_lost_in_silence) {
    heap.construct<OldHalf>("half").half.hide(long_text);
    BOOST_TEST(test::throws(errc::invalid_argument, [&] { Migration(heap).object<NewHalf>("half").run(); }));
    Migration change(heap);
    change.object<NewHalf>("half").with<Half, OtherHalf>([](const Half& old, OtherHalf& now) { now.hide(old.hidden().c_str()); });
    BOOST_TEST(!change.run().left.empty());  // what the old one hid
}

struct OldEvent {
    std::int64_t when = 0;
    std::chrono::seconds length{};
};
struct Moment {
    std::int64_t seconds = 0;
    bool is_known = false;
};
struct NewEvent {
    Moment when;
    std::chrono::seconds length{};
};
struct FineEvent {
    std::int64_t when = 0;
    std::chrono::milliseconds length{};
};

BOOST_AUTO_TEST_CASE(a_function_makes_a_structure_of_what_was_none) {
    heap.construct<OldEvent>("event") = {77, std::chrono::seconds(5)};
    BOOST_TEST(test::throws(errc::type_mismatch, [&] { Migration(heap).object<FineEvent>("event").run(); }));
    BOOST_TEST(test::throws(errc::type_mismatch, [&] { Migration(heap).object<NewEvent>("event").run(); }));
    Migration(heap).object<NewEvent>("event").with<Moment>([](const ViewValue& old, Moment& now) { now = {old.get<std::int64_t>(), true}; }).run();
    BOOST_TEST(heap.find<NewEvent>("event")->when.seconds == 77);
    BOOST_TEST(heap.find<NewEvent>("event")->length.count() == 5);
    check_whole();
}

BOOST_AUTO_TEST_CASE(a_heap_that_hears_of_declared_ranges_only_is_refused) {
    PersistentOptions options;
    options.capture = Capture::declared;
    SnapshotHeap declared(create_only, folder.path() / "d.tyn", options);
    declared.construct<AB>("p") = {1, 2};
    BOOST_TEST(test::throws(errc::invalid_argument, [&] { Migration(declared).object<BA>("p").dry_run(); }));
}

BOOST_AUTO_TEST_CASE(an_archive_without_room_stays_as_it_is) {
    for (const bool is_small : {false, true}) {
        PersistentOptions options;
        options.capacity = 1_MiB;
        ArchiveHeap archive(create_only, folder.path() / (is_small ? "small.tyn" : "large.tyn"), options);
        for (const char* name : {"one", "two"}) {
            auto& items = archive.construct<taiyen::vector<OldItem>>(name);
            for (int i = 0; i != (is_small ? 4000 : 1000); ++i) items.emplace_back().weight = i;
        }
        Migration change(archive);
        change.object<taiyen::vector<NewItem>>("one").object<taiyen::vector<NewItem>>("two");
        if (!is_small) {
            change.run();
            BOOST_TEST(archive.find<taiyen::vector<NewItem>>("two")->back().weight == 999);
        } else {
            BOOST_CHECK_THROW(change.run(), HeapFull);
            BOOST_TEST(archive.find<taiyen::vector<OldItem>>("one")->back().weight == 3999);
            BOOST_TEST(archive.find<taiyen::vector<OldItem>>("two")->back().weight == 3999);
        }
        const LeakReport leaks = find_leaks(archive);
        BOOST_TEST(leaks.leaked_blocks == 0U);
        BOOST_TEST(archive.verify().ok());
    }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace migration_hard_test
