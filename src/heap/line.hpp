#pragma once
/// Bit arithmetic on the line of a page of small blocks: no state, no span.
///
/// Positions and lengths are granules, 0 … 256.

#include <bit>
#include <cstdint>

#include "heap/engine_layout.hpp"

namespace taiyen::heap {

/// `count` low bits set, `count` ≤ 64.
constexpr std::uint64_t low_bits(unsigned count) { return count >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1; }

/// The line rule: start positions (of any 64 granules) from which a block touches no more cache lines than its size needs.
constexpr std::uint64_t start_rule(unsigned granules) {
    constexpr std::uint64_t rules[4] = {0x1111'1111'1111'1111ULL, ~std::uint64_t{0}, 0x7777'7777'7777'7777ULL, 0x3333'3333'3333'3333ULL};
    return rules[granules % 4];
}

/// Start positions at a multiple of `alignment` bytes (16 … 1024).
constexpr std::uint64_t aligned_starts(unsigned alignment) {
    std::uint64_t mask = 0;
    for (unsigned bit = 0; bit < 64; bit += alignment / layout::granule_bytes) mask |= std::uint64_t{1} << bit;
    return mask;
}

/// Length of the block that starts at granule `start`, up to the next start, free granule or page end.
inline unsigned block_granules(const layout::Line& line, unsigned start) {
    unsigned pair = start / 64;
    const unsigned bit = start % 64;
    std::uint64_t stop = (line.pairs[pair].start | ~line.pairs[pair].occupied) & ~low_bits(bit + 1);
    if (stop != 0) [[likely]]
        return static_cast<unsigned>(std::countr_zero(stop)) - bit;
    unsigned length = 64 - bit;
    while (++pair < 4) {
        stop = line.pairs[pair].start | ~line.pairs[pair].occupied;
        if (stop != 0) return length + static_cast<unsigned>(std::countr_zero(stop));
        length += 64;
    }
    return length;
}

/// Bits of pair `pair` that belong to [start, start + granules).
constexpr std::uint64_t pair_mask(unsigned pair, unsigned start, unsigned granules) {
    const unsigned begin = pair * 64;
    const unsigned end = start + granules;
    if (end <= begin || start >= begin + 64) return 0;
    const unsigned from = start > begin ? start - begin : 0;
    const unsigned to = end < begin + 64 ? end - begin : 64;
    return low_bits(to) & ~low_bits(from);
}

/// Whether [start, start + granules) is free.
inline bool range_free(const layout::Line& line, unsigned start, unsigned granules) {
    std::uint64_t taken = 0;
    for (unsigned pair = start / 64; pair < 4; ++pair) taken |= line.pairs[pair].occupied & pair_mask(pair, start, granules);
    return taken == 0;
}

inline bool line_full(const layout::Line& line) {
    return (line.pairs[0].occupied & line.pairs[1].occupied & line.pairs[2].occupied & line.pairs[3].occupied) == ~std::uint64_t{0};
}
inline bool line_empty(const layout::Line& line) {
    return (line.pairs[0].occupied | line.pairs[1].occupied | line.pairs[2].occupied | line.pairs[3].occupied) == 0;
}
/// No bit at all is set.
inline bool line_zero(const layout::Line& line) {
    return line_empty(line) && (line.pairs[0].start | line.pairs[1].start | line.pairs[2].start | line.pairs[3].start) == 0;
}

/// Granules at the page's front that belong to the run before it: occupied without a start.
unsigned front_granules(const layout::Line& line);

/// Positions of pair `pair` where `granules` (≤ 128) free granules begin.
std::uint64_t fitting_starts(const layout::Line& line, unsigned pair, unsigned granules);

/// Length of the run of free granules that contains granule `at`; 0 if it is occupied.
unsigned free_around(const layout::Line& line, unsigned at);

/// Longest run of set bits among 256.
unsigned longest_run(const std::uint64_t (&bits)[4]);

/// Longest run of free granules.
inline unsigned longest_free(const layout::Line& line) {
    return longest_run({~line.pairs[0].occupied, ~line.pairs[1].occupied, ~line.pairs[2].occupied, ~line.pairs[3].occupied});
}

/// First position that is in `starts` (a mask of 64 positions, repeated), has `granules` free granules and is not below `from`; 256 if none.
unsigned first_fit(const layout::Line& line, unsigned granules, std::uint64_t starts, unsigned from = 0);

}  // namespace taiyen::heap
