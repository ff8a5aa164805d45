#pragma once
/// Which pointers the standard containers of a heap hold, nested in any way: what DeclaredTypes walks by.
///
/// Known without a word of the program: numbers, enumerations, raw pointers, arrays, pair, tuple, optional, variant, complex, all containers of taiyen/stl/containers.hpp, and object_id_set<>. Any other class
/// says what it holds by `pointers_of` (taiyen/transfer/relocation.hpp), which may name its members, `elements(first, count)` and `range(first, last)`.
///
/// How the links of a container are found: nodes are reached by iterators, whose public members lead to the public structs that link them (libstdc++'s; GCC and Clang compile the same headers).
/// vector, deque, string and the heads of hash tables have a few words of their own at known places, and each is compared with what the container's interface says before it is
/// believed: another layout is an error, never a guess. Nothing is followed before a live block was found there with room for what it should be, nodes must lead back to where one
/// comes from, and counts must be right: a container that doesn't prove itself ends the walk, however it came to be what it is.

#include <algorithm>
#include <array>
#include <bit>
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
#include <taiyen/ordered/btree_map.hpp>
#include <taiyen/stl/containers.hpp>
#include <taiyen/stl/detail/fingerprint.hpp>
#include <taiyen/stl/flat_hash_map.hpp>
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
    if constexpr (std::is_arithmetic_v<Plain> || std::is_enum_v<Plain> || std::is_null_pointer_v<Plain> || std::is_member_object_pointer_v<Plain>)
        return true;
    else if constexpr (std::is_array_v<Plain>)
        return is_still<std::remove_extent_t<Plain>>();
    else if constexpr (!std::is_class_v<Plain>)
        return false;
    else if constexpr (std::is_base_of_v<no_pointers, pointers_of<Plain>>)
        return true;
    else if constexpr (transfer::describes_pointers<Plain>)
        return false;
    else if constexpr (Parts<Plain>::known)
        return Parts<Plain>::still();
    else
        return std::is_empty_v<Plain>;
}

/// Whether equality of such keys is that of addresses, as far as it shows.
template <class T>
consteval bool is_address() {
    using Plain = std::remove_cv_t<T>;
    if constexpr (std::is_pointer_v<Plain>)
        return true;
    else if constexpr (Parts<Plain>::known)
        return Parts<Plain>::address();
    else
        return false;
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
    if constexpr (std::is_void_v<Plain>)
        walk.part(target, 0);
    else if constexpr (is_still<Plain>())
        walk.part(target, sizeof(Plain));
    else if (reinterpret_cast<std::uintptr_t>(target) % alignof(Plain) == 0)
        walk.later(target, sizeof(Plain), &walk_step<Plain>);
}

template <class T>
void walk_pointer(T* const& pointer, PointerWalk& walk) {
    static_assert(!std::is_function_v<T>, "taiyen: functions don't lie in a heap");
    if (walk.pointer(&pointer)) walk_target(pointer, walk);
}

/// Elements that a description leads to.
template <class T>
void walk_array(T* const& first, std::size_t count, PointerWalk& walk) {
    using Plain = std::remove_cv_t<T>;
    // What trails its own object has no pointer that is stored: the description makes one up.
    if (walk.lies_in_heap(&first) ? !walk.pointer(&first) : !walk.lies_in_heap(first)) return;
    if constexpr (is_still<Plain>())
        walk.part(first, count * sizeof(Plain));
    else
        walk.later(first, sizeof(Plain), alignof(Plain), &walk_step<Plain>, count);
}

/// What a container needs to prove itself: a sentence with its name where something doesn't hold.
struct Proof {
    PointerWalk& walk;
    const char* container;

    void that(bool holds) const {
        if (!holds) walk.throw_unknown_layout(container);
    }
    template <class T>
    void elements(const T* first, std::size_t count) const {  // nodes come here by reinterpret_cast: static_cast would promise what is to be proven
        walk.reach_elements(first, count, sizeof(T), alignof(T), container);
    }
    /// How many elements lie between.
    template <class T>
    std::size_t distance(const T* first, const T* last) const {
        const std::size_t bytes = reinterpret_cast<std::uintptr_t>(last) - reinterpret_cast<std::uintptr_t>(first);
        that(reinterpret_cast<std::uintptr_t>(first) <= reinterpret_cast<std::uintptr_t>(last) && bytes % sizeof(T) == 0);
        return bytes / sizeof(T);
    }
};

/// The word at that place of an object, which must hold `expected`.
template <class Container>
const std::byte* known_word(const Container& container, std::size_t index, const void* expected, const Proof& proof) {
    const std::byte* const word = reinterpret_cast<const std::byte*>(&container) + index * sizeof(void*);
    const void* value = nullptr;
    const bool is_inside = (index + 1) * sizeof(void*) <= sizeof(Container);
    if (is_inside) std::memcpy(&value, word, sizeof value);
    proof.that(is_inside && value == expected);
    return word;
}

/// The same, whatever it holds.
template <class T, class Container>
T word_of(const Container& container, std::size_t index) {
    static_assert(sizeof(T) == sizeof(void*));
    T value;
    std::memcpy(&value, reinterpret_cast<const std::byte*>(&container) + index * sizeof(void*), sizeof value);
    return value;
}

/// The links of one kind of container.
template <class T>
struct Links {};

template <class C, class Traits>
struct Links<std::basic_string<C, Traits, persistent_allocator<C>>> {
    static void walk(basic_string<C, Traits>& text, PointerWalk& walk) {
        const Proof proof{walk, "string"};
        walk.pointer(known_word(text, 1, text.data(), proof));
        const bool is_short = static_cast<const void*>(text.data()) == reinterpret_cast<const std::byte*>(&text) + 3 * sizeof(void*);
        proof.that(text.size() <= text.capacity() && text.capacity() < text.max_size());
        if (!is_short) proof.elements(text.data(), text.capacity() + 1);
    }
};

template <class T>
struct Links<std::vector<T, persistent_allocator<T>>> {
    static void walk(vector<T>& elements, PointerWalk& walk) {
        const Proof proof{walk, "vector"};
        const T* const first = elements.data();
        const std::size_t room = proof.distance(first, word_of<const T*>(elements, 3));
        proof.that(proof.distance(first, word_of<const T*>(elements, 2)) <= room && elements.capacity() == room);
        if (first == nullptr && room == 0) return;
        proof.that(first != nullptr);
        walk.pointer(known_word(elements, 1, first, proof));
        walk.end(known_word(elements, 2, first + elements.size(), proof), first);
        walk.end(known_word(elements, 3, first + elements.capacity(), proof), first);
        proof.elements(first, room);
        if constexpr (!is_still<T>()) walk_elements(elements, walk);
    }
};

template <>
struct Links<std::vector<bool, persistent_allocator<bool>>> {
    static void walk(vector<bool>& bits, PointerWalk& walk) {
        const Proof proof{walk, "vector<bool>"};
        const std::_Bit_type* const first = bits.begin()._M_p;
        constexpr std::size_t word_bits = 8 * sizeof(std::_Bit_type);
        const std::size_t room = proof.distance(first, word_of<const std::_Bit_type*>(bits, 5));
        proof.that(proof.distance(first, static_cast<const std::_Bit_type*>(bits.end()._M_p)) <= room && bits.capacity() == room * word_bits);
        if (first == nullptr && room == 0) return;
        proof.that(first != nullptr);
        walk.pointer(known_word(bits, 1, first, proof));
        walk.end(known_word(bits, 3, bits.end()._M_p, proof), first);
        walk.end(known_word(bits, 5, first + room, proof), first);
        proof.elements(first, room);
    }
};

template <class T>
struct Links<std::deque<T, persistent_allocator<T>>> {
    static void walk(deque<T>& elements, PointerWalk& walk) {
        const Proof proof{walk, "deque"};
        const auto first = elements.begin();
        const auto last = elements.end();
        T** const map = word_of<T**>(elements, 1);
        if (map == nullptr && first._M_node == nullptr) return;
        const auto places = word_of<std::size_t>(elements, 2);
        proof.elements(map, places);
        const std::size_t first_place = proof.distance(map, first._M_node);
        proof.that(first_place <= proof.distance(map, last._M_node) && proof.distance(map, last._M_node) < places);
        walk.pointer(known_word(elements, 1, map, proof));
        const auto ends = [&](std::size_t index, const auto& at) {
            proof.that(*at._M_node == at._M_first && proof.distance(at._M_first, at._M_last) == at._S_buffer_size());
            proof.that(proof.distance(at._M_first, at._M_cur) < at._S_buffer_size());
            walk.pointer(known_word(elements, index, at._M_cur, proof));
            walk.pointer(known_word(elements, index + 1, at._M_first, proof));
            walk.end(known_word(elements, index + 2, at._M_last, proof), at._M_first);
            walk.pointer(known_word(elements, index + 3, at._M_node, proof));
        };
        for (T** buffer = first._M_node; buffer <= last._M_node; ++buffer) {
            proof.elements(*buffer, first._S_buffer_size());
            walk.pointer(buffer);
        }
        ends(3, first);
        ends(7, last);
        proof.that(first._M_node != last._M_node || first._M_cur <= last._M_cur);
        if constexpr (!is_still<T>()) walk_elements(elements, walk);
    }
};

template <class T>
struct Links<std::list<T, persistent_allocator<T>>> {
    using Base = std::__detail::_List_node_base;
    using Node = std::_List_node<T>;

    static void walk(list<T>& elements, PointerWalk& walk) {
        const Proof proof{walk, "list"};
        const auto links = [&](const Base* node) {
            walk.pointer(&node->_M_next);
            walk.pointer(&node->_M_prev);
        };
        const Base* const end = elements.end()._M_node;
        const Base* before = end;
        links(end);
        for (Base* at = end->_M_next; at != end; before = at, at = at->_M_next) {
            proof.elements(reinterpret_cast<const Node*>(at), 1);
            proof.that(at->_M_prev == before);  // so no node comes twice
            links(at);
            walk_object(*static_cast<Node*>(at)->_M_valptr(), walk);
        }
        proof.that(end->_M_prev == before);
    }
};

template <class T>
struct Links<std::forward_list<T, persistent_allocator<T>>> {
    using Base = std::_Fwd_list_node_base;
    using Node = std::_Fwd_list_node<T>;

    static void walk(forward_list<T>& elements, PointerWalk& walk) {
        const Proof proof{walk, "forward_list"};
        walk.pointer(&elements.before_begin()._M_node->_M_next);
        const Base* seen = nullptr;  // one on the way, further and further behind: a ring comes back to it
        std::size_t count = 0;
        for (Base* at = elements.before_begin()._M_node->_M_next; at != nullptr; at = at->_M_next) {
            proof.elements(reinterpret_cast<const Node*>(at), 1);
            proof.that(at != seen);
            if ((count & (count + 1)) == 0) seen = at;
            ++count;
            walk.pointer(&at->_M_next);
            walk_object(*static_cast<Node*>(at)->_M_valptr(), walk);
        }
    }
};

/// The key of an element of a map or a set, if equality of keys is that of addresses.
template <class Container>
void walk_key(const typename Container::value_type& element, PointerWalk& walk) {
    if constexpr (is_address<typename Container::key_type>()) {
        if (!walk.within_key(true)) return;
        if constexpr (std::is_same_v<typename Container::key_type, typename Container::value_type>)
            walk_object(element, walk);
        else
            walk_object(element.first, walk);
        walk.within_key(false);
    }
}

/// Map, set and their like: red-black trees.
template <class Tree>
struct TreeLinks {
    using Base = std::_Rb_tree_node_base;
    using Node = std::_Rb_tree_node<typename Tree::value_type>;
    static constexpr std::size_t height_max = 128;  ///< of one with as many nodes as there are addresses

    static void walk(Tree& tree, PointerWalk& walk) {
        static_assert(std::is_empty_v<typename Tree::key_compare>, "taiyen: a comparison that holds something can't be walked");
        if constexpr (is_address<typename Tree::key_type>()) walk.keyed_by_address(false);
        const Proof proof{walk, "tree of a map or set"};
        const auto links = [&](const Base* node) {
            walk.pointer(&node->_M_parent);
            walk.pointer(&node->_M_left);
            walk.pointer(&node->_M_right);
        };
        auto* const header = const_cast<Base*>(static_cast<const Base*>(tree.end()._M_node));
        links(header);
        std::array<Base*, height_max> above;  // whose left side is under way
        std::size_t height = 0;
        std::size_t count = 0;
        const Base* last = header;
        const Base* parent = header;
        for (Base* at = header->_M_parent; at != nullptr || height != 0;) {
            for (; at != nullptr; parent = at, at = at->_M_left) {
                proof.elements(reinterpret_cast<const Node*>(at), 1);
                proof.that(at->_M_parent == parent && height < height_max);  // so no node comes twice
                above[height++] = at;
            }
            Base* const node = above[--height];
            proof.that(++count != 1 || header->_M_left == node);
            links(node);
            walk_key<Tree>(*static_cast<Node*>(node)->_M_valptr(), walk);
            walk_object(*static_cast<Node*>(node)->_M_valptr(), walk);
            last = parent = node;
            at = node->_M_right;
        }
        proof.that(header->_M_right == last && count == tree.size() && (count != 0 || header->_M_left == header));
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
        const Proof proof{walk, "hash table"};
        using Node = std::remove_pointer_t<decltype(table.begin()._M_cur)>;
        if (const auto* const first = word_of<const Node*>(table, 3)) proof.elements(first, 1);  // begin() promises that it is a node
        const auto begin = table.begin();
        const auto number = [&](std::size_t index, std::size_t value) { known_word(table, index, reinterpret_cast<const void*>(value), proof); };
        number(2, table.bucket_count());
        number(4, table.size());
        walk.pointer(known_word(table, 3, begin._M_cur, proof));
        void** const buckets = word_of<void**>(table, 1);
        walk.pointer(known_word(table, 1, buckets, proof));
        const auto* const own_bucket = reinterpret_cast<const std::byte*>(&table) + sizeof table - sizeof(void*);
        if (static_cast<const void*>(buckets) == own_bucket)
            proof.that(table.bucket_count() == 1);
        else
            proof.elements(buckets, table.bucket_count());
        for (std::size_t i = 0; i < table.bucket_count(); ++i) walk.pointer(buckets + i);
        std::size_t count = 0;
        for (Node* at = begin._M_cur; at != nullptr; at = reinterpret_cast<Node*>(at->_M_nxt)) {
            proof.elements(at, 1);
            proof.that(++count <= table.size());
            walk.pointer(&at->_M_nxt);
            walk_key<Table>(at->_M_v(), walk);
            walk_object(at->_M_v(), walk);
        }
        proof.that(count == table.size());
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

/// Flat hash tables: control bytes say which slots hold elements.
template <class Container>
struct FlatHashLinks {
    static void walk(Container& container, PointerWalk& walk) {
        static_assert(std::is_empty_v<typename Container::hasher> && std::is_empty_v<typename Container::key_equal>,
                      "taiyen: a hash or a comparison that holds something can't be walked");
        if constexpr (is_address<typename Container::key_type>()) walk.keyed_by_address(true);
        using Table = std::remove_cvref_t<decltype(container.table())>;
        const Table& table = container.table();
        const Proof proof{walk, "flat hash table"};
        walk.pointer(&table.block());
        if (table.block() == nullptr) {
            proof.that(table.slots() == 0 && table.size() == 0 && table.free() == 0);
            return;
        }
        proof.that(std::has_single_bit(table.slots()) && table.slots() >= Table::slots_min && table.slots() <= Table::max_size());
        proof.elements(table.block(), Table::units_of(table.slots()));
        std::size_t filled = 0;
        std::size_t erased = 0;
        for (std::size_t i = 0; i != std::max(table.slots(), ControlGroup::width); ++i) {
            const std::int8_t byte = table.controls()[i];
            proof.that((i >= table.slots()) == (byte == control::beyond) && (byte >= control::erased || byte == control::empty));
            erased += byte == control::erased ? 1 : 0;
            if (byte < 0) continue;
            ++filled;
            walk_key<Container>(*table.element(i), walk);
            walk_object(*table.element(i), walk);
        }
        proof.that(filled == table.size() && filled + erased + table.free() == Table::seats_of(table.slots()));
    }
};
template <class K, class V, class H, class E>
struct Links<flat_hash_map<K, V, H, E, persistent_allocator<std::pair<const K, V>>>> : FlatHashLinks<flat_hash_map<K, V, H, E>> {};
template <class K, class H, class E>
struct Links<flat_hash_set<K, H, E, persistent_allocator<K>>> : FlatHashLinks<flat_hash_set<K, H, E>> {};

/// B-trees: from the root down, the leaves from the first on, each where its neighbours say.
template <class Container>
struct BTreeLinks {
    using Tree = std::remove_cvref_t<decltype(std::declval<const Container&>().tree())>;
    using Leaf = typename Tree::Leaf;
    using Inner = typename Tree::Inner;
    using Pointer = typename Tree::Pointer;
    using Line = ordered::Line;
    using K = typename Container::key_type;
    using Element = typename Container::value_type;

    static void walk(Container& container, PointerWalk& walk) {
        static_assert(std::is_empty_v<typename Container::key_compare>, "taiyen: a comparison that holds something can't be walked");
        if constexpr (is_address<K>()) walk.keyed_by_address(false);
        const Tree& tree = container.tree();
        BTreeLinks links{walk, {walk, "B-tree"}};
        walk.pointer(&tree.root());
        walk.pointer(&tree.first());
        walk.pointer(&tree.last());
        if (tree.root() == nullptr) {
            links.proof.that(tree.first() == nullptr && tree.last() == nullptr && tree.size() == 0);
            return;
        }
        links.proof.that(tree.height() < Tree::depth_max);
        links.node(tree.root(), tree.height(), tree.height() == 0);
        links.proof.that(links.last == tree.last() && links.next == nullptr && links.first == tree.first() && links.size == tree.size());
    }

private:
    PointerWalk& walk_;
    Proof proof;
    Pointer first = nullptr;
    Pointer last = nullptr;
    Pointer next = nullptr;  ///< what the last leaf says
    std::size_t size = 0;

    BTreeLinks(PointerWalk& walk, const Proof& proven) : walk_(walk), proof(proven) {}

    void node(const Pointer& node, std::uint32_t level, bool is_root) {
        proof.that(node != nullptr);
        if (level == 0) {
            leaf(node, is_root);
            return;
        }
        proof.elements(reinterpret_cast<const Line*>(node), Tree::inner_lines);
        const Inner& inner = *Tree::inner_at(node);
        proof.that(inner.count <= Tree::inner_separators && (!is_root || inner.count != 0));
        for (std::uint32_t i = 0; i <= inner.count; ++i) {
            walk_.pointer(&inner.children[i]);
            if (i != inner.count) separator(inner, i);
            this->node(inner.children[i], level - 1, false);
        }
    }
    void separator(const Inner& inner, std::uint32_t i) {
        if constexpr (Tree::is_apart) {
            walk_.pointer(&inner.separator[i].element);  // an element of a leaf
            proof.elements(inner.separator[i].element, 1);
        } else if constexpr (Tree::separators_inline) {
            key(const_cast<K&>(inner.key(i)));
        } else if constexpr (Tree::digests != ordered::Digests::keys) {
            walk_.pointer(&inner.separator[i]);
            proof.elements(inner.separator[i], 1);
            key(*inner.separator[i]);
        }
    }
    void leaf(const Pointer& node, bool is_root) {
        proof.elements(reinterpret_cast<const Line*>(node), 1);
        Leaf& leaf = *Tree::leaf_at(node);
        proof.that(leaf.count != 0 && leaf.count <= leaf.slots && leaf.slots <= Tree::leaf_slots && (is_root || leaf.slots == Tree::leaf_slots));
        proof.elements(reinterpret_cast<const Line*>(node), Tree::lines_of(Tree::leaf_bytes(leaf.slots)));
        proof.that(leaf.previous == last && (last == nullptr || next == node));
        walk_.pointer(&leaf.previous);
        walk_.pointer(&leaf.next);
        if (last == nullptr) first = node;
        last = node;
        next = leaf.next;
        size += leaf.count;
        std::array<bool, 256> met{};
        for (std::uint32_t i = 0; i != leaf.count; ++i) {
            const std::uint8_t slot = leaf.order()[i];
            proof.that(slot < leaf.slots && !met[slot]);
            met[slot] = true;
            if constexpr (Tree::is_apart)
                apart(leaf.keys()[slot].element);
            else if constexpr (!is_still<K>())
                key(leaf.keys()[slot]);
            if constexpr (Tree::has_values) {
                if constexpr (!is_still<typename Container::mapped_type>()) walk_object(leaf.values()[slot], walk_);
            }
        }
    }
    void apart(Element* const& element) {
        walk_.pointer(&element);
        proof.elements(element, 1);
        if constexpr (std::is_same_v<K, Element>) {
            if constexpr (!is_still<K>()) key(*element);
        } else {
            if constexpr (!is_still<K>()) key(const_cast<K&>(element->first));
            if constexpr (!is_still<decltype(element->second)>()) walk_object(element->second, walk_);
        }
    }
    void key(K& key) {
        if constexpr (is_address<K>()) {
            if (walk_.within_key(true)) {
                walk_object(key, walk_);
                walk_.within_key(false);
            }
        }
        walk_object(key, walk_);
    }
};
template <class K, class V, class C>
struct Links<btree_map<K, V, C, persistent_allocator<std::pair<const K, V>>>> : BTreeLinks<btree_map<K, V, C>> {};
template <class K, class V, class C>
struct Links<btree_multimap<K, V, C, persistent_allocator<std::pair<const K, V>>>> : BTreeLinks<btree_multimap<K, V, C>> {};
template <class K, class C>
struct Links<btree_set<K, C, persistent_allocator<K>>> : BTreeLinks<btree_set<K, C>> {};
template <class K, class C>
struct Links<btree_multiset<K, C, persistent_allocator<K>>> : BTreeLinks<btree_multiset<K, C>> {};
template <class K, class V, class C>
struct Links<ordered_map<K, V, C, persistent_allocator<std::pair<const K, V>>>> : BTreeLinks<ordered_map<K, V, C>> {};
template <class K, class V, class C>
struct Links<ordered_multimap<K, V, C, persistent_allocator<std::pair<const K, V>>>> : BTreeLinks<ordered_multimap<K, V, C>> {};
template <class K, class C>
struct Links<ordered_set<K, C, persistent_allocator<K>>> : BTreeLinks<ordered_set<K, C>> {};
template <class K, class C>
struct Links<ordered_multiset<K, C, persistent_allocator<K>>> : BTreeLinks<ordered_multiset<K, C>> {};

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
        if (one.valueless_by_exception()) return;
        Proof{walk, "variant"}.that(one.index() < sizeof...(T));
        std::visit([&](auto& held) { walk_object(held, walk); }, one);
    }
};
template <class T>
struct Links<std::optional<T>> {
    static void walk(std::optional<T>& held, PointerWalk& walk) {
        // As a byte first: no other value of a bool may be looked at.
        unsigned char has_value = 0;
        std::memcpy(&has_value, reinterpret_cast<const std::byte*>(&held) + sizeof(T), 1);
        Proof{walk, "flag of an optional"}.that(has_value <= 1 && held.has_value() == (has_value == 1));
        if (held) walk_object(*held, walk);
    }
};
template <class T, std::size_t N>
struct Links<std::array<T, N>> {
    static void walk(std::array<T, N>& elements, PointerWalk& walk) { walk_elements(elements, walk); }
};
template <class T>
struct Links<Elements<T>> {
    static void walk(Elements<T>& elements, PointerWalk& walk) { walk_array(elements.first, elements.count, walk); }
};
template <class T>
struct Links<ElementRange<T>> {
    static void walk(ElementRange<T>& range, PointerWalk& walk) {
        if (walk.lies_in_heap(&range.last)) walk.end(&range.last, range.first);
        walk_array(range.first, range.first == nullptr ? 0 : Proof{walk, "range of pointers"}.distance(range.first, range.last), walk);
    }
};

template <class T>
void walk_object(T& object, PointerWalk& walk) {
    using Plain = std::remove_cv_t<T>;
    auto& plain = const_cast<Plain&>(object);  // keys; nothing is changed here
    const PointerWalk::Deeper deeper(walk);
    if constexpr (is_still<Plain>())
        return;
    else if constexpr (std::is_pointer_v<Plain>)
        walk_pointer(plain, walk);
    else if (!is_address<Plain>() && walk.is_deep() && walk.lies_in_heap(&plain))
        walk.later(&plain, sizeof(Plain), &walk_step<Plain>);
    else if constexpr (transfer::describes_pointers<Plain>)
        pointers_of<Plain>::describe(plain, [&walk](auto&&... parts) { (walk_object(parts, walk), ...); });
    else if constexpr (std::is_array_v<Plain>)
        walk_elements(plain, walk);
    else if constexpr (requires { Links<Plain>::walk(plain, walk); })
        Links<Plain>::walk(plain, walk);
    else
        static_assert(transfer::never<T>, "taiyen: nothing says which pointers this type holds; specialise taiyen::pointers_of for it");
}

}  // namespace stl

template <class... T>
DeclaredTypes& DeclaredTypes::add() {
    (add(stl::fingerprint<T>(), {&stl::walk_step<T>, sizeof(T)}), ...);
    return *this;
}

}  // namespace taiyen

#endif
