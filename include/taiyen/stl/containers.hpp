#pragma once
/// The standard containers with persistent_allocator: unmodified code of the standard library whose elements lie in a heap.
///
/// Comparison is transparent (std::less<>, std::equal_to<>) and so is the hash of text keys: `find("bolt")` and `find(view)` build no temporary.
/// Thread rule: as the standard containers, per heap.

#include <compare>
#include <concepts>
#include <deque>
#include <forward_list>
#include <functional>
#include <list>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <taiyen/ordered/btree_map.hpp>
#include <taiyen/stl/allocator.hpp>
#include <taiyen/stl/flat_hash_map.hpp>
#include <taiyen/stl/hash.hpp>
#include <taiyen/stl/swap.hpp>

namespace taiyen {

template <class T>
using vector = std::vector<T, persistent_allocator<T>>;
template <class T>
using deque = std::deque<T, persistent_allocator<T>>;
template <class T>
using list = std::list<T, persistent_allocator<T>>;
template <class T>
using forward_list = std::forward_list<T, persistent_allocator<T>>;

template <class C, class Traits = std::char_traits<C>>
using basic_string = std::basic_string<C, Traits, persistent_allocator<C>>;
using string = basic_string<char>;
using wstring = basic_string<wchar_t>;
using u8string = basic_string<char8_t>;
using u16string = basic_string<char16_t>;
using u32string = basic_string<char32_t>;

/// Text of a heap compares with text of any other allocator, std::string above all; so `find(a_std_string)` works too, without a temporary.
template <class C, class Traits, class Other>
    requires(!std::same_as<Other, persistent_allocator<C>>)
bool operator==(const basic_string<C, Traits>& a, const std::basic_string<C, Traits, Other>& b) noexcept {
    return std::basic_string_view<C, Traits>(a) == std::basic_string_view<C, Traits>(b);
}
template <class C, class Traits, class Other>
    requires(!std::same_as<Other, persistent_allocator<C>>)
auto operator<=>(const basic_string<C, Traits>& a, const std::basic_string<C, Traits, Other>& b) noexcept {
    return std::basic_string_view<C, Traits>(a) <=> std::basic_string_view<C, Traits>(b);
}

template <class K, class V, class Compare = std::less<>>
using map = std::map<K, V, Compare, persistent_allocator<std::pair<const K, V>>>;
template <class K, class V, class Compare = std::less<>>
using multimap = std::multimap<K, V, Compare, persistent_allocator<std::pair<const K, V>>>;
template <class K, class Compare = std::less<>>
using set = std::set<K, Compare, persistent_allocator<K>>;
template <class K, class Compare = std::less<>>
using multiset = std::multiset<K, Compare, persistent_allocator<K>>;

template <class K, class V, class Hash = hash<K>, class Equal = std::equal_to<>>
using unordered_map = std::unordered_map<K, V, Hash, Equal, persistent_allocator<std::pair<const K, V>>>;
template <class K, class V, class Hash = hash<K>, class Equal = std::equal_to<>>
using unordered_multimap = std::unordered_multimap<K, V, Hash, Equal, persistent_allocator<std::pair<const K, V>>>;
template <class K, class Hash = hash<K>, class Equal = std::equal_to<>>
using unordered_set = std::unordered_set<K, Hash, Equal, persistent_allocator<K>>;
template <class K, class Hash = hash<K>, class Equal = std::equal_to<>>
using unordered_multiset = std::unordered_multiset<K, Hash, Equal, persistent_allocator<K>>;

}  // namespace taiyen
