#pragma once
/// Containers for heaps that may be mapped anywhere: Boost.Container's with Boost.Interprocess's offset_ptr. An opt-in; needs Boost, not part of the umbrella header.
///
/// All pointers inside are distances, so the same bytes work at another address. Homes are those of persistent_allocator. The standard library's string, map, set,
/// list, unordered and forward_list keep raw pointers whatever the allocator says: where they would compile they are refused here. std::vector and std::deque work.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <type_traits>
#include <utility>

#include <boost/container/deque.hpp>
#include <boost/container/flat_map.hpp>
#include <boost/container/flat_set.hpp>
#include <boost/container/list.hpp>
#include <boost/container/map.hpp>
#include <boost/container/set.hpp>
#include <boost/container/slist.hpp>
#include <boost/container/string.hpp>
#include <boost/container/vector.hpp>
#include <boost/interprocess/offset_ptr.hpp>

#if defined(__GLIBCXX__)
#include <forward_list>
#include <list>
#include <map>
#include <unordered_map>
#endif

#include <taiyen/stl/allocator.hpp>

namespace taiyen {

template <class T>
using offset_ptr = boost::interprocess::offset_ptr<T>;

namespace stl {

/// Nodes of standard containers that link each other by raw pointers.
template <class T>
inline constexpr bool has_raw_links = false;
#if defined(__GLIBCXX__)
template <class T, bool Cached>
inline constexpr bool has_raw_links<std::__detail::_Hash_node<T, Cached>> = true;
template <class T>
inline constexpr bool has_raw_links<std::_Fwd_list_node<T>> = true;
template <class T>
inline constexpr bool has_raw_links<std::_List_node<T>> = true;
template <class T>
inline constexpr bool has_raw_links<std::_Rb_tree_node<T>> = true;
#endif

}  // namespace stl

/// The allocator of these containers: homes as persistent_allocator has them, pointers as distances.
template <class T>
class TAIYEN_STORES_TAG offset_allocator : public stl::HomeAllocator<offset_allocator, T> {
    using Base = stl::HomeAllocator<taiyen::offset_allocator, T>;

public:
    using pointer = offset_ptr<T>;
    using const_pointer = offset_ptr<const T>;

    static_assert(!stl::has_raw_links<T>,
                  "taiyen: this standard container links its nodes by raw pointers and would break in a heap that is mapped elsewhere; use "
                  "taiyen::offset::map, …");

    using Base::Base;

    [[nodiscard]] pointer allocate(std::size_t count) { return pointer(Base::allocate_at_home(count)); }
    void deallocate(pointer block, std::size_t) noexcept { heap::deallocate(const_cast<std::remove_cv_t<T>*>(block.get())); }
    /// Boost looks for it in the class itself.
    offset_allocator select_on_container_copy_construction() const noexcept { return Base::select_on_container_copy_construction(); }
    std::size_t max_size() const noexcept { return static_cast<std::size_t>(-1) / 2 / sizeof(T); }
};

template <class T>
inline constexpr bool stl::is_durable_allocator<offset_allocator<T>> = true;

namespace offset {

template <class T>
using vector = boost::container::vector<T, offset_allocator<T>>;
template <class T>
using deque = boost::container::deque<T, offset_allocator<T>>;
template <class T>
using list = boost::container::list<T, offset_allocator<T>>;
template <class T>
using slist = boost::container::slist<T, offset_allocator<T>>;
template <class C, class Traits = std::char_traits<C>>
using basic_string = boost::container::basic_string<C, Traits, offset_allocator<C>>;
using string = basic_string<char>;
template <class K, class V, class Compare = std::less<>>
using map = boost::container::map<K, V, Compare, offset_allocator<std::pair<const K, V>>>;
template <class K, class V, class Compare = std::less<>>
using multimap = boost::container::multimap<K, V, Compare, offset_allocator<std::pair<const K, V>>>;
template <class K, class Compare = std::less<>>
using set = boost::container::set<K, Compare, offset_allocator<K>>;
template <class K, class Compare = std::less<>>
using multiset = boost::container::multiset<K, Compare, offset_allocator<K>>;
template <class K, class V, class Compare = std::less<>>
using flat_map = boost::container::flat_map<K, V, Compare, offset_allocator<std::pair<K, V>>>;
template <class K, class Compare = std::less<>>
using flat_set = boost::container::flat_set<K, Compare, offset_allocator<K>>;

}  // namespace offset
}  // namespace taiyen
