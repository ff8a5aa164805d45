#pragma once
/// Boost.Container's vector, deque, stable_vector, slist and flat maps and sets in a heap. An opt-in; needs Boost, not part of the umbrella header. Which states were tested: doc/containers.md.
///
/// Thread rule: as the containers.

#include <functional>
#include <utility>

#include <boost/container/deque.hpp>
#include <boost/container/flat_map.hpp>
#include <boost/container/flat_set.hpp>
#include <boost/container/slist.hpp>
#include <boost/container/stable_vector.hpp>
#include <boost/container/vector.hpp>

#include <taiyen/stl/allocator.hpp>

namespace taiyen {

template <class T>
using boost_vector = boost::container::vector<T, persistent_allocator<T>>;
template <class T>
using boost_deque = boost::container::deque<T, persistent_allocator<T>>;
/// Iterators and references to its elements stay as long as the elements.
template <class T>
using boost_stable_vector = boost::container::stable_vector<T, persistent_allocator<T>>;
template <class T>
using boost_slist = boost::container::slist<T, persistent_allocator<T>>;
template <class K, class V, class Compare = std::less<>>
using boost_flat_map = boost::container::flat_map<K, V, Compare, persistent_allocator<std::pair<K, V>>>;
template <class K, class Compare = std::less<>>
using boost_flat_set = boost::container::flat_set<K, Compare, persistent_allocator<K>>;

}  // namespace taiyen
