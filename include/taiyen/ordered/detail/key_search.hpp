#pragma once
/// What a B+ tree compares in the place of keys, and how many of them lie below one.
///
/// - Numbers stand for themselves. A node's are counted, not searched: all its cache lines are fetched at once and no branch is guessed.
/// - Text (strings of char or char8_t) is told apart by eight bytes, the head, which lies in the node; what its block holds is read only where heads are equal. Heads begin behind what the
///   node's keys have in common (prefix truncation as in Bayer, Unterauer, "Prefix B-trees", 1977, but for heads alone).
/// - Other keys, and keys in another order than std::less, are found by binary search with the comparison.

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>

#include <taiyen/base/detail/export.hpp>

namespace taiyen {

/// A comparison whose B-tree knows how many elements lie in front of each: `btree_map<K, V, ranked<>>` has `rank`, `select`, `index_of` and `distance`. It compares as `Compare` does.
/// Cost: eight bytes for each child of an inner node, and a store into each of them for an insertion or erasure; look-ups pay nothing.
template <class Compare = std::less<>>
struct ranked : Compare {
    static_assert(std::is_class_v<Compare>, "taiyen: ranked takes a class that compares");
    ranked() = default;
    ranked(const Compare& compare) : Compare(compare) {}  // NOLINT(google-explicit-constructor): it is one
};

namespace ordered {

template <class Compare>
inline constexpr bool is_ranked = false;
template <class Compare>
inline constexpr bool is_ranked<ranked<Compare>> = true;

/// The order alone.
template <class Compare>
struct OrderOf {
    using type = Compare;
};
template <class Compare>
struct OrderOf<ranked<Compare>> {
    using type = Compare;
};

// How many of `count` numbers are less than `than`, and how many are not greater. AVX2 where the processor has it.
TAIYEN_EXPORT std::uint32_t count_less(const std::int32_t* numbers, std::uint32_t count, std::int32_t than) noexcept;
TAIYEN_EXPORT std::uint32_t count_less(const std::uint32_t* numbers, std::uint32_t count, std::uint32_t than) noexcept;
TAIYEN_EXPORT std::uint32_t count_less(const std::int64_t* numbers, std::uint32_t count, std::int64_t than) noexcept;
TAIYEN_EXPORT std::uint32_t count_less(const std::uint64_t* numbers, std::uint32_t count, std::uint64_t than) noexcept;
TAIYEN_EXPORT std::uint32_t count_less(const float* numbers, std::uint32_t count, float than) noexcept;
TAIYEN_EXPORT std::uint32_t count_less(const double* numbers, std::uint32_t count, double than) noexcept;
TAIYEN_EXPORT std::uint32_t count_not_greater(const std::int32_t* numbers, std::uint32_t count, std::int32_t than) noexcept;
TAIYEN_EXPORT std::uint32_t count_not_greater(const std::uint32_t* numbers, std::uint32_t count, std::uint32_t than) noexcept;
TAIYEN_EXPORT std::uint32_t count_not_greater(const std::int64_t* numbers, std::uint32_t count, std::int64_t than) noexcept;
TAIYEN_EXPORT std::uint32_t count_not_greater(const std::uint64_t* numbers, std::uint32_t count, std::uint64_t than) noexcept;
TAIYEN_EXPORT std::uint32_t count_not_greater(const float* numbers, std::uint32_t count, float than) noexcept;
TAIYEN_EXPORT std::uint32_t count_not_greater(const double* numbers, std::uint32_t count, double than) noexcept;

/// The number type of the same width, sign and order that the functions above take; narrow numbers are counted by a loop.
template <class T>
struct Counted {
    using type = T;
};
template <std::integral T>
    requires(sizeof(T) == 4 || sizeof(T) == 8)
struct Counted<T> {
    using type = std::conditional_t<sizeof(T) == 8, std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>,
                                    std::conditional_t<std::is_signed_v<T>, std::int32_t, std::uint32_t>>;
};

template <bool OrEqual, class T>
std::uint32_t count_below(const T* numbers, std::uint32_t count, T than) noexcept {
    if constexpr (sizeof(T) < 4) {
        std::uint32_t below = 0;
        for (std::uint32_t i = 0; i != count; ++i) below += static_cast<std::uint32_t>(OrEqual ? numbers[i] <= than : numbers[i] < than);
        return below;
    } else {
        using Number = typename Counted<T>::type;
        const auto* const same = reinterpret_cast<const Number*>(numbers);
        return OrEqual ? count_not_greater(same, count, static_cast<Number>(than)) : count_less(same, count, static_cast<Number>(than));
    }
}

/// Strings and views themselves: a class derived from one may compare in its own way.
template <class T>
inline constexpr bool is_byte_text = false;
template <template <class, class, class> class String, class C, class Allocator>
inline constexpr bool is_byte_text<String<C, std::char_traits<C>, Allocator>> = std::same_as<C, char> || std::same_as<C, char8_t>;
template <class C>
inline constexpr bool is_byte_text<std::basic_string_view<C, std::char_traits<C>>> = std::same_as<C, char> || std::same_as<C, char8_t>;

/// What the tree of an ordered_map has in the place of a key: a pointer to the element, which lies in a block of its own. (The allocator keeps code of instrumented programs apart.)
template <class K, class Element, class ElementAllocator>
struct Apart {
    using Allocator = ElementAllocator;
    using Pointer = typename std::allocator_traits<Allocator>::pointer;
    Pointer element;

    const K& key() const noexcept {
        if constexpr (std::is_same_v<K, Element>)
            return *element;
        else
            return element->first;
    }
};
template <class K>
inline constexpr bool is_apart = false;
template <class K, class Element, class Allocator>
inline constexpr bool is_apart<Apart<K, Element, Allocator>> = true;

/// Compares the keys of elements that lie apart, and what is compared with them.
template <class Compare, class Held>
struct Through {
    [[no_unique_address]] Compare compare;

    template <class A, class B>
    bool operator()(const A& a, const B& b) const {
        return static_cast<bool>(compare(key_of(a), key_of(b)));
    }
    static const auto& key_of(const Held& held) noexcept { return held.key(); }
    template <class Q>
    static const Q& key_of(const Q& key) noexcept {
        return key;
    }
};
template <class Compare, class Held>
inline constexpr bool is_ranked<Through<Compare, Held>> = is_ranked<Compare>;

/// Bytes of a leaf, in place of the size that btree_nodes.hpp chooses; for measurements.
template <class Compare>
inline constexpr std::size_t leaf_bytes_of = 0;

/// How a tree tells keys apart.
enum class Digests : std::uint8_t { none, heads, keys };

template <class K, class Compare>
consteval Digests digests_of() {
    using Order = typename OrderOf<Compare>::type;
    constexpr bool is_ascending = std::is_same_v<Order, std::less<>> || std::is_same_v<Order, std::less<K>>;
    if constexpr (!is_ascending)
        return Digests::none;
    else if constexpr (std::is_arithmetic_v<K> && !std::is_same_v<K, bool> && sizeof(K) <= sizeof(std::uint64_t))
        return Digests::keys;
    else if constexpr (is_byte_text<K>)
        return Digests::heads;
    else
        return Digests::none;
}

template <class K, class Element, class Allocator, class Compare>
consteval Digests digests_apart(const Apart<K, Element, Allocator>*, const Through<Compare, Apart<K, Element, Allocator>>*) {
    return digests_of<K, Compare>() == Digests::none ? Digests::none : Digests::heads;
}
/// Of slots.
template <class K, class Compare>
consteval Digests digests_in_slots() {
    if constexpr (is_apart<K>)
        return digests_apart(static_cast<const K*>(nullptr), static_cast<const Compare*>(nullptr));
    else
        return digests_of<K, Compare>();
}

/// The first eight bytes, missing ones as zeros, as a number that sorts as they do.
inline std::uint64_t head_of(const void* text, std::size_t bytes) noexcept {
    std::uint64_t head = 0;
    if (bytes != 0) std::memcpy(&head, text, bytes < sizeof head ? bytes : sizeof head);
    if constexpr (std::endian::native == std::endian::little) head = __builtin_bswap64(head);
    return head;
}

/// The digests of keys `K`, and of what such keys are looked up by.
template <class K, Digests How>
struct DigestOf {
    using type = std::uint8_t;  // there is none
    static constexpr bool is_whole = false;
    template <class Q>
    static constexpr bool takes = false;
};
template <class K>
struct DigestOf<K, Digests::keys> {
    using type = K;
    static constexpr bool is_whole = true;  ///< digests are equal only if keys are
    /// In a place without a key: no key is greater.
    static constexpr K none = std::numeric_limits<K>::has_infinity ? std::numeric_limits<K>::infinity() : std::numeric_limits<K>::max();
    /// Whether `key < q` compares as two K do.
    template <class Q>
    static constexpr bool takes = [] {
        if constexpr (std::is_same_v<Q, K>)
            return true;
        else if constexpr (std::is_arithmetic_v<Q>)
            return std::is_same_v<std::common_type_t<K, Q>, K> && sizeof(K) >= sizeof(int);
        else
            return false;
    }();
    template <class Q>
    static K of(const Q& key) noexcept {
        return static_cast<K>(key);
    }
};
template <class K>
struct DigestOf<K, Digests::heads> {
    using type = std::uint64_t;
    static constexpr bool is_whole = false;
    using View = std::basic_string_view<typename K::value_type>;
    static constexpr std::uint64_t none = ~std::uint64_t{0};
    template <class Q>
    static constexpr bool takes = std::is_convertible_v<const Q&, View> && (is_byte_text<Q> || std::is_array_v<Q> || std::is_pointer_v<Q>);
    template <class Q>
    static View text_of(const Q& key) noexcept {
        if constexpr (std::is_same_v<Q, K>)
            return {key.data(), key.size()};
        else
            return key;
    }
    template <class Q>
    static std::uint64_t of(const Q& key) noexcept {
        const View text = text_of(key);
        return head_of(text.data(), text.size());
    }
    /// Behind so many bytes.
    template <class Q>
    static std::uint64_t of(const Q& key, std::size_t skipped) noexcept {
        const View text = text_of(key);
        return skipped < text.size() ? head_of(text.data() + skipped, text.size() - skipped) : 0;
    }
};
/// Those of the keys that lie apart.
template <class K, class Element, class Allocator>
struct DigestOf<Apart<K, Element, Allocator>, Digests::heads> {
    using Held = Apart<K, Element, Allocator>;
    using OfKeys = DigestOf<K, digests_of<K, std::less<>>()>;
    using type = typename OfKeys::type;
    static constexpr bool is_whole = OfKeys::is_whole;
    static constexpr type none = OfKeys::none;
    template <class Q>
    static constexpr bool takes = std::is_same_v<Q, Held> || OfKeys::template takes<Q>;
    template <class Q>
    static type of(const Q& key) noexcept {
        if constexpr (std::is_same_v<Q, Held>)
            return OfKeys::of(key.key());
        else
            return OfKeys::of(key);
    }
    template <class Q>
    static auto text_of(const Q& key) noexcept {
        if constexpr (std::is_same_v<Q, Held>)
            return OfKeys::text_of(key.key());
        else
            return OfKeys::text_of(key);
    }
    template <class Q>
    static type of(const Q& key, std::size_t skipped) noexcept {
        if constexpr (std::is_same_v<Q, Held>)
            return OfKeys::of(key.key(), skipped);
        else
            return OfKeys::of(key, skipped);
    }
};

}  // namespace ordered
}  // namespace taiyen
