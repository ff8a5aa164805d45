#pragma once
/// Bytes of a ring file, version 1: reasons and rules are in FORMAT.md.
///
///     0      identity slot 0            ┐ 4 KiB each, written alternately
///     4096   identity slot 1            ┘
///     8192   record area: capacity bytes, 512-byte sectors
///
///     sector = | stamp 16 | payload 496 |
///     record = whole 4 KiB blocks of sectors; payloads in a row: | RecordHeader 96 | caller's bytes | zeros |

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <taiyen/base/units.hpp>

namespace taiyen::log::layout {

inline constexpr std::uint32_t version = 1;

inline constexpr ByteCount sector_bytes = 512;
inline constexpr ByteCount block_bytes = 4096;  ///< records begin and end at multiples of it
inline constexpr std::uint64_t sectors_per_block = block_bytes / sector_bytes;
inline constexpr ByteCount identity_slot_bytes = 4096;
inline constexpr unsigned identity_slots = 2;

inline constexpr ByteCount capacity_min = 2 * block_bytes;
inline constexpr ByteCount capacity_max = 1_TiB;

inline constexpr char identity_magic[8] = {'t', 'a', 'i', 'y', 'e', 'n', 'R', '\n'};
inline constexpr std::uint32_t byte_order_mark = 0x0102'0304;
inline constexpr std::uint32_t byte_order_swapped = 0x0403'0201;

inline constexpr std::uint32_t identity_is_new = 1;  ///< bit of `IdentitySlot::flags`

/// One of the two copies of the ring's identity; the sound one with the higher sequence counts.
struct IdentitySlot {
    char magic[8];
    std::uint32_t byte_order;
    std::uint32_t version;
    std::uint64_t features_incompatible;  ///< an unknown bit: unsupported_version
    std::uint64_t sequence;
    std::uint8_t ring[16];
    std::uint8_t heap[16];
    std::uint64_t capacity_bytes;
    std::uint32_t flags;
    std::uint32_t zero;
    std::byte reserved[identity_slot_bytes - 88];
    std::uint64_t checksum;  ///< of all bytes before it, seeded with the slot's number
};
static_assert(sizeof(IdentitySlot) == identity_slot_bytes);
static_assert(offsetof(IdentitySlot, byte_order) == 8);
static_assert(offsetof(IdentitySlot, version) == 12);
static_assert(offsetof(IdentitySlot, features_incompatible) == 16);
static_assert(offsetof(IdentitySlot, sequence) == 24);
static_assert(offsetof(IdentitySlot, ring) == 32);
static_assert(offsetof(IdentitySlot, heap) == 48);
static_assert(offsetof(IdentitySlot, capacity_bytes) == 64);
static_assert(offsetof(IdentitySlot, flags) == 72);
static_assert(offsetof(IdentitySlot, reserved) == 80);
static_assert(offsetof(IdentitySlot, checksum) == 4088);

/// In front of every sector of a record.
struct SectorStamp {
    std::uint32_t epoch_tag;  ///< 32 bits of (epoch, ring uuid), never 0
    std::uint32_t lap;        ///< how often the ring had been filled, modulo 2^32
    std::uint32_t place;      ///< number of the sector in the record area; top bit: a record begins here
    std::uint32_t check;      ///< 32 bits of (ring uuid, the three fields above)
};
static_assert(sizeof(SectorStamp) == 16);
static_assert(offsetof(SectorStamp, check) == 12);

inline constexpr std::uint32_t place_begins = 1U << 31U;
static_assert(capacity_max / sector_bytes <= place_begins);

inline constexpr ByteCount sector_payload_bytes = sector_bytes - sizeof(SectorStamp);

inline constexpr std::uint32_t record_magic = 0x4352'7974;  ///< "tyRC"

/// In front of a record's payload, in its first sector.
struct RecordHeader {
    std::uint32_t magic;
    std::uint32_t kind;
    std::uint64_t epoch;
    std::uint64_t sequence;
    std::uint64_t number;
    std::uint64_t position;       ///< logical, of the record's first byte
    std::uint64_t payload_bytes;  ///< without this header, stamps and padding
    std::uint64_t durable_upto;   ///< all records up to this sequence were durable when this one was written
    std::uint8_t heap[16];
    std::uint64_t flags;            ///< 0 in this version
    std::uint64_t header_checksum;  ///< of the fields above, seeded with the ring uuid
    std::uint64_t record_checksum;  ///< of the whole record with this field 0, seeded with the predecessor's
};
static_assert(sizeof(RecordHeader) == 96);
static_assert(offsetof(RecordHeader, epoch) == 8);
static_assert(offsetof(RecordHeader, sequence) == 16);
static_assert(offsetof(RecordHeader, number) == 24);
static_assert(offsetof(RecordHeader, position) == 32);
static_assert(offsetof(RecordHeader, payload_bytes) == 40);
static_assert(offsetof(RecordHeader, durable_upto) == 48);
static_assert(offsetof(RecordHeader, heap) == 56);
static_assert(offsetof(RecordHeader, flags) == 72);
static_assert(offsetof(RecordHeader, header_checksum) == 80);
static_assert(offsetof(RecordHeader, record_checksum) == 88);

static_assert(std::endian::native == std::endian::little, "stored numbers are little endian");
static_assert(std::is_trivially_copyable_v<IdentitySlot> && std::is_trivially_copyable_v<SectorStamp> && std::is_trivially_copyable_v<RecordHeader>);

}  // namespace taiyen::log::layout
