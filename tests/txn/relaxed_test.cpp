// Relaxed loading: what is durable when, and what is left when the process dies.

#include <boost/test/unit_test.hpp>

#include <cstring>
#include <optional>
#include <stdexcept>
#include <string>

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
        const RelaxedLoading loading(*heap, RelaxedRollback::transaction);
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
    RelaxedLoading loading(*heap, RelaxedRollback::transaction);
    push(3, 50);
    BOOST_TEST(heap->transaction_stats().relaxed_loadings == 1U);
    BOOST_TEST(heap->transaction_stats().unlogged_commits == 47U);
    loading.wait_until_strict();
    BOOST_TEST(heap->transaction_stats().relaxed_loadings == 0U);
    BOOST_TEST(heap->transaction_stats().unlogged_commits == 0U);
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
            const RelaxedLoading loading(*heap, RelaxedRollback::transaction);
            push(at, at + 10);
        }
        push(at + 10, at + 11);
        BOOST_TEST(heap->last_durable().value == static_cast<std::uint64_t>(at) + 11);
        crash();
        BOOST_TEST(values() == up_to(at + 11), boost::test_tools::per_element());
    }
}

BOOST_AUTO_TEST_CASE(it_lasts_as_long_as_any_guard) {
    RelaxedLoading outer(*heap, RelaxedRollback::transaction);
    {
        const RelaxedLoading inner(*heap, RelaxedRollback::transaction);
        push(0, 2);
    }
    push(2, 4);
    BOOST_TEST(heap->last_durable().value == 0U);
    outer.end();
    push(4, 5);
    BOOST_TEST(heap->last_durable().value == 5U);
}

BOOST_AUTO_TEST_CASE(a_snapshot_in_its_middle_keeps_what_came_before_it) {
    const RelaxedLoading loading(*heap, RelaxedRollback::transaction);
    push(0, 20);
    heap->snapshot();
    BOOST_TEST(heap->last_durable().value == 20U);
    push(20, 40);
    crash();
    BOOST_TEST(values() == up_to(20), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(waiting_for_one_transaction_makes_it_durable_unless_the_thread_would_wait_for_itself) {
    const RelaxedLoading loading(*heap, RelaxedRollback::transaction);
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
        const RelaxedLoading loading(*heap, RelaxedRollback::transaction);
        push(0, 30);
        heap->close();
    }
    heap.emplace(open_only, path, options);
    BOOST_TEST(values() == up_to(30), boost::test_tools::per_element());
    BOOST_TEST(heap->restoration().transactions_replayed == 0U);
}

BOOST_AUTO_TEST_CASE(destroying_the_heap_before_the_guard_keeps_it) {
    auto loading = std::make_unique<RelaxedLoading>(*heap, RelaxedRollback::transaction);
    push(0, 30);
    heap.reset();
    loading.reset();
    heap.emplace(open_only, path, options);
    BOOST_TEST(values() == up_to(30), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(transactions_roll_back_as_ever) {
    const RelaxedLoading loading(*heap, RelaxedRollback::transaction);
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
    RelaxedLoading loading(*heap, RelaxedRollback::transaction);
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
        RelaxedLoading loading(*heap, RelaxedRollback::transaction);
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
        RelaxedLoading loading(*heap, RelaxedRollback::transaction);
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
        const RelaxedLoading loading(*heap, RelaxedRollback::transaction);
        for (int i = 0; i < 400; ++i) transact(*heap, [&] { heap->find_or_construct<Map>("map")[i] = taiyen::string(20'000, 'x'); });
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
        RelaxedLoading loading(*heap, RelaxedRollback::transaction);
        for (int i = 0; i < each; ++i) transact(*heap, [&] { (*heap->find<Map>("map"))[static_cast<int>(number) * each + i] = i; });
        loading.wait_until_strict();
    });
    crash();
    BOOST_TEST(heap->find<Map>("map")->size() == 4U * each);
    BOOST_TEST(heap->verify().ok());
}

BOOST_AUTO_TEST_SUITE_END()

namespace {

struct UncapturedFixture : RelaxedFixture {
    using Map = taiyen::map<int, taiyen::string>;
    static constexpr const char* text = "a text that is longer than what a string keeps inside itself";
    std::uint64_t faults() { return service().recorder().counters().faults; }
    /// A transaction that is rolled back.
    void fail() {
        Transaction transaction(*heap);
        numbers().push_back(77);
    }
    void holds(int count) {
        BOOST_TEST(values() == up_to(count), boost::test_tools::per_element());
        BOOST_TEST(heap->verify().ok());
    }
    bool is_refused() {
        return throws(errc::transaction_doomed, [&] { TransactionFixture::push(1); });
    }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(uncaptured, UncapturedFixture)

BOOST_AUTO_TEST_CASE(nothing_is_captured_and_all_of_it_is_saved) {
    push(0, 3);
    const std::uint64_t before = faults();
    RelaxedLoading loading(*heap);
    transact(*heap, [&] {
        Map& map = heap->construct<Map>("map");
        for (int i = 0; i < 2'000; ++i) map[i * 7919 % 2'000] = text;
    });
    for (int i = 0; i < 2'000; ++i) transact(*heap, [&] { (*heap->find<Map>("map"))[i * 7919 % 2'000] = std::to_string(i); });
    push(3, 50);
    BOOST_TEST(faults() == before);
    BOOST_TEST(heap->last_durable().value == 3U);
    loading.wait_until_strict();
    BOOST_TEST(heap->last_durable().value == service().last_committed().value);
    push(50, 52);
    BOOST_TEST(faults() != before);
    crash();
    holds(52);
    const Map& map = *heap->find<Map>("map");
    BOOST_REQUIRE(map.size() == 2'000U);
    for (int i = 0; i < 2'000; ++i) BOOST_REQUIRE(map.at(i * 7919 % 2'000) == std::to_string(i));
}

BOOST_AUTO_TEST_CASE(a_crash_loses_what_was_loaded_and_nothing_else) {
    push(0, 3);
    const RelaxedLoading loading(*heap, RelaxedRollback::loading);
    push(3, 50);
    crash();
    holds(3);
}

BOOST_AUTO_TEST_CASE(a_rollback_takes_what_a_crash_would) {
    push(0, 3);
    {
        RelaxedLoading loading(*heap, RelaxedRollback::loading);
        push(3, 50);
        fail();
        holds(3);
        BOOST_TEST(service().last_committed().value == 3U);
        BOOST_TEST(is_refused());
        BOOST_TEST(is_refused());
        BOOST_TEST(throws(errc::transaction_doomed, [&] { loading.wait_until_strict(); }));
    }
    push(3, 4);
    holds(4);
    fail();
    holds(4);
    crash();
    holds(4);
}

BOOST_AUTO_TEST_CASE(a_rollback_takes_what_was_loaded_by_a_guard_before_it) {
    push(0, 3);
    std::optional<RelaxedLoading> one_by_one(std::in_place, *heap, RelaxedRollback::transaction);
    push(3, 10);
    const RelaxedLoading loading(*heap, RelaxedRollback::loading);
    one_by_one.reset();  // a save in the background may begin, and needs the writer lock
    Transaction transaction(*heap);
    const bool saved = heap->last_durable().value == 10U;
    transaction.rollback();
    holds(saved ? 10 : 3);
}

BOOST_AUTO_TEST_CASE(a_rollback_behind_a_snapshot_takes_nothing_before_it) {
    {
        const RelaxedLoading loading(*heap, RelaxedRollback::loading);
        push(0, 20);
        heap->snapshot();
        fail();
        holds(20);
        push(20, 30);  // nothing but the transaction itself was taken back
        heap->snapshot();
        push(30, 40);
        fail();
        BOOST_TEST(is_refused());
    }
    holds(30);
    push(30, 31);
    crash();
    holds(31);
}

BOOST_AUTO_TEST_CASE(it_grows_and_goes_back) {
    push(0, 3);
    {
        const RelaxedLoading loading(*heap, RelaxedRollback::loading);
        for (int i = 0; i < 300; ++i) transact(*heap, [&] { heap->find_or_construct<Map>("map")[i] = taiyen::string(20'000, 'x'); });
        fail();
    }
    BOOST_TEST(heap->find<Map>("map") == nullptr);
    holds(3);
    transact(*heap, [&] {
        for (int i = 0; i < 300; ++i) heap->find_or_construct<Map>("map")[i] = taiyen::string(10'000, 'y');
    });
    BOOST_TEST((*heap->find<Map>("map"))[299] == taiyen::string(10'000, 'y'));
    crash();
    BOOST_TEST((*heap->find<Map>("map"))[299] == taiyen::string(10'000, 'y'));
    holds(3);
}

BOOST_AUTO_TEST_CASE(who_waits_for_what_is_taken_back_is_told) {
    RelaxedLoading loading(*heap, RelaxedRollback::loading);
    push(0, 20);
    fail();
    BOOST_TEST(throws(errc::invalid_argument, [&] { heap->wait_durable({20}); }));
    loading.end();
    push(0, 2);
    crash();
    holds(2);
}

BOOST_AUTO_TEST_CASE(one_guard_of_the_other_kind_keeps_each_transaction_apart) {
    const RelaxedLoading loading(*heap, RelaxedRollback::loading);
    push(0, 5);
    {
        const RelaxedLoading other(*heap, RelaxedRollback::transaction);
        push(5, 10);
        fail();
        holds(10);
    }
    push(10, 12);
    holds(12);
}

BOOST_AUTO_TEST_CASE(a_history_misses_nothing) {
    heap->attach_undo();
    {
        RelaxedLoading loading(*heap, RelaxedRollback::loading);
        push(0, 10);
        fail();
        holds(10);
        loading.wait_until_strict();
    }
    for (int i = 0; i < 8; ++i) BOOST_REQUIRE(heap->undo());
    holds(2);
}

BOOST_AUTO_TEST_CASE(a_history_that_is_attached_meanwhile_misses_nothing) {
    RelaxedLoading loading(*heap, RelaxedRollback::loading);
    push(0, 10);
    heap->attach_undo();
    push(10, 20);
    for (int i = 0; i < 8; ++i) BOOST_REQUIRE(heap->undo());
    holds(12);
    loading.wait_until_strict();
    crash();
    holds(12);
}

BOOST_AUTO_TEST_CASE(a_guard_that_ends_within_a_transaction_leaves_it_durable) {
    push(0, 3);
    std::optional<RelaxedLoading> loading(std::in_place, *heap, RelaxedRollback::loading);
    {
        Transaction transaction(*heap);
        for (int i = 3; i < 50; ++i) numbers().push_back(i);
        loading.reset();
        transaction.commit();
    }
    BOOST_TEST(heap->last_durable().value == 4U);
    crash();
    holds(50);
}

BOOST_AUTO_TEST_CASE(a_guard_that_ends_within_a_transaction_that_is_rolled_back_leaves_what_is_durable) {
    push(0, 3);
    std::optional<RelaxedLoading> loading(std::in_place, *heap, RelaxedRollback::loading);
    push(3, 10);
    {
        Transaction transaction(*heap);
        numbers().push_back(77);
        loading.reset();
    }
    holds(3);
    loading.emplace(*heap, RelaxedRollback::loading);
    BOOST_TEST(is_refused());
    loading.reset();
    push(3, 4);
    loading.emplace(*heap, RelaxedRollback::loading);
    push(4, 6);
    {
        Transaction transaction(*heap);
        loading.reset();
    }
    holds(4);
    BOOST_TEST(is_refused());  // no guard is left that could tell it
    push(4, 5);
    crash();
    holds(5);
}

BOOST_AUTO_TEST_CASE(a_procedure_that_fails_dooms_its_transaction) {
    const auto fails = [](ProcedureHeap&, Numbers* numbers) {
        numbers->clear();
        throw std::runtime_error("no");
    };
    register_procedure("relaxed fail", fails, fails);
    push(0, 3);
    const RelaxedLoading loading(*heap, RelaxedRollback::loading);
    {
        Transaction transaction(*heap);
        BOOST_CHECK_THROW(transaction.call("relaxed fail", &numbers()), std::runtime_error);
        BOOST_TEST(throws(errc::transaction_doomed, [&] { transaction.commit(); }));
    }
    holds(3);
    push(3, 4);
    holds(4);
}

BOOST_AUTO_TEST_CASE(an_inner_transaction_joins_the_outer_one_or_dooms_it) {
    push(0, 3);
    RelaxedLoading loading(*heap, RelaxedRollback::loading);
    transact(*heap, [&] {
        transact(*heap, [&] { numbers().push_back(3); });
        transact(*heap, [&] { numbers().push_back(4); });
    });
    holds(5);
    loading.wait_until_strict();
    const RelaxedLoading again(*heap, RelaxedRollback::loading);
    {
        Transaction outer(*heap);
        numbers().push_back(5);
        {
            Transaction kept(*heap);
            numbers().push_back(6);
            kept.commit();
        }
        fail();
        BOOST_CHECK_EXCEPTION(outer.commit(), Error, [](const Error& error) {
            return error.code() == errc::transaction_doomed &&
                   std::string_view(error.what()).find("within this one was rolled back") != std::string_view::npos;
        });
    }
    holds(5);
    transact(*heap, [&] { numbers().push_back(5); });
    holds(6);
}

BOOST_AUTO_TEST_CASE(a_pointer_out_of_the_heap_is_not_saved) {
    push(0, 3);
    RelaxedLoading loading(*heap, RelaxedRollback::loading);
    const void** block = nullptr;
    const taiyen::string outside(text);
    transact(*heap, [&] {
        block = static_cast<const void**>(heap->allocate(64));
        *block = outside.data();
    });
    BOOST_TEST(throws(errc::foreign_pointer, [&] { heap->snapshot(); }));
    BOOST_TEST(heap->last_durable().value == 3U);
    transact(*heap, [&] { *block = nullptr; });
    loading.wait_until_strict();
    BOOST_TEST(heap->last_durable().value == 5U);
    holds(3);
}

BOOST_AUTO_TEST_CASE(what_is_moved_out_meanwhile_is_freed_when_its_owner_dies) {
    transact(*heap, [&] {
        Map& map = heap->construct<Map>("map");
        for (int i = 0; i < 4; ++i) map[i] = text;
    });
    const std::uint64_t before = heap->stats().live_blocks;
    std::optional<taiyen::string> outside;
    RelaxedLoading loading(*heap, RelaxedRollback::loading);
    {
        Transaction transaction(*heap);
        outside.emplace(std::move((*heap->find<Map>("map"))[0]));
        transaction.commit();
    }
    BOOST_TEST(heap->stats().held_blocks == 1U);
    push(0, 3);
    BOOST_TEST(*outside == text);
    outside.reset();
    loading.wait_until_strict();
    push(3, 4);
    BOOST_TEST(heap->stats().held_blocks == 0U);
    BOOST_TEST(heap->stats().live_blocks == before + 1);  // the vector and what it holds, without the text
    crash();
    holds(4);
}

BOOST_AUTO_TEST_CASE(what_was_moved_out_belongs_to_its_container_again_once_the_loading_is_taken_back) {
    push(0, 3);
    transact(*heap, [&] { heap->construct<Map>("map")[0] = text; });
    std::optional<taiyen::string> outside;
    {
        const RelaxedLoading loading(*heap, RelaxedRollback::loading);
        push(3, 5);
        Transaction transaction(*heap);
        outside.emplace(std::move((*heap->find<Map>("map"))[0]));
        transaction.rollback();
    }
    BOOST_TEST((*heap->find<Map>("map"))[0] == text);
    outside.reset();
    push(3, 4);
    BOOST_TEST((*heap->find<Map>("map"))[0] == text);
    holds(4);
}

BOOST_AUTO_TEST_CASE(more_than_memory_may_hold_is_saved_meanwhile) {
    PersistentOptions other = small_heap();
    other.dirty_limit = std::size_t{4} << 20U;
    replace(other);
    {
        const RelaxedLoading loading(*heap, RelaxedRollback::loading);
        for (int i = 0; i < 1'600; ++i) transact(*heap, [&] { heap->find_or_construct<Map>("map")[i] = taiyen::string(20'000, 'x'); });
        BOOST_TEST(heap->last_durable().value > 0U);
        crash();
    }
    const Map* const found = heap->find<Map>("map");
    BOOST_REQUIRE(found != nullptr);
    int next = 0;
    for (const auto& [key, value] : *found) BOOST_REQUIRE(key == next++ && value.size() == 20'000);
    BOOST_TEST(heap->verify().ok());
}

BOOST_AUTO_TEST_CASE(what_is_given_back_meanwhile_may_be_taken_back) {
    PersistentOptions other = small_heap();
    other.dirty_limit = std::size_t{2} << 20U;
    replace(other);
    push(0, 3);
    for (int round = 0; round < 3; ++round) {
        {
            const RelaxedLoading loading(*heap, RelaxedRollback::loading);
            for (int i = 0; i < 400; ++i)
                transact(*heap, [&] { heap->find_or_construct<Map>("map")[i] = taiyen::string(20'000, static_cast<char>('a' + round)); });
            push(3 + round, 4 + round);
            heap->snapshot();
            transact(*heap, [&] { heap->find<Map>("map")->clear(); });
            fail();
        }
        for (const auto& [key, value] : *heap->find<Map>("map")) BOOST_REQUIRE(value == taiyen::string(20'000, static_cast<char>('a' + round)));
        BOOST_TEST(heap->find<Map>("map")->size() == 400U);
        holds(4 + round);
    }
    push(6, 7);
    crash();
    holds(7);
}

BOOST_AUTO_TEST_CASE(an_audit_keeps_each_transaction_apart) {
    PersistentOptions audited = small_heap();
    audited.audit = Audit::scope;
    replace(audited);
    const RelaxedLoading loading(*heap, RelaxedRollback::loading);
    push(0, 5);
    fail();
    holds(5);
}

BOOST_AUTO_TEST_CASE(it_is_the_same_where_ranges_are_declared) {
    replace(small_heap(Capture::declared));
    const auto fill = [&](int from, int to) {
        for (int i = from; i < to; ++i) {
            Transaction transaction(*heap);
            transaction.touch(&numbers(), sizeof(Numbers));
            numbers().reserve(100);
            transaction.touch(numbers().data(), 100 * sizeof(int));
            numbers().push_back(i);
            transaction.commit();
        }
    };
    fill(0, 3);
    {
        RelaxedLoading loading(*heap, RelaxedRollback::loading);
        fill(3, 10);
        loading.wait_until_strict();
    }
    fill(10, 12);
    {
        const RelaxedLoading loading(*heap, RelaxedRollback::loading);
        fill(12, 20);
        fail();
        holds(12);
        BOOST_TEST(is_refused());
    }
    fill(12, 13);
    crash();
    holds(13);
}

BOOST_AUTO_TEST_CASE(several_threads_load_while_others_read, *boost::unit_test::label("threads")) {
    constexpr int each = 60;
    using Ints = taiyen::map<int, int>;
    transact(*heap, [&] { heap->find_or_construct<Ints>("map"); });
    taiyen::test::at_once(5, [&](unsigned number) {
        if (number == 4) {
            for (int i = 0; i < 20; ++i) {
                const ReadLock lock(*heap);
                for (const auto& [key, value] : *heap->find<Ints>("map")) BOOST_REQUIRE(key % each == value);
            }
            heap->snapshot();
            return;
        }
        RelaxedLoading loading(*heap, RelaxedRollback::loading);
        for (int i = 0; i < each; ++i) transact(*heap, [&] { (*heap->find<Ints>("map"))[static_cast<int>(number) * each + i] = i; });
        loading.wait_until_strict();
    });
    crash();
    BOOST_TEST(heap->find<Ints>("map")->size() == 4U * each);
    BOOST_TEST(heap->verify().ok());
}

BOOST_AUTO_TEST_SUITE_END()
