#pragma once
/// Which pointers the standard containers of a heap hold, nested in any way: what DeclaredTypes walks by.
///
/// Known without a word of the program: numbers, enumerations, raw pointers, arrays, pair, tuple, optional, variant, complex, all containers of taiyen/stl/containers.hpp, and object_id_set<>. Any other class
/// says what it holds by `pointers_of` (taiyen/transfer/relocation.hpp), which may name its members, `elements(first, count)` and `range(first, last)`.
///
/// How the links of a container are found: nodes are reached by iterators, whose public members lead to the public structs that link them (libstdc++'s; GCC and Clang compile the same headers).
/// vector, deque, string and the heads of hash tables have a few words of their own at known places, and each is compared with what the container's interface says before it is
/// believed: another layout is an error, never a guess.

#include <array>
#include <bitset>
#include <chrono>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

#include <taiyen/object/object_id_set.hpp>
#include <taiyen/stl/containers.hpp>
#include <taiyen/stl/fingerprint.hpp>
#include <taiyen/transfer/declared.hpp>
#include <taiyen/transfer/relocation.hpp>

#if defined(__GLIBCXX__) && !defined(_GLIBCXX_DEBUG)

namespace taiyen {
namespace stl {

/// The parts of a class template's instance that decide whether it holds anything to be walked.
template <class T>
struct Parts {
    static constexpr bool known = false;
};
template <class T>
consteval bool is_still();
template <class T>
consteval bool is_address();
template <class... T>
struct KnownParts {
    static constexpr bool known = true;
    static consteval bool still() { return (is_still<T>() && ...); }
    static consteval bool address() { return (is_address<T>() || ...); }
};
template <class A, class B>
struct Parts<std::pair<A, B>> : KnownParts<A, B> {};
template <class... T>
struct Parts<std::tuple<T...>> : KnownParts<T...> {};
template <class... T>
struct Parts<std::variant<T...>> : KnownParts<T...> {};
template <class T>
struct Parts<std::optional<T>> : KnownParts<T> {};
template <class T, std::size_t N>
struct Parts<std::array<T, N>> : KnownParts<T> {};
template <class T>
struct Parts<std::complex<T>> : KnownParts<T> {};
template <class R, class P>
struct Parts<std::chrono::duration<R, P>> : KnownParts<R> {};
template <class C, class D>
struct Parts<std::chrono::time_point<C, D>> : KnownParts<D> {};
template <std::size_t N>
struct Parts<std::bitset<N>> : KnownParts<> {};

/// Whether no object of the type has a pointer in it.
template <class T>
consteval bool is_still() {
    using Plain = std::remove_cv_t<T>;
    if constexpr (std::is_arithmetic_v<Plain> || std::is_enum_v<Plain> || std::is_null_pointer_v<Plain> || std::is_member_object_pointer_v<Plain>) {
        return true;
    } else if constexpr (std::is_array_v<Plain>) {
        return is_still<std::remove_extent_t<Plain>>();
    } else if constexpr (!std::is_class_v<Plain>) {
        return false;
    } else if constexpr (std::is_base_of_v<no_pointers, pointers_of<Plain>>) {
        return true;
    } else if constexpr (transfer::describes_pointers<Plain>) {
        return false;
    } else if constexpr (Parts<Plain>::known) {
        return Parts<Plain>::still();
    } else {
        return std::is_empty_v<Plain>;
    }
}

/// Whether equality of such keys is that of addresses, as far as it shows.
template <class T>
consteval bool is_address() {
    using Plain = std::remove_cv_t<T>;
    if constexpr (std::is_pointer_v<Plain>) {
        return true;
    } else if constexpr (Parts<Plain>::known) {
        return Parts<Plain>::address();
    } else {
        return false;
    }
}

template <class T>
void walk_object(T& object, PointerWalk& walk);

/// For queues: the type is in the function.
template <class T>
void walk_step(void* object, PointerWalk& walk) {
    walk_object(*static_cast<T*>(object), walk);
}

template <class T>
void walk_elements(T& range, PointerWalk& walk) {
    for (auto& element : range) walk_object(element, walk);
}

/// Whatever a pointer to a T leads to is walked, too: one T.
template <class T>
void walk_target(T* target, PointerWalk& walk) {
    using Plain = std::remove_cv_t<T>;
    if constexpr (std::is_void_v<Plain>) {
        walk.reach(target);
    } else if constexpr (is_still<Plain>()) {
        walk.reach(target);
    } else {
        walk.later(target, sizeof(Plain), &walk_step<Plain>);
    }
}

template <class T>
void walk_pointer(T* const& pointer, PointerWalk& walk) {
    static_assert(!std::is_function_v<T>, "taiyen: functions don't lie in a heap");
    if (walk.pointer(&pointer)) walk_target(pointer, walk);
}

/// The word at that place of an object, which must hold `expected`.
template <class Container>
const std::byte* known_word(const Container& container, std::size_t index, const void* expected, std::string_view name, const PointerWalk& walk) {
    const std::byte* const word = reinterpret_cast<const std::byte*>(&container) + index * sizeof(void*);
    const void* value = nullptr;
    if ((index + 1) * sizeof(void*) <= sizeof(Container)) std::memcpy(&value, word, sizeof value);
    if ((index + 1) * sizeof(void*) > sizeof(Container) || value != expected) walk.throw_unknown_layout(name);
    return word;
}

/// The links of one kind of container.
template <class T>
struct Links {};

template <class C, class Traits>
struct Links<std::basic_string<C, Traits, persistent_allocator<C>>> {
    static void walk(basic_string<C, Traits>& text, PointerWalk& walk) {
        walk.pointer(known_word(text, 1, text.data(), "string", walk));
        walk.reach(text.data());
    }
};

template <class T>
struct Links<std::vector<T, persistent_allocator<T>>> {
    static void walk(vector<T>& elements, PointerWalk& walk) {
        if (elements.capacity() == 0) return;
        const T* const first = elements.data();
        walk.pointer(known_word(elements, 1, first, "vector", walk));
        walk.end(known_word(elements, 2, first + elements.size(), "vector", walk), first);
        walk.end(known_word(elements, 3, first + elements.capacity(), "vector", walk), first);
        walk.reach(first);
        if constexpr (!is_still<T>()) walk_elements(elements, walk);
    }
};

template <>
struct Links<std::vector<bool, persistent_allocator<bool>>> {
    static void walk(vector<bool>& bits, PointerWalk& walk) {
        if (bits.capacity() == 0) return;
        const std::_Bit_type* const first = bits.begin()._M_p;
        constexpr std::size_t word_bits = 8 * sizeof(std::_Bit_type);
        walk.pointer(known_word(bits, 1, first, "vector<bool>", walk));
        walk.end(known_word(bits, 3, bits.end()._M_p, "vector<bool>", walk), first);
        walk.end(known_word(bits, 5, first + bits.capacity() / word_bits, "vector<bool>", walk), first);
        walk.reach(first);
    }
};

template <class T>
struct Links<std::deque<T, persistent_allocator<T>>> {
    static void walk(deque<T>& elements, PointerWalk& walk) {
        const auto first = elements.begin();
        const auto last = elements.end();
        T** map = nullptr;
        std::memcpy(&map, reinterpret_cast<const std::byte*>(&elements) + sizeof(void*), sizeof map);
        if (map == nullptr && first._M_node == nullptr) return;
        std::size_t places = 0;
        std::memcpy(&places, reinterpret_cast<const std::byte*>(&elements) + 2 * sizeof(void*), sizeof places);
        if (map == nullptr || first._M_node < map || last._M_node < first._M_node || static_cast<std::size_t>(last._M_node - map) >= places)
            walk.throw_unknown_layout("deque");
        walk.pointer(known_word(elements, 1, map, "deque", walk));
        walk.reach(map);
        const auto ends = [&](std::size_t index, const auto& at) {
            walk.pointer(known_word(elements, index, at._M_cur, "deque", walk));
            walk.pointer(known_word(elements, index + 1, at._M_first, "deque", walk));
            walk.end(known_word(elements, index + 2, at._M_last, "deque", walk), at._M_first);
            walk.pointer(known_word(elements, index + 3, at._M_node, "deque", walk));
        };
        ends(3, first);
        ends(7, last);
        for (T** buffer = first._M_node; buffer <= last._M_node; ++buffer) {
            walk.pointer(buffer);
            walk.reach(*buffer);
        }
        if constexpr (!is_still<T>()) walk_elements(elements, walk);
    }
};

template <class T>
struct Links<std::list<T, persistent_allocator<T>>> {
    static void walk(list<T>& elements, PointerWalk& walk) {
        const auto links = [&](const std::__detail::_List_node_base* node) {
            walk.pointer(&node->_M_next);
            walk.pointer(&node->_M_prev);
        };
        links(elements.end()._M_node);
        for (auto at = elements.begin(); at != elements.end(); ++at) {
            links(at._M_node);
            walk.reach(at._M_node);
            walk_object(*at, walk);
        }
    }
};

template <class T>
struct Links<std::forward_list<T, persistent_allocator<T>>> {
    static void walk(forward_list<T>& elements, PointerWalk& walk) {
        walk.pointer(&elements.before_begin()._M_node->_M_next);
        for (auto at = elements.begin(); at != elements.end(); ++at) {
            walk.pointer(&at._M_node->_M_next);
            walk.reach(at._M_node);
            walk_object(*at, walk);
        }
    }
};

/// Map, set and their like: red-black trees.
template <class Tree>
struct TreeLinks {
    static void walk(Tree& tree, PointerWalk& walk) {
        static_assert(std::is_empty_v<typename Tree::key_compare>, "taiyen: a comparison that holds something can't be walked");
        if constexpr (is_address<typename Tree::key_type>()) walk.keyed_by_address(false);
        const auto links = [&](const std::_Rb_tree_node_base* node) {
            walk.pointer(&node->_M_parent);
            walk.pointer(&node->_M_left);
            walk.pointer(&node->_M_right);
        };
        links(tree.end()._M_node);
        for (auto at = tree.begin(); at != tree.end(); ++at) {
            links(at._M_node);
            walk.reach(at._M_node);
            walk_object(*at, walk);
        }
    }
};
template <class K, class V, class C>
struct Links<std::map<K, V, C, persistent_allocator<std::pair<const K, V>>>> : TreeLinks<map<K, V, C>> {};
template <class K, class V, class C>
struct Links<std::multimap<K, V, C, persistent_allocator<std::pair<const K, V>>>> : TreeLinks<multimap<K, V, C>> {};
template <class K, class C>
struct Links<std::set<K, C, persistent_allocator<K>>> : TreeLinks<set<K, C>> {};
template <class K, class C>
struct Links<std::multiset<K, C, persistent_allocator<K>>> : TreeLinks<multiset<K, C>> {};

/// The unordered containers: allocator, buckets, their number, the first node, the number of elements, … , and a bucket of its own at the end.
template <class Table>
struct TableLinks {
    static void walk(Table& table, PointerWalk& walk) {
        static_assert(std::is_empty_v<typename Table::hasher> && std::is_empty_v<typename Table::key_equal>,
                      "taiyen: a hash or a comparison that holds something can't be walked");
        if constexpr (is_address<typename Table::key_type>()) walk.keyed_by_address(true);
        const auto begin = table.begin();
        const auto number = [&](std::size_t index, std::size_t value) {
            known_word(table, index, reinterpret_cast<const void*>(value), "unordered container", walk);
        };
        number(2, table.bucket_count());
        number(4, table.size());
        walk.pointer(known_word(table, 3, begin._M_cur, "unordered container", walk));
        void** buckets = nullptr;
        std::memcpy(&buckets, reinterpret_cast<const std::byte*>(&table) + sizeof(void*), sizeof buckets);
        walk.pointer(known_word(table, 1, buckets, "unordered container", walk));
        walk.reach(buckets);
        for (std::size_t i = 0; i < table.bucket_count(); ++i) walk.pointer(buckets + i);
        for (auto at = begin; at != table.end(); ++at) {
            walk.pointer(&at._M_cur->_M_nxt);
            walk.reach(at._M_cur);
            walk_object(*at, walk);
        }
    }
};
template <class K, class V, class H, class E>
struct Links<std::unordered_map<K, V, H, E, persistent_allocator<std::pair<const K, V>>>> : TableLinks<unordered_map<K, V, H, E>> {};
template <class K, class V, class H, class E>
struct Links<std::unordered_multimap<K, V, H, E, persistent_allocator<std::pair<const K, V>>>> : TableLinks<unordered_multimap<K, V, H, E>> {};
template <class K, class H, class E>
struct Links<std::unordered_set<K, H, E, persistent_allocator<K>>> : TableLinks<unordered_set<K, H, E>> {};
template <class K, class H, class E>
struct Links<std::unordered_multiset<K, H, E, persistent_allocator<K>>> : TableLinks<unordered_multiset<K, H, E>> {};

template <>
struct Links<object_id_set<persistent_allocator<std::int64_t>>> {
    static void walk(const object_id_set<>& ids, PointerWalk& walk) {
        ids.for_each_pointer([&walk](auto* const& pointer) {
            if (walk.pointer(&pointer)) walk.reach(pointer);
        });
    }
};

template <class A, class B>
struct Links<std::pair<A, B>> {
    static void walk(std::pair<A, B>& both, PointerWalk& walk) {
        walk_object(both.first, walk);
        walk_object(both.second, walk);
    }
};
template <class... T>
struct Links<std::tuple<T...>> {
    static void walk(std::tuple<T...>& all, PointerWalk& walk) {
        std::apply([&](auto&... one) { (walk_object(one, walk), ...); }, all);
    }
};
template <class... T>
struct Links<std::variant<T...>> {
    static void walk(std::variant<T...>& one, PointerWalk& walk) {
        if (!one.valueless_by_exception()) std::visit([&](auto& held) { walk_object(held, walk); }, one);
    }
};
template <class T>
struct Links<std::optional<T>> {
    static void walk(std::optional<T>& held, PointerWalk& walk) {
        if (held) walk_object(*held, walk);
    }
};
template <class T, std::size_t N>
struct Links<std::array<T, N>> {
    static void walk(std::array<T, N>& elements, PointerWalk& walk) { walk_elements(elements, walk); }
};
template <class T>
struct Links<Elements<T>> {
    static void walk(Elements<T>& elements, PointerWalk& walk) {
        if (!walk.pointer(&elements.first)) return;
        walk.reach(elements.first);
        if constexpr (!is_still<T>()) {
            for (std::size_t i = 0; i < elements.count; ++i) walk_object(elements.first[i], walk);
        }
    }
};
template <class T>
struct Links<ElementRange<T>> {
    static void walk(ElementRange<T>& range, PointerWalk& walk) {
        if (!walk.pointer(&range.first)) return;
        walk.end(&range.last, range.first);
        walk.reach(range.first);
        if constexpr (!is_still<T>()) {
            for (T* at = range.first; at != range.last; ++at) walk_object(*at, walk);
        }
    }
};

template <class T>
void walk_object(T& object, PointerWalk& walk) {
    using Plain = std::remove_cv_t<T>;
    auto& plain = const_cast<Plain&>(object);  // keys; nothing is changed here
    if constexpr (is_still<Plain>()) {
        return;
    } else if constexpr (transfer::describes_pointers<Plain>) {
        pointers_of<Plain>::describe(plain, [&walk](auto&&... parts) { (walk_object(parts, walk), ...); });
    } else if constexpr (std::is_pointer_v<Plain>) {
        walk_pointer(plain, walk);
    } else if constexpr (std::is_array_v<Plain>) {
        walk_elements(plain, walk);
    } else if constexpr (requires { Links<Plain>::walk(plain, walk); }) {
        Links<Plain>::walk(plain, walk);
    } else {
        static_assert(transfer::never<T>, "taiyen: nothing says which pointers this type holds; specialise taiyen::pointers_of for it");
    }
}

}  // namespace stl

template <class... T>
DeclaredTypes& DeclaredTypes::add() {
    (add(stl::fingerprint<T>(), {&stl::walk_step<T>, sizeof(T)}), ...);
    return *this;
}

}  // namespace taiyen

#endif
