/// The load sets, gets and deletes what it says, by one thread and by many, and finds a store that is wrong.

#include <boost/test/unit_test.hpp>

#include "llds.hpp"

BOOST_AUTO_TEST_SUITE(load)

BOOST_AUTO_TEST_CASE(every_answer_is_right_and_nothing_is_left) {
    for (const unsigned threads : {1U, 3U}) {
        taiyen::VolatileHeap heap({.pages = taiyen::PageSize::huge});
        taiyen::OrderedStore store(heap);
        const auto phases = llds::run(store, {10'001, threads, 17});
        BOOST_TEST(phases.size() == 5U);
        for (const llds::Phase& phase : phases) BOOST_TEST(phase.wrong == 0U, phase.name);
        BOOST_TEST(store.empty());
        BOOST_TEST(store.is_sound());
    }
}

BOOST_AUTO_TEST_CASE(a_key_that_was_there_already_is_noticed) {
    taiyen::VolatileHeap heap;
    taiyen::OrderedStore store(heap);
    store.set(llds::key_of(42), "0");
    const auto phases = llds::run(store, {100, 1, 1});
    BOOST_TEST(phases[0].wrong == 1U);
    BOOST_TEST(phases[1].wrong == 0U);
}

BOOST_AUTO_TEST_SUITE_END()
