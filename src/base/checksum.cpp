#include "base/checksum.hpp"

#include <cstring>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace taiyen {

#if defined(TAIYEN_CHECKSUM_AVX2)
unsigned long long checksum_avx2(const void* bytes, unsigned long long size, unsigned long long seed) noexcept;
#endif

namespace {

/// The same number on every processor; with wider registers in half the time.
std::uint64_t xxh3(std::span<const std::byte> bytes, std::uint64_t seed) noexcept {
#if defined(TAIYEN_CHECKSUM_AVX2)
    static const bool wide = __builtin_cpu_supports("avx2") != 0;
    constexpr std::size_t worth_it = 512;  // below, the call costs more than the registers give
    if (wide && bytes.size() >= worth_it) return checksum_avx2(bytes.data(), bytes.size(), seed);
#endif
    return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

}  // namespace

std::uint64_t checksum(std::span<const std::byte> bytes, std::uint64_t seed) noexcept {
    const std::uint64_t sum = xxh3(bytes, seed);
    return sum != 0 ? sum : 1;
}

bool is_zero(std::span<const std::byte> bytes) noexcept {
    return bytes.empty() || (bytes[0] == std::byte{0} && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

}  // namespace taiyen
