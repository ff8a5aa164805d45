#pragma once
/// The bytes of the block engine (FORMAT.md draws them): structs, constants and proofs only.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <taiyen/base/units.hpp>

namespace taiyen::heap::layout {

static_assert(std::endian::native == std::endian::little, "the format is little endian");

inline constexpr std::uint64_t magic = 0x3145'4E45'5949'4154ULL;  ///< "TAIYENE1" as bytes
inline constexpr std::uint32_t version = 1;
/// As soon as a block was pointer-free.
inline constexpr std::uint32_t version_with_content = 2;

inline constexpr std::uint32_t granule_bytes = 16;
inline constexpr std::uint32_t page_granules = static_cast<std::uint32_t>(page_bytes) / granule_bytes;
inline constexpr std::uint32_t segment_pages = 16;  ///< pages whose states share one word
inline constexpr std::uint32_t fan_out = 16;        ///< children of a summary
inline constexpr std::uint32_t first_region_pages = 64;
/// A zone: so many pages at each multiple of the distance, but for offset 0. Blocks may lie over it, none begins there as long as there is room elsewhere. Heaps begin at multiples of 2 GiB: so the low
/// half of a block's address is no small number.
inline constexpr std::uint32_t zone_pages = 256;
inline constexpr std::uint32_t zone_distance = 1U << 19U;
inline constexpr std::uint32_t region_count_max = 26;
inline constexpr std::uint64_t capacity_max = std::uint64_t{1} << 43U;

/// Occupancy of 64 granules: which are part of a live block, and which of them begin one.
struct Pair {
    std::uint64_t occupied;
    std::uint64_t start;
};
static_assert(sizeof(Pair) == 16 && std::is_trivially_copyable_v<Pair>);

/// The line of a page of small blocks: bit g of the four pairs is granule g of the page.
struct Line {
    Pair pairs[4];
};
static_assert(sizeof(Line) == 64 && sizeof(Line) * 64 == page_bytes);

/// The line of a page of packed blocks: bit i is slot i, of slot_bytes at i · slot_bytes.
struct PackedLine {
    std::uint64_t occupied[3];
    std::uint32_t slot_bytes;  ///< 24, 40, … 120
    std::uint32_t content;     ///< heap::Content of its blocks
    std::uint64_t zero[4];
};
static_assert(sizeof(PackedLine) == sizeof(Line) && offsetof(PackedLine, slot_bytes) == 24 && offsetof(PackedLine, zero) == 32);

/// The line of the first page of a run.
struct RunLine {
    std::uint64_t bytes;    ///< usable bytes; a multiple of the granule, at least a page
    std::uint32_t kind;     ///< RunKind
    std::uint32_t content;  ///< heap::Content
    std::uint64_t zero[6];
};
static_assert(sizeof(RunLine) == sizeof(Line) && offsetof(RunLine, kind) == 8 && offsetof(RunLine, zero) == 16);

enum class RunKind : std::uint32_t { user = 1, directory = 2 };

/// State of a page, four bits. Bit 3 without bit 2: available; bits 0 and 2 together: blocks, and room for another one.
enum class PageState : std::uint8_t {
    absent = 0,              ///< metadata, beyond the extent, or kept free in a zone
    small_full = 1,          ///< small blocks, no free granule
    run_head = 2,            ///< first page of a run
    run_body = 3,            ///< further page of a run
    packed_full = 4,         ///< packed blocks, no free slot
    small_room = 5,          ///< small blocks and at least one free granule
    growth = 6,              ///< reserved for the growth of the run before it
    packed_room = 7,         ///< packed blocks and at least one free slot
    available = 8,           ///< free, with disk blocks
    released = 9,            ///< free, without disk blocks
    pointer_free_full = 12,  ///< small pointer-free blocks, no free granule
    pointer_free_room = 13,  ///< small pointer-free blocks and at least one free granule
};

constexpr bool is_available(PageState state) { return (static_cast<unsigned>(state) & 0b1100U) == 0b1000U; }

/// What is available below a node of the tree over a region's pages (lengths in pages).
struct Summary {
    std::uint32_t prefix;   ///< run of available pages at its start
    std::uint32_t suffix;   ///< run of available pages at its end
    std::uint32_t longest;  ///< longest run of available pages; on the lowest level it may say too much
    std::uint32_t roomy;    ///< children that contain a page with room
    bool operator==(const Summary&) const = default;
};
static_assert(sizeof(Summary) == 16);

/// The first page of the span.
struct SuperBlock {
    std::uint64_t magic;
    std::uint32_t version;
    std::uint32_t page_bytes;
    std::uint64_t capacity;
    std::uint64_t extent;
    std::uint64_t directory;     ///< offset of the root directory's run, 0: none yet
    std::uint64_t growth_pages;  ///< pages in state growth
    std::uint64_t zero[2];
    Summary regions[32];  ///< root of each region's tree
};
static_assert(sizeof(SuperBlock) == 64 + 32 * 16 && sizeof(SuperBlock) <= page_bytes);
static_assert(offsetof(SuperBlock, capacity) == 16 && offsetof(SuperBlock, directory) == 32 && offsetof(SuperBlock, regions) == 64);

/// Head of the root directory's run; slots and entries follow.
struct DirectoryHead {
    std::uint64_t magic;
    std::uint32_t slots;       ///< a power of two
    std::uint32_t live;        ///< names
    std::uint32_t used_slots;  ///< live and removed
    std::uint32_t arena_end;   ///< offset in the run behind the last entry
    std::uint64_t zero[5];
};
static_assert(sizeof(DirectoryHead) == 64);
inline constexpr std::uint64_t directory_magic = 0x3152'4944'4E59'4154ULL;

/// A slot of the directory's hash table: empty {0,0}, removed {0,1}, else the entry's offset in the run.
struct DirectorySlot {
    std::uint32_t entry;
    std::uint32_t hash;
};
static_assert(sizeof(DirectorySlot) == 8);

/// An entry; name and fingerprint follow, padded with zeros to a multiple of 8.
struct DirectoryEntry {
    std::uint64_t object;
    std::uint64_t bytes;
    std::uint64_t count;
    std::uint32_t name_bytes;
    std::uint32_t fingerprint_bytes;
};
static_assert(sizeof(DirectoryEntry) == 32);

}  // namespace taiyen::heap::layout
