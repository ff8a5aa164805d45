#pragma once
/// How long the crash tests look, and from where.

#include <cstdint>
#include <cstdlib>
#include <string>

namespace taiyen::crash {

/// TAIYEN_CRASH_BUDGET: 1 is some minutes of two processors, 0.01 a hundredth of it; `./bootstrap.sh test` takes 0.1.
inline double budget() {
    const char* const given = std::getenv("TAIYEN_CRASH_BUDGET");
    return given != nullptr ? std::stod(given) : 1.0;
}

/// TAIYEN_SEED; the default is fixed, so that two runs see the same states.
inline std::uint64_t seed_of_this_run() {
    const char* const given = std::getenv("TAIYEN_SEED");
    return given != nullptr ? std::stoull(given) : 1;
}

}  // namespace taiyen::crash
