#include "base/thread_number.hpp"

#include <set>
#include <thread>

#include <boost/test/unit_test.hpp>

BOOST_AUTO_TEST_SUITE(thread_numbers)

BOOST_AUTO_TEST_CASE(no_thread_has_the_number_of_one_that_has_ended) {
    std::set<taiyen::ThreadNumber> seen{0, taiyen::this_thread()};
    BOOST_TEST(seen.size() == 2U);
    for (int round = 0; round < 100; ++round) {
        taiyen::ThreadNumber number = 0;
        bool stays = false;
        std::thread([&] {
            number = taiyen::this_thread();
            stays = taiyen::this_thread() == number;
        }).join();
        BOOST_TEST(stays);
        BOOST_TEST(seen.insert(number).second);
    }
}

BOOST_AUTO_TEST_SUITE_END()
