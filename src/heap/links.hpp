#pragma once
/// Where a word of a heap leads, if it is a pointer.
///
/// In most heaps pointers are addresses. In a position-independent one they are distances from the place where they are stored, as `offset_ptr` has them: 1 is the null pointer, and trees keep marks
/// of their nodes in bits 1 and 2, which a distance between two words doesn't need. So an odd word leads nowhere.

#include <cstdint>

namespace taiyen::heap {

/// How containers of a heap link their blocks.
enum class Links : std::uint8_t { addresses, distances };

/// Where a distance leads that is stored at `place`; `place` itself: nowhere. Addresses and offsets alike.
constexpr std::uint64_t distance_target(std::uint64_t place, std::uint64_t word) noexcept {
    constexpr std::uint64_t marks = 6;
    return (word & 1U) != 0 ? place : place + (word & ~marks);
}

/// Where a word leads that is stored at the offset `place`, as an offset; nowhere: behind every extent.
constexpr std::uint64_t target_of(Links links, std::uintptr_t base, std::uint64_t place, std::uint64_t word) noexcept {
    if (links == Links::addresses) return word - base;
    const std::uint64_t target = distance_target(place, word);
    return target == place ? ~std::uint64_t{0} : target;
}

}  // namespace taiyen::heap
