#pragma once
/// The bytes of a redo; FORMAT.md says why. Numbers are varints: 7 bits a byte, low ones first, the top bit says that more follow.
///
///   entry = | tag: length × 8 + RedoKind | where: zigzag of (offset − end of the entry before) | the rest, by kind |

#include <cstddef>
#include <cstdint>

namespace taiyen::change::layout {

enum class RedoKind : std::uint8_t {
    bytes = 0,        ///< rest: the bytes
    zeros = 1,        ///< bytes that are zero afterwards; rest: nothing
    zeroed_run = 2,   ///< free pages; rest: nothing
    pages_moved = 3,  ///< rest: zigzag of (source − where)
    procedure = 4     ///< length: of the arguments; no `where`; rest: length of the name, name, arguments, digest (8 bytes)
};
inline constexpr unsigned redo_kind_bits = 3;

/// Shorter runs inside an entry are cheaper as bytes than as an end and a new beginning.
inline constexpr std::size_t equal_run_min = 3;
inline constexpr std::size_t zero_run_min = 8;

inline constexpr std::size_t varint_bytes_max = 10;

constexpr std::uint64_t zigzag(std::uint64_t difference) { return (difference << 1U) ^ (0 - (difference >> 63U)); }
constexpr std::uint64_t unzigzag(std::uint64_t coded) { return (coded >> 1U) ^ (0 - (coded & 1U)); }
static_assert(zigzag(0) == 0 && zigzag(~std::uint64_t{0}) == 1 && zigzag(1) == 2 && unzigzag(zigzag(~std::uint64_t{6})) == ~std::uint64_t{6});

}  // namespace taiyen::change::layout
