#pragma once
/// plf::colony in a heap. An opt-in; needs plf_colony.h, not part of the umbrella header.
///
/// Thread rule: as the container.

#include <plf_colony.h>

#include <taiyen/stl/allocator.hpp>

namespace taiyen {

template <class T>
using plf_colony = plf::colony<T, persistent_allocator<T>>;

}  // namespace taiyen
