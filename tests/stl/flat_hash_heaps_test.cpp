// Flat hash tables in heaps of every kind: saved, undone, rolled back, recovered, moved, and found again.
#include <taiyen/taiyen.hpp>

#include <taiyen/stl/offset_ptr.hpp>

#include <random>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "containers/offset_family.hpp"
#include "scratch_directory.hpp"
#include "seed.hpp"
#include "txn/txn_fixture.hpp"

BOOST_AUTO_TEST_SUITE(flat_hash_heaps)

namespace {

using namespace taiyen;

/// The tables of a heap. `In` gives its text.
template <class Text, template <class, class> class Map, template <class> class Set>
struct TablesOf {
    using Names = Map<Text, Text>;
    using Numbers = Set<std::int64_t>;
    using Nested = Map<int, Set<int>>;
    Names* names = nullptr;
    Numbers* numbers = nullptr;
    Nested* nested = nullptr;

    template <class Heap>
    static void construct(Heap& heap) {
        heap.template construct<Names>("names");
        heap.template construct<Numbers>("numbers");
        heap.template construct<Nested>("nested");
    }
    template <class Heap>
    static TablesOf of(Heap& heap) {
        return {heap.template find<Names>("names"), heap.template find<Numbers>("numbers"), heap.template find<Nested>("nested")};
    }
};
template <class K, class V>
using MapHere = flat_hash_map<K, V>;
template <class K>
using SetHere = flat_hash_set<K>;
template <class K, class V>
using MapAnywhere = offset::flat_hash_map<K, V>;
template <class K>
using SetAnywhere = offset::flat_hash_set<K>;
using Tables = TablesOf<taiyen::string, MapHere, SetHere>;
using AnywhereTables = TablesOf<offset::string, MapAnywhere, SetAnywhere>;
static_assert(storable<Tables::Names> && storable<Tables::Nested> && !position_independent<Tables::Numbers>);
static_assert(position_independent<AnywhereTables::Names> && position_independent<AnywhereTables::Nested>);
static_assert(!storable<flat_hash_map<int, std::string>>);

std::string entry_of(std::uint64_t number) { return "a name that many others begin with, " + std::to_string(number); }

struct Model {
    std::unordered_map<std::string, std::string> names;
    std::unordered_set<std::int64_t> numbers;
    std::unordered_map<int, std::unordered_set<int>> nested;

    template <class T>
    void step(const T& tables, std::mt19937_64& random) {
        using Text = typename T::Names::key_type;
        const std::uint64_t number = random() % 300;
        const std::string entry = entry_of(number);
        switch (random() % 8) {
            case 0:
            case 1: {
                const std::string text = entry + std::string(number % 70, '!');
                names.insert_or_assign(entry, text);
                tables.names->insert_or_assign(Text(entry.c_str()), Text(text.c_str()));
                break;
            }
            case 2: BOOST_REQUIRE(names.erase(entry) == tables.names->erase(std::string_view(entry))); break;
            case 3:  // one store into an element
                if (const auto at = tables.names->find(entry.c_str()); at != tables.names->end()) {
                    at->second += '+';
                    names.at(entry) += '+';
                }
                break;
            case 4: {
                const int value = static_cast<int>(random() % 10);
                nested[static_cast<int>(number % 20)].insert(value);
                (*tables.nested)[static_cast<int>(number % 20)].insert(value);
                break;
            }
            case 5:
                nested.erase(static_cast<int>(number % 20));
                tables.nested->erase(static_cast<int>(number % 20));
                break;
            case 6:
                for (std::uint64_t i = 0; i < number / 4; ++i) {
                    const auto one = static_cast<std::int64_t>((number * 100 + i * 37) % 5000);
                    numbers.insert(one);
                    tables.numbers->insert(one);
                }
                break;
            default: {
                const auto is_gone = [&](std::int64_t one) { return one % 7 == static_cast<std::int64_t>(number % 7); };
                std::erase_if(numbers, is_gone);
                erase_if(*tables.numbers, is_gone);
                if (number % 16 == 0) tables.numbers->rehash(0);
            }
        }
    }
    template <class T>
    void run(const T& tables, std::mt19937_64& random, int steps) {
        for (int i = 0; i < steps; ++i) step(tables, random);
    }
    template <class T>
    void check(const T& tables) const {
        BOOST_REQUIRE(tables.names != nullptr && tables.numbers != nullptr && tables.nested != nullptr);
        BOOST_REQUIRE(tables.names->is_sound() && tables.numbers->is_sound() && tables.nested->is_sound());
        bool is_same = tables.names->size() == names.size() && tables.numbers->size() == numbers.size() && tables.nested->size() == nested.size();
        for (const auto& [key, value] : names) {
            const auto found = tables.names->find(std::string_view(key));
            is_same = is_same && found != tables.names->end() && std::string_view(found->second.data(), found->second.size()) == value;
        }
        for (const std::int64_t one : numbers) is_same = is_same && tables.numbers->contains(one);
        for (const auto& [key, values] : nested) {
            const auto found = tables.nested->find(key);
            is_same = is_same && found != tables.nested->end() && found->second.is_sound() && found->second.size() == values.size();
            for (const int value : values) is_same = is_same && found->second.contains(value);
        }
        BOOST_REQUIRE(is_same);
    }
};

PersistentOptions heap_options(Audit audit = Audit::off) {
    PersistentOptions made;
    made.capacity = std::size_t{16} << 20U;
    made.log_capacity = std::size_t{4} << 20U;
    made.audit = audit;
    return made;
}

}  // namespace

BOOST_AUTO_TEST_CASE(an_archive_heap_has_the_tables_that_were_saved) {
    const ScratchDirectory directory;
    std::mt19937_64 random(taiyen::test::seed_of_run());
    Model saved;
    {
        ArchiveHeap heap(create_only, directory / "heap.tyn", heap_options());
        Tables::construct(heap);
        heap.snapshot();  // never filled
    }
    for (int round = 0; round < 5; ++round) {
        ArchiveHeap heap(open_only, directory / "heap.tyn", heap_options());
        saved.check(Tables::of(heap));
        Model now = saved;
        now.run(Tables::of(heap), random, 300);
        now.check(Tables::of(heap));
        if (round == 3) {
            Tables::of(heap).names->clear();
            now.names.clear();
        }
        heap.snapshot();
        saved = now;
        now.run(Tables::of(heap), random, 50);  // closing never saves
        BOOST_TEST(heap.verify().ok());
    }
}

BOOST_AUTO_TEST_CASE(undo_and_redo_give_the_tables_of_before_and_after) {
    const ScratchDirectory directory;
    std::mt19937_64 random(taiyen::test::seed_of_run());
    SnapshotHeap heap(create_only, directory / "heap.tyn", heap_options(Audit::scope));
    Tables::construct(heap);
    const Tables tables = Tables::of(heap);
    std::vector<Model> states(1);
    heap.attach_undo();
    for (int round = 0; round < 10; ++round) {
        Model next = states.back();
        {
            UndoScope scope(heap);
            next.run(tables, random, 60);
        }
        next.check(tables);
        states.push_back(next);
        {
            UndoScope scope(heap);
            next.run(tables, random, 30);
            scope.cancel();
        }
        states.back().check(tables);
        if (round == 5) heap.snapshot();
    }
    for (std::size_t i = states.size() - 1; i-- != 0;) {
        BOOST_REQUIRE(heap.undo());
        states[i].check(tables);
    }
    for (std::size_t i = 1; i < states.size(); ++i) {
        BOOST_REQUIRE(heap.redo());
        states[i].check(tables);
    }
    BOOST_TEST(heap.verify().ok());
}

BOOST_AUTO_TEST_CASE(transactions_that_roll_back_leave_the_tables_as_they_were_and_those_that_commit_survive_a_crash) {
    txn::test::TransactionFixture fixture;
    fixture.replace(heap_options());
    std::mt19937_64 random(taiyen::test::seed_of_run());
    Model model;
    transact(*fixture.heap, [&] { Tables::construct(*fixture.heap); });
    for (int round = 0; round < 18; ++round) {
        Model next = model;
        {
            Transaction transaction(*fixture.heap);
            next.run(Tables::of(*fixture.heap), random, 40);
            if (round % 3 == 2) {
                transaction.rollback();
            } else {
                transaction.commit();
                model = std::move(next);
            }
        }
        model.check(Tables::of(*fixture.heap));
        if (round % 6 == 5) {
            fixture.crash();
            model.check(Tables::of(*fixture.heap));
        }
    }
    const ReadLock lock(*fixture.heap);
    model.check(Tables::of(*fixture.heap));
}

BOOST_AUTO_TEST_CASE(at_another_address_the_tables_are_whole_however_their_pointers_are_found) {
    const ScratchDirectory directory;
    std::mt19937_64 random(taiyen::test::seed_of_run());
    Model model;
    {
        ArchiveHeap heap(create_only, directory / "heap.tyn", heap_options());
        Tables::construct(heap);
        model.run(Tables::of(heap), random, 800);
        heap.snapshot();
    }
    RebaseOptions guessed;
    guessed.conservative = true;
    RebaseOptions declared;
    declared.types.add<Tables::Names, Tables::Numbers, Tables::Nested>();
    for (const RebaseOptions& how : {guessed, declared}) {
        BOOST_TEST(rebase(directory / "heap.tyn", anywhere, how).moved);
        ArchiveHeap heap(open_only, directory / "heap.tyn", heap_options());
        model.check(Tables::of(heap));
        model.run(Tables::of(heap), random, 100);
        model.check(Tables::of(heap));
        heap.snapshot();
    }
}

BOOST_AUTO_TEST_CASE(where_the_heaps_place_is_taken_tables_of_distances_are_whole) {
    const ScratchDirectory directory;
    std::mt19937_64 random(taiyen::test::seed_of_run());
    Model model;
    {
        ArchiveHeap heap(create_only, directory / "heap.tyn", taiyen::test::position_independent_heap());
        AnywhereTables::construct(heap);
        model.run(AnywhereTables::of(heap), random, 800);
        heap.snapshot();
    }
    const vm::Reservation taken = taiyen::test::take_place_of(directory / "heap.tyn");
    ArchiveHeap heap(open_only, directory / "heap.tyn", taiyen::test::position_independent_heap());
    model.check(AnywhereTables::of(heap));
    model.run(AnywhereTables::of(heap), random, 200);
    model.check(AnywhereTables::of(heap));
}

BOOST_AUTO_TEST_CASE(a_volatile_heap_gets_the_memory_of_tables_back) {
    VolatileHeap heap;
    const auto before = heap.stats().live_blocks;
    {
        flat_hash_set<std::int64_t> set(heap);
        for (std::int64_t i = 0; i < 30'000; i += 3) set.insert(i);
        const auto copy = set;
        auto& inside = heap.construct<flat_hash_set<std::int64_t>>("numbers", set);
        BOOST_TEST((inside == set && copy == set));
        heap.destroy<flat_hash_set<std::int64_t>>("numbers");
    }
    BOOST_TEST(heap.stats().live_blocks == before);
}

BOOST_AUTO_TEST_CASE(tables_that_are_moved_and_swapped_between_heap_and_outside_have_their_elements) {
    const ScratchDirectory directory;
    ArchiveHeap heap(create_only, directory / "heap.tyn", heap_options());
    auto& inside = heap.construct<Tables::Names>("names");
    for (std::uint64_t i = 0; i < 500; ++i) inside.emplace(entry_of(i), entry_of(i + 1));
    {
        Tables::Names outside = std::move(inside);
        BOOST_TEST((outside.size() == 500U && inside.empty()));  // NOLINT(bugprone-use-after-move): promised
        inside = outside;
        inside.erase(entry_of(7));
        using std::swap;
        swap(inside, outside);
        BOOST_TEST((inside.size() == 500U && outside.size() == 499U));
        Tables::Names scratch;
        scratch.emplace("one", "two");
        swap(inside, scratch);
        BOOST_TEST((inside.size() == 1U && scratch.size() == 500U));
        inside = std::move(outside);
    }
    BOOST_TEST((inside.size() == 499U && inside.is_sound()));
    heap.snapshot();  // finds pointers out of the heap, if there are any
    BOOST_TEST(heap.verify().ok());
}

BOOST_AUTO_TEST_CASE(a_table_with_another_hash_is_another_type_and_one_whose_hash_changed_is_noticed) {
    struct Changing {
        std::size_t operator()(int number) const noexcept { return std::hash<int>()(number) + shift(); }
        static std::size_t& shift() {
            static std::size_t now = 0;
            return now;
        }
    };
    const ScratchDirectory directory;
    {
        ArchiveHeap heap(create_only, directory / "heap.tyn", heap_options());
        heap.construct<flat_hash_set<int>>("set").insert({1, 2, 3});
        heap.construct<flat_hash_set<int, Changing>>("changing").insert({1, 2, 3});
        heap.snapshot();
    }
    Changing::shift() = 1;
    ArchiveHeap heap(open_only, directory / "heap.tyn", heap_options());
    BOOST_CHECK_THROW((heap.find<flat_hash_set<int, Changing>>("set")), Error);
    BOOST_CHECK_THROW((heap.find<flat_hash_set<int, Changing>>("changing")), Error);
    BOOST_TEST(heap.find<flat_hash_set<int>>("set")->contains(2));
}

BOOST_AUTO_TEST_SUITE_END()
