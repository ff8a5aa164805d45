#pragma once
/// Containers for heaps that may be mapped anywhere: Boost.Container's with Boost.Interprocess's offset_ptr. An opt-in; needs Boost, not part of the umbrella header.
///
/// All pointers inside are distances, so the same bytes work at another address. Homes are those of persistent_allocator. The standard library's string, map, set,
/// list, unordered and forward_list keep raw pointers whatever the allocator says: where they would compile they are refused here. std::vector and std::deque work.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
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

template <class T>
class offset_allocator {
public:
    using value_type = T;
    using pointer = offset_ptr<T>;
    using const_pointer = offset_ptr<const T>;
    using size_type = std::size_t;
    using difference_type = std::ptrdiff_t;
    using is_always_equal = std::false_type;
    using propagate_on_container_copy_assignment = std::false_type;
    using propagate_on_container_move_assignment = std::false_type;
    using propagate_on_container_swap = std::true_type;

    static_assert(!stl::has_raw_links<T>, "taiyen: this standard container links its nodes by raw pointers and would break in a heap that is mapped elsewhere; use taiyen::offset::map, …");

    offset_allocator() noexcept = default;
    template <class U>
    offset_allocator(const offset_allocator<U>& other) noexcept : home_(other.home_) {}  // NOLINT: allocators convert
    template <heap_like H>
    offset_allocator(H& heap) : home_(heap.core()) {}  // NOLINT: containers take the heap itself
    explicit offset_allocator(heap::HeapCore& core) : home_(&core) {}

    [[nodiscard]] pointer allocate(std::size_t count) {
        if (count > static_cast<std::size_t>(-1) / 2 / sizeof(T)) throw std::bad_array_new_length();
        return pointer(static_cast<T*>(home_.allocate(count * sizeof(T), alignof(T))));
    }
    void deallocate(pointer block, std::size_t) noexcept { heap::deallocate(const_cast<std::remove_cv_t<T>*>(block.get())); }

    template <class U, class... A>
    void construct(U* place, A&&... arguments) {
        stl::check_storable<U>();
        const auto address = reinterpret_cast<std::uintptr_t>(place);
        const auto build = [place]<class... B>(B&&... ready) {
            ::new (const_cast<void*>(static_cast<const volatile void*>(place))) U(std::forward<B>(ready)...);
        };
        if constexpr (stl::is_plain<std::remove_cv_t<U>>) {
            build(std::forward<A>(arguments)...);
        } else {
            const offset_allocator settled(stl::Home(address, home_));
            stl::with_arguments<U>(address, settled, build, std::forward<A>(arguments)...);
        }
    }

    offset_allocator select_on_container_copy_construction() const noexcept { return offset_allocator(home_.for_copy()); }
    std::size_t max_size() const noexcept { return static_cast<std::size_t>(-1) / 2 / sizeof(T); }

    template <class U>
    bool operator==(const offset_allocator<U>& other) const noexcept {
        return home_ == other.home_;
    }
    friend void swap(offset_allocator& left, offset_allocator& right) noexcept { left.home_.swap(right.home_); }

private:
    template <class>
    friend class offset_allocator;
    explicit offset_allocator(const stl::Home& home) noexcept : home_(home) {}

    stl::Home home_;
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
