#pragma once
/// taiyen::hash: the hash of the unordered containers. Its values are stored (a bucket's number depends on them), so they never change: not with the version of
/// this library, not with the compiler or the standard library, not between processes. Tests pin them.
///
/// The algorithm, for bytes: h = seed; while more than 16 bytes are left, h = rotl(h, 23) ^ fold(w0 ^ k1, w1 ^ h) of the next two 8-byte little-endian words; then
/// the 0 to 16 bytes left as two zero-extended words (the first takes up to 8), h = rotl(h, 23) ^ fold(w0 ^ k2, w1 ^ h); at last fold(h ^ k3, length ^ k1).
/// fold(a, b) is the high half of the 128-bit product a·b xor its low half; k1 to k3 are odd, with about as many ones as zeros.
/// For integers, enumerations and pointers: fold(value ^ k2, k1 ^ rotl(value, 32)). Not for hostile keys: the constants are public.

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include <taiyen/stl/storable.hpp>

namespace taiyen {
namespace stl {

inline constexpr std::uint64_t hash_k1 = 0x9d3b'64a7'2c6e'8f15U;
inline constexpr std::uint64_t hash_k2 = 0xc5a6'1e97'4b3d'92d3U;
inline constexpr std::uint64_t hash_k3 = 0x72e9'b46c'd159'3a8dU;

constexpr std::uint64_t fold(std::uint64_t a, std::uint64_t b) noexcept {
    __extension__ using Wide = unsigned __int128;
    const Wide product = static_cast<Wide>(a) * b;
    return static_cast<std::uint64_t>(product >> 64U) ^ static_cast<std::uint64_t>(product);
}

inline std::uint64_t load_word(const unsigned char* from, std::size_t bytes) noexcept {
    std::uint64_t word = 0;
    std::memcpy(&word, from, bytes);
    if constexpr (std::endian::native == std::endian::big) word = __builtin_bswap64(word);
    return word;
}

inline std::uint64_t hash_bytes(const void* data, std::size_t length, std::uint64_t seed = 0) noexcept {
    const auto* at = static_cast<const unsigned char*>(data);
    std::size_t left = length;
    std::uint64_t h = seed;
    for (; left > 16; at += 16, left -= 16) h = std::rotl(h, 23) ^ fold(load_word(at, 8) ^ hash_k1, load_word(at + 8, 8) ^ h);
    const std::size_t first = left < 8 ? left : 8;
    const std::uint64_t w0 = first != 0 ? load_word(at, first) : 0;
    const std::uint64_t w1 = left > 8 ? load_word(at + 8, left - 8) : 0;
    h = std::rotl(h, 23) ^ fold(w0 ^ hash_k2, w1 ^ h);
    return fold(h ^ hash_k3, static_cast<std::uint64_t>(length) ^ hash_k1);
}

constexpr std::uint64_t hash_word(std::uint64_t value) noexcept { return fold(value ^ hash_k2, hash_k1 ^ std::rotl(value, 32)); }
constexpr std::uint64_t hash_combine(std::uint64_t seed, std::uint64_t next) noexcept {
    return fold(seed ^ hash_k3, next ^ hash_k1) ^ std::rotl(seed, 23);
}

/// Keys that are text: anything that is a basic_string or a view of one.
template <class T>
struct TextOf {
    using Character = void;
};
template <class C, class R, class A>
struct TextOf<std::basic_string<C, R, A>> {
    using Character = C;
};
template <class C, class R>
struct TextOf<std::basic_string_view<C, R>> {
    using Character = C;
};
template <class T>
concept text = !std::is_void_v<typename TextOf<T>::Character>;

/// Containers of a sequence: hashed element by element.
template <class T>
concept sequence = has_allocator<T> && !text<T> && requires(const T& value) {
    value.begin();
    value.end();
    typename T::value_type;
};

}  // namespace stl

/// Text, integers, enumerations, floating point, pointers, pair, tuple, optional, array and sequences of those; other classes by their own `std::hash`, which then
/// must be stable itself. Specialise it for types of your own. `is_avalanching`: all bits of a value are as good as random, so that tables needn't mix them.
template <class T>
struct hash;

/// Text is found by views and literals without a temporary, and hashes by its characters alone.
template <stl::text T>
struct hash<T> {
    using is_transparent = void;
    using is_avalanching = void;
    using Character = typename stl::TextOf<T>::Character;
    // Not noexcept on purpose: libstdc++ then keeps each node's hash beside it instead of hashing text again at every comparison.
    std::size_t operator()(std::basic_string_view<Character> value) const { return stl::hash_bytes(value.data(), value.size() * sizeof(Character)); }
    template <class R, class A>
    std::size_t operator()(const std::basic_string<Character, R, A>& value) const {
        return stl::hash_bytes(value.data(), value.size() * sizeof(Character));
    }
    std::size_t operator()(const Character* value) const { return (*this)(std::basic_string_view<Character>(value)); }
};

template <class T>
    requires(std::is_integral_v<T> || std::is_enum_v<T>)
struct hash<T> {
    using is_avalanching = void;
    std::size_t operator()(T value) const noexcept { return stl::hash_word(static_cast<std::uint64_t>(value)); }
};

/// Of the address, which stays what it is in a heap.
template <class T>
struct hash<T*> {
    using is_avalanching = void;
    std::size_t operator()(T* value) const noexcept { return stl::hash_word(reinterpret_cast<std::uintptr_t>(value)); }
};

template <std::floating_point T>
    requires(sizeof(T) <= sizeof(std::uint64_t))
struct hash<T> {
    using is_avalanching = void;
    std::size_t operator()(T value) const noexcept {
        // Both zeros are equal. A float hashes as the double it equals.
        return stl::hash_word(value == T{0} ? 0 : std::bit_cast<std::uint64_t>(static_cast<double>(value)));
    }
};

template <class A, class B>
struct hash<std::pair<A, B>> {
    using is_avalanching = void;
    std::size_t operator()(const std::pair<A, B>& value) const {
        return stl::hash_combine(hash<std::remove_cv_t<A>>()(value.first), hash<std::remove_cv_t<B>>()(value.second));
    }
};

template <class... T>
struct hash<std::tuple<T...>> {
    using is_avalanching = void;
    std::size_t operator()(const std::tuple<T...>& value) const {
        std::uint64_t result = sizeof...(T);
        std::apply([&](const T&... element) { ((result = stl::hash_combine(result, hash<std::remove_cv_t<T>>()(element))), ...); }, value);
        return result;
    }
};

template <class T>
struct hash<std::optional<T>> {
    using is_avalanching = void;
    std::size_t operator()(const std::optional<T>& value) const { return value ? stl::hash_combine(1, hash<std::remove_cv_t<T>>()(*value)) : 0; }
};

template <class T, std::size_t N>
struct hash<std::array<T, N>> {
    using is_avalanching = void;
    std::size_t operator()(const std::array<T, N>& value) const {
        std::uint64_t result = N;
        for (const T& element : value) result = stl::hash_combine(result, hash<std::remove_cv_t<T>>()(element));
        return result;
    }
};

template <stl::sequence T>
struct hash<T> {
    using is_avalanching = void;
    std::size_t operator()(const T& value) const {
        std::uint64_t result = 0;
        for (const auto& element : value) result = stl::hash_combine(result, hash<typename T::value_type>()(element));
        return stl::hash_combine(result, 2);
    }
};

template <class T>
    requires(std::is_class_v<T> && !stl::text<T> && !stl::sequence<T> && std::is_default_constructible_v<std::hash<T>>)
struct hash<T> {
    using is_avalanching = void;
    std::size_t operator()(const T& value) const { return stl::hash_word(std::hash<T>()(value)); }
};

}  // namespace taiyen
