#pragma once
/// boost::multi_index_container in a heap. An opt-in; needs Boost, not part of the umbrella header. Include the headers of the indices that you use; hashed ones take taiyen::hash.
///
/// Thread rule: as the container.

#include <boost/multi_index_container.hpp>

#include <taiyen/stl/allocator.hpp>

namespace taiyen {

template <class T, class Indices>
using boost_multi_index_container = boost::multi_index_container<T, Indices, persistent_allocator<T>>;

}  // namespace taiyen
