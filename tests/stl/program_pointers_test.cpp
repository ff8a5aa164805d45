// Pointers to what is the program's own: constants, malloc's memory, stacks. The next process finds it elsewhere or not at all.
#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>

#include <boost/test/unit_test.hpp>

#include <taiyen/stl/containers.hpp>
#include <taiyen/stl/named.hpp>

#include "heap/core.hpp"
#include "heap/foreign_pointers.hpp"
#include "heap/memory_core.hpp"
#include "scratch_directory.hpp"

using namespace taiyen;
using heap::test::Reports;

BOOST_AUTO_TEST_SUITE(program_pointers)

/// What a hash table of another library is that was never filled.
struct EmptyTable {
    static const char empty_group[16];
    const char* control = empty_group;
    EmptyTable() {}  // else it were an aggregate
};
const char EmptyTable::empty_group[16] = {};

/// What keeps its nodes in malloc's memory.
struct Graph {
    int* edges;
    Graph() : edges(new int[4]{1, 2, 3, 4}) { ++alive; }
    Graph(const Graph&) = delete;
    Graph& operator=(const Graph&) = delete;
    ~Graph() {
        delete[] edges;
        --alive;
    }
    static inline int alive = 0;
};

/// What points to memory of whoever makes it.
struct View {
    std::uint64_t size = 0;
    const int* first;
    explicit View(const int* place) : first(place) {}
};

struct Point {
    std::uint32_t x, y;
};

/// With room that is set when it is used.
struct Record {
    std::uint64_t used = 0;
    std::uint64_t room[3];
};

/// As the containers of a debug mode are linked with the iterators that are alive.
struct Linked {
    Linked* other = nullptr;
    std::uint64_t number = 0;
};

struct Fixture {
    ScratchDirectory directory;
    PersistentOptions options;
    std::optional<ArchiveHeap> heap;
    Fixture() {
        options.capacity = 8U << 20U;
        heap.emplace(create_only, path(), options);
    }
    std::filesystem::path path() const { return directory / "heap.tyn"; }
    void reopen() {
        heap.reset();
        heap.emplace(open_only, path(), options);
    }
    template <class Action>
    std::string refusal(const Action& action) const {
        try {
            action();
        } catch (const Error& error) {
            BOOST_TEST((error.code() == errc::foreign_pointer));
            return error.what();
        }
        return {};
    }
    std::string save() {
        return refusal([&] { heap->snapshot(); });
    }
};

bool names(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

BOOST_FIXTURE_TEST_SUITE(objects, Fixture)

BOOST_AUTO_TEST_CASE(an_object_that_points_to_a_constant_of_the_program_is_not_made) {
    const std::string text = refusal([&] { heap->construct<EmptyTable>("table"); });
    BOOST_TEST(names(text, "'table'"), text);
    BOOST_TEST(names(text, "at its byte 0"), text);
    BOOST_TEST(names(text, "the program"), text);
    BOOST_TEST(heap->find<EmptyTable>("table") == nullptr);
    BOOST_TEST(!refusal([&] { heap->find_or_construct<EmptyTable>("table"); }).empty());
    BOOST_TEST(names(refusal([&] { heap->make<EmptyTable>(); }), "an object of 8 bytes"));
    BOOST_TEST(heap->core()->engine().stats().live_blocks == 0U);
}

BOOST_AUTO_TEST_CASE(an_object_that_points_to_memory_of_malloc_is_destroyed_again) {
    BOOST_TEST(!refusal([&] { heap->construct<Graph>("graph"); }).empty());
    BOOST_TEST(Graph::alive == 0);
    BOOST_TEST(heap->core()->engine().stats().live_blocks == 0U);
}

BOOST_AUTO_TEST_CASE(an_object_that_points_to_a_stack_is_not_made) {
    const int local = 1;
    const std::string text = refusal([&] { heap->construct<View>("view", &local); });
    BOOST_TEST(names(text, "at its byte 8"), text);
    BOOST_TEST(names(text, "a stack"), text);
    int* const inside = heap->make<int>(1);
    BOOST_TEST(heap->construct<View>("view", inside).first == inside);
}

BOOST_AUTO_TEST_CASE(what_holds_numbers_alone_may_look_like_a_pointer) {
    const int local = 1;
    const auto number = reinterpret_cast<std::uint64_t>(&local);
    const auto& point = heap->construct<Point>("point", static_cast<std::uint32_t>(number), static_cast<std::uint32_t>(number >> 32U));
    BOOST_TEST(std::memcmp(&point, &number, sizeof number) == 0);
    BOOST_TEST(*heap->make<std::uint64_t>(number) == number);
    BOOST_TEST(!refusal([&] { heap->make<const int*>(&local); }).empty());
}

BOOST_AUTO_TEST_CASE(in_a_volatile_heap_it_is_made) {
    VolatileHeap other;
    BOOST_TEST(other.construct<EmptyTable>("table").control == EmptyTable::empty_group);
    other.destroy<EmptyTable>("table");
}

BOOST_AUTO_TEST_CASE(it_is_made_and_told_where_that_is_asked_for) {
    options.foreign_pointers = ForeignPointers::report;
    reopen();
    const Reports reports;
    EmptyTable& table = heap->construct<EmptyTable>("table");
    BOOST_REQUIRE(Reports::entries().size() == 1U);
    BOOST_TEST((Reports::entries()[0].code == errc::foreign_pointer));
    BOOST_TEST(Reports::entries()[0].address == &table);
    BOOST_TEST(heap->find<EmptyTable>("table") == &table);
}

BOOST_AUTO_TEST_CASE(what_a_block_held_before_is_not_the_objects) {
    struct Padded {
        std::uint64_t used;
        std::uint64_t unset[3];
        Padded() : used(1) {}  // NOLINT: that is the point
    };
    const int local = 1;
    auto* const before = static_cast<std::uint64_t*>(heap->allocate(sizeof(Padded), alignof(Padded)));
    std::fill_n(before, 4, reinterpret_cast<std::uint64_t>(&local));
    heap->deallocate(before);
    Padded* const made = heap->make<Padded>();
    BOOST_TEST(static_cast<void*>(made) == before);
    BOOST_TEST(made->used == 1U);
}

BOOST_AUTO_TEST_CASE(bytes_that_were_never_set_may_be_copied_into_an_object) {
    const int local = 1;
    Record record;  // its room is what the stack held
    for (std::uint64_t& word : record.room) word = reinterpret_cast<std::uint64_t>(&local);
    BOOST_TEST(heap->construct<Record>("record", record).room[1] == record.room[1]);
    heap->construct<std::optional<std::pair<int, Record>>>("pair", std::pair(1, record));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_FIXTURE_TEST_SUITE(saves, Fixture)

BOOST_AUTO_TEST_CASE(a_save_does_not_hold_a_pointer_to_memory_that_leads_back) {
    Linked& inside = heap->construct<Linked>("linked");
    Linked outside{&inside};
    inside.other = &outside;
    const std::string text = save();
    BOOST_TEST(names(text, "the object 'linked', at its byte 0"), text);
    BOOST_TEST(names(text, "a stack"), text);
    BOOST_TEST(!save().empty());  // the search isn't over before a save has passed it
    const auto malloced = std::make_unique<Linked>(Linked{&inside});
    inside.other = malloced.get();
    BOOST_TEST(!save().empty());
    inside.other = nullptr;
    BOOST_TEST(save().empty());
}

BOOST_AUTO_TEST_CASE(each_opening_searches_anew) {
    Linked& inside = heap->construct<Linked>("linked");
    BOOST_TEST(save().empty());
    reopen();
    Linked outside{&inside};
    BOOST_TEST(heap->find<Linked>("linked") == &inside);
    BOOST_TEST(save().empty());  // nothing was changed, so nothing was searched
    inside.other = &outside;
    BOOST_TEST(!save().empty());
    options.program_pointers = ProgramPointers::unsearched;
    reopen();
    inside.other = &outside;
    BOOST_TEST(save().empty());
}

BOOST_AUTO_TEST_CASE(what_was_never_set_is_saved_unless_every_word_is_asked_for) {
    const int local = 1;
    const auto malloced = std::make_unique<int>(2);
    const auto fill = [&] {
        auto& words = heap->find_or_construct<taiyen::vector<std::optional<std::uint64_t>>>("words");
        for (const void* const each :
             {static_cast<const void*>(&local), static_cast<const void*>(malloced.get()), static_cast<const void*>(EmptyTable::empty_group)})
            words.emplace_back(reinterpret_cast<std::uint64_t>(each)).reset();
    };
    fill();
    BOOST_TEST(save().empty());
    options.program_pointers = ProgramPointers::any;
    reopen();
    fill();
    BOOST_TEST(!save().empty());
}

BOOST_AUTO_TEST_CASE(every_save_is_searched_for_all_of_them_where_that_is_asked_for) {
    options.program_pointers = ProgramPointers::any;
    reopen();
    auto& tables = heap->construct<taiyen::vector<const char*>>("tables");
    tables.reserve(1);
    BOOST_TEST(save().empty());
    tables.push_back(EmptyTable::empty_group);
    const std::string text = save();
    BOOST_TEST(names(text, "the program"), text);
    tables.clear();
    tables.push_back(heap->make<char>('x'));
    BOOST_TEST(save().empty());
}

BOOST_AUTO_TEST_CASE(an_address_among_numbers_like_it_is_a_number) {
    options.program_pointers = ProgramPointers::any;
    reopen();
    auto& pairs = heap->construct<taiyen::vector<std::pair<std::uint32_t, std::uint32_t>>>("pairs");
    const auto address = reinterpret_cast<std::uint64_t>(EmptyTable::empty_group);
    pairs.reserve(100);
    for (std::uint32_t i = 0; i < 3; ++i) pairs.emplace_back(i * 1000, 0x6000 + i);
    pairs.emplace_back(static_cast<std::uint32_t>(address), static_cast<std::uint32_t>(address >> 32U));
    BOOST_TEST(save().empty());
}

BOOST_AUTO_TEST_CASE(what_an_object_outside_has_taken_along_leads_to_it_rightly) {
    auto& list = heap->construct<taiyen::list<int>>("list");
    for (int i = 0; i < 10; ++i) list.push_back(i);
    taiyen::list<int> taken(std::move(list));
    BOOST_REQUIRE(heap->owns(&taken.front()));
    BOOST_TEST(save().empty());
    BOOST_TEST(taken.size() == 10U);
}

BOOST_AUTO_TEST_CASE(pointers_into_other_heaps_are_saved_and_told_where_that_is_asked_for) {
    ArchiveHeap other(create_only, directory / "other.tyn", options);
    options.foreign_pointers = ForeignPointers::report;
    reopen();
    auto& pointers = heap->construct<taiyen::vector<int*>>("pointers");
    pointers.reserve(100);
    pointers.push_back(other.make<int>(1));
    pointers.push_back(other.make<int>(2));
    const Reports reports;
    BOOST_TEST(save().empty());
    BOOST_REQUIRE(Reports::entries().size() == 2U);
    BOOST_TEST((Reports::entries()[0].code == errc::foreign_pointer));
    BOOST_TEST(Reports::entries()[0].address == &pointers[0]);
    BOOST_TEST(Reports::entries()[1].address == &pointers[1]);
    BOOST_TEST(heap->dirty_bytes() == 0U);
    while (pointers.size() < 100) pointers.push_back(pointers.front());
    BOOST_TEST(save().empty());
    BOOST_TEST(Reports::entries().size() == 2U + heap::ForeignPointerScan::told_max);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE_END()
