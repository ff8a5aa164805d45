#pragma once
/// campaign_factor: how many times more random steps than in a usual run of the tests. rounds: how many of them, fewer under a sanitizer.

#include <algorithm>
#include <cstdlib>

namespace taiyen::test {

/// The environment's TAIYEN_CAMPAIGN_FACTOR, else 1. A failure names its seed; TAIYEN_SEED replays it.
inline int campaign_factor() {
    const char* const text = std::getenv("TAIYEN_CAMPAIGN_FACTOR");
    return text == nullptr ? 1 : std::max(1, std::atoi(text));
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool under_sanitizer = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool under_sanitizer = true;
#else
inline constexpr bool under_sanitizer = false;
#endif
#else
inline constexpr bool under_sanitizer = false;
#endif

/// Of random programs that are compared with a model. What a sanitizer adds is seen in a quarter of them; there each takes ten times as long.
inline int rounds(int usual) { return (under_sanitizer ? std::max(1, usual / 4) : usual) * campaign_factor(); }

}  // namespace taiyen::test
