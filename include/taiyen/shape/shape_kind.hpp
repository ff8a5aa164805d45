#pragma once
/// ShapeKind: what the types within a shape are.

#include <cstdint>

namespace taiyen {

/// What a node of a shape is. Values are stored: add at the end, never renumber.
enum class ShapeKind : std::uint8_t {
    opaque,  ///< nothing is known but size, alignment and name; of what a pointer leads to, the name
    boolean,
    signed_integer,
    unsigned_integer,
    floating_point,
    character,
    enumeration,  ///< one part: its integer
    structure,    ///< a part for each field, with names
    array,        ///< one part, `count` times
    pointer,      ///< one part: what it leads to; not in place
    pair,         ///< two parts
    tuple,        ///< a part for each element
    optional,     ///< one part
    variant,      ///< a part for each alternative, all at offset 0
    string,       ///< containers of the standard library from here on: one part, the element (of maps: the pair of key and value); not in place
    vector,
    bit_vector,  ///< `std::vector<bool>`; no part
    deque,
    list,
    forward_list,
    map,
    multimap,
    set,
    multiset,
    unordered_map,
    unordered_multimap,
    unordered_set,
    unordered_multiset,
    btree_map,  ///< taiyen's own containers, alike
    btree_multimap,
    btree_set,
    btree_multiset,
    ordered_map,
    ordered_multimap,
    ordered_set,
    ordered_multiset,
    flat_hash_map,
    flat_hash_set,
    other_container,  ///< any other one with an allocator, by name: its element is known, where it lies isn't
};

/// Whether the parts of such a node lie within it.
constexpr bool holds_in_place(ShapeKind kind) noexcept {
    return kind >= ShapeKind::enumeration && kind <= ShapeKind::variant && kind != ShapeKind::pointer;
}

/// Whether the elements of such a container are pairs of a key and a value.
constexpr bool is_map(ShapeKind kind) noexcept {
    return kind == ShapeKind::map || kind == ShapeKind::multimap || kind == ShapeKind::unordered_map || kind == ShapeKind::unordered_multimap ||
           kind == ShapeKind::btree_map || kind == ShapeKind::btree_multimap || kind == ShapeKind::ordered_map ||
           kind == ShapeKind::ordered_multimap || kind == ShapeKind::flat_hash_map;
}

/// Whether the elements of such a container are keys alone.
constexpr bool is_set(ShapeKind kind) noexcept {
    return kind == ShapeKind::set || kind == ShapeKind::multiset || kind == ShapeKind::unordered_set || kind == ShapeKind::unordered_multiset ||
           kind == ShapeKind::btree_set || kind == ShapeKind::btree_multiset || kind == ShapeKind::ordered_set ||
           kind == ShapeKind::ordered_multiset || kind == ShapeKind::flat_hash_set;
}

/// Whether several elements of such a map may have equal keys.
constexpr bool has_equal_keys(ShapeKind map) noexcept {
    return map == ShapeKind::multimap || map == ShapeKind::unordered_multimap || map == ShapeKind::btree_multimap ||
           map == ShapeKind::ordered_multimap;
}

}  // namespace taiyen
