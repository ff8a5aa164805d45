#pragma once
/// Bytes of a LogHeap's file, version 1: reasons and rules are in FORMAT.md.
///
///     0        header slot 0            ┐ 32 KiB each; each header goes into both
///     32 KiB   header slot 1            ┘
///     2 MiB    segment 1 | segment 2 | …
///     behind   image of the index 0 | image of the index 1     three quarters of the segments' bytes each, at most; holes
///
///     segment = | SegmentHead 64 | records |
///     record  = | RecordHead 32 | bytes | zeros up to a multiple of 8 |
///     image   = | ImageCell of shard 0 … | … | of shard 31 … | ImageSegment … | ImageFoot |

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include <taiyen/base/units.hpp>

namespace taiyen::logheap::layout {

inline constexpr char magic[8] = {'t', 'a', 'i', 'y', 'e', 'n', 'L', '\n'};
inline constexpr std::uint32_t byte_order_mark = 0x0102'0304;
inline constexpr std::uint32_t byte_order_swapped = 0x0403'0201;
inline constexpr std::uint32_t version = 1;

inline constexpr ByteCount slot_bytes = 32_KiB;
inline constexpr unsigned slots = 2;
inline constexpr ByteCount segments_begin = 2_MiB;
inline constexpr ByteCount segment_bytes_min = 64_KiB;
inline constexpr ByteCount segment_bytes_max = 2_MiB;
inline constexpr std::uint64_t segments_min = 16;
inline constexpr std::uint64_t segments_max = (std::uint64_t{1} << 24U) - 2;

inline constexpr std::uint32_t header_is_clean = 1;  ///< bit of `Header::flags`: the ring holds nothing that counts

/// A segment that recovery reads, since the image of the index doesn't know all that stands in it.
struct TailSegment {
    std::uint32_t number;
    std::uint32_t from;  ///< where what the image doesn't know begins, bytes
    std::uint32_t end;   ///< where the records end that were durable with this header
};
inline constexpr std::size_t tail_max = 2600;

/// One of the two copies; the sound one with the higher sequence counts.
struct Header {
    char magic[8];
    std::uint32_t byte_order;
    std::uint32_t version;
    std::uint64_t features_incompatible;  ///< an unknown bit: unsupported_version
    std::uint64_t sequence;
    std::uint8_t heap[16];
    std::uint8_t ring[16];
    std::uint64_t ring_capacity;
    std::uint64_t ring_epoch;
    std::uint64_t ring_position;
    std::uint64_t ring_sequence;
    std::uint64_t ring_chain_seed;
    std::uint64_t serial;      ///< everything up to it is in the image and the tail
    std::uint64_t next_id;     ///< no id from here on was ever given
    std::uint64_t next_birth;  ///< none was used from here on, but for segments that no header names
    std::uint64_t segment_bytes;
    std::uint64_t segments;
    std::uint64_t image_bytes;     ///< 0: there is none, the index is empty
    std::uint64_t image_checksum;  ///< of its segments and its foot
    std::uint32_t image_place;     ///< 0 or 1
    std::uint32_t flags;
    std::uint32_t tail_segments;
    std::uint32_t zero;
    TailSegment tail[tail_max];
    std::byte reserved[slot_bytes - 176 - sizeof(TailSegment) * tail_max - 8];
    std::uint64_t checksum;  ///< of all bytes before it, seeded with the slot's number
};
static_assert(sizeof(Header) == slot_bytes);
static_assert(offsetof(Header, tail) == 176);
static_assert(std::is_trivially_copyable_v<Header>);

inline constexpr std::uint64_t segment_magic = 0x0a67'6553'6e79'6174ULL;

enum class SegmentKind : std::uint32_t {
    hot = 1,  ///< what operations write
    cold,     ///< what cleaning moves
    large     ///< one value that needs a run of segments
};

struct SegmentHead {
    std::uint64_t magic;
    std::uint8_t heap[16];
    std::uint32_t number;
    SegmentKind kind;
    std::uint64_t birth;        ///< grows with each use of any segment
    std::uint64_t large_bytes;  ///< of the value of a run; else 0
    std::uint64_t zero;
    std::uint64_t checksum;  ///< of all bytes before it
};
static_assert(sizeof(SegmentHead) == 64);

inline constexpr std::uint32_t record_removes = 0x8000'0000;   ///< bit of `RecordHead::length`: a tombstone
inline constexpr std::uint32_t record_is_large = 0x4000'0000;  ///< … the length is the segment head's

struct RecordHead {
    std::uint32_t check;  ///< lower half of the checksum of the rest of the head and the bytes; seed: heap, birth of the segment, offset in it
    std::uint32_t length;
    std::uint64_t id;
    std::uint64_t version;  ///< serial of the operation
    std::uint64_t born;     ///< serial of the operation that made the value
};
static_assert(sizeof(RecordHead) == 32);
/// Of a record whose value has so many bytes.
constexpr std::uint64_t record_bytes(std::uint64_t bytes) { return round_up(sizeof(RecordHead) + bytes, 8); }

/// One operation in a record of the ring; its bytes follow, padded to a multiple of 8.
enum class OperationKind : std::uint32_t { put = 1, remove, large };
struct OperationHead {
    OperationKind kind;
    std::uint32_t zero;
    std::uint64_t id;
    std::uint64_t born;
    std::uint64_t length;  ///< put: bytes that follow; large: of the value, which lies in segments; a LargePlace follows
};
static_assert(sizeof(OperationHead) == 32);
struct LargePlace {
    std::uint64_t segment;
    std::uint64_t birth;
};
static_assert(sizeof(LargePlace) == 16);

inline constexpr std::size_t image_shards = 32;  ///< the five highest bits of an id's hash choose

/// At the image's end.
struct ImageFoot {
    std::uint8_t heap[16];
    std::uint64_t serial;
    std::uint64_t segments;
    struct Shard {
        std::uint64_t cells;
        std::uint64_t checksum;  ///< of its cells, seeded with its number
    } shards[image_shards];
};
static_assert(sizeof(ImageFoot) == 32 + 16 * image_shards);
struct ImageSegment {
    std::uint32_t number;
    std::uint32_t units;  ///< of a run
    std::uint64_t birth;
    std::uint64_t filled_at;  ///< newest operation when it was written to last
    std::uint64_t live;       ///< bytes of records that cells name; counts when the heap was closed
    std::uint32_t end;
    SegmentKind kind;
};
static_assert(sizeof(ImageSegment) == 40);
struct ImageCell {
    std::uint64_t id;
    std::uint64_t place;
    std::uint64_t born;
};
static_assert(sizeof(ImageCell) == 24);

/// Bytes of a place for images.
constexpr ByteCount image_room(const Header& header) {
    return round_up(header.segments * header.segment_bytes / 4 * 3 + header.segments * sizeof(ImageSegment) + 1_MiB, 1_MiB);
}

/// As they are stored.
template <class T>
std::span<const std::byte> bytes_of(const T& of) {
    return {reinterpret_cast<const std::byte*>(&of), sizeof of};
}

}  // namespace taiyen::logheap::layout
