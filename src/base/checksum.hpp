#pragma once
/// 64-bit checksums of stored bytes: XXH3 (Yann Collet, xxHash 0.8, https://xxhash.com), seeded.

#include <cstddef>
#include <cstdint>
#include <span>

namespace taiyen {

/// XXH3-64 of `bytes` with `seed`. Never returns 0: 0 stands for "no checksum" in stored tables.
std::uint64_t checksum(std::span<const std::byte> bytes, std::uint64_t seed) noexcept;

/// Mixes two words into a seed (for checksums bound to a place: uuid, page number, predecessor).
constexpr std::uint64_t mix(std::uint64_t a, std::uint64_t b) noexcept {
    std::uint64_t x = a ^ (b + 0x9e37'79b9'7f4a'7c15ULL + (a << 6U) + (a >> 2U));
    x ^= x >> 30U;
    x *= 0xbf58'476d'1ce4'e5b9ULL;
    x ^= x >> 27U;
    x *= 0x94d0'49bb'1331'11ebULL;
    return x ^ (x >> 31U);
}

/// True if all bytes are zero. Complexity: linear, vectorised.
bool is_zero(std::span<const std::byte> bytes) noexcept;

}  // namespace taiyen
