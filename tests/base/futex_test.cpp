#include "base/futex.hpp"

#include <thread>

#include <boost/test/unit_test.hpp>

namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

BOOST_AUTO_TEST_SUITE(futex)

BOOST_AUTO_TEST_CASE(nobody_sleeps_on_another_number) {
    const std::atomic<std::uint32_t> number{1};
    taiyen::sleep_while(number, 0);
    BOOST_TEST(number == 1U);
}

BOOST_AUTO_TEST_CASE(a_sleeper_ends_when_its_time_has_come) {
    const std::atomic<std::uint32_t> number{0};
    const Clock::time_point deadline = Clock::now() + std::chrono::milliseconds(5);
    while (Clock::now() < deadline) taiyen::sleep_while(number, 0, deadline);
    BOOST_TEST(number == 0U);
}

BOOST_AUTO_TEST_CASE(sleepers_are_woken, *boost::unit_test::label("threads")) {
    for (const bool all : {false, true}) {
        std::atomic<std::uint32_t> number{0};
        std::thread sleeper([&] {
            while (number.load(std::memory_order_acquire) == 0) taiyen::sleep_while(number, 0);
        });
        number.store(1, std::memory_order_release);
        all ? taiyen::wake_all(number) : taiyen::wake_one(&number);
        sleeper.join();
        BOOST_TEST(number == 1U);
    }
}

BOOST_AUTO_TEST_SUITE_END()
