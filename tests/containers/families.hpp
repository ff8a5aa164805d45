#pragma once
/// The two families of containers that tests hold side by side: a type written over a family exists in a heap and in ordinary memory,
/// and the same program on both must come to the same content.
///
/// Hash and comparison are the same in both, so that unordered containers iterate alike.

#include <deque>
#include <forward_list>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <taiyen/stl/containers.hpp>

namespace taiyen::test {

/// How an object of a family points to another one.
template <class In, class T>
struct PointerIn {
    using type = T*;
};

/// Whether a vector may be given one of its own elements to insert.
template <class In>
inline constexpr bool takes_own_elements = true;

struct InHeap {
    using string = taiyen::string;
    template <class T>
    using vector = taiyen::vector<T>;
    template <class T>
    using deque = taiyen::deque<T>;
    template <class T>
    using list = taiyen::list<T>;
    template <class T>
    using forward_list = taiyen::forward_list<T>;
    template <class K, class V>
    using map = taiyen::map<K, V>;
    template <class K, class V>
    using multimap = taiyen::multimap<K, V>;
    template <class K>
    using set = taiyen::set<K>;
    template <class K>
    using multiset = taiyen::multiset<K>;
    template <class K, class V>
    using unordered_map = taiyen::unordered_map<K, V>;
    template <class K, class V>
    using unordered_multimap = taiyen::unordered_multimap<K, V>;
    template <class K>
    using unordered_set = taiyen::unordered_set<K>;
    template <class K>
    using unordered_multiset = taiyen::unordered_multiset<K>;
    template <class K, class V>
    using btree_map = taiyen::btree_map<K, V>;
    template <class K, class V>
    using btree_multimap = taiyen::btree_multimap<K, V>;
    template <class K>
    using btree_set = taiyen::btree_set<K>;
    template <class K>
    using btree_multiset = taiyen::btree_multiset<K>;
    template <class K, class V>
    using ordered_map = taiyen::ordered_map<K, V>;
    template <class K, class V>
    using ordered_multimap = taiyen::ordered_multimap<K, V>;
    template <class K>
    using ordered_set = taiyen::ordered_set<K>;
    template <class K>
    using ordered_multiset = taiyen::ordered_multiset<K>;
    template <class K, class V>
    using flat_hash_map = taiyen::flat_hash_map<K, V>;
    template <class K>
    using flat_hash_set = taiyen::flat_hash_set<K>;
};

struct InMemory {
    using string = std::string;
    template <class T>
    using vector = std::vector<T>;
    template <class T>
    using deque = std::deque<T>;
    template <class T>
    using list = std::list<T>;
    template <class T>
    using forward_list = std::forward_list<T>;
    template <class K, class V>
    using map = std::map<K, V, std::less<>>;
    template <class K, class V>
    using multimap = std::multimap<K, V, std::less<>>;
    template <class K>
    using set = std::set<K, std::less<>>;
    template <class K>
    using multiset = std::multiset<K, std::less<>>;
    template <class K, class V>
    using unordered_map = std::unordered_map<K, V, taiyen::hash<K>, std::equal_to<>>;
    template <class K, class V>
    using unordered_multimap = std::unordered_multimap<K, V, taiyen::hash<K>, std::equal_to<>>;
    template <class K>
    using unordered_set = std::unordered_set<K, taiyen::hash<K>, std::equal_to<>>;
    template <class K>
    using unordered_multiset = std::unordered_multiset<K, taiyen::hash<K>, std::equal_to<>>;
    template <class K, class V>
    using btree_map = map<K, V>;
    template <class K, class V>
    using btree_multimap = multimap<K, V>;
    template <class K>
    using btree_set = set<K>;
    template <class K>
    using btree_multiset = multiset<K>;
    template <class K, class V>
    using ordered_map = map<K, V>;
    template <class K, class V>
    using ordered_multimap = multimap<K, V>;
    template <class K>
    using ordered_set = set<K>;
    template <class K>
    using ordered_multiset = multiset<K>;
    template <class K, class V>
    using flat_hash_map = taiyen::flat_hash_map<K, V, taiyen::hash<K>, std::equal_to<>, std::allocator<std::pair<const K, V>>>;
    template <class K>
    using flat_hash_set = taiyen::flat_hash_set<K, taiyen::hash<K>, std::equal_to<>, std::allocator<K>>;
};

}  // namespace taiyen::test
