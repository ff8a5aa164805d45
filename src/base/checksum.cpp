#include "base/checksum.hpp"

#include <cstring>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace taiyen {

std::uint64_t checksum(std::span<const std::byte> bytes, std::uint64_t seed) noexcept {
    const std::uint64_t sum = XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
    return sum != 0 ? sum : 1;
}

bool is_zero(std::span<const std::byte> bytes) noexcept {
    return bytes.empty() || (bytes[0] == std::byte{0} && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

}  // namespace taiyen
