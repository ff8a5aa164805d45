#pragma once
/// What the headers keep of an opening: a Restoration as an OpeningRecord, and back. What isn't known stays unknown, whatever a file says.
/// Thread rule: safe.

#include <chrono>
#include <cstdint>
#include <optional>

#include <taiyen/store/restoration.hpp>

#include "store/heap_layout.hpp"

namespace taiyen::store {

/// The system's, or, where random numbers repeat (`repeatable_random`), always the same: what a crash state holds follows from its id.
std::chrono::system_clock::time_point time_now() noexcept;
bool time_stands_still() noexcept;
/// Since 1970; 0: before that.
std::uint64_t microseconds_of(std::chrono::system_clock::time_point time) noexcept;
/// Nothing: 0, or what no clock of ours says.
std::optional<std::chrono::system_clock::time_point> time_of(std::uint64_t microseconds) noexcept;

/// All zero if the opening had nothing to do. Allocates nothing.
OpeningRecord record_of(const Restoration& restoration) noexcept;
/// Nothing: there is no record.
std::optional<Restoration> restoration_of(const OpeningRecord& record) noexcept;

}  // namespace taiyen::store
