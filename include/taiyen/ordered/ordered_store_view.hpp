#pragma once
/// OrderedStoreView: an ordered store whose keys and values have types.
///
/// Keys become bytes that sort as the keys do: integers and enumerations big-endian, signed ones with the sign bit flipped; floating numbers as integers, negative ones with all bits flipped (IEEE 754: numbers that can't be
/// compared lie at both ends, and −0 lies before 0); strings as they are. Values are strings, or trivially copyable and kept as they lie in memory.
/// Several views may look at one store; the store doesn't know what type a key had.
/// Thread rule: as OrderedStore.

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include <taiyen/base/detail/export.hpp>
#include <taiyen/ordered/ordered_store.hpp>

namespace taiyen {

namespace ordered {

/// Throws: Error{type_mismatch}.
[[noreturn]] TAIYEN_EXPORT void throw_other_length(std::size_t expected, std::size_t found);

template <std::size_t N>
using UnsignedOf =
    std::conditional_t<N == 1, std::uint8_t, std::conditional_t<N == 2, std::uint16_t, std::conditional_t<N == 4, std::uint32_t, std::uint64_t>>>;

template <class T>
concept FixedKey = (std::integral<T> || std::is_enum_v<T> || std::same_as<T, float> || std::same_as<T, double>) && sizeof(T) <= 8;

/// Bytes that are a std::string_view.
template <std::size_t N>
struct FixedBytes {
    std::array<char, N> bytes;
    operator std::string_view() const noexcept { return {bytes.data(), N}; }  // NOLINT(google-explicit-constructor): as strings are
};

/// What is flipped in a number's bits so that they sort as it does.
template <FixedKey T>
constexpr UnsignedOf<sizeof(T)> flipped(UnsignedOf<sizeof(T)> bits, bool is_negative) noexcept {
    using Bits = UnsignedOf<sizeof(T)>;
    constexpr Bits sign = static_cast<Bits>(Bits{1} << (sizeof(T) * 8 - 1));
    if constexpr (std::is_floating_point_v<T>)
        return is_negative ? static_cast<Bits>(~bits) : static_cast<Bits>(bits ^ sign);
    else if constexpr (std::is_enum_v<T>)
        return std::is_signed_v<std::underlying_type_t<T>> ? static_cast<Bits>(bits ^ sign) : bits;
    else
        return std::is_signed_v<T> ? static_cast<Bits>(bits ^ sign) : bits;
}

template <FixedKey T>
FixedBytes<sizeof(T)> key_bytes(const T& key) noexcept {
    using Bits = UnsignedOf<sizeof(T)>;
    const auto raw = std::bit_cast<Bits>(key);
    const Bits bits = flipped<T>(raw, (raw >> (sizeof(T) * 8 - 1)) != 0);
    FixedBytes<sizeof(T)> made;
    for (std::size_t i = 0; i != sizeof(T); ++i) made.bytes[i] = static_cast<char>(static_cast<unsigned char>(bits >> ((sizeof(T) - 1 - i) * 8)));
    return made;
}
inline std::string_view key_bytes(std::string_view key) noexcept { return key; }

template <class T>
T key_of(std::string_view bytes) {
    if constexpr (FixedKey<T>) {
        using Bits = UnsignedOf<sizeof(T)>;
        if (bytes.size() != sizeof(T)) throw_other_length(sizeof(T), bytes.size());
        Bits bits = 0;
        for (const char one : bytes) bits = static_cast<Bits>(std::uint64_t{bits} << 8U | static_cast<unsigned char>(one));
        return std::bit_cast<T>(flipped<T>(bits, (bits >> (sizeof(T) * 8 - 1)) == 0));
    } else {
        return T(bytes);
    }
}

template <class T>
concept FixedValue = std::is_trivially_copyable_v<T> && std::is_default_constructible_v<T> && !std::convertible_to<const T&, std::string_view>;

template <FixedValue T>
std::string_view value_bytes(const T& value) noexcept {
    return {reinterpret_cast<const char*>(&value), sizeof value};
}
inline std::string_view value_bytes(std::string_view value) noexcept { return value; }

template <class T>
T value_of(std::string_view bytes) {
    if constexpr (FixedValue<T>) {
        if (bytes.size() != sizeof(T)) throw_other_length(sizeof(T), bytes.size());
        T value;
        std::memcpy(&value, bytes.data(), sizeof value);
        return value;
    } else {
        return T(bytes);
    }
}

}  // namespace ordered

template <class T>
concept OrderedStoreKey = ordered::FixedKey<T> || std::same_as<T, std::string>;
template <class T>
concept OrderedStoreValue = ordered::FixedValue<T> || std::same_as<T, std::string>;

/// Calls are those of OrderedStore. What reads throws Error{type_mismatch} at a key or value of another length than the type's.
template <OrderedStoreKey Key, OrderedStoreValue Value>
class OrderedStoreView {
public:
    /// The store must outlive the view.
    explicit OrderedStoreView(OrderedStore& store) noexcept : store_(&store) {}

    std::optional<Value> get(const Key& key) const {
        if constexpr (ordered::FixedValue<Value>) {
            Value value;
            const auto bytes = store_->get(ordered::key_bytes(key), std::span(reinterpret_cast<char*>(&value), sizeof value));
            if (!bytes) return std::nullopt;
            if (*bytes != sizeof value) ordered::throw_other_length(sizeof value, *bytes);
            return value;
        } else {
            return store_->get(ordered::key_bytes(key));
        }
    }
    bool contains(const Key& key) const { return store_->contains(ordered::key_bytes(key)); }
    bool set(const Key& key, const Value& value) { return store_->set(ordered::key_bytes(key), ordered::value_bytes(value)); }
    bool insert(const Key& key, const Value& value) { return store_->insert(ordered::key_bytes(key), ordered::value_bytes(value)); }
    bool erase(const Key& key) { return store_->erase(ordered::key_bytes(key)); }
    /// Values are the same if their bytes are.
    bool compare_exchange(const Key& key, const std::optional<Value>& expected, const std::optional<Value>& desired) {
        const auto bytes = [](const std::optional<Value>& value) { return value ? std::optional(ordered::value_bytes(*value)) : std::nullopt; };
        return store_->compare_exchange(ordered::key_bytes(key), bytes(expected), bytes(desired));
    }
    Value fetch_add(const Key& key, Value added)
        requires(std::integral<Value> && sizeof(Value) == sizeof(std::int64_t))
    {
        return static_cast<Value>(store_->fetch_add(ordered::key_bytes(key), static_cast<std::int64_t>(added)));
    }

    // `visit(const Key&, const Value&)` may return false to end.
    template <std::invocable<const Key&, const Value&> F>
    void scan(const Key& from, F&& visit) const {
        store_->scan(ordered::key_bytes(from), typed(visit));
    }
    template <std::invocable<const Key&, const Value&> F>
    void scan(F&& visit) const {
        store_->scan(std::string_view(), typed(visit));
    }
    template <std::invocable<const Key&, const Value&> F>
    void scan_reverse(const Key& from, F&& visit) const {
        store_->scan_reverse(ordered::key_bytes(from), typed(visit));
    }
    template <std::invocable<const Key&, const Value&> F>
    void scan_reverse(F&& visit) const {
        store_->scan_reverse(std::nullopt, typed(visit));
    }
    std::uint64_t count(const Key& from, const Key& to) const { return store_->count(ordered::key_bytes(from), ordered::key_bytes(to)); }
    std::uint64_t size() const noexcept { return store_->size(); }
    OrderedStore& store() const noexcept { return *store_; }

private:
    template <class F>
    static auto typed(F& visit) {
        return [&visit](std::string_view key, std::string_view value) { return visit(ordered::key_of<Key>(key), ordered::value_of<Value>(value)); };
    }

    OrderedStore* store_;
};

}  // namespace taiyen
