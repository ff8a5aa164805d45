// The loans of a heap as threads use them: one has the transactions, the others free what they were lent.

#include "txn/heap_loans.hpp"

#include <thread>
#include <vector>

#include <boost/test/unit_test.hpp>

namespace {

using taiyen::txn::HeapLoans;

std::uint32_t lend(HeapLoans& loans, bool kept) {
    const std::uint32_t number = loans.begin();
    loans.end(kept);
    return number;
}
/// What a transaction that is kept frees for others.
std::vector<void*> freed_by_the_next(HeapLoans& loans) {
    std::vector<void*> freed;
    loans.begin();
    loans.free_waiting([&](void* block) { freed.push_back(block); });
    loans.end(true);
    return freed;
}

BOOST_AUTO_TEST_SUITE(heap_loans)

BOOST_AUTO_TEST_CASE(only_the_thread_of_the_open_transaction_frees_at_once_what_that_transaction_lent) {
    HeapLoans loans;
    int mine = 0;
    int another = 0;
    const std::uint32_t number = loans.begin();
    BOOST_TEST(loans.frees_now(&mine, number, true));
    BOOST_TEST(!loans.frees_now(&another, number, false));
    loans.end(true);
    BOOST_TEST((freed_by_the_next(loans) == std::vector<void*>{&another}));
}

BOOST_AUTO_TEST_CASE(what_a_committed_transaction_lent_waits_for_the_next_one_even_within_another) {
    HeapLoans loans;
    int block = 0;
    const std::uint32_t number = lend(loans, true);
    loans.begin();
    BOOST_TEST(!loans.frees_now(&block, number, true));
    loans.end(true);
    BOOST_TEST(loans.any_waits());
    BOOST_TEST((freed_by_the_next(loans) == std::vector<void*>{&block}));
    BOOST_TEST(!loans.any_waits());
    BOOST_TEST(freed_by_the_next(loans).empty());
}

BOOST_AUTO_TEST_CASE(what_came_back_is_freed_by_nobody) {
    HeapLoans loans;
    int block = 0;
    const std::uint32_t rolled_back = lend(loans, false);
    const std::uint32_t undone = lend(loans, true);
    BOOST_TEST(loans.came_back(rolled_back));
    BOOST_TEST(!loans.came_back(undone));
    loans.undo(undone, undone);
    BOOST_TEST(loans.came_back(undone));
    BOOST_TEST(!loans.frees_now(&block, rolled_back, false));
    BOOST_TEST(!loans.frees_now(&block, undone, true));
    BOOST_TEST(!loans.any_waits());
    loans.redo(undone, undone);
    BOOST_TEST(!loans.came_back(undone));
    loans.undo(undone, undone);
    loans.settle();
    loans.redo(undone, undone);  // too late
    BOOST_TEST(loans.came_back(undone));
}

BOOST_AUTO_TEST_CASE(what_others_free_meanwhile_is_freed_once, *boost::unit_test::label("threads")) {
    constexpr int blocks = 2000;
    HeapLoans loans;
    std::vector<int> times(2 * blocks);
    const auto free = [&](void* block) { ++*static_cast<int*>(block); };
    std::vector<std::uint32_t> numbers;
    for (int i = 0; i < blocks; ++i) numbers.push_back(lend(loans, true));
    std::thread owner([&] {
        for (int i = 0; i < blocks; ++i)
            BOOST_CHECK(!loans.frees_now(&times[static_cast<std::size_t>(i)], numbers[static_cast<std::size_t>(i)], false));
    });
    std::thread other([&] {
        for (int i = blocks; i < 2 * blocks; ++i) loans.free_later(&times[static_cast<std::size_t>(i)]);
    });
    const auto transact = [&] {
        loans.begin();
        loans.free_waiting(free);
        loans.end(true);
    };
    for (int i = 0; i < blocks; ++i) transact();
    owner.join();
    other.join();
    transact();
    BOOST_TEST(!loans.any_waits());
    for (const int found : times) BOOST_TEST_REQUIRE(found == 1);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
