// A thread ends and leaves its transaction open: nobody takes it over, and nobody waits for it.

#include <cstddef>
#include <memory>
#include <new>
#include <thread>

#include <boost/test/unit_test.hpp>

#include "txn/txn_fixture.hpp"

namespace {

using namespace taiyen;
using namespace taiyen::txn::test;

/// An object whose destructor nobody calls.
template <class Scope>
struct Left {
    template <class... A>
    explicit Left(A&... arguments) {
        scope = ::new (memory) Scope(arguments...);
    }
    alignas(Scope) static inline std::byte memory[sizeof(Scope)];
    Scope* scope;
};

/// Destroyed late in the end of its thread: after all that a transaction makes there.
thread_local std::unique_ptr<Transaction> kept_by_thread;

BOOST_FIXTURE_TEST_SUITE(ended_threads, TransactionFixture)

BOOST_AUTO_TEST_CASE(a_transaction_that_a_thread_left_open_is_rolled_back_when_the_thread_ends) {
    const Silence silence;
    push(0);
    std::thread([&] {
        const Left<Transaction> left(*heap);
        numbers().push_back(-1);
    }).join();
    BOOST_TEST((Silence::told == std::vector<errc>{errc::transaction_doomed}));
    BOOST_TEST((values() == std::vector<int>{0}));
    Serial last{};
    for (int round = 1; round < 4; ++round) {
        std::thread([&] { last = push(round); }).join();
        BOOST_TEST((heap->last_durable() >= last));
    }
    crash();
    BOOST_TEST((values() == std::vector<int>{0, 1, 2, 3}));
    BOOST_TEST(heap->verify().ok());
}

BOOST_AUTO_TEST_CASE(the_heap_closes_although_a_thread_left_its_transaction_open) {
    const Silence silence;
    push(0);
    std::thread([&] {
        const Left<Transaction> left(*heap);
        numbers().push_back(-1);
    }).join();
    heap->close();
    reopen();
    BOOST_TEST((values() == std::vector<int>{0}));
}

BOOST_AUTO_TEST_CASE(a_transaction_that_ends_after_its_thread_has_taken_it_back_does_nothing) {
    const Silence silence;
    push(0);
    std::thread([&] {
        kept_by_thread.reset();  // made before anything of a transaction
        kept_by_thread = std::make_unique<Transaction>(*heap);
        numbers().push_back(-1);
    }).join();
    BOOST_TEST(Silence::told.size() == 1U);
    push(1);
    crash();
    BOOST_TEST((values() == std::vector<int>{0, 1}));
}

BOOST_AUTO_TEST_CASE(a_scope_that_a_thread_left_open_is_no_step) {
    const Silence silence;
    heap->attach_undo();
    push(0);
    std::thread([&] {
        const Left<UndoScope> left(*heap, "never ended");
        numbers().push_back(-1);
    }).join();
    {
        UndoScope scope(*heap, "another");
        numbers().push_back(1);
        scope.commit();
    }
    BOOST_TEST((values() == std::vector<int>{0, 1}));
    BOOST_TEST(heap->undo_name() == "another");
    BOOST_TEST(heap->undo());
    BOOST_TEST((values() == std::vector<int>{0}));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
