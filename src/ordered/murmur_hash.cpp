#include <taiyen/ordered/murmur_hash.hpp>

#include <bit>
#include <cstddef>
#include <cstring>

namespace taiyen {

std::uint64_t murmur_hash_64a(std::string_view bytes, std::uint64_t seed) noexcept {
    static_assert(std::endian::native == std::endian::little);
    constexpr std::uint64_t multiplier = 0xc6a4a7935bd1e995;
    constexpr unsigned shift = 47;
    const auto word_at = [&](std::size_t at, std::size_t count) {
        std::uint64_t word = 0;
        std::memcpy(&word, bytes.data() + at, count);
        return word;
    };
    std::uint64_t hash = seed ^ (bytes.size() * multiplier);
    const std::size_t whole = bytes.size() / 8 * 8;
    for (std::size_t at = 0; at != whole; at += 8) {
        std::uint64_t word = word_at(at, 8) * multiplier;
        word ^= word >> shift;
        hash = (hash ^ word * multiplier) * multiplier;
    }
    if (whole != bytes.size()) hash = (hash ^ word_at(whole, bytes.size() - whole)) * multiplier;
    hash = (hash ^ hash >> shift) * multiplier;
    return hash ^ hash >> shift;
}

}  // namespace taiyen
