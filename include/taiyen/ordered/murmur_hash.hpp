#pragma once
/// murmur_hash_64a: MurmurHash64A, the hash for 64-bit processors of MurmurHash2, by Austin Appleby (2008, github.com/aappleby/smhasher, in the public domain).
/// For programs that named their keys by it: OrderedStore keeps keys whole. Two texts may have the same hash.

#include <cstdint>
#include <string_view>

#include <taiyen/base/detail/export.hpp>

namespace taiyen {

/// The same on every processor, for the bytes as a little-endian one reads them. Complexity: linear.
TAIYEN_EXPORT std::uint64_t murmur_hash_64a(std::string_view bytes, std::uint64_t seed = 0) noexcept;

}  // namespace taiyen
