#pragma once
/// seed_of_run: what a random test begins with; told, so that a run can be repeated by TAIYEN_SEED.

#include <cstdint>
#include <cstdlib>
#include <random>

#include <boost/test/unit_test.hpp>

namespace taiyen::test {

inline std::uint64_t seed_of_run() {
    const char* const given = std::getenv("TAIYEN_SEED");
    const std::uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
    BOOST_TEST_MESSAGE("TAIYEN_SEED=" << seed);
    return seed;
}

}  // namespace taiyen::test
