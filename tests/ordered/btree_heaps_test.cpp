// B-trees in heaps of every kind: saved, undone, rolled back, recovered, moved, and found again.
#include <taiyen/taiyen.hpp>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "scratch_directory.hpp"
#include "seed.hpp"
#include "txn/txn_fixture.hpp"

namespace {

using namespace taiyen;

using Names = taiyen::btree_map<taiyen::string, taiyen::string>;
using Events = taiyen::btree_multimap<int, taiyen::vector<int>, taiyen::ranked<>>;
using Numbers = taiyen::btree_set<std::int64_t>;
using Kept = taiyen::ordered_map<taiyen::string, taiyen::string>;
using Pins = taiyen::vector<Kept::value_type*>;  // elements that stay where they are
static_assert(storable<Names> && storable<Events> && storable<Numbers> && storable<Kept>);

std::string name_of(std::uint64_t number) { return "a name that many others begin with, " + std::to_string(number); }

/// The trees of a heap, and what the standard library has in their place.
struct Trees {
    Names* names = nullptr;
    Events* events = nullptr;
    Numbers* numbers = nullptr;
    Kept* kept = nullptr;
    Pins* pins = nullptr;

    template <class Heap>
    static void construct(Heap& heap) {
        heap.template construct<Names>("names");
        heap.template construct<Events>("events");
        heap.template construct<Numbers>("numbers");
        heap.template construct<Kept>("kept");
        heap.template construct<Pins>("pins");
    }
    template <class Heap>
    static Trees of(Heap& heap) {
        return {heap.template find<Names>("names"), heap.template find<Events>("events"), heap.template find<Numbers>("numbers"),
                heap.template find<Kept>("kept"), heap.template find<Pins>("pins")};
    }
};

struct Model {
    std::map<std::string, std::string> names;
    std::multimap<int, std::vector<int>> events;
    std::set<std::int64_t> numbers;

    void step(const Trees& trees, std::mt19937_64& random) {
        const std::uint64_t number = random() % 2000;
        switch (random() % 12) {
            case 0:
            case 1:
            case 2: {
                const std::string text = name_of(number) + std::string(number % 70, '!');
                names.insert_or_assign(name_of(number), text);
                trees.names->insert_or_assign(taiyen::string(name_of(number)), taiyen::string(text));
                trees.kept->insert_or_assign(taiyen::string(name_of(number)), taiyen::string(text));
                break;
            }
            case 3:
                BOOST_REQUIRE(names.erase(name_of(number)) == trees.names->erase(taiyen::string(name_of(number))));
                std::erase_if(*trees.pins, [&](auto* element) { return std::string_view(element->first) == name_of(number); });
                trees.kept->erase(name_of(number));
                break;
            case 4:  // one store into an element
                if (const auto at = trees.names->find(name_of(number)); at != trees.names->end()) {
                    at->second += '+';
                    const auto kept = trees.kept->find(name_of(number));
                    kept->second += '+';
                    if (trees.pins->size() < 100) trees.pins->push_back(&*kept);
                    names.at(name_of(number)) += '+';
                }
                break;
            case 5:
            case 6: {
                const int key = static_cast<int>(number % 90);
                events.emplace(key, std::vector<int>(number % 5, 7));
                trees.events->emplace(key, taiyen::vector<int>(number % 5, 7));
                break;
            }
            case 7:
                if (number % 8 == 0) {
                    BOOST_REQUIRE(events.erase(static_cast<int>(number % 90)) == trees.events->erase(static_cast<int>(number % 90)));
                } else if (const auto at = events.lower_bound(static_cast<int>(number % 90)); at != events.end()) {
                    events.erase(at);
                    trees.events->erase(trees.events->lower_bound(static_cast<int>(number % 90)));
                }
                break;
            case 8:
            case 9:
                for (std::uint64_t i = 0; i < number % 400; ++i) {
                    const auto one = static_cast<std::int64_t>((number * 1000 + i * 37) % 100'000);
                    numbers.insert(one);
                    trees.numbers->insert(one);
                }
                break;
            case 10: {
                const auto from = static_cast<std::int64_t>(number * 50);
                numbers.erase(numbers.lower_bound(from), numbers.lower_bound(from + 4000));
                trees.numbers->erase(trees.numbers->lower_bound(from), trees.numbers->lower_bound(from + 4000));
                break;
            }
            default: numbers.erase(static_cast<std::int64_t>(number)); trees.numbers->erase(static_cast<std::int64_t>(number));
        }
    }
    void run(const Trees& trees, std::mt19937_64& random, int steps) {
        for (int i = 0; i < steps; ++i) step(trees, random);
    }
    /// Enough for trees of three levels, the numbers in a random order.
    void fill(const Trees& trees, std::mt19937_64& random) {
        for (int i = 0; i < 20'000; ++i) {
            const auto one = static_cast<std::int64_t>(random() % 100'000);
            numbers.insert(one);
            trees.numbers->insert(one);
        }
        for (std::uint64_t i = 0; i < 2000; i += 2) {
            names.emplace(name_of(i), name_of(i));
            trees.names->emplace(name_of(i), name_of(i));
            trees.kept->emplace(name_of(i), name_of(i));
        }
    }
    void check(const Trees& trees) const {
        BOOST_REQUIRE(trees.names != nullptr && trees.events != nullptr && trees.numbers != nullptr);
        BOOST_REQUIRE(trees.names->is_sound() && trees.events->is_sound() && trees.numbers->is_sound() && trees.kept->is_sound());
        BOOST_REQUIRE(std::equal(trees.kept->begin(), trees.kept->end(), names.begin(), names.end(), [](const auto& a, const auto& b) {
            return std::string_view(a.first) == b.first && std::string_view(a.second) == b.second;
        }));
        for (const Kept::value_type* pin : *trees.pins) BOOST_REQUIRE(&*trees.kept->find(pin->first) == pin);
        BOOST_REQUIRE(std::equal(trees.names->begin(), trees.names->end(), names.begin(), names.end(), [](const auto& a, const auto& b) {
            return std::string_view(a.first) == b.first && std::string_view(a.second) == b.second;
        }));
        BOOST_REQUIRE(std::equal(trees.events->begin(), trees.events->end(), events.begin(), events.end(), [](const auto& a, const auto& b) {
            return a.first == b.first && std::equal(a.second.begin(), a.second.end(), b.second.begin(), b.second.end());
        }));
        BOOST_REQUIRE(std::equal(trees.numbers->begin(), trees.numbers->end(), numbers.begin(), numbers.end()));
    }
};

PersistentOptions options(Capture capture = Capture::pages, Audit audit = Audit::off) {
    PersistentOptions made;
    made.capacity = std::size_t{64} << 20U;
    made.log_capacity = std::size_t{8} << 20U;
    made.capture = capture;
    made.audit = audit;
    return made;
}

BOOST_AUTO_TEST_SUITE(btree_heaps)

BOOST_AUTO_TEST_CASE(an_archive_heap_has_the_trees_that_were_saved) {
    const ScratchDirectory directory;
    std::mt19937_64 random(taiyen::test::seed_of_run());
    Model saved;
    {
        ArchiveHeap heap(create_only, directory / "heap.tyn", options());
        Trees::construct(heap);
        saved.fill(Trees::of(heap), random);
        heap.snapshot();
    }
    for (int round = 0; round < 5; ++round) {
        ArchiveHeap heap(open_only, directory / "heap.tyn", options());
        saved.check(Trees::of(heap));
        Model now = saved;
        now.run(Trees::of(heap), random, 300);
        now.check(Trees::of(heap));
        heap.snapshot();
        saved = now;
        now.run(Trees::of(heap), random, 50);  // closing never saves
        BOOST_TEST(heap.verify().ok());
    }
}

BOOST_AUTO_TEST_CASE(undo_and_redo_give_the_trees_of_before_and_after) {
    const ScratchDirectory directory;
    std::mt19937_64 random(taiyen::test::seed_of_run());
    SnapshotHeap heap(create_only, directory / "heap.tyn", options(Capture::pages, Audit::scope));
    Trees::construct(heap);
    const Trees trees = Trees::of(heap);
    std::vector<Model> states(1);
    states.back().fill(trees, random);
    heap.attach_undo();
    for (int round = 0; round < 10; ++round) {
        Model next = states.back();
        {
            UndoScope scope(heap);
            next.run(trees, random, 60);
        }
        next.check(trees);
        states.push_back(next);
        {
            UndoScope scope(heap);
            next.run(trees, random, 30);
            scope.cancel();
        }
        states.back().check(trees);
        if (round == 5) heap.snapshot();
    }
    for (std::size_t i = states.size() - 1; i-- != 0;) {
        BOOST_REQUIRE(heap.undo());
        states[i].check(trees);
    }
    for (std::size_t i = 1; i < states.size(); ++i) {
        BOOST_REQUIRE(heap.redo());
        states[i].check(trees);
    }
    BOOST_TEST(heap.verify().ok());
}

BOOST_AUTO_TEST_CASE(transactions_that_roll_back_leave_the_trees_as_they_were_and_those_that_commit_survive_a_crash) {
    txn::test::TransactionFixture fixture;
    fixture.replace(options());
    std::mt19937_64 random(taiyen::test::seed_of_run());
    Model model;
    {
        Transaction transaction(*fixture.heap);
        Trees::construct(*fixture.heap);
        model.fill(Trees::of(*fixture.heap), random);
        transaction.commit();
    }
    for (int round = 0; round < 20; ++round) {
        Model next = model;
        {
            Transaction transaction(*fixture.heap);
            next.run(Trees::of(*fixture.heap), random, 40);
            if (round % 3 == 2) {
                transaction.rollback();
            } else {
                transaction.commit();
                model = std::move(next);
            }
        }
        model.check(Trees::of(*fixture.heap));
        if (round % 6 == 5) {
            fixture.crash();
            model.check(Trees::of(*fixture.heap));
        }
    }
    BOOST_TEST(fixture.heap->verify().ok());
}

BOOST_AUTO_TEST_CASE(at_another_address_the_trees_are_whole_however_their_pointers_are_found) {
    const ScratchDirectory directory;
    std::mt19937_64 random(taiyen::test::seed_of_run());
    Model model;
    {
        ArchiveHeap heap(create_only, directory / "heap.tyn", options());
        Trees::construct(heap);
        model.fill(Trees::of(heap), random);
        model.run(Trees::of(heap), random, 500);
        heap.snapshot();
    }
    RebaseOptions guessed;
    guessed.conservative = true;
    RebaseOptions declared;
    declared.types.add<Names, Events, Numbers, Kept, Pins>();
    for (const RebaseOptions& how : {guessed, declared}) {
        const RebaseReport report = rebase(directory / "heap.tyn", anywhere, how);
        BOOST_TEST(report.moved);
        ArchiveHeap heap(open_only, directory / "heap.tyn", options());
        model.check(Trees::of(heap));
        model.run(Trees::of(heap), random, 100);
        model.check(Trees::of(heap));
        heap.snapshot();
    }
}

BOOST_AUTO_TEST_CASE(a_volatile_heap_gets_all_memory_back) {
    VolatileHeap heap;
    const auto before = heap.stats().live_blocks;
    {
        Numbers set(heap);
        for (std::int64_t i = 0; i < 300'000; i += 3) set.insert(i);
        const Numbers copy = set;
        BOOST_TEST((copy == set));
        Numbers& inside = heap.construct<Numbers>("numbers", set);
        BOOST_TEST((inside == set));
        taiyen::ordered_set<std::int64_t> apart(set.begin(), set.end(), heap);
        BOOST_TEST(std::equal(apart.begin(), apart.end(), set.begin(), set.end()));
        inside.erase(inside.lower_bound(1000), inside.end());
        BOOST_TEST(inside.size() == 334U);
        heap.destroy<Numbers>("numbers");
    }
    BOOST_TEST(heap.stats().live_blocks == before);
}

BOOST_AUTO_TEST_CASE(a_tree_that_was_moved_out_of_a_heap_still_has_its_elements) {
    const ScratchDirectory directory;
    ArchiveHeap heap(create_only, directory / "heap.tyn", options());
    Names& inside = heap.construct<Names>("names");
    for (std::uint64_t i = 0; i < 2000; ++i) inside.emplace(name_of(i), name_of(i + 1));
    {
        Names outside = std::move(inside);
        BOOST_TEST(outside.size() == 2000U);
        BOOST_TEST(inside.empty());  // NOLINT(bugprone-use-after-move): promised
        inside = outside;
        inside.erase(name_of(7));
        BOOST_TEST(inside.size() == 1999U);
        inside = std::move(outside);
        BOOST_TEST(inside.size() == 2000U);
    }
    BOOST_TEST(inside.is_sound());
    heap.snapshot();  // finds pointers out of the heap, if there are any
    BOOST_TEST(heap.verify().ok());
}

BOOST_AUTO_TEST_CASE(another_comparison_is_another_type) {
    const ScratchDirectory directory;
    using Ascending = taiyen::btree_set<int>;
    using Descending = taiyen::btree_set<int, std::greater<>>;
    {
        ArchiveHeap heap(create_only, directory / "heap.tyn", options());
        heap.construct<Ascending>("set").insert({1, 2, 3});
        heap.snapshot();
    }
    ArchiveHeap heap(open_only, directory / "heap.tyn", options());
    BOOST_CHECK_THROW(heap.find<Descending>("set"), Error);
    BOOST_TEST(heap.find<Ascending>("set")->contains(2));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
