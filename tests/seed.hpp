#pragma once
/// seed_of_run: what a random test begins with. It is told, so that a run can be repeated.

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <random>
#include <string>

#include <boost/test/framework.hpp>
#include <boost/test/tree/test_unit.hpp>

namespace taiyen::test {

/// TAIYEN_SEED: this seed, which a failure names. TAIYEN_RUN_SEED: one that depends on it and on the test case, so that `./bootstrap.sh test` does the same twice with the same sources. Without either a new one
/// each time. A case that asks again gets what follows from the first, so that the one seed that was told repeats all of it.
inline std::uint64_t seed_of_run() {
    static boost::unit_test::test_unit_id told_to = boost::unit_test::INV_TEST_UNIT_ID;
    static std::uint64_t first = 0;
    static std::uint32_t asked = 0;
    const auto mix = [](std::seed_seq&& seeds) {
        std::uint32_t mixed = 0;
        seeds.generate(&mixed, &mixed + 1);
        return mixed;
    };
    const boost::unit_test::test_case& now = boost::unit_test::framework::current_test_case();
    if (now.p_id == told_to) return mix({static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(first >> 32U), ++asked});
    told_to = now.p_id;
    asked = 0;
    if (const char* const given = std::getenv("TAIYEN_SEED")) {
        first = std::strtoull(given, nullptr, 10);
    } else if (const char* const of_run = std::getenv("TAIYEN_RUN_SEED")) {
        const std::string name = now.full_name() + ' ' + of_run;
        first = mix(std::seed_seq(name.begin(), name.end()));
    } else {
        first = std::random_device{}();
    }
    std::cout << "TAIYEN_SEED=" << first << std::endl;
    return first;
}

}  // namespace taiyen::test
