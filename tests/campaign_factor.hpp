#pragma once
/// campaign_factor: how many times more random steps than in a usual run of the tests.

#include <algorithm>
#include <cstdlib>

namespace taiyen::test {

/// The environment's TAIYEN_CAMPAIGN_FACTOR, else 1. A failure names its seed; TAIYEN_SEED replays it.
inline int campaign_factor() {
    const char* const text = std::getenv("TAIYEN_CAMPAIGN_FACTOR");
    return text == nullptr ? 1 : std::max(1, std::atoi(text));
}

}  // namespace taiyen::test
