#pragma once
/// The small blocks (≤ 2 KiB) of one thread of a volatile heap: its magazines, and the segments it owns.
///
/// (T1) A magazine holds parked blocks of one class: allocating takes the last one, freeing puts one there. Both change one bit of the line.
/// (T2) A magazine that overflows grows, as long as all of the thread's may park so many bytes; then it gives back its older half: those granules are free for every size.
///      A page of one class goes into that class's bin, which keeps a few, the latest first; older ones, and pages of several classes, are in the bin of their longest
///      free run. What is given back is written into bits one by one and carved out of them once more: that is what growing avoids.
/// (T3) An empty magazine is refilled from the page that its class carves, else from pages of the class alone that lately got room, else from one without blocks in the
///      own segments, else from the page whose longest free run fits best; only then another segment is asked for. So pages hold one size while there is room, and whatever
///      fits when there is not.
/// (T4) What other threads free comes through `pending` bitmaps and the inbox; each is proven to be a live block's start before it is followed.
/// Records outlive their threads: the next thread takes one as it is; a thread in need adopts segments of one that nobody uses.
/// Thread rule: one thread, its owner; under the heap's lock whoever holds that, while it has no owner; `announce` and `has_mail` are safe.

#include <array>
#include <atomic>

#include "heap/size_classes.hpp"
#include "volatile/owned_segments.hpp"
#include "volatile/parked_runs.hpp"

namespace taiyen::heap {

/// Parked blocks of a class, oldest first. Before the first one lies a null pointer, which ends a search for one without a comparison.
struct Magazine {
    std::byte** top = nullptr;    ///< the youngest
    std::byte** limit = nullptr;  ///< where `top` is when it is full
};
static_assert(sizeof(Magazine) == 16);

/// Where the magazines of a record keep their blocks: places for so many bytes of blocks as one may ever park. A place that was never used costs no memory.
struct MagazinePlaces {
    static constexpr unsigned bytes_max = 256U << 10U;  ///< parked in one magazine
    static constexpr unsigned slots_max = 1024;
    std::array<std::uint32_t, class_count + 1> first{};
    constexpr MagazinePlaces() {
        for (unsigned size_class = 0; size_class < class_count; ++size_class) first[size_class + 1] = first[size_class] + 1 + slots(size_class);
    }
    static constexpr unsigned slots(unsigned size_class) {
        const unsigned fitting = bytes_max / (class_granules(size_class) * layout::granule_bytes);
        return fitting < slots_max ? fitting : slots_max;
    }
    static constexpr unsigned all_slots() { return MagazinePlaces().first[class_count]; }
};
inline constexpr MagazinePlaces magazine_places{};

class alignas(64) ThreadBlocks {
public:
    explicit ThreadBlocks(const OwnedMap& map);
    ThreadBlocks(const ThreadBlocks&) = delete;
    ThreadBlocks& operator=(const ThreadBlocks&) = delete;

    // The two that everything is about: without a lock, a loop or a call.
    /// Takes a parked block of at least `bytes` (≤ 2 KiB); null: there is none.
    [[gnu::always_inline]] void* allocate_parked(ByteCount bytes) noexcept {
        Magazine& magazine = magazine_for((bytes + layout::granule_bytes - 1) / layout::granule_bytes);
        std::byte* const block = *magazine.top;
        if (block == nullptr) [[unlikely]]
            return nullptr;
        --magazine.top;
        revive(block);
        return block;
    }
    /// Parks the block; false: it is no live block in this thread's segments, or others' frees wait there, or there is no room, or its end needs a closer look.
    [[gnu::always_inline]] bool park(void* block) noexcept {
        const std::uint64_t granule = std::rotr(static_cast<std::uint64_t>(static_cast<std::byte*>(block) - map_.base), 4);
        if (granule >= map_.granule_end) [[unlikely]]  // outside, or off a granule
            return false;
        if (map_.segment_of(granule).owner.load(std::memory_order_relaxed) != reinterpret_cast<std::uintptr_t>(this)) [[unlikely]]
            return false;
        layout::Pair& pair = map_.pairs[granule / 64];
        const std::uint64_t occupied = load_word(pair.occupied);
        const std::uint64_t start = load_word(pair.start);
        if (((occupied & start) >> (granule % 64) & 1U) == 0) [[unlikely]]
            return false;
        unsigned size_class = map_.notes[granule / layout::page_granules].size_class;
        if (size_class == no_class) [[unlikely]] {  // its length says it, if it ends before these 64 granules do
            const std::uint64_t stop = (start | ~occupied) >> (granule % 64) >> 1U;
            size_class = class_tables.exact[stop != 0 ? static_cast<unsigned>(std::countr_zero(stop)) + 1 : 0];
        }
        Magazine& magazine = magazines_[size_class];
        std::byte** const top = magazine.top;
        if (top >= magazine.limit) [[unlikely]]  // always so without a class
            return false;
        store_word(pair.occupied, occupied & ~(std::uint64_t{1} << (granule % 64)));
        top[1] = static_cast<std::byte*>(block);
        magazine.top = top + 1;
        return true;
    }
    /// A parked block becomes a live one (S1). The span begins at a multiple of 64 granules.
    void revive(std::byte* block) noexcept {
        const auto granule = reinterpret_cast<std::uintptr_t>(block) / layout::granule_bytes;
        std::uint64_t& occupied = reinterpret_cast<layout::Pair*>(pairs_of_zero_ + granule / 64 * sizeof(layout::Pair))->occupied;
        store_word(occupied, load_word(occupied) | std::uint64_t{1} << (granule % 64));
    }

    /// Puts blocks into the class's empty magazine; false: there is no room in the own segments. `mix`: also from pages with blocks of other classes.
    bool refill(unsigned size_class, bool mix);
    /// Whether it has so many segments that blocks of different classes should share pages before it gets another one.
    bool should_mix() const noexcept { return segment_count_ >= unmixed_segments; }
    /// A live block of the class at a multiple of `alignment` (32 … 1024); null: no room.
    void* allocate_aligned(unsigned size_class, unsigned alignment);
    /// Frees the block at the granule of an own segment; false: no live block starts there.
    bool free(std::uint64_t granule) noexcept;

    /// Another thread's free of a block in this thread's segment: it is in `pending` already.
    void announce(SegmentHead& segment) noexcept;
    bool has_mail() const noexcept { return inbox_.load(std::memory_order_relaxed) != nullptr; }
    /// Frees what others announced. `bad(address)` hears of each that was no live block.
    template <class Bad>
    void harvest(const Bad& bad) noexcept;

    /// Gives a segment without blocks to this thread.
    void take(SegmentHead& segment) noexcept;
    /// Takes a segment with room for `granules` out of a record that nobody uses; its blocks are ours now. Requires: `from.settle()` came before.
    bool adopt(ThreadBlocks& from, unsigned granules) noexcept;
    /// Gives all parked blocks and carved pages back, for every size and for others who adopt the segments.
    void settle() noexcept;
    /// Empty segments are kept up to a quarter of all, and a few.
    bool has_empty_to_spare() const noexcept { return empty_segments_ > spare_segments + segment_count_ / 4; }
    static constexpr unsigned spare_segments = 8;
    /// Up to this many the room that is saved isn't worth the time: blocks of a page of several classes are told apart by their bits.
    static constexpr unsigned unmixed_segments = 16;
    /// Out of the own segments, one without any block, of which more than `kept` are there; null: none. It belongs to nobody then.
    SegmentHead* surrender_empty(unsigned kept) noexcept;

private:
    /// The magazine for blocks of that many granules (0 counts as 1).
    Magazine& magazine_for(std::size_t granules) {
        return *reinterpret_cast<Magazine*>(reinterpret_cast<std::byte*>(magazines_.data()) + magazine_offsets[granules]);
    }

    const OwnedMap map_;
    const std::uintptr_t pairs_of_zero_;  ///< where address 0's pair would be
    /// The last one, of no class, takes none.
    std::array<Magazine, class_count + 1> magazines_{};

public:
    ParkedRuns runs;

    // The heap's, under its lock.
    ThreadBlocks* next_record = nullptr;  ///< all of the heap
    ThreadBlocks* next_idle = nullptr;    ///< those without a thread
    bool idle = false;

private:
    static constexpr auto magazine_offsets = [] {
        std::array<std::uint16_t, class_granules_max + 1> offsets{};
        for (unsigned granules = 0; granules <= class_granules_max; ++granules)
            offsets[granules] = static_cast<std::uint16_t>(class_tables.rounded[granules] * sizeof(Magazine));
        return offsets;
    }();
    static constexpr unsigned run_bins = layout::page_granules + 1;
    static constexpr unsigned bins = run_bins + class_count;
    static constexpr unsigned bin_tries = 4;
    /// Bytes by which all magazines together may grow.
    static constexpr unsigned growth_bytes_max = 2U << 20U;

    std::byte** floor_of(unsigned size_class) { return places_ + magazine_places.first[size_class]; }
    unsigned count_of(unsigned size_class) { return static_cast<unsigned>(magazines_[size_class].top - floor_of(size_class)); }
    unsigned limit_of(unsigned size_class) { return static_cast<unsigned>(magazines_[size_class].limit - floor_of(size_class)); }
    /// Fills the empty magazine with blocks of the page; false: none fits.
    bool carve(std::uint32_t page, unsigned size_class, std::uint64_t starts);
    /// The same for a page without blocks, all of it.
    void carve_whole(std::uint32_t page, unsigned size_class, std::uint64_t starts) noexcept;
    /// Makes room in a full magazine.
    void relieve(unsigned size_class) noexcept;
    void evict(unsigned size_class, unsigned count) noexcept;
    /// As small as at first. Requires: they hold no more than that.
    void reset_limits() noexcept;
    /// Makes the granules of the first of these blocks free, and of as many further ones as lie beside it; tells how many.
    unsigned release(std::byte* const* blocks, unsigned count, unsigned granules) noexcept;
    void file_around(std::uint32_t page, unsigned at) noexcept;
    /// Into the bin of its class, the oldest of which makes room.
    void file_pure(std::uint32_t page, unsigned size_class) noexcept;
    unsigned hot_pages_max() const noexcept;
    /// Into the bin of its longest free run.
    void refile(std::uint32_t page) noexcept;
    void link(std::uint32_t page, unsigned bin) noexcept;
    void unlink(std::uint32_t page) noexcept;
    void page_emptied(std::uint32_t page) noexcept;
    /// A page with a fitting place (written to `at`), in no bin; 0: none.
    std::uint32_t take_page(unsigned granules, std::uint64_t starts, unsigned& at) noexcept;
    /// A page without blocks in the own segments, in no bin; 0: none.
    std::uint32_t take_empty_page() noexcept;
    std::uint64_t starts_of(unsigned granules) const;
    /// With so many pages of single granules blocks of 48 bytes lie side by side.
    unsigned leftover_pages_max() const;
    void occupy_page(std::uint32_t page, unsigned size_class) noexcept;
    void leave_current(unsigned size_class) noexcept;
    void link_segment(SegmentHead& segment) noexcept;
    void unlink_segment(SegmentHead& segment) noexcept;
    bool disown(SegmentHead& segment, std::uintptr_t to) noexcept;
    template <class Bad>
    void collect(SegmentHead& segment, const Bad& bad) noexcept;

    std::array<std::uint32_t, class_count> current_{};  ///< page that the class carves, 0: none
    std::array<std::uint64_t, 5> filled_{};             ///< bit b: bin b, of runs, has pages
    std::array<std::uint32_t, bins> first_{};
    std::array<std::uint32_t, class_count> oldest_{};     ///< of the class's bin
    std::array<std::uint32_t, class_count> hot_pages_{};  ///< in the class's bin
    std::uint32_t single_pages_ = 0;                      ///< in bin 1
    std::uint32_t empty_segments_ = 0;
    std::uint32_t segment_count_ = 0;
    std::uint32_t growth_bytes_ = 0;  ///< of magazines, above what they held at first
    SegmentHead* segments_ = nullptr;
    SegmentHead* fresh_ = nullptr;  ///< a segment that may have fresh pages
    alignas(64) std::atomic<SegmentHead*> inbox_{nullptr};
    alignas(64) std::byte* places_[MagazinePlaces::all_slots()];  ///< of the magazines
};

template <class Bad>
void ThreadBlocks::harvest(const Bad& bad) noexcept {
    SegmentHead* segment = inbox_.exchange(nullptr, std::memory_order_acquire);
    while (segment != nullptr) {
        SegmentHead* const next = segment->next_queued.load(std::memory_order_relaxed);
        std::uintptr_t word = segment->owner.load(std::memory_order_relaxed);
        for (;;) {
            const std::uintptr_t owner = word & ~segment_queued;
            if (owner == reinterpret_cast<std::uintptr_t>(this) || owner == segment_of_engine || owner == segment_of_nobody) {
                if (!segment->owner.compare_exchange_weak(word, owner, std::memory_order_seq_cst)) continue;
                if (owner == reinterpret_cast<std::uintptr_t>(this)) collect(*segment, bad);
            } else {
                reinterpret_cast<ThreadBlocks*>(owner)->announce(*segment);
            }
            break;
        }
        segment = next;
    }
}

template <class Bad>
void ThreadBlocks::collect(SegmentHead& segment, const Bad& bad) noexcept {
    const std::uint64_t first = std::uint64_t{map_.number_of(segment)} << segment_granule_shift;
    for (std::uint64_t at = first; at < first + (1U << segment_granule_shift); at += 64) {
        std::atomic<std::uint64_t>& word = map_.pending[at / 64];
        if (word.load(std::memory_order_seq_cst) == 0) continue;
        std::uint64_t bits = word.exchange(0, std::memory_order_seq_cst);
        if (const unsigned size_class = map_.notes[at / layout::page_granules].size_class; size_class != no_class) {
            // Blocks of one class are parked by their words.
            layout::Pair& pair = map_.pairs[at / 64];
            std::uint64_t live = load_word(pair.occupied) & load_word(pair.start) & bits;
            bits &= ~live;
            store_word(pair.occupied, load_word(pair.occupied) & ~live);
            for (Magazine& magazine = magazines_[size_class]; live != 0; live &= live - 1) {
                if (magazine.top >= magazine.limit) relieve(size_class);
                *++magazine.top = map_.address_of(at + static_cast<unsigned>(std::countr_zero(live)));
            }
        }
        for (; bits != 0; bits &= bits - 1) {
            const std::uint64_t granule = at + static_cast<unsigned>(std::countr_zero(bits));
            if (!free(granule)) bad(map_.address_of(granule));
        }
    }
}

}  // namespace taiyen::heap
