#pragma once
/// What the worker keeps in its heap: the lanes of model.hpp in standard containers, and how many steps all of them took together.
///
/// Thread rule: as any container.

#include <array>
#include <string>

#include <taiyen/taiyen.hpp>

#include "model.hpp"

namespace outside {

struct Lane {
    std::uint64_t step = 0;
    taiyen::map<std::uint64_t, taiyen::string> entries;
    taiyen::vector<std::uint64_t> trail;
};

struct World {
    std::uint64_t order = 0;
    std::array<Lane, lanes> lane;
};

inline constexpr const char* world_name = "world";

/// The next step of a lane, as LaneModel::advance describes it.
void take_step(World& world, const Shape& shape, unsigned lane);

/// Empty if the lane is what the model says; else what is wrong.
std::string difference(const Lane& is, const LaneModel& should, const Shape& shape, unsigned lane);

}  // namespace outside
