#include "latencies.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <random>
#include <vector>

BOOST_AUTO_TEST_SUITE(latencies)

BOOST_AUTO_TEST_CASE(quantiles_are_those_of_the_sorted_samples_within_a_bucket) {
    std::mt19937_64 random(7);
    bank::Latencies latencies;
    std::vector<std::int64_t> samples;
    for (int i = 0; i < 10'000; ++i) {
        samples.push_back(static_cast<std::int64_t>(random() >> (24 + random() % 40)));
        latencies.add(std::chrono::nanoseconds(samples.back()));
    }
    std::ranges::sort(samples);
    for (const double share : {0.0, 0.1, 0.5, 0.9, 0.99}) {
        const auto exact = static_cast<double>(samples[static_cast<std::size_t>(share * static_cast<double>(samples.size()))]);
        const auto found = static_cast<double>(latencies.quantile(share).count());
        BOOST_TEST(found >= exact);
        BOOST_TEST(found <= exact * 1.07 + 1);
    }
    BOOST_TEST(static_cast<double>(latencies.quantile(1).count()) >= static_cast<double>(samples.back()));
}

BOOST_AUTO_TEST_CASE(without_samples_there_is_nothing) {
    BOOST_TEST(bank::Latencies().quantile(0.5).count() == 0);
    BOOST_TEST(bank::Latencies().count() == 0U);
}

BOOST_AUTO_TEST_SUITE_END()
