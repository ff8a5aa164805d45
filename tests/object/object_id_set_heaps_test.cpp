// Sets of ids in heaps of every kind: saved, undone, rolled back, recovered, and found again.
#include <taiyen/taiyen.hpp>

#include <optional>
#include <random>
#include <stdexcept>
#include <string>

#include <boost/test/unit_test.hpp>

#include "object/interval_model.hpp"
#include "seed.hpp"
#include "txn/txn_fixture.hpp"

namespace object_id_set_heaps_test {

struct Layer {
    taiyen::string name;
    taiyen::object_id_set<> members;
};

}  // namespace object_id_set_heaps_test

namespace {

using namespace taiyen;
using object_id_set_heaps_test::Layer;
using namespace taiyen::object::test;

using Ids = taiyen::object_id_set<>;
static_assert(storable<Ids>);

/// Random steps on two sets of a heap, as the models have them.
struct InHeap {
    IntervalModel model;
    IntervalModel other;

    template <class Heap>
    void run(Heap& heap, std::mt19937_64& random, int steps, Spread spread) {
        Pair<Ids> pair{*heap.template find<Ids>("ids"), *heap.template find<Ids>("other"), model, other};
        for (const Step& step : random_program(random(), static_cast<std::size_t>(steps), spread)) pair.run(step);
        model = pair.model;
        other = pair.other_model;
    }
    template <class Heap>
    void check_both(Heap& heap) const {
        check_equal(*heap.template find<Ids>("ids"), model);
        check_equal(*heap.template find<Ids>("other"), other);
    }
};

Spread of_round(int round) { return static_cast<Spread>(round % 3); }

PersistentOptions options(Capture capture = Capture::pages, Audit audit = Audit::off) {
    PersistentOptions made;
    made.capacity = std::size_t{64} << 20U;
    made.log_capacity = std::size_t{8} << 20U;
    made.capture = capture;
    made.audit = audit;
    return made;
}

BOOST_AUTO_TEST_SUITE(object_id_set_heaps)

BOOST_AUTO_TEST_CASE(an_archive_heap_has_the_set_that_was_saved) {
    const ScratchDirectory directory;
    std::mt19937_64 random(taiyen::test::seed_of_run());
    InHeap in;
    InHeap saved;
    {
        ArchiveHeap heap(create_only, directory / "heap.tyn", options());
        heap.construct<Ids>("ids");
        heap.construct<Ids>("other");
        heap.snapshot();
    }
    for (int round = 0; round < 8; ++round) {
        ArchiveHeap heap(open_only, directory / "heap.tyn", options());
        saved.check_both(heap);
        in = saved;
        in.run(heap, random, 150, of_round(round));
        in.check_both(heap);
        heap.snapshot();
        saved = in;
        in.run(heap, random, 50, of_round(round));  // closing never saves
        BOOST_TEST(heap.verify().ok());
    }
}

BOOST_AUTO_TEST_CASE(undo_and_redo_give_the_sets_of_before_and_after) {
    const ScratchDirectory directory;
    std::mt19937_64 random(taiyen::test::seed_of_run());
    SnapshotHeap heap(create_only, directory / "heap.tyn", options(Capture::pages, Audit::scope));
    heap.construct<Ids>("ids");
    heap.construct<Ids>("other");
    heap.attach_undo();
    std::vector<InHeap> states(1);
    for (int round = 0; round < 12; ++round) {
        InHeap next = states.back();
        {
            UndoScope scope(heap);
            next.run(heap, random, 40, of_round(round));
        }
        next.check_both(heap);
        states.push_back(next);
        {
            UndoScope scope(heap);
            InHeap nowhere = next;
            nowhere.run(heap, random, 20, of_round(round));
            scope.cancel();
        }
        next.check_both(heap);
        if (round == 5) heap.snapshot();
    }
    for (std::size_t i = states.size() - 1; i-- != 0;) {
        BOOST_REQUIRE(heap.undo());
        states[i].check_both(heap);
    }
    for (std::size_t i = 1; i < states.size(); ++i) {
        BOOST_REQUIRE(heap.redo());
        states[i].check_both(heap);
    }
    BOOST_TEST(heap.verify().ok());
}

void transactions(Capture capture) {
    txn::test::TransactionFixture fixture;
    fixture.replace(options(capture));
    std::mt19937_64 random(taiyen::test::seed_of_run());
    InHeap in;
    {
        Transaction transaction(*fixture.heap);
        fixture.heap->construct<Ids>("ids");
        fixture.heap->construct<Ids>("other");
        transaction.commit();
    }
    for (int round = 0; round < 30; ++round) {
        InHeap next = in;
        Transaction transaction(*fixture.heap);
        next.run(*fixture.heap, random, 30, of_round(round));
        if (round % 3 == 2) {
            transaction.rollback();
        } else {
            transaction.commit();
            in = next;
        }
        in.check_both(*fixture.heap);
        if (round % 8 == 7) {
            fixture.crash();
            in.check_both(*fixture.heap);
        }
    }
    BOOST_TEST(fixture.heap->verify().ok());
}

BOOST_AUTO_TEST_CASE(transactions_that_roll_back_leave_the_sets_as_they_were_and_those_that_commit_survive_a_crash) { transactions(Capture::pages); }

BOOST_AUTO_TEST_CASE(a_volatile_heap_and_scratch_memory_hold_sets_and_give_all_memory_back) {
    VolatileHeap heap;
    const auto before = heap.stats().live_blocks;
    {
        Ids set(heap);
        for (Id id = 0; id < 300'000; id += 3) set.insert(id);
        Ids copy = set;
        BOOST_TEST((copy == set));
        Ids& inside = heap.construct<Ids>("ids", set);
        BOOST_TEST((inside == set));
        inside |= Ids({1, 2, 4}, heap);
        BOOST_TEST(inside.size() == set.size() + 3);
        heap.destroy<Ids>("ids");
    }
    BOOST_TEST(heap.stats().live_blocks == before);
}

BOOST_AUTO_TEST_CASE(sets_within_structs_and_containers_live_where_those_live) {
    const ScratchDirectory directory;
    ArchiveHeap heap(create_only, directory / "heap.tyn", options());
    using Layers = taiyen::map<int, Layer>;
    using Rows = taiyen::vector<taiyen::object_id_set<>>;
    Layers& layers = heap.construct<Layers>("layers");
    Rows& rows = heap.construct<Rows>("rows");
    for (int i = 0; i < 50; ++i) {
        layers[i].members.insert_interval(i, i * 1000);
        for (Id id = 0; id < 1000; ++id) layers[i].members.insert(id * 77);
        Ids outside(heap);
        outside.insert_interval(i, 5'000'000);
        outside.insert(-7);
        rows.push_back(std::move(outside));
        rows.insert(rows.begin(), layers[i].members);
    }
    rows.erase(rows.begin() + 3);
    heap.snapshot();  // finds pointers out of the heap, if there are any
    heap.close();
    const ArchiveHeap again(open_only, directory / "heap.tyn", options());
    BOOST_TEST(again.find<Layers>("layers")->at(7).members.contains(7000));
    BOOST_TEST(again.find<Rows>("rows")->size() == 99U);
    BOOST_TEST(again.find<Rows>("rows")->back().contains(-7));
    BOOST_TEST(again.verify().ok());
}

BOOST_AUTO_TEST_CASE(a_set_that_was_moved_out_of_a_heap_still_has_its_ids) {
    const ScratchDirectory directory;
    ArchiveHeap heap(create_only, directory / "heap.tyn", options());
    Ids& inside = heap.construct<Ids>("ids");
    for (Id id = 0; id < 100'000; id += 2) inside.insert(id);
    {
        Ids outside = std::move(inside);
        BOOST_TEST(outside.size() == 50'000U);
        BOOST_TEST(inside.empty());  // NOLINT(bugprone-use-after-move): promised
        inside = outside;
        inside.erase_interval(0, 49'999);
        inside = std::move(outside);
        BOOST_TEST(inside.size() == 50'000U);
    }
    heap.snapshot();
    BOOST_TEST(heap.verify().ok());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
