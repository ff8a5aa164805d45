#pragma once
/// What must be in a heap, told without the engine: each lane of work goes through numbered steps, and a lane's content follows from the shape and the number of its last step.
///
/// Thread rule: values.

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace outside {

inline constexpr unsigned lanes = 4;

struct Shape {
    std::uint64_t seed = 1;
    std::uint64_t keys = 120;             ///< of one lane
    std::uint64_t large_bytes = 300'000;  ///< of the rare large texts; 0: none
};

/// One step: an entry is written or erased, and the trail grows.
struct Step {
    bool erase = false;
    std::uint64_t key = 0;
    std::uint64_t bytes = 0;
    std::uint64_t mark = 0;  ///< what the trail gets
};
Step step_of(const Shape& shape, unsigned lane, std::uint64_t number);
/// The text that a step writes.
std::string text_of(const Shape& shape, unsigned lane, std::uint64_t number);

/// The trail loses its first half when it is longer than this.
inline constexpr std::size_t trail_max = 300;

struct LaneModel {
    std::uint64_t step = 0;
    std::map<std::uint64_t, std::uint64_t> entries;  ///< key to the number of the step that wrote it
    std::vector<std::uint64_t> trail;

    void advance(const Shape& shape, unsigned lane);
};

}  // namespace outside
