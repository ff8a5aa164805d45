#pragma once
/// Pages of packed blocks: slots of one size, an odd multiple of 8 bytes, which granules of 16 bytes would round up. Arithmetic on their line: no state, no span.
///
/// Where blocks start needs no bits: slot i begins at i · slot_bytes, and bit i of its line says whether it is taken.

#include <array>
#include <bit>
#include <cstdint>

#include <taiyen/heap/detail/access.hpp>

#include "heap/engine_layout.hpp"

namespace taiyen::heap {

inline constexpr unsigned packed_size_count = 7;                       ///< 24, 40, … 120 bytes
inline constexpr unsigned packed_class_count = 2 * packed_size_count;  ///< the same for pointer-free blocks behind them
inline constexpr unsigned packed_bytes_max = 120;
/// Alignment of packed blocks; requests for more never become one.
inline constexpr unsigned packed_alignment = 8;

constexpr unsigned packed_slot_bytes(unsigned packed_class) { return 24 + 16 * (packed_class % packed_size_count); }
constexpr Content packed_content(unsigned packed_class) { return packed_class < packed_size_count ? Content::any : Content::pointer_free; }
constexpr unsigned packed_slots(unsigned packed_class) { return static_cast<unsigned>(page_bytes) / packed_slot_bytes(packed_class); }

/// Class of blocks of so many bytes; packed_class_count: granules serve them as well or better.
constexpr unsigned packed_class_of(ByteCount bytes, Content content = Content::any) {
    const ByteCount words = (bytes + 7) / 8;
    if (words < 3 || words > packed_bytes_max / 8 || words % 2 == 0) return packed_class_count;
    return static_cast<unsigned>((words - 3) / 2) + (content == Content::any ? 0 : packed_size_count);
}

/// Class of a page by its line, which may be damaged: packed_class_count if no class has such slots.
inline unsigned packed_class_of(const layout::PackedLine& line) {
    const std::uint32_t bytes = line.slot_bytes;
    if (bytes % 16 != 8 || bytes < 24 || bytes > packed_bytes_max || line.content > 1) return packed_class_count;
    return (bytes - 24) / 16 + line.content * packed_size_count;
}

struct PackedTables {
    static constexpr unsigned words = 3;
    /// [class] slots of the page, as bits.
    std::array<std::array<std::uint64_t, words>, packed_class_count> slots{};
    /// [class] 2¹⁸ / slot_bytes, rounded up: (offset · inverse) >> 18 is offset / slot_bytes for each offset in a page.
    std::array<std::uint32_t, packed_class_count> inverse{};
    constexpr PackedTables() {
        for (unsigned c = 0; c < packed_class_count; ++c) {
            inverse[c] = ((1U << 18U) + packed_slot_bytes(c) - 1) / packed_slot_bytes(c);
            for (unsigned slot = 0; slot < packed_slots(c); ++slot) slots[c][slot / 64] |= std::uint64_t{1} << (slot % 64);
        }
    }
};
inline constexpr PackedTables packed_tables{};

/// Slot that contains that byte of the page; packed_slots(c) for the rest behind the last slot.
constexpr unsigned packed_slot_at(unsigned packed_class, unsigned offset) { return offset * packed_tables.inverse[packed_class] >> 18U; }

namespace proof {
constexpr bool inverses_are_exact() {
    for (unsigned c = 0; c < packed_class_count; ++c)
        for (unsigned offset = 0; offset < page_bytes; ++offset)
            if (packed_slot_at(c, offset) != offset / packed_slot_bytes(c)) return false;
    return true;
}
}  // namespace proof
static_assert(proof::inverses_are_exact());
static_assert(packed_slot_bytes(packed_size_count - 1) == packed_bytes_max && packed_slots(0) == 170 && packed_slots(0) <= PackedTables::words * 64);

inline bool packed_taken(const layout::PackedLine& line, unsigned slot) { return ((line.occupied[slot / 64] >> (slot % 64)) & 1U) != 0; }
/// First free slot; packed_slots(c) or more: none.
inline unsigned packed_first_free(const layout::PackedLine& line, unsigned packed_class) {
    for (unsigned word = 0; word < PackedTables::words; ++word)
        if (const std::uint64_t free = ~line.occupied[word] & packed_tables.slots[packed_class][word]; free != 0)
            return word * 64 + static_cast<unsigned>(std::countr_zero(free));
    return PackedTables::words * 64;
}
inline bool packed_full(const layout::PackedLine& line, unsigned packed_class) {
    return packed_first_free(line, packed_class) == PackedTables::words * 64;
}
inline bool packed_empty(const layout::PackedLine& line) { return (line.occupied[0] | line.occupied[1] | line.occupied[2]) == 0; }

}  // namespace taiyen::heap
