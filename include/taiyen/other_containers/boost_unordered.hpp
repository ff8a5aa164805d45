#pragma once
/// boost::unordered_map and unordered_set in a heap. An opt-in; needs Boost, not part of the umbrella header. boost::unordered_flat_map is refused: flat_hash_map is the one to take.
///
/// Thread rule: as the containers.

#include <functional>
#include <utility>

#include <boost/unordered_map.hpp>
#include <boost/unordered_set.hpp>

#include <taiyen/stl/allocator.hpp>
#include <taiyen/stl/hash.hpp>

namespace taiyen {

template <class K, class V, class Hash = hash<K>, class Equal = std::equal_to<>>
using boost_unordered_map = boost::unordered_map<K, V, Hash, Equal, persistent_allocator<std::pair<const K, V>>>;
template <class K, class Hash = hash<K>, class Equal = std::equal_to<>>
using boost_unordered_set = boost::unordered_set<K, Hash, Equal, persistent_allocator<K>>;

}  // namespace taiyen
