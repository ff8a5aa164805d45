#pragma once
/// The bytes of a change set; FORMAT.md says why. Little endian, everything at multiples of 8.
///
///   EntryHead | payload, padded to 8 | u64 size of the whole entry, this word included

#include <cstddef>
#include <cstdint>

namespace taiyen::change::layout {

struct EntryHead {
    std::uint64_t where_and_kind;  ///< bits 0–47 offset in the span; 48–55 EntryKind; 56 before_zero; 57 after_zero
    std::uint64_t length;          ///< of the changed bytes; procedure: bytes of the arguments
};
static_assert(sizeof(EntryHead) == 16);

inline constexpr std::uint64_t where_mask = (std::uint64_t{1} << 48U) - 1;
inline constexpr unsigned kind_shift = 48;
inline constexpr std::uint64_t before_zero = std::uint64_t{1} << 56U;
inline constexpr std::uint64_t after_zero = std::uint64_t{1} << 57U;

/// Payloads. bytes: [before][after], each left out if its flag is set. zeroed_run: none. pages_moved: u64 source, [before].
/// procedure: ProcedureHead, name, arguments.
struct ProcedureHead {
    std::uint64_t digest;
    std::uint64_t name_length;
};
static_assert(sizeof(ProcedureHead) == 16);

inline constexpr std::size_t trailer_bytes = 8;
inline constexpr std::size_t name_length_max = 1024;

}  // namespace taiyen::change::layout
