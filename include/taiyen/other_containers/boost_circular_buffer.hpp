#pragma once
/// boost::circular_buffer in a heap. An opt-in; needs Boost, not part of the umbrella header.
///
/// Thread rule: as the container.

#include <boost/circular_buffer.hpp>

#include <taiyen/stl/allocator.hpp>

namespace taiyen {

template <class T>
using boost_circular_buffer = boost::circular_buffer<T, persistent_allocator<T>>;

}  // namespace taiyen
