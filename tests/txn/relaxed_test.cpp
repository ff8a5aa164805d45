// Relaxed loading: what is durable when, and what is left when the process dies.

#include <boost/test/unit_test.hpp>

#include "threads.hpp"
#include "txn/transaction_service.hpp"
#include "txn/txn_fixture.hpp"

namespace {

using namespace taiyen;
using namespace taiyen::txn::test;

std::vector<int> up_to(int count) {
    std::vector<int> result;
    for (int i = 0; i < count; ++i) result.push_back(i);
    return result;
}

struct RelaxedFixture : TransactionFixture {
    void push(int from, int to) {
        for (int i = from; i < to; ++i) TransactionFixture::push(i);
    }
    txn::TransactionService& service() { return *txn::TransactionService::of(HeapAccess::file(*heap)); }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(relaxed, RelaxedFixture)

BOOST_AUTO_TEST_CASE(a_crash_loses_what_was_relaxed_and_nothing_else) {
    push(0, 3);
    const ByteCount used = service().log().used();
    {
        const RelaxedLoading loading(*heap);
        push(3, 50);
        BOOST_TEST(heap->last_durable().value == 3U);
        BOOST_TEST(service().log().used() == used);
        BOOST_TEST(values() == up_to(50), boost::test_tools::per_element());
        crash();
    }
    BOOST_TEST(values() == up_to(3), boost::test_tools::per_element());
    BOOST_TEST(heap->verify().ok());
    push(3, 4);
    crash();
    BOOST_TEST(values() == up_to(4), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(who_waits_until_it_is_strict_loses_nothing) {
    push(0, 3);
    RelaxedLoading loading(*heap);
    push(3, 50);
    loading.wait_until_strict();
    BOOST_TEST(heap->last_durable().value == 50U);
    push(50, 52);
    BOOST_TEST(heap->last_durable().value == 52U);
    crash();
    BOOST_TEST(values() == up_to(52), boost::test_tools::per_element());
    BOOST_TEST(heap->restoration().transactions_replayed == 2U);
}

BOOST_AUTO_TEST_CASE(the_first_commit_behind_it_makes_everything_durable) {
    for (int round = 0; round < 5; ++round) {
        const int at = static_cast<int>(values().size());
        {
            const RelaxedLoading loading(*heap);
            push(at, at + 10);
        }
        push(at + 10, at + 11);
        BOOST_TEST(heap->last_durable().value == static_cast<std::uint64_t>(at) + 11);
        crash();
        BOOST_TEST(values() == up_to(at + 11), boost::test_tools::per_element());
    }
}

BOOST_AUTO_TEST_CASE(it_lasts_as_long_as_any_guard) {
    RelaxedLoading outer(*heap);
    {
        const RelaxedLoading inner(*heap);
        push(0, 2);
    }
    push(2, 4);
    BOOST_TEST(heap->last_durable().value == 0U);
    outer.end();
    push(4, 5);
    BOOST_TEST(heap->last_durable().value == 5U);
}

BOOST_AUTO_TEST_CASE(a_snapshot_in_its_middle_keeps_what_came_before_it) {
    const RelaxedLoading loading(*heap);
    push(0, 20);
    heap->snapshot();
    BOOST_TEST(heap->last_durable().value == 20U);
    push(20, 40);
    crash();
    BOOST_TEST(values() == up_to(20), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(waiting_for_one_transaction_makes_it_durable_unless_the_thread_would_wait_for_itself) {
    const RelaxedLoading loading(*heap);
    push(0, 20);
    {
        const ReadLock lock(*heap);
        BOOST_TEST(throws(errc::scope_open, [&] { heap->wait_durable(lock.serial()); }));
    }
    {
        Transaction transaction(*heap);
        BOOST_TEST(throws(errc::scope_open, [&] { heap->wait_durable({20}); }));
        transaction.rollback();
    }
    heap->wait_durable({20});
    BOOST_TEST(heap->last_durable().value == 20U);
    BOOST_TEST(throws(errc::invalid_argument, [&] { heap->wait_durable({21}); }));
    crash();
    BOOST_TEST(values() == up_to(20), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(closing_keeps_it) {
    {
        const RelaxedLoading loading(*heap);
        push(0, 30);
        heap->close();
    }
    heap.emplace(open_only, path, options);
    BOOST_TEST(values() == up_to(30), boost::test_tools::per_element());
    BOOST_TEST(heap->restoration().transactions_replayed == 0U);
}

BOOST_AUTO_TEST_CASE(destroying_the_heap_before_the_guard_keeps_it) {
    auto loading = std::make_unique<RelaxedLoading>(*heap);
    push(0, 30);
    heap.reset();
    loading.reset();
    heap.emplace(open_only, path, options);
    BOOST_TEST(values() == up_to(30), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(transactions_roll_back_as_ever) {
    const RelaxedLoading loading(*heap);
    push(0, 5);
    {
        Transaction transaction(*heap);
        numbers().push_back(77);
    }
    BOOST_TEST(values() == up_to(5), boost::test_tools::per_element());
    push(5, 6);
    BOOST_TEST(values() == up_to(6), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(rebuilding_is_refused_until_the_files_have_it) {
    RelaxedLoading loading(*heap);
    push(0, 5);
    BOOST_TEST(throws(errc::busy, [&] { heap->rebuild(); }));
    loading.wait_until_strict();
    heap->rebuild();
    BOOST_TEST(values() == up_to(5), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(asynchronous_heaps_can_be_relaxed_too) {
    PersistentOptions other = small_heap();
    other.durability = Durability::async;
    replace(other);
    push(0, 10);
    {
        RelaxedLoading loading(*heap);
        push(10, 20);
        loading.wait_until_strict();
    }
    push(20, 30);
    heap->wait_durable({30});
    crash();
    BOOST_TEST(values() == up_to(30), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(steps_of_a_history_are_relaxed_with_what_they_change) {
    heap->attach_undo();
    push(0, 3);
    {
        RelaxedLoading loading(*heap);
        push(3, 10);
        loading.wait_until_strict();
    }
    crash();
    heap->attach_undo();
    BOOST_TEST(values() == up_to(10), boost::test_tools::per_element());
    for (int i = 0; i < 8; ++i) BOOST_REQUIRE(heap->undo());
    BOOST_TEST(values() == up_to(2), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(more_than_memory_may_hold_is_saved_meanwhile) {
    PersistentOptions other = small_heap();
    other.dirty_limit = std::size_t{4} << 20U;
    replace(other);
    using Map = taiyen::map<int, taiyen::string>;
    {
        const RelaxedLoading loading(*heap);
        for (int i = 0; i < 400; ++i) {
            transact(*heap, [&] { heap->find_or_construct<Map>("map")[i] = taiyen::string(20'000, 'x'); });
        }
        BOOST_TEST(heap->last_durable().value > 0U);
        crash();
    }
    const Map* const found = heap->find<Map>("map");
    BOOST_REQUIRE(found != nullptr);
    // A prefix of what was committed.
    BOOST_TEST(found->size() >= 1U);
    int next = 0;
    for (const auto& [key, value] : *found) BOOST_REQUIRE(key == next++ && value.size() == 20'000);
    BOOST_TEST(heap->verify().ok());
}

BOOST_AUTO_TEST_CASE(several_threads_load_while_others_ask_for_snapshots, *boost::unit_test::label("threads")) {
    constexpr int each = 60;
    using Map = taiyen::map<int, int>;
    transact(*heap, [&] { heap->find_or_construct<Map>("map"); });
    taiyen::test::at_once(5, [&](unsigned number) {
        if (number == 4) {
            for (int i = 0; i < 5; ++i) heap->snapshot();
            return;
        }
        RelaxedLoading loading(*heap);
        for (int i = 0; i < each; ++i) {
            transact(*heap, [&] { (*heap->find<Map>("map"))[static_cast<int>(number) * each + i] = i; });
        }
        loading.wait_until_strict();
    });
    crash();
    BOOST_TEST(heap->find<Map>("map")->size() == 4U * each);
    BOOST_TEST(heap->verify().ok());
}

BOOST_AUTO_TEST_SUITE_END()
