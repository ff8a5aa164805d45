#pragma once
/// The bytes of an undo history; FORMAT.md says why. Little endian, everything at multiples of 8.
///
///   0      HistoryHeader, one page; all zero: no history
///   4096   steps, each in one piece: StepHead | name, padded to 8 | segments

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace taiyen::undo::layout {

static_assert(std::endian::native == std::endian::little, "histories are little endian");

inline constexpr std::uint64_t header_magic = 0x3150'4554'5354'4954ULL;  // "TITSTEP1"
inline constexpr std::uint32_t version = 1;
inline constexpr std::uint64_t first_step = 4096;

inline constexpr std::uint32_t flag_circular = 1;

/// Offsets are in bytes from the header's start; 0: none.
struct HistoryHeader {
    std::uint64_t magic;
    std::uint32_t version;
    std::uint32_t flags;
    std::uint64_t capacity;  ///< bytes, header included
    std::uint64_t oldest;    ///< step
    std::uint64_t newest;    ///< step
    std::uint64_t wrap;      ///< end of the last step of the upper part; 0: the steps lie in one piece
    std::uint64_t before;    ///< the cursor: the step that `undo` takes back
    std::uint64_t behind;    ///< the cursor: the step that `redo` does again
    std::uint64_t undoable;  ///< number of steps up to `before`
    std::uint64_t redoable;  ///< number of steps from `behind` on
    std::uint64_t next_id;   ///< of the step to come; starts at 1
    std::uint64_t base_id;   ///< of the newest step that fell off; 0: none did
    std::uint64_t checksum;  ///< of everything before
};
static_assert(std::is_trivially_copyable_v<HistoryHeader> && sizeof(HistoryHeader) == 104 && offsetof(HistoryHeader, checksum) == 96);

inline constexpr std::uint32_t step_implicit = 1;
inline constexpr std::uint32_t step_flags = step_implicit;
inline constexpr std::uint32_t name_bytes_max = 1024;

struct StepHead {
    std::uint64_t id;
    std::uint64_t size;          ///< of the whole step, a multiple of 8
    std::uint64_t previous;      ///< offset of the step before it; of the oldest step: of no meaning
    std::uint64_t life;          ///< random number of the opening that made it: the serials are its own
    std::uint32_t first_serial;  ///< of the scopes that it came from
    std::uint32_t last_serial;
    std::uint32_t flags;
    std::uint32_t name_bytes;
    std::uint64_t body_checksum;  ///< of the segments
    std::uint64_t head_checksum;  ///< of everything before and of the name; bound to the offset
};
static_assert(std::is_trivially_copyable_v<StepHead> && sizeof(StepHead) == 64 && offsetof(StepHead, head_checksum) == 56);

/// Segments follow each other to the step's end: u64 size of the bytes behind it, a change set. A procedure's call is alone in its segment.
inline constexpr std::uint64_t segment_head_bytes = 8;

}  // namespace taiyen::undo::layout
