// Saves and commits look for words that lead out of the heap. Where shapes tell that a number lies there it is one; what is refused is named by its path.

#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <variant>

#include <boost/test/unit_test.hpp>

#include <taiyen/taiyen.hpp>

#include "heap/engine.hpp"
#include "heap/memory_core.hpp"
#include "scratch_directory.hpp"
#include "shape/encoding.hpp"
#include "throws.hpp"

namespace foreign_by_shapes_test {
using namespace taiyen;

/// A number, and something else that keeps its block from being one without pointers.
struct Cell {
    taiyen::string name;
    std::int64_t number = 0;
    bool operator==(const Cell& other) const { return number == other.number; }
    bool operator<(const Cell& other) const { return number < other.number; }
};
struct Link {
    taiyen::string name;
    long* to = nullptr;
};
struct Halves {
    taiyen::string name;
    std::uint32_t low = 0;
    std::uint32_t high = 0;
};
struct Kinds {
    std::array<Cell, 3> cells;
    std::pair<std::int64_t, taiyen::string> pair;
    std::tuple<taiyen::string, std::int64_t> tuple;
    std::optional<Cell> maybe;
    std::variant<int, Cell> either;
    char text[16] = {};
};
struct Hidden {
    explicit Hidden(std::int64_t n) : number_(n) {}
    std::int64_t number() const { return number_; }

private:
    std::int64_t number_;
    taiyen::string name_;
};
struct Node {
    taiyen::string name;
    std::int64_t number = 0;
    long* to = nullptr;
    Node* next = nullptr;
};

/// What a text of another process could lie in.
struct Storage {
    taiyen::string name;
    alignas(8) std::byte bytes[32] = {};
    alignas(8) unsigned char more[16] = {};
    std::uintptr_t word = 0;
};
struct Arena {
    std::byte* begin = nullptr;
    char* text = nullptr;
    std::int64_t* numbers = nullptr;
};
class Either {
public:
    union {
        std::int64_t number;
        long* to;
    };
    Either() : number(0) {}
    taiyen::string name;
    TAIYEN_DESCRIBE(Either, number, to, name)
};

struct Fixture {
    ScratchDirectory directory;
    PersistentOptions options = [] {
        PersistentOptions small;
        small.capacity = 8_MiB;
        return small;
    }();
    ArchiveHeap other{create_only, directory / "other.tyn", options};
    long* const target = &other.construct<long>("target", 1);
    const std::int64_t address = reinterpret_cast<std::int64_t>(target);
    SnapshotHeap heap{create_only, directory / "heap.tyn", options};

    bool saves() {
        heap.construct<int>("tick" + std::to_string(tick++));
        return !test::throws(errc::foreign_pointer, [&] { heap.snapshot(); });
    }
    std::string refusal() {
        heap.construct<int>("tick" + std::to_string(tick++));
        try {
            heap.snapshot();
        } catch (const Error& error) {
            BOOST_TEST(error.code() == errc::foreign_pointer);
            return error.what();
        }
        return "nothing was refused";
    }
    bool refuses(const std::string& where) {
        const std::string said = refusal();
        const bool is_named = said.find(", in " + where + ";") != std::string::npos;
        if (!is_named) BOOST_TEST_MESSAGE(said);
        return is_named;
    }
    int tick = 0;
};

BOOST_FIXTURE_TEST_SUITE(foreign_by_shapes, Fixture)

BOOST_AUTO_TEST_CASE(numbers_of_every_container_are_numbers_and_pointers_beside_them_are_refused) {
    const auto fill = [&](auto& container, auto add) {
        add(container);
        BOOST_TEST(saves());
    };
    const Cell cell{taiyen::string("a cell"), address};
    const auto at_end = [&](auto& c) { c.push_back(cell); };
    const auto at_front = [&](auto& c) { c.push_front(cell); };
    const auto as_key = [&](auto& c) { c.insert(cell); };
    const auto as_value = [&](auto& c) { c.emplace(taiyen::string("k"), cell); };
    fill(heap.construct<taiyen::vector<Cell>>("vector"), at_end);
    fill(heap.construct<taiyen::deque<Cell>>("deque"), at_end);
    fill(heap.construct<taiyen::list<Cell>>("list"), at_end);
    fill(heap.construct<taiyen::forward_list<Cell>>("forward_list"), at_front);
    fill(heap.construct<taiyen::map<taiyen::string, Cell>>("map"), as_value);
    fill(heap.construct<taiyen::multimap<taiyen::string, Cell>>("multimap"), as_value);
    fill(heap.construct<taiyen::set<Cell>>("set"), as_key);
    fill(heap.construct<taiyen::unordered_map<taiyen::string, Cell>>("unordered_map"), as_value);
    fill(heap.construct<taiyen::btree_map<taiyen::string, Cell>>("btree_map"), as_value);
    fill(heap.construct<taiyen::btree_set<Cell>>("btree_set"), as_key);
    fill(heap.construct<taiyen::ordered_map<taiyen::string, Cell>>("ordered_map"), as_value);
    fill(heap.construct<taiyen::ordered_set<Cell>>("ordered_set"), as_key);
    fill(heap.construct<taiyen::flat_hash_map<taiyen::string, Cell>>("flat_hash_map"), as_value);

    auto& links = heap.construct<taiyen::map<taiyen::string, taiyen::vector<Link>>>("links");
    links["a"].resize(3);
    BOOST_TEST(saves());
    links["a"][2].to = target;
    BOOST_TEST(refuses("links[\"a\"][2].to (int64_t*)"));
    links["a"][2].to = nullptr;
    auto& deep = heap.construct<taiyen::btree_map<int, std::pair<taiyen::list<Link>, int>>>("deep");
    deep[7].first.emplace_back();
    deep[7].first.back().to = target;
    BOOST_TEST(refuses("deep[7].first[0].to (int64_t*)"));
}

BOOST_AUTO_TEST_CASE(numbers_in_place_are_numbers) {
    auto& kinds = heap.construct<Kinds>("kinds");
    kinds.cells[1].number = address;
    kinds.pair.first = address;
    std::get<1>(kinds.tuple) = address;
    kinds.maybe.emplace(Cell{{}, address});
    kinds.either.emplace<Cell>(Cell{{}, address});
    std::memcpy(kinds.text + 8, &address, 8);
    auto& halves = heap.construct<Halves>("halves");
    halves.low = static_cast<std::uint32_t>(address);
    halves.high = static_cast<std::uint32_t>(static_cast<std::uint64_t>(address) >> 32U);
    BOOST_TEST(saves());
}

BOOST_AUTO_TEST_CASE(what_an_optional_or_a_variant_held_once_is_nothing) {
    auto& maybe = heap.construct<std::optional<Link>>("maybe");
    auto& either = heap.construct<std::variant<int, Link>>("either");
    maybe.emplace().to = target;
    BOOST_TEST(refuses("maybe.to (int64_t*)"));
    maybe.reset();
    BOOST_TEST(saves());
    either.emplace<Link>().to = target;
    BOOST_TEST(refuses("either.to (int64_t*)"));
    either = 5;
    BOOST_TEST(saves());
}

BOOST_AUTO_TEST_CASE(a_string_that_was_moved_past_its_allocator_is_refused_by_name) {
    auto& maybe = heap.construct<taiyen::vector<std::optional<taiyen::string>>>("maybe");
    maybe.resize(4);
    maybe[3] = taiyen::string("a text that is too long for a small buffer");
    BOOST_TEST(refuses("maybe[3] (string)"));
    maybe[3].reset();
    BOOST_TEST(saves());
    auto& numbers = heap.construct<std::optional<taiyen::vector<Cell>>>("cells");
    numbers = taiyen::vector<Cell>(5);
    BOOST_TEST(refuses("cells (vector<foreign_by_shapes_test::Cell>)"));
}

BOOST_AUTO_TEST_CASE(what_no_shape_tells_is_refused_as_a_word_is) {
    heap.construct<Hidden>("hidden", address);
    const std::string said = refusal();
    BOOST_TEST(said.find("the object 'hidden', at its byte 0") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(behind_pointers_a_path_begins_with_the_type) {
    auto& head = heap.construct<Node>("head");
    Node* last = &head;
    for (int i = 0; i < 1000; ++i) {
        last->next = heap.make<Node>();
        last = last->next;
        last->number = address;
    }
    last->next = &head;
    BOOST_TEST(saves());
    head.next->next->to = target;
    BOOST_TEST(refuses("foreign_by_shapes_test::Node.to (int64_t*)"));
}

BOOST_AUTO_TEST_CASE(where_programs_keep_addresses_a_word_is_refused_as_before) {
    auto& storage = heap.construct<Storage>("storage");
    BOOST_TEST(saves());
    const auto refuses_in = [&](void* place) {
        const std::int64_t before = std::exchange(*static_cast<std::int64_t*>(place), address);
        const std::string said = refusal();
        *static_cast<std::int64_t*>(place) = before;
        return said.find("if it is a number that only looks like an address") != std::string::npos;
    };
    BOOST_TEST(refuses_in(storage.bytes + 8));
    BOOST_TEST(refuses_in(storage.more));
    BOOST_TEST(refuses_in(&storage.word));
    auto& arena = heap.construct<Arena>("arena");
    auto* const memory = static_cast<std::byte*>(heap.allocate(256));
    std::memset(memory, 0, 256);
    arena.begin = memory;
    arena.text = reinterpret_cast<char*>(memory);
    arena.numbers = reinterpret_cast<std::int64_t*>(memory);
    BOOST_TEST(refuses_in(memory));
    BOOST_TEST(refuses_in(memory + 64));
}

BOOST_AUTO_TEST_CASE(what_one_field_calls_a_number_and_another_one_a_pointer_is_refused) {
    auto& either = heap.construct<Either>("either");
    either.to = target;
    BOOST_TEST(refusal().find("outside the heap") != std::string::npos);
    either.number = 0;
    BOOST_TEST(saves());
}

BOOST_AUTO_TEST_CASE(a_shape_that_is_not_the_programs_own_is_not_believed) {
    heap.construct<Hidden>("hidden", 0);
    heap::Engine& engine = heap.core()->engine();
    const std::string fingerprint = engine.find_root("hidden")->fingerprint;
    const std::string stored = engine.shape_of(fingerprint).value();
    Shape older = Shape::decode(std::as_bytes(std::span(stored)));
    BOOST_REQUIRE((older.nodes.front().kind == ShapeKind::opaque));
    older.nodes.front().kind = ShapeKind::structure;
    older.nodes.front().parts = {{"number", 0, 1}};
    older.nodes.push_back({ShapeKind::signed_integer, false, false, 8, 8, 0, {}, {}});
    engine.set_shape(fingerprint, shape::encode(older));
    heap.snapshot();
    heap.close();
    // A program that knows nothing of the type.
    SnapshotHeap again(open_only, directory / "heap.tyn", options);
    auto* const word = reinterpret_cast<std::int64_t*>(const_cast<void*>(heap::find_named(*again.core(), "hidden")->object));
    *word = address;
    again.snapshot();
    BOOST_TEST(again.find<Hidden>("hidden")->number() == address);
    again.construct<int>("later");
    *word = 0;
    again.snapshot();
    *word = address;
    BOOST_TEST(test::throws(errc::foreign_pointer, [&] { again.snapshot(); }));
}

BOOST_AUTO_TEST_CASE(who_has_words_reported_has_them_all_reported) {
    options.foreign_pointers = ForeignPointers::report;
    SnapshotHeap telling(create_only, directory / "telling.tyn", options);
    auto& cells = telling.construct<taiyen::vector<Cell>>("cells");
    cells.resize(2);
    for (Cell& cell : cells) cell.number = address;
    const heap::test::Reports reports;
    telling.snapshot();
    BOOST_TEST(heap::test::Reports::entries().size() == 2U);
}

BOOST_AUTO_TEST_CASE(commits_ask_shapes_too) {
    TransactionalHeap bank(create_only, directory / "bank.tyn", options);
    transact(bank, [&] { bank.construct<taiyen::vector<Cell>>("cells").resize(3); });
    auto& cells = *bank.find<taiyen::vector<Cell>>("cells");
    transact(bank, [&] { cells[1].number = address; });
    BOOST_TEST(cells[1].number == address);
    transact(bank, [&] { bank.construct<Link>("link"); });
    Link& link = *bank.find<Link>("link");
    BOOST_CHECK_EXCEPTION(transact(bank, [&] { link.to = target; }), Error, [](const Error& error) {
        return error.code() == errc::foreign_pointer && std::string(error.what()).find(", in link.to (int64_t*);") != std::string::npos;
    });
    BOOST_TEST((link.to == nullptr));
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace foreign_by_shapes_test
