#pragma once
/// btree_map, btree_multimap, btree_set and btree_multiset: the standard library's ordered containers as B+ trees (ordered/detail/btree.hpp).
///
/// They have the interface of std::map and std::set, but for nodes (`extract`), and the differences that follow from keeping many elements in a node:
/// - A map's elements are pairs of references, `{const Key& first, Value& second}`, as those of std::flat_map: write `for (auto&& [key, value] : map)`.
/// - Insertions and erasures invalidate iterators and references of the container; `erase` returns a valid iterator. Assigning to a mapped value invalidates nothing.
/// - Keys can be copied: inner nodes have copies of some.
/// - `erase(iterator)` looks for the key: logarithmic.
/// In ordered_map, ordered_set and their like each element has a block of its own: it is a std::pair<const Key, Value>, never moves, and can be extracted; keys needn't be copyable. Iterators end
/// with insertions and erasures as the others' do.
/// Beyond it: ascending input is appended, whoever inserts it; `find_many` and `for_each_found` look many keys up at once, with their cache misses side by side.
///
/// All memory comes from the allocator, so in a persistent heap they are saved, undone, rolled back and found again like any other container. The default is the allocator of heaps (include
/// <taiyen/stl/allocator.hpp>, or taiyen/taiyen.hpp).
///
/// Exceptions: inserting or erasing one element either happens or changes nothing, if moving elements doesn't throw or they can be copied.
/// Complexity: look-up, insertion and erasure logarithmic, with 60 to 120 elements a node where they are small. Copies, ranges in order, iteration: linear.
/// Thread rule: as the standard containers: concurrent reads are fine.

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <type_traits>
#include <utility>

#include <taiyen/base/detail/instrumented.hpp>
#include <taiyen/ordered/detail/btree_container.hpp>

namespace taiyen {

namespace ordered {

// For what a container is made of.
template <class A>
concept Allocates = requires(A& allocator) {
    typename A::value_type;
    allocator.allocate(std::size_t{1});
};
template <class C>
concept Comparison = !Allocates<C>;
template <class It>
using KeyOf = std::remove_const_t<typename std::iter_value_t<It>::first_type>;
template <class It>
using MappedOf = typename std::iter_value_t<It>::second_type;
template <class It>
using HeapMapAllocator = persistent_allocator<std::pair<const KeyOf<It>, MappedOf<It>>>;

}  // namespace ordered

// The constructors of an ordered container, for one whose base has them by parts.
#define TAIYEN_BTREE_CONSTRUCTORS(Name)                                                                                                           \
    Name() = default;                                                                                                                             \
    explicit Name(const Compare& compare, const Allocator& allocator = Allocator()) : Base(compare, allocator) {}                                 \
    explicit Name(const Allocator& allocator) : Base(Compare(), allocator) {}                                                                     \
    template <std::input_iterator It>                                                                                                             \
    Name(It from, It to, const Compare& compare = Compare(), const Allocator& allocator = Allocator()) : Base(compare, allocator) {               \
        this->insert(from, to);                                                                                                                   \
    }                                                                                                                                             \
    template <std::input_iterator It>                                                                                                             \
    Name(It from, It to, const Allocator& allocator) : Base(Compare(), allocator) {                                                               \
        this->insert(from, to);                                                                                                                   \
    }                                                                                                                                             \
    Name(std::initializer_list<typename Base::value_type> elements, const Compare& compare = Compare(), const Allocator& allocator = Allocator()) \
        : Base(compare, allocator) {                                                                                                              \
        this->insert(elements);                                                                                                                   \
    }                                                                                                                                             \
    Name(std::initializer_list<typename Base::value_type> elements, const Allocator& allocator) : Base(Compare(), allocator) {                    \
        this->insert(elements);                                                                                                                   \
    }                                                                                                                                             \
    Name(const Name&) = default;                                                                                                                  \
    Name(const Name& other, const Allocator& allocator) : Base(other, allocator) {}                                                               \
    Name(Name&&) = default;                                                                                                                       \
    Name(Name&& other, const Allocator& allocator) : Base(std::move(other), allocator) {}                                                         \
    Name& operator=(const Name&) = default;                                                                                                       \
    Name& operator=(Name&&) = default;                                                                                                            \
    Name& operator=(std::initializer_list<typename Base::value_type> elements) {                                                                  \
        Base::assign(elements);                                                                                                                   \
        return *this;                                                                                                                             \
    }                                                                                                                                             \
    ~Name() = default;                                                                                                                            \
    void swap(Name& other) noexcept { Base::swap(other); }                                                                                        \
    friend void swap(Name& a, Name& b) noexcept { a.swap(b); }

/// A map with unique keys.
template <class K, class V, class Compare = std::less<>, class Allocator = persistent_allocator<std::pair<const K, V>>>
class btree_map : public ordered::UniqueMap<K, V, Compare, Allocator, false> {
    using Base = ordered::UniqueMap<K, V, Compare, Allocator, false>;

public:
    TAIYEN_BTREE_CONSTRUCTORS(btree_map)
};

/// A map in which keys may be equal. Equal ones stay in the order of their insertion.
template <class K, class V, class Compare = std::less<>, class Allocator = persistent_allocator<std::pair<const K, V>>>
class btree_multimap : public ordered::BTreeContainer<K, V, Compare, Allocator, false> {
    using Base = ordered::BTreeContainer<K, V, Compare, Allocator, false>;

public:
    using mapped_type = V;
    TAIYEN_BTREE_CONSTRUCTORS(btree_multimap)
};

/// A set of unique keys.
template <class K, class Compare = std::less<>, class Allocator = persistent_allocator<K>>
class btree_set : public ordered::BTreeContainer<K, ordered::Nothing, Compare, Allocator, true> {
    using Base = ordered::BTreeContainer<K, ordered::Nothing, Compare, Allocator, true>;

public:
    TAIYEN_BTREE_CONSTRUCTORS(btree_set)
};

/// A set in which keys may be equal.
template <class K, class Compare = std::less<>, class Allocator = persistent_allocator<K>>
class btree_multiset : public ordered::BTreeContainer<K, ordered::Nothing, Compare, Allocator, false> {
    using Base = ordered::BTreeContainer<K, ordered::Nothing, Compare, Allocator, false>;

public:
    TAIYEN_BTREE_CONSTRUCTORS(btree_multiset)
};

/// A map whose elements never move: pointers and references to one stay until it is erased, as those of std::map do; iterators don't.
template <class K, class V, class Compare = std::less<>, class Allocator = persistent_allocator<std::pair<const K, V>>>
class ordered_map : public ordered::UniqueMap<K, V, Compare, Allocator, true> {
    using Base = ordered::UniqueMap<K, V, Compare, Allocator, true>;

public:
    TAIYEN_BTREE_CONSTRUCTORS(ordered_map)
};

/// The same in which keys may be equal.
template <class K, class V, class Compare = std::less<>, class Allocator = persistent_allocator<std::pair<const K, V>>>
class ordered_multimap : public ordered::BTreeContainer<K, V, Compare, Allocator, false, true> {
    using Base = ordered::BTreeContainer<K, V, Compare, Allocator, false, true>;

public:
    using mapped_type = V;
    TAIYEN_BTREE_CONSTRUCTORS(ordered_multimap)
};

/// A set of unique keys that never move.
template <class K, class Compare = std::less<>, class Allocator = persistent_allocator<K>>
class ordered_set : public ordered::BTreeContainer<K, ordered::Nothing, Compare, Allocator, true, true> {
    using Base = ordered::BTreeContainer<K, ordered::Nothing, Compare, Allocator, true, true>;

public:
    TAIYEN_BTREE_CONSTRUCTORS(ordered_set)
};

/// The same in which keys may be equal.
template <class K, class Compare = std::less<>, class Allocator = persistent_allocator<K>>
class ordered_multiset : public ordered::BTreeContainer<K, ordered::Nothing, Compare, Allocator, false, true> {
    using Base = ordered::BTreeContainer<K, ordered::Nothing, Compare, Allocator, false, true>;

public:
    TAIYEN_BTREE_CONSTRUCTORS(ordered_multiset)
};

#undef TAIYEN_BTREE_CONSTRUCTORS

// What a container is made of says its types, as for std::map and std::set.
#define TAIYEN_BTREE_MAP_GUIDES(Name)                                                                                                          \
    template <std::input_iterator It, ordered::Comparison Compare = std::less<>, ordered::Allocates Allocator = ordered::HeapMapAllocator<It>> \
    Name(It, It, Compare = Compare(), Allocator = Allocator()) -> Name<ordered::KeyOf<It>, ordered::MappedOf<It>, Compare, Allocator>;         \
    template <std::input_iterator It, ordered::Allocates Allocator>                                                                            \
    Name(It, It, Allocator) -> Name<ordered::KeyOf<It>, ordered::MappedOf<It>, std::less<>, Allocator>;                                        \
    template <class K, class V, ordered::Comparison Compare = std::less<>,                                                                     \
              ordered::Allocates Allocator = persistent_allocator<std::pair<const std::remove_const_t<K>, V>>>                                 \
    Name(std::initializer_list<std::pair<K, V>>, Compare = Compare(), Allocator = Allocator())                                                 \
        -> Name<std::remove_const_t<K>, V, Compare, Allocator>;                                                                                \
    template <class K, class V, ordered::Allocates Allocator>                                                                                  \
    Name(std::initializer_list<std::pair<K, V>>, Allocator) -> Name<std::remove_const_t<K>, V, std::less<>, Allocator>;
#define TAIYEN_BTREE_SET_GUIDES(Name)                                                                                     \
    template <std::input_iterator It, ordered::Comparison Compare = std::less<>,                                          \
              ordered::Allocates Allocator = persistent_allocator<std::iter_value_t<It>>>                                 \
    Name(It, It, Compare = Compare(), Allocator = Allocator()) -> Name<std::iter_value_t<It>, Compare, Allocator>;        \
    template <std::input_iterator It, ordered::Allocates Allocator>                                                       \
    Name(It, It, Allocator) -> Name<std::iter_value_t<It>, std::less<>, Allocator>;                                       \
    template <class K, ordered::Comparison Compare = std::less<>, ordered::Allocates Allocator = persistent_allocator<K>> \
    Name(std::initializer_list<K>, Compare = Compare(), Allocator = Allocator()) -> Name<K, Compare, Allocator>;          \
    template <class K, ordered::Allocates Allocator>                                                                      \
    Name(std::initializer_list<K>, Allocator) -> Name<K, std::less<>, Allocator>;

TAIYEN_BTREE_MAP_GUIDES(btree_map)
TAIYEN_BTREE_MAP_GUIDES(btree_multimap)
TAIYEN_BTREE_MAP_GUIDES(ordered_map)
TAIYEN_BTREE_MAP_GUIDES(ordered_multimap)
TAIYEN_BTREE_SET_GUIDES(btree_set)
TAIYEN_BTREE_SET_GUIDES(btree_multiset)
TAIYEN_BTREE_SET_GUIDES(ordered_set)
TAIYEN_BTREE_SET_GUIDES(ordered_multiset)

#undef TAIYEN_BTREE_MAP_GUIDES
#undef TAIYEN_BTREE_SET_GUIDES

}  // namespace taiyen
