#pragma once
/// The metadata of a volatile heap's small blocks: one owner for each segment of 16 pages, lines and notes that only the owner writes, and what others may write, in cache lines of its own.
///
/// It lies outside the span, in the address slots behind it, one entry for each page or segment of the span; untouched parts cost no memory. Nothing of it is stored.
///
/// (S1) A live block: all its granules occupied, its first one a start, as in every heap. A *parked* block (free, in its owner's magazine): the same without the occupied
///      bit of its first granule. So the start bit still ends the block before it, a second free sees that the first granule isn't occupied, and one bit parks and revives.
/// (S2) Only the owner of a segment writes lines and notes of its pages. Others announce a free in `pending` and, the first of them, in the owner's inbox.
/// (S3) A segment changes its owner only while its word has no `queued` flag, under the heap's lock, so no announced free is overlooked.
/// Segment heads stay where they are as long as the heap is open: a late look at one is harmless.

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "heap/line.hpp"

namespace taiyen::heap {

inline constexpr ByteCount segment_bytes = layout::segment_pages * page_bytes;
inline constexpr unsigned segment_granule_shift = 12;  ///< granules of a segment
static_assert(segment_bytes / layout::granule_bytes == 1U << segment_granule_shift);

/// What `SegmentHead::owner` says beside the address of a ThreadBlocks.
inline constexpr std::uintptr_t segment_of_engine = 0;  ///< no small blocks of threads here
inline constexpr std::uintptr_t segment_of_nobody = 2;  ///< lent by the engine, waiting for an owner
inline constexpr std::uintptr_t segment_queued = 1;     ///< flag: lies in an inbox, or will at once

struct alignas(64) SegmentHead {
    std::atomic<std::uintptr_t> owner;
    std::atomic<SegmentHead*> next_queued;  ///< in an inbox
    // The owner's; the heap's while the segment is nobody's.
    SegmentHead* next;
    SegmentHead* previous;
    std::uint32_t pages_in_use;  ///< with a block, live or parked
    std::uint32_t fresh;         ///< bit p: the owner has not used page p yet, and it is in no bin
    // The heap's, under its lock: the engine lends chunks of segments.
    std::uint32_t chunk;           ///< number of the chunk's first segment
    std::uint32_t chunk_segments;  ///< in the first: how many; 0: not the first of a chunk
    std::uint32_t chunk_idle;      ///< in the first: how many are nobody's
};
static_assert(sizeof(SegmentHead) == 64);

/// What the owner remembers about a page.
struct PageNote {
    std::uint32_t next;
    std::uint32_t previous;
    std::uint16_t bin;        ///< 0: in no bin; else its longest free run, or the bin of a class (ThreadBlocks)
    std::uint16_t blocks;     ///< live and parked
    std::uint8_t size_class;  ///< of all its blocks, or no_class: they differ
    std::uint8_t current;     ///< a class carves its blocks here
    std::uint16_t zero_word;
};
static_assert(sizeof(PageNote) == 16);

/// Where all that is.
struct OwnedMap {
    std::byte* base = nullptr;                      ///< the span
    std::uint64_t granule_end = 0;                  ///< of the span
    layout::Pair* pairs = nullptr;                  ///< of granule / 64
    PageNote* notes = nullptr;                      ///< of the page
    SegmentHead* segments = nullptr;                ///< of the segment
    std::atomic<std::uint64_t>* pending = nullptr;  ///< of granule / 64

    /// Bytes of metadata for a span.
    static constexpr ByteCount bytes_for(ByteCount capacity) {
        const ByteCount pages = round_up(capacity, segment_bytes) / page_bytes;
        return round_up(pages * (sizeof(layout::Line) + sizeof(PageNote) + 32) + pages / layout::segment_pages * sizeof(SegmentHead), page_bytes);
    }
    OwnedMap() = default;
    OwnedMap(std::byte* span, ByteCount capacity, std::byte* metadata)
        : base(span), granule_end(capacity / layout::granule_bytes), pairs(reinterpret_cast<layout::Pair*>(metadata)) {
        const ByteCount pages = round_up(capacity, segment_bytes) / page_bytes;
        std::byte* at = metadata + pages * sizeof(layout::Line);
        segments = reinterpret_cast<SegmentHead*>(at);
        at += pages / layout::segment_pages * sizeof(SegmentHead);
        pending = reinterpret_cast<std::atomic<std::uint64_t>*>(at);
        notes = reinterpret_cast<PageNote*>(at + pages * 32);
    }
    static_assert(sizeof(std::atomic<std::uint64_t>) == 8);

    std::uint64_t granule_of(const void* block) const {
        return (reinterpret_cast<std::uintptr_t>(block) - reinterpret_cast<std::uintptr_t>(base)) / layout::granule_bytes;
    }
    std::byte* address_of(std::uint64_t granule) const { return base + granule * layout::granule_bytes; }
    SegmentHead& segment_of(std::uint64_t granule) const { return segments[granule >> segment_granule_shift]; }
    std::uint32_t number_of(const SegmentHead& segment) const { return static_cast<std::uint32_t>(&segment - segments); }
    layout::Line& line(std::uint32_t page) const { return reinterpret_cast<layout::Line*>(pairs)[page]; }
};

// Other threads look at lines while the owner writes them (to refuse bad frees, to count): each word is written and read whole.

inline std::uint64_t load_word(const std::uint64_t& word) {
    return std::atomic_ref(const_cast<std::uint64_t&>(word)).load(std::memory_order_relaxed);
}
inline void store_word(std::uint64_t& word, std::uint64_t value) { std::atomic_ref(word).store(value, std::memory_order_relaxed); }

/// Whether a live block starts at the granule.
inline bool is_live(const OwnedMap& map, std::uint64_t granule) {
    const layout::Pair& pair = map.pairs[granule / 64];
    return ((load_word(pair.occupied) & load_word(pair.start)) >> (granule % 64) & 1U) != 0;
}

/// The page's line with the first granules of parked blocks counted as occupied: what may be carved are the rest.
inline layout::Line taken_line(const layout::Line& line) {
    layout::Line taken;
    for (unsigned pair = 0; pair < 4; ++pair) {
        taken.pairs[pair].start = load_word(line.pairs[pair].start);
        taken.pairs[pair].occupied = load_word(line.pairs[pair].occupied) | taken.pairs[pair].start;
    }
    return taken;
}

/// Granules of the block that starts there, live or parked.
inline unsigned granules_at(const OwnedMap& map, std::uint64_t granule) {
    const layout::Pair& pair = map.pairs[granule / 64];
    const unsigned bit = granule % 64;
    const std::uint64_t stop = (load_word(pair.start) | ~load_word(pair.occupied)) & ~low_bits(bit + 1);
    if (stop != 0) [[likely]]
        return static_cast<unsigned>(std::countr_zero(stop)) - bit;
    return block_granules(taken_line(map.line(static_cast<std::uint32_t>(granule / layout::page_granules))), granule % layout::page_granules);
}

/// The same for a live block in another thread's segment, whose owner may cut and give back places behind it. What hides the block's end for a moment makes it look too long, never
/// too short; two looks, each at `occupied` before `start`, find the end.
inline unsigned granules_of_others(const OwnedMap& map, std::uint64_t granule) {
    const std::uint64_t page = granule / layout::page_granules;
    unsigned shortest = layout::page_granules;
    for (unsigned look = 0; look < 2; ++look) {
        const layout::Line& line = map.line(static_cast<std::uint32_t>(page));
        unsigned at = granule % layout::page_granules + 1;
        for (; at < layout::page_granules; ++at) {
            layout::Pair& pair = const_cast<layout::Pair&>(line.pairs[at / 64]);
            const std::uint64_t occupied = std::atomic_ref(pair.occupied).load(std::memory_order_acquire);
            const std::uint64_t start = std::atomic_ref(pair.start).load(std::memory_order_acquire);
            const std::uint64_t stop = (start | ~occupied) >> (at % 64);
            if (stop != 0) {
                at += static_cast<unsigned>(std::countr_zero(stop));
                break;
            }
            at |= 63;
        }
        const unsigned length = std::min(at, layout::page_granules) - static_cast<unsigned>(granule % layout::page_granules);
        shortest = std::min(shortest, length);
    }
    return shortest;
}

}  // namespace taiyen::heap
