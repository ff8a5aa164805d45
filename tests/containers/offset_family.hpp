#pragma once
/// The family of containers that keep distances, beside the two of families.hpp; and what it takes to have a heap's place taken.
///
/// There are no unordered ones: ordered ones stand in for them.

#include <taiyen/stl/offset_ptr.hpp>
#include <taiyen/store/parameters.hpp>
#include <taiyen/taiyen.hpp>

#include "containers/families.hpp"
#include "vm/address_space.hpp"

namespace taiyen::test {

struct InOffsetHeap {
    using string = offset::string;
    template <class T>
    using vector = offset::vector<T>;
    template <class T>
    using deque = offset::deque<T>;
    template <class T>
    using list = offset::list<T>;
    template <class T>
    using forward_list = offset::slist<T>;
    template <class K, class V>
    using map = offset::map<K, V>;
    template <class K, class V>
    using multimap = offset::multimap<K, V>;
    template <class K>
    using set = offset::set<K>;
    template <class K>
    using multiset = offset::multiset<K>;
    template <class K, class V>
    using unordered_map = offset::map<K, V>;
    template <class K, class V>
    using unordered_multimap = offset::multimap<K, V>;
    template <class K>
    using unordered_set = offset::set<K>;
    template <class K>
    using unordered_multiset = offset::multiset<K>;
    template <class K, class V>
    using btree_map = offset::btree_map<K, V>;
    template <class K, class V>
    using btree_multimap = offset::btree_multimap<K, V>;
    template <class K>
    using btree_set = offset::btree_set<K>;
    template <class K>
    using btree_multiset = offset::btree_multiset<K>;
    template <class K, class V>
    using ordered_map = offset::ordered_map<K, V>;
    template <class K, class V>
    using ordered_multimap = offset::ordered_multimap<K, V>;
    template <class K>
    using ordered_set = offset::ordered_set<K>;
    template <class K>
    using ordered_multiset = offset::ordered_multiset<K>;
};

template <class T>
struct PointerIn<InOffsetHeap, T> {
    using type = offset_ptr<T>;
};

/// Boost's vector moves its elements before it looks at what it is to insert.
template <>
inline constexpr bool takes_own_elements<InOffsetHeap> = false;

/// Something else lies where the heap was made, as long as it lives. Requires: nobody has the heap open.
inline vm::Reservation take_place_of(const std::filesystem::path& heap) { return {read_parameters(heap).address, std::size_t{1} << 32U}; }

inline PersistentOptions position_independent_heap() {
    PersistentOptions options;
    options.capacity = std::size_t{64} << 20U;
    options.log_capacity = std::size_t{1} << 20U;
    options.position_independent = true;
    return options;
}

template <class Heap>
std::uintptr_t place_of(const Heap& heap) {
    return heap.core()->ranges().durable;
}

}  // namespace taiyen::test
