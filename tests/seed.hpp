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

/// TAIYEN_SEED: this seed, which a failure names. TAIYEN_RUN_SEED: one that depends on it, on the test case and on how often it has asked; so `./bootstrap.sh test` does the same twice with the same sources.
/// Without either a new one each time.
inline std::uint64_t seed_of_run() {
    static int asked = 0;
    std::uint64_t seed = 0;
    if (const char* const given = std::getenv("TAIYEN_SEED")) {
        seed = std::strtoull(given, nullptr, 10);
    } else if (const char* const of_run = std::getenv("TAIYEN_RUN_SEED")) {
        const std::string name = boost::unit_test::framework::current_test_case().full_name() + ' ' + std::to_string(++asked) + ' ' + of_run;
        std::seed_seq mixed(name.begin(), name.end());
        mixed.generate(&seed, &seed + 1);
    } else {
        seed = std::random_device{}();
    }
    std::cout << "TAIYEN_SEED=" << seed << std::endl;
    return seed;
}

}  // namespace taiyen::test
