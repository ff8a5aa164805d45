#pragma once
/// Containers for position-independent heaps: Boost.Container's with Boost.Interprocess's offset_ptr. An opt-in; needs Boost, not part of the umbrella header.
///
/// All pointers inside are distances, so the same bytes work at another address. Homes are those of persistent_allocator. The standard library's string, map, set,
/// list, forward_list, unordered containers and vector<bool> keep raw pointers whatever the allocator says, and are refused with a sentence that names what to take instead; so are elements
/// with raw pointers. std::vector and std::deque work. Details: doc/moving.md.

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
#include <boost/container/small_vector.hpp>
#include <boost/container/stable_vector.hpp>
#include <boost/container/string.hpp>
#include <boost/container/vector.hpp>
#include <boost/interprocess/offset_ptr.hpp>

#include <forward_list>
#include <list>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <taiyen/ordered/btree_map.hpp>
#include <taiyen/stl/allocator.hpp>
#include <taiyen/stl/flat_hash_map.hpp>

namespace taiyen {

template <class T>
using offset_ptr = boost::interprocess::offset_ptr<T>;

namespace stl {

template <class T>
inline constexpr bool refused = false;

/// Its text hashes as that of std, and is found by views and literals.
template <class C, class Traits, class A>
struct TextOf<boost::container::basic_string<C, Traits, A>> {
    using Character = C;
};

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

    [[nodiscard]] pointer allocate(std::size_t count) {
        stl::check_position_independent<T>();
        return pointer(Base::allocate_at_home(count, stl::Pointers::distances));
    }
    template <class U, class... A>
    void construct(U* place, A&&... arguments) {
        stl::check_position_independent<U>();
        Base::construct(place, std::forward<A>(arguments)...);
    }
    void deallocate(pointer block, std::size_t) noexcept { heap::deallocate(const_cast<std::remove_cv_t<T>*>(block.get())); }
    /// Boost looks for it in the class itself.
    offset_allocator select_on_container_copy_construction() const noexcept { return Base::select_on_container_copy_construction(); }
    std::size_t max_size() const noexcept { return static_cast<std::size_t>(-1) / 2 / sizeof(T); }
};

template <class T>
inline constexpr bool is_durable_allocator<offset_allocator<T>> = true;
template <class T>
inline constexpr bool stl::keeps_distances<offset_allocator<T>> = true;
/// What a small_vector makes of it.
template <class T, class A, class Options>
    requires stl::keeps_distances<A>
inline constexpr bool is_durable_allocator<boost::container::small_vector_allocator<T, A, Options>> = true;
template <class T, class A, class Options>
    requires stl::keeps_distances<A>
inline constexpr bool stl::keeps_distances<boost::container::small_vector_allocator<T, A, Options>> = true;

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
template <class K, class V, class Compare = std::less<>>
using flat_multimap = boost::container::flat_multimap<K, V, Compare, offset_allocator<std::pair<K, V>>>;
template <class K, class Compare = std::less<>>
using flat_set = boost::container::flat_set<K, Compare, offset_allocator<K>>;
template <class K, class Compare = std::less<>>
using flat_multiset = boost::container::flat_multiset<K, Compare, offset_allocator<K>>;
template <class K, class V, class Compare = std::less<>>
using btree_map = taiyen::btree_map<K, V, Compare, offset_allocator<std::pair<const K, V>>>;
template <class K, class V, class Compare = std::less<>>
using btree_multimap = taiyen::btree_multimap<K, V, Compare, offset_allocator<std::pair<const K, V>>>;
template <class K, class Compare = std::less<>>
using btree_set = taiyen::btree_set<K, Compare, offset_allocator<K>>;
template <class K, class Compare = std::less<>>
using btree_multiset = taiyen::btree_multiset<K, Compare, offset_allocator<K>>;
template <class K, class V, class Compare = std::less<>>
using ordered_map = taiyen::ordered_map<K, V, Compare, offset_allocator<std::pair<const K, V>>>;
template <class K, class V, class Compare = std::less<>>
using ordered_multimap = taiyen::ordered_multimap<K, V, Compare, offset_allocator<std::pair<const K, V>>>;
template <class K, class Compare = std::less<>>
using ordered_set = taiyen::ordered_set<K, Compare, offset_allocator<K>>;
template <class K, class Compare = std::less<>>
using ordered_multiset = taiyen::ordered_multiset<K, Compare, offset_allocator<K>>;
template <class K, class V, class Hash = hash<K>, class Equal = std::equal_to<>>
using flat_hash_map = taiyen::flat_hash_map<K, V, Hash, Equal, offset_allocator<std::pair<const K, V>>>;
template <class K, class Hash = hash<K>, class Equal = std::equal_to<>>
using flat_hash_set = taiyen::flat_hash_set<K, Hash, Equal, offset_allocator<K>>;
/// Iterators and references to its elements stay as long as the elements.
template <class T>
using stable_vector = boost::container::stable_vector<T, offset_allocator<T>>;
/// The first N elements lie in the object itself.
template <class T, std::size_t N>
using small_vector = boost::container::small_vector<T, N, offset_allocator<T>>;

}  // namespace offset
}  // namespace taiyen

// The standard library's own containers, refused by name: what they would say themselves is pages of template errors, or nothing.
namespace std {

template <class C, class Traits, class T>
class basic_string<C, Traits, taiyen::offset_allocator<T>> {
    static_assert(taiyen::stl::refused<C>,
                  "taiyen: std::string keeps raw pointers and would break in a heap that is mapped elsewhere; use taiyen::offset::string");
};
template <class T>
class vector<bool, taiyen::offset_allocator<T>> {
    static_assert(
        taiyen::stl::refused<T>,
        "taiyen: std::vector<bool> keeps raw pointers and would break in a heap that is mapped elsewhere; use taiyen::offset::vector<bool>");
};
template <class T, class A>
class list<T, taiyen::offset_allocator<A>> {
    static_assert(taiyen::stl::refused<T>,
                  "taiyen: std::list links its nodes by raw pointers and would break in a heap that is mapped elsewhere; use taiyen::offset::list");
};
template <class T, class A>
class forward_list<T, taiyen::offset_allocator<A>> {
    static_assert(
        taiyen::stl::refused<T>,
        "taiyen: std::forward_list links its nodes by raw pointers and would break in a heap that is mapped elsewhere; use taiyen::offset::slist");
};
template <class K, class V, class Compare, class A>
class map<K, V, Compare, taiyen::offset_allocator<A>> {
    static_assert(taiyen::stl::refused<K>,
                  "taiyen: std::map links its nodes by raw pointers and would break in a heap that is mapped elsewhere; use taiyen::offset::map");
};
template <class K, class V, class Compare, class A>
class multimap<K, V, Compare, taiyen::offset_allocator<A>> {
    static_assert(
        taiyen::stl::refused<K>,
        "taiyen: std::multimap links its nodes by raw pointers and would break in a heap that is mapped elsewhere; use taiyen::offset::multimap");
};
template <class K, class Compare, class A>
class set<K, Compare, taiyen::offset_allocator<A>> {
    static_assert(taiyen::stl::refused<K>,
                  "taiyen: std::set links its nodes by raw pointers and would break in a heap that is mapped elsewhere; use taiyen::offset::set");
};
template <class K, class Compare, class A>
class multiset<K, Compare, taiyen::offset_allocator<A>> {
    static_assert(
        taiyen::stl::refused<K>,
        "taiyen: std::multiset links its nodes by raw pointers and would break in a heap that is mapped elsewhere; use taiyen::offset::multiset");
};
template <class K, class V, class Hash, class Equal, class A>
class unordered_map<K, V, Hash, Equal, taiyen::offset_allocator<A>> {
    static_assert(taiyen::stl::refused<K>,
                  "taiyen: std::unordered_map links its nodes by raw pointers and would break in a heap that is mapped elsewhere; use "
                  "taiyen::offset::flat_hash_map or taiyen::offset::map");
};
template <class K, class V, class Hash, class Equal, class A>
class unordered_multimap<K, V, Hash, Equal, taiyen::offset_allocator<A>> {
    static_assert(taiyen::stl::refused<K>,
                  "taiyen: std::unordered_multimap links its nodes by raw pointers and would break in a heap that is mapped elsewhere; use "
                  "taiyen::offset::multimap");
};
template <class K, class Hash, class Equal, class A>
class unordered_set<K, Hash, Equal, taiyen::offset_allocator<A>> {
    static_assert(taiyen::stl::refused<K>,
                  "taiyen: std::unordered_set links its nodes by raw pointers and would break in a heap that is mapped elsewhere; use "
                  "taiyen::offset::flat_hash_set or taiyen::offset::set");
};
template <class K, class Hash, class Equal, class A>
class unordered_multiset<K, Hash, Equal, taiyen::offset_allocator<A>> {
    static_assert(taiyen::stl::refused<K>,
                  "taiyen: std::unordered_multiset links its nodes by raw pointers and would break in a heap that is mapped elsewhere; use "
                  "taiyen::offset::multiset");
};

}  // namespace std
