#pragma once
/// PlaceBits: a bit for each 8 bytes of a heap's extent; PlaceRanks: how many bits are set in front of one.
///
/// Memory: 1/64 of the parts of the extent that have bits; what has none costs address space. Thread rule: one thread.

#include <bit>
#include <cstdint>
#include <vector>

#include "vm/address_space.hpp"

namespace taiyen::transfer {

class PlaceBits {
public:
    static constexpr ByteCount place_bytes = 8;
    static constexpr std::uint64_t word_span = 64 * place_bytes;  ///< bytes of the extent that a word stands for
    static constexpr std::uint64_t page_words = page_bytes / word_span;

    explicit PlaceBits(ByteCount extent) : memory_(vm::Reservation::anywhere(round_up(extent / place_bytes / 8 + 8, page_bytes))) {
        vm::map_anonymous(memory_.data(), memory_.size());
    }
    /// Whether it was clear.
    bool set(std::uint64_t offset) {
        std::uint64_t& word = words()[offset / word_span];
        const std::uint64_t bit = std::uint64_t{1} << (offset / place_bytes % 64);
        const bool was_clear = (word & bit) == 0;
        word |= bit;
        return was_clear;
    }
    bool test(std::uint64_t offset) const { return (words()[offset / word_span] >> (offset / place_bytes % 64) & 1U) != 0; }
    std::uint64_t word(std::uint64_t index) const { return words()[index]; }

private:
    std::uint64_t* words() const { return reinterpret_cast<std::uint64_t*>(memory_.data()); }

    vm::Reservation memory_;
};

/// Of bits that don't change any more.
class PlaceRanks {
public:
    PlaceRanks(const PlaceBits& bits, ByteCount extent) : bits_(bits) {
        std::uint64_t count = 0;
        for (std::uint64_t word = 0; word * PlaceBits::word_span < extent; ++word) {
            if (word % step == 0) before_.push_back(count);
            count += static_cast<std::uint64_t>(std::popcount(bits.word(word)));
        }
    }
    /// Bits that are set before `offset`, which lies within the extent.
    std::uint64_t operator()(std::uint64_t offset) const {
        const std::uint64_t last = offset / PlaceBits::word_span;
        std::uint64_t count = before_[last / step];
        for (std::uint64_t word = last / step * step; word < last; ++word) count += static_cast<std::uint64_t>(std::popcount(bits_.word(word)));
        const std::uint64_t bit = offset / PlaceBits::place_bytes % 64;
        return count + static_cast<std::uint64_t>(std::popcount(bits_.word(last) & ((std::uint64_t{1} << bit) - 1)));
    }

private:
    static constexpr std::uint64_t step = 8;  ///< a page's words

    const PlaceBits& bits_;
    std::vector<std::uint64_t> before_;
};

}  // namespace taiyen::transfer
