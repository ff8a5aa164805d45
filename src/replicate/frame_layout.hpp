#pragma once
/// The bytes of a frame; FORMAT.md says why. Little endian, fixed width.
///
///   FrameHead | body

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "store/heap_layout.hpp"

namespace taiyen::replicate::layout {

inline constexpr std::uint64_t frame_magic = 0x0a46'4e45'4959'4154ULL;  // "TAYIENF\n"
inline constexpr std::uint32_t frame_version = 1;

/// A transaction that would take more comes as pages.
inline constexpr ByteCount frame_bytes_max = ByteCount{1} << 30U;
/// Frames have smaller numbers.
inline constexpr std::uint64_t frame_numbers_end = std::uint64_t{1} << 62U;

enum class FrameKind : std::uint32_t {
    epoch = 1,       ///< EpochBody, KeptHead…: who appends from here on, and what it keeps
    records = 2,     ///< transactions, as a group of the log has them (log/FORMAT.md): GroupHead, records
    base_begin = 3,  ///< BaseBegin: the pages of a base follow, among frames of records
    pages = 4,       ///< a page of the checksum table, and the images of the pages that it covers and that aren't zero, in order
    base_done = 5,   ///< BaseDone, HeaderBlock: the base is complete
    // Of a group, whose uuid stands in the place of a heap's:
    group_epoch = 6,  ///< EpochBody: another program makes the cuts from here on
    cut = 7,          ///< a cut: of which transaction each heap is
    marks = 8         ///< all cuts that have names, and are kept
};

struct FrameHead {
    std::uint64_t magic;
    std::uint32_t version;
    FrameKind kind;
    std::uint8_t heap[16];             ///< uuid: what all frames of a target have in common
    std::uint64_t number;              ///< of the frame; the first one is 1, each is the successor of the one before
    std::uint64_t previous;            ///< `checksum` of the frame before; 0: this is the first one
    std::uint64_t epoch;               ///< counts the epoch frames, this one included
    std::uint64_t epoch_frame;         ///< number of the newest epoch frame, this one included
    std::uint8_t file[16];             ///< uuid of the file that appends it
    std::uint8_t attached[16];         ///< random: of its newest attachment; the header of that file has it (ReplicaMark)
    std::uint64_t first_serial;        ///< records: of the first transaction in the frame; else 0
    std::uint64_t last_serial;         ///< newest transaction that the frames up to this one hold
    std::uint64_t written_at;          ///< microseconds since 1970 (UTC): none of these transactions was committed later
    std::uint64_t newest_base;         ///< number of the newest base_done frame, this one included; 0: there is none
    std::uint64_t covered_generation;  ///< of the heap's saves: the frames up to this one hold all that the files had then …
    std::uint64_t covered_serial;      ///< … and which transactions those were
    std::uint64_t begin;               ///< pages, base_done: number of the base's base_begin frame; else 0
    std::uint64_t body_bytes;
    std::uint64_t bytes_since_base;  ///< of all frames behind the newest base of all pages, this one included
    std::uint8_t file_before[16];    ///< uuid of the file in whose place `file` was promoted last; 0: none
    std::uint64_t body_checksum;     ///< of the body, seeded with `number`
    std::uint64_t checksum;          ///< of all before it, seeded with the version
};
static_assert(std::is_trivially_copyable_v<FrameHead> && sizeof(FrameHead) == 200 && offsetof(FrameHead, checksum) == 192);

inline constexpr std::uint64_t packed_magic = 0x0a5a'4e45'4959'4154ULL;  // "TAYIENZ\n"
/// Frames that may be packed.
inline constexpr ByteCount packed_frame_bytes_min = 512;
inline constexpr ByteCount packed_frame_bytes_max = ByteCount{64} << 20U;

/// In front of a frame that a codec has made smaller.
struct PackedHead {
    std::uint64_t magic;
    std::uint32_t codec;        ///< 1: an LZ4 block, 2: a Zstandard frame
    std::uint32_t reserved;     ///< 0
    std::uint64_t frame_bytes;  ///< of the frame
    std::uint64_t checksum;     ///< of all before it, seeded with that of what follows, which is seeded with `frame_bytes`
};
static_assert(std::is_trivially_copyable_v<PackedHead> && sizeof(PackedHead) == 32);

inline constexpr std::uint64_t sealed_magic = 0x0a53'4e45'4959'4154ULL;  // "TAYIENS\n"
inline constexpr std::uint32_t sealed_version = 1;
inline constexpr ByteCount sealed_tag_bytes = 16;

/// In front of a frame that was sealed; behind it the tag.
struct SealedHead {
    std::uint64_t magic;
    std::uint32_t version;
    std::uint32_t reserved;  ///< 0
    std::uint8_t key[8];     ///< which one: a keyed hash
    std::uint8_t nonce[24];  ///< a keyed hash of number and frame
};
static_assert(std::is_trivially_copyable_v<SealedHead> && sizeof(SealedHead) == 48);

struct EpochBody {
    std::uint64_t serial;  ///< of the file, when it was attached
    char host[64];         ///< for messages
};
static_assert(std::is_trivially_copyable_v<EpochBody> && sizeof(EpochBody) == 72);

/// Behind an EpochBody, for each group whose marks need the heap.
struct KeptHead {
    std::uint8_t group[16];  ///< uuid
    std::uint64_t serial;    ///< what restores the heap as of that transaction, or a later one, is not trimmed
};
static_assert(std::is_trivially_copyable_v<KeptHead> && sizeof(KeptHead) == 24);

struct BaseBegin {
    std::uint64_t since;     ///< generation: pages of newer saves only, on top of `previous`; 0: all pages
    std::uint64_t previous;  ///< number of the base_done frame under this one; 0: all pages
};
static_assert(std::is_trivially_copyable_v<BaseBegin> && sizeof(BaseBegin) == 16);

/// Of a cut, one behind the other: CutHead, its name, its members: MemberHead, the member's name. Names are padded to 8 bytes.
struct CutHead {
    std::uint64_t written_at;  ///< microseconds since 1970
    std::uint32_t name_bytes;  ///< of the mark; 0: it has none
    std::uint32_t members;
};
static_assert(std::is_trivially_copyable_v<CutHead> && sizeof(CutHead) == 16);

struct MemberHead {
    std::uint8_t heap[16];  ///< uuid
    std::uint64_t serial;
    std::uint64_t name_bytes;
};
static_assert(std::is_trivially_copyable_v<MemberHead> && sizeof(MemberHead) == 32);

struct BaseDone {
    BaseBegin begun;
    std::uint64_t page_frames;  ///< how many there are
    std::uint64_t reserved;     ///< 0
    store::HeaderBlock header;  ///< of a closed heap without companions, with these pages; its file uuid is nobody's
};
static_assert(std::is_trivially_copyable_v<BaseDone> && sizeof(BaseDone) == 4128);

}  // namespace taiyen::replicate::layout
