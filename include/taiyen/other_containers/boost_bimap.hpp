#pragma once
/// boost::bimap in a heap. An opt-in; needs Boost, not part of the umbrella header.
///
/// Thread rule: as the container.

#include <boost/bimap.hpp>

#include <taiyen/stl/allocator.hpp>

namespace taiyen {

template <class Left, class Right>
using boost_bimap = boost::bimap<Left, Right, persistent_allocator<Left>>;

}  // namespace taiyen
