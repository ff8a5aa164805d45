#pragma once
/// Units as types: quantities that must not be mixed up do not convert into each other.

#include <compare>
#include <cstddef>
#include <cstdint>

namespace taiyen {

using ByteCount = std::size_t;

inline namespace literals {
constexpr ByteCount operator""_KiB(unsigned long long n) { return static_cast<ByteCount>(n) << 10U; }
constexpr ByteCount operator""_MiB(unsigned long long n) { return static_cast<ByteCount>(n) << 20U; }
constexpr ByteCount operator""_GiB(unsigned long long n) { return static_cast<ByteCount>(n) << 30U; }
constexpr ByteCount operator""_TiB(unsigned long long n) { return static_cast<ByteCount>(n) << 40U; }
}  // namespace literals

/// Pages of a heap are 4 KiB on every machine: they are a property of the file, not of the processor.
inline constexpr ByteCount page_bytes = 4096;

/// Number of a committed transaction; consecutive, starts at 1. 0: none yet.
struct Serial {
    std::uint64_t value = 0;
    auto operator<=>(const Serial&) const = default;
};

/// Number of a snapshot; consecutive. 0: the empty heap as it was created.
struct Generation {
    std::uint64_t value = 0;
    auto operator<=>(const Generation&) const = default;
};

/// Random number of one life of a ring: records of an earlier life never match it.
struct Epoch {
    std::uint64_t value = 0;
    auto operator<=>(const Epoch&) const = default;
};

/// Distance in bytes from the start of a heap's span.
struct HeapOffset {
    std::uint64_t value = 0;
    auto operator<=>(const HeapOffset&) const = default;
};

/// Index of a 4 KiB page of a heap's span.
struct PageNumber {
    std::uint64_t value = 0;
    auto operator<=>(const PageNumber&) const = default;
};

constexpr PageNumber page_of(HeapOffset offset) { return {offset.value / page_bytes}; }
constexpr HeapOffset offset_of(PageNumber page) { return {page.value * page_bytes}; }

/// `value` rounded up to a multiple of `unit`, a power of two.
constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) { return (value + unit - 1) & ~(unit - 1); }
constexpr std::uint64_t round_down(std::uint64_t value, std::uint64_t unit) { return value & ~(unit - 1); }

}  // namespace taiyen
