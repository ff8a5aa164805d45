#pragma once
/// The bytes of a heap's files (backing and data file); FORMAT.md says why. Little endian, fixed width.
///
///   0     header slot 0        4 KiB   headers alternate by sequence
///   4096  header slot 1        4 KiB
///   8192  chunk 0: checksum-table pages | pages of the span [0, 1 MiB)
///   …     chunk k: checksum-table pages | pages of the span [2^(k-1) MiB, 2^k MiB)
///   …     among them, each behind the span chunks that the header says: chunks of the annex, of the same shape

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <taiyen/base/units.hpp>

#include "vm/address_space.hpp"

namespace taiyen::store {

static_assert(std::endian::native == std::endian::little, "heap files are little endian");

inline constexpr std::uint64_t header_magic = 0x0a50'4145'4859'5954ULL;  // "TYYHEAP\n"
inline constexpr std::uint32_t format_version = 1;
inline constexpr std::uint32_t byte_order_mark = 0x0102'0304;

inline constexpr ByteCount header_slot_bytes = 4096;
inline constexpr ByteCount chunks_offset = 2 * header_slot_bytes;
inline constexpr ByteCount first_chunk_bytes = ByteCount{1} << 20U;

/// Of the span, and of the annex: together 8 TiB each.
inline constexpr std::size_t chunks_max = 24;
inline constexpr ByteCount sequence_bytes_max = first_chunk_bytes << (chunks_max - 1);
/// Chunk k of the annex lies behind so many chunks of the span; 0: it has no place.
using AnnexPlaces = std::array<std::uint8_t, chunks_max>;

/// Heaps lie below this address.
using vm::address_end;

enum class FileRole : std::uint32_t { backing = 1, data = 2 };
/// filling: a data file, its pages are on their way to a newer save. staged: a backing file, a newer save lies whole in the stage.
enum class FileState : std::uint32_t { whole = 1, filling = 2, staged = 3 };
enum class RingKind : std::uint32_t { none = 0, journal = 1, log = 2 };

/// Features a reader has to know to open the file at all.
inline constexpr std::uint64_t known_incompatible_features = 15;
/// The staged save moves the heap to another address. Who didn't know would install the pages and keep the address.
inline constexpr std::uint64_t feature_staged_move = 1;
/// The heap holds no raw pointers and may be mapped anywhere. Who didn't know would let raw pointers in.
inline constexpr std::uint64_t feature_position_independent = 2;
/// The staged save gives the heap another capacity. Who didn't know would install the pages and keep the capacity.
inline constexpr std::uint64_t feature_staged_resize = 4;
/// The file follows another one, or another one has taken its place. Who didn't know would change it.
inline constexpr std::uint64_t feature_replica_role = 8;

inline constexpr std::uint64_t flag_clean = 1;           ///< closed by its last user: no ring, nothing to recover
inline constexpr std::uint64_t flag_data_is_beside = 4;  ///< the data file had its default name when the header was written
inline constexpr std::uint64_t flag_is_new = 2;          ///< made for a heap whose backing file may not have got its name yet

/// Kind of the ring records that are saves, page images in the record. (2 was never released; 3: log_replay.hpp)
inline constexpr std::uint32_t record_images = 1;

/// What a save consists of: in the header, of a staged one; in front of a save's payload in a record. There an AnnexHead follows if the flags say so, then `page_count` SavedPage entries. In a record: then the images of the pages whose checksum is not 0, in order.
/// Staged: entries and images lie in the stage, entries first, each part starting at a multiple of 4 KiB.
struct SaveHead {
    std::uint64_t generation;
    std::uint64_t serial;
    std::uint64_t extent;
    std::uint64_t page_count;
    std::uint64_t image_count;
    std::uint64_t flags;
    std::uint64_t stage_offset;  ///< staged: in the ring's file; else 0
    std::uint64_t stage_digest;  ///< staged: checksum of the entries in the stage
    std::uint64_t reserved;      ///< 0
};
static_assert(sizeof(SaveHead) == 72);
inline constexpr std::uint64_t save_punches = 1;    ///< zero pages become holes (give-back at close)
inline constexpr std::uint64_t save_has_annex = 2;  ///< an AnnexHead follows; without it the heap has no annex

/// The annex as the save leaves it; the fields of the header. The places travel with the save because its pages may be the first ones of a chunk.
struct AnnexHead {
    std::uint64_t extent;
    std::uint64_t used;
    AnnexPlaces places;
};
static_assert(std::is_trivially_copyable_v<AnnexHead> && sizeof(AnnexHead) == 40);

/// The last opening that had something to do, as `Restoration` tells it. All zero: none is known. Times are microseconds; points of time count from 1970 (UTC), by the system's clock.
struct OpeningRecord {
    std::uint64_t opened_at;     ///< 0: there is no record
    std::uint64_t took;          ///< 0: unknown
    std::uint64_t last_written;  ///< 0: unknown
    std::uint32_t cause;         ///< of `OpeningCause`; a value that isn't known is one
    std::uint32_t flags;
    std::uint64_t snapshots_replayed;
    std::uint64_t transactions_replayed;
    std::uint64_t records_cut;
    std::uint64_t bytes_cut;
    std::uint64_t pages_healed;
    std::uint64_t headers_repaired;
};
static_assert(std::is_trivially_copyable_v<OpeningRecord> && sizeof(OpeningRecord) == 80);
inline constexpr std::uint32_t opening_found_clean = 1;
inline constexpr std::uint32_t opening_copies_levelled = 2;
inline constexpr std::uint32_t opening_backing_rebuilt = 4;
inline constexpr std::uint32_t opening_data_rebuilt = 8;
inline constexpr std::uint32_t opening_data_detached = 16;

/// What may be done with a file of a replicated heap. follower: it only gets what another file has replicated; deposed: another file has taken its place.
enum class ReplicaRole : std::uint32_t { owner = 0, follower = 1, deposed = 2 };

/// How a replicated heap tells whether what a target holds is part of its own history; all zero: it was never attached to one.
struct ReplicaMark {
    std::uint8_t attached[16];         ///< random, of the newest attachment; the target's epoch frame has it, too
    std::uint8_t attached_before[16];  ///< of the one before
    std::uint64_t reopened_at;         ///< the newest transaction when the heap was opened for writing first after that, plus 1; 0: it wasn't
    ReplicaRole role;
    std::uint32_t reserved;        ///< 0
    std::uint64_t frame;           ///< follower: number of a frame up to which it has everything; 0: none
    std::uint64_t frame_checksum;  ///< follower: of that frame's head
};
static_assert(std::is_trivially_copyable_v<ReplicaMark> && sizeof(ReplicaMark) == 64);

/// One header slot. The checksum covers everything before it and is bound to the slot.
struct HeaderBlock {
    std::uint64_t magic;
    std::uint32_t version;
    std::uint32_t byte_order;
    std::uint32_t page_size;
    std::uint32_t reserved0;
    std::uint64_t compatible_features;
    std::uint64_t incompatible_features;
    std::uint8_t heap_uuid[16];
    std::uint8_t file_uuid[16];
    std::uint8_t data_uuid[16];  ///< file_uuid of the attached data file; nil: none
    std::uint8_t ring_uuid[16];
    FileRole role;
    FileState state;
    std::uint64_t sequence;  ///< of header writes of this file; odd ones go to slot 1
    std::uint64_t flags;
    std::uint64_t base;      ///< address of the span; of a position-independent heap: where it is mapped if that is free
    std::uint64_t capacity;  ///< bytes
    std::uint64_t extent;    ///< bytes of the span that the file holds
    std::uint64_t generation;
    std::uint64_t filling_generation;  ///< state filling: what it will be
    std::uint64_t serial;
    RingKind ring_kind;
    std::uint32_t reserved1;
    std::uint64_t ring_capacity;
    std::uint64_t ring_epoch;
    std::uint64_t ring_position;
    std::uint64_t ring_sequence;
    std::uint64_t ring_chain_seed;
    std::uint64_t table_root;    ///< sum over the written table pages of mix(index, checksum)
    std::uint64_t annex_extent;  ///< bytes of the annex that the file has places for; what lies behind annex_used is zero
    std::uint64_t annex_used;
    AnnexPlaces annex_places;
    std::uint8_t log_uuid[16];  ///< of the attached transaction log, also while another ring is in use; nil: none
    std::uint64_t log_capacity;
    SaveHead stage;                  ///< state staged: the save that lies in the stage behind the ring; else zeros, and so the fields below
    std::uint64_t stage_ring_epoch;  ///< where the ring's records behind that save begin
    std::uint64_t stage_ring_position;
    std::uint64_t stage_ring_sequence;
    std::uint64_t stage_ring_chain_seed;
    AnnexHead stage_annex;
    std::uint64_t stage_base;  ///< the address as of that save; 0: it stays, and no feature is needed to know it
    std::uint64_t written_at;  ///< when this header was written, in microseconds since 1970 (UTC), by the system's clock; 0: unknown
    OpeningRecord opening;
    std::uint64_t stage_capacity;  ///< as of the staged save; 0: it stays, and no feature is needed to know it
    ReplicaMark replica;
    std::uint8_t padding[4096 - 608 - 8];
    std::uint64_t checksum;
};
static_assert(std::is_trivially_copyable_v<HeaderBlock>);
static_assert(offsetof(HeaderBlock, heap_uuid) == 40);
static_assert(offsetof(HeaderBlock, role) == 104);
static_assert(offsetof(HeaderBlock, generation) == 152);
static_assert(offsetof(HeaderBlock, ring_kind) == 176);
static_assert(offsetof(HeaderBlock, annex_extent) == 232);
static_assert(offsetof(HeaderBlock, log_uuid) == 272);
static_assert(offsetof(HeaderBlock, stage) == 296);
static_assert(offsetof(HeaderBlock, stage_annex) == 400);
static_assert(offsetof(HeaderBlock, stage_base) == 440);
static_assert(offsetof(HeaderBlock, written_at) == 448);
static_assert(offsetof(HeaderBlock, opening) == 456);
static_assert(offsetof(HeaderBlock, stage_capacity) == 536);
static_assert(offsetof(HeaderBlock, replica) == 544);
static_assert(offsetof(HeaderBlock, checksum) == 4088);
static_assert(sizeof(HeaderBlock) == header_slot_bytes);

/// Entries of one checksum-table page.
inline constexpr std::size_t entries_per_table_page = 509;

/// A page of the checksum table; all zero: no page that it covers was ever written. The checksum covers everything behind it and is bound to heap and index.
struct TablePage {
    std::uint64_t checksum;
    std::uint64_t generation;  ///< of the save that changed it last
    std::uint64_t index;
    std::uint64_t entries[entries_per_table_page];  ///< checksum of each page; 0: the page is zero
};
static_assert(std::is_trivially_copyable_v<TablePage>);
static_assert(sizeof(TablePage) == page_bytes);

struct SavedPage {
    std::uint64_t page;
    std::uint64_t checksum;  ///< 0: the page is zero, no image
};
static_assert(sizeof(SavedPage) == 16);

}  // namespace taiyen::store
