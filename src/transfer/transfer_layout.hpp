#pragma once
/// The bytes of a compressed heap; FORMAT.md says why. Little endian, fixed width.
///
///   StreamHead | chunk: ChunkHead, body | chunk … | StreamEnd

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <taiyen/base/units.hpp>

namespace taiyen::transfer::layout {

static_assert(std::endian::native == std::endian::little, "the format is little endian");

inline constexpr std::uint64_t stream_magic = 0x0a31'5A4E'4559'4154ULL;  ///< "TAYENZ1\n" as bytes
inline constexpr std::uint32_t version = 1;
/// Features a reader has to know to expand the stream at all.
inline constexpr std::uint64_t known_incompatible_features = 1;
/// The heap holds no raw pointers and may be mapped anywhere.
inline constexpr std::uint64_t feature_position_independent = 1;

/// A feature that a reader may ignore: the heap was a volatile one; `kind` says what it becomes in a file.
inline constexpr std::uint64_t compatible_volatile = 1;

inline constexpr std::uint32_t chunk_magic = 0x4B4E'4843U;  ///< "CHNK"
inline constexpr std::uint32_t end_magic = 0x2E44'4E45U;    ///< "END."

/// Pages that a chunk has content for.
inline constexpr std::uint64_t chunk_pages_max = 256;
inline constexpr std::uint64_t content_bytes_max = chunk_pages_max * page_bytes;
/// From a chunk's first page to behind its last one.
inline constexpr std::uint64_t chunk_reach_max = std::uint64_t{1} << 22U;
/// Runs begin and end at multiples of this.
inline constexpr std::uint64_t unit_bytes = 8;
/// A shorter gap between live bytes travels as zeros: always, and in a body that is packed.
inline constexpr std::uint64_t gap_bytes_min = 128;
inline constexpr std::uint64_t packed_gap_bytes_min = 1024;
inline constexpr std::uint32_t chunk_runs_max = 8192;

struct StreamHead {
    std::uint64_t magic;
    std::uint32_t version;
    std::uint32_t kind;  ///< 1 archive, 2 snapshot, 3 transactional
    std::uint64_t compatible_features;
    std::uint64_t incompatible_features;
    std::uint8_t heap_uuid[16];
    std::uint64_t base;
    std::uint64_t capacity;
    std::uint64_t extent;
    std::uint64_t serial;
    std::uint64_t names;
    std::uint64_t reserved[4];
    std::uint64_t checksum;  ///< of everything before it
};
static_assert(std::is_trivially_copyable_v<StreamHead> && sizeof(StreamHead) == 128);
static_assert(offsetof(StreamHead, heap_uuid) == 32 && offsetof(StreamHead, extent) == 64 && offsetof(StreamHead, checksum) == 120);

enum class StoredCodec : std::uint32_t { none = 0, lz4 = 1, zstd = 2 };

/// The body: expanded, `runs` times a Run, then the bytes of the runs.
struct ChunkHead {
    std::uint32_t magic;
    StoredCodec codec;
    std::uint64_t first_page;
    std::uint32_t runs;
    std::uint32_t content_bytes;  ///< of all runs
    std::uint32_t stored_bytes;   ///< of the body, as it lies in the stream
    std::uint32_t reserved;
    std::uint64_t body_checksum;  ///< of the stored bytes, seeded with the chunk's number
    std::uint64_t checksum;       ///< of everything before it, seeded with the checksum of the chunk before, or the StreamHead's
};
static_assert(std::is_trivially_copyable_v<ChunkHead> && sizeof(ChunkHead) == 48);
static_assert(offsetof(ChunkHead, body_checksum) == 32 && offsetof(ChunkHead, checksum) == 40);

/// Both in units of 8 bytes.
struct Run {
    std::uint32_t gap;  ///< from the end of the run before; the first: from the beginning of the chunk's first page
    std::uint32_t length;
};
static_assert(sizeof(Run) == 8);
static_assert(chunk_reach_max * page_bytes / unit_bytes <= 0xFFFF'FFFFU);
static_assert(chunk_pages_max * (page_bytes / (gap_bytes_min + unit_bytes) + 1) <= chunk_runs_max);

/// As long as a ChunkHead, so that one read tells which of them it is.
struct StreamEnd {
    std::uint32_t magic;
    std::uint32_t reserved;
    std::uint64_t chunks;
    std::uint64_t content_bytes;
    std::uint64_t stream_bytes;  ///< with this end
    std::uint64_t reserved2;
    std::uint64_t checksum;  ///< as a chunk's
};
static_assert(sizeof(StreamEnd) == sizeof(ChunkHead) && offsetof(StreamEnd, checksum) == offsetof(ChunkHead, checksum));

}  // namespace taiyen::transfer::layout
