#pragma once
/// swap(a, b) of containers of a heap: exchanges what they own where that is possible, and copies where their homes differ. Found by argument, before std's: `using std::swap; swap(a, b)`,
/// std::ranges::swap, std::iter_swap, algorithms, and the swaps of std::pair, tuple, array and optional.
///
/// `a.swap(b)` and the qualified `std::swap(a, b)` never throw, so they can't copy: between different homes they report errc::foreign_pointer and abort.

#include <deque>
#include <forward_list>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <taiyen/heap/detail/access.hpp>
#include <taiyen/stl/allocator.hpp>

namespace taiyen {
namespace stl {

template <class C>
bool may_exchange(const C& left, const C& right) {
    const heap::HeapCore* const left_heap = heap::core_at(std::addressof(left));
    const heap::HeapCore* const right_heap = heap::core_at(std::addressof(right));
    if ((left_heap == nullptr) == (right_heap == nullptr)) return left_heap == right_heap;  // outside each takes the other's memory along
    return left.get_allocator() == right.get_allocator();
}

/// Whether a T can be copied: containers say yes whatever their elements are.
template <class T>
struct IsCopied : std::is_copy_constructible<T> {};
template <class A, class B>
struct IsCopied<std::pair<A, B>> : std::bool_constant<IsCopied<std::remove_cv_t<A>>::value && IsCopied<B>::value> {};
template <class C>
    requires requires {
        typename C::value_type;
        typename C::allocator_type;
    }
struct IsCopied<C> : IsCopied<typename C::value_type> {};

/// Throws: what copying throws (HeapFull, …); both are as they were then. Elements that can't be copied are moved; what was moved stays moved when the next one throws.
template <class C>
void swap_contents(C& left, C& right) {
    if (may_exchange(left, right)) {
        left.swap(right);
        return;
    }
    using Source = std::conditional_t<IsCopied<typename C::value_type>::value, const C&, C&&>;
    C for_left(static_cast<Source>(right), left.get_allocator());
    C for_right(static_cast<Source>(left), right.get_allocator());
    left.swap(for_left);
    right.swap(for_right);
}

}  // namespace stl

template <class T>
void swap(std::vector<T, persistent_allocator<T>>& left, std::vector<T, persistent_allocator<T>>& right) {
    stl::swap_contents(left, right);
}
template <class T>
void swap(std::deque<T, persistent_allocator<T>>& left, std::deque<T, persistent_allocator<T>>& right) {
    stl::swap_contents(left, right);
}
template <class T>
void swap(std::list<T, persistent_allocator<T>>& left, std::list<T, persistent_allocator<T>>& right) {
    stl::swap_contents(left, right);
}
template <class T>
void swap(std::forward_list<T, persistent_allocator<T>>& left, std::forward_list<T, persistent_allocator<T>>& right) {
    stl::swap_contents(left, right);
}
template <class C, class Traits>
void swap(std::basic_string<C, Traits, persistent_allocator<C>>& left, std::basic_string<C, Traits, persistent_allocator<C>>& right) {
    stl::swap_contents(left, right);
}
template <class K, class V, class Compare>
void swap(std::map<K, V, Compare, persistent_allocator<std::pair<const K, V>>>& left,
          std::map<K, V, Compare, persistent_allocator<std::pair<const K, V>>>& right) {
    stl::swap_contents(left, right);
}
template <class K, class V, class Compare>
void swap(std::multimap<K, V, Compare, persistent_allocator<std::pair<const K, V>>>& left,
          std::multimap<K, V, Compare, persistent_allocator<std::pair<const K, V>>>& right) {
    stl::swap_contents(left, right);
}
template <class K, class Compare>
void swap(std::set<K, Compare, persistent_allocator<K>>& left, std::set<K, Compare, persistent_allocator<K>>& right) {
    stl::swap_contents(left, right);
}
template <class K, class Compare>
void swap(std::multiset<K, Compare, persistent_allocator<K>>& left, std::multiset<K, Compare, persistent_allocator<K>>& right) {
    stl::swap_contents(left, right);
}
template <class K, class V, class Hash, class Equal>
void swap(std::unordered_map<K, V, Hash, Equal, persistent_allocator<std::pair<const K, V>>>& left,
          std::unordered_map<K, V, Hash, Equal, persistent_allocator<std::pair<const K, V>>>& right) {
    stl::swap_contents(left, right);
}
template <class K, class V, class Hash, class Equal>
void swap(std::unordered_multimap<K, V, Hash, Equal, persistent_allocator<std::pair<const K, V>>>& left,
          std::unordered_multimap<K, V, Hash, Equal, persistent_allocator<std::pair<const K, V>>>& right) {
    stl::swap_contents(left, right);
}
template <class K, class Hash, class Equal>
void swap(std::unordered_set<K, Hash, Equal, persistent_allocator<K>>& left, std::unordered_set<K, Hash, Equal, persistent_allocator<K>>& right) {
    stl::swap_contents(left, right);
}
template <class K, class Hash, class Equal>
void swap(std::unordered_multiset<K, Hash, Equal, persistent_allocator<K>>& left,
          std::unordered_multiset<K, Hash, Equal, persistent_allocator<K>>& right) {
    stl::swap_contents(left, right);
}

}  // namespace taiyen
