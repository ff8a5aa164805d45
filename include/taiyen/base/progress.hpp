#pragma once
/// How far something long is.

#include <cstdint>
#include <functional>

namespace taiyen {

/// Called now and then while something long runs: how much of `total` is done. By one thread at a time; by which one says the call that takes it.
using Progress = std::function<void(std::uint64_t done, std::uint64_t total)>;

}  // namespace taiyen
