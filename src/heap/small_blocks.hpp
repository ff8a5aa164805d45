#pragma once
/// Blocks of less than a page, in granules (packed_blocks.hpp has the others), of one content: cursors, magazines and best-fit bins over its pages.
///
/// (I1) The truth is the lines. Cursors, magazines and bins are hints: what they propose is compared with the line before it is taken.
/// (I2) A page is taken from the supply when no hint fits, and goes back when its last block went and enough empty pages are kept.
/// (I3) After `attach` nothing is known; pages become known when they are used or when a refill looks for room (a bounded number per refill).
/// (I4) A free never allocates memory that it can't do without, and never touches the user's page.

#include <array>
#include <cstdint>

#include "heap/line.hpp"
#include "heap/page_bins.hpp"
#include "heap/page_map.hpp"
#include "heap/size_classes.hpp"

namespace taiyen::heap {

class PackedBlocks;
class PageSupply;

class SmallBlocks {
public:
    /// Of blocks of that content, which have pages of their own; the bins, too, are theirs alone.
    SmallBlocks(Content content, const Span& span, PageMap& pages, PageBins& bins, PageSupply& supply, PackedBlocks& packed);
    SmallBlocks(const SmallBlocks&) = delete;
    SmallBlocks& operator=(const SmallBlocks&) = delete;

    /// A block of that class. Throws: HeapFull, Error{corrupt}.
    template <bool Observed>
    void* allocate_class(unsigned size_class);
    /// Offset of a block of `granules` (1 … small_granules_max), aligned to `alignment` ≤ 1024. Throws: HeapFull, Error{corrupt}.
    std::uint64_t allocate(unsigned granules, unsigned alignment);
    /// A block at the front of that available page (which the supply handed out).
    std::uint64_t allocate_on_fresh(Page page, unsigned granules);
    /// Takes exactly that place in an available or small page; false if something lies there. Requires: is_user(page), backed by disk blocks.
    bool allocate_at(Page page, unsigned start, unsigned granules);
    /// Frees the block that starts at the granule (span offset / 16): freed or not_a_block. Requires: `hot` is the page's, which is one of its own.
    template <bool Observed>
    FreeResult free(const PageMap::Hot& hot, std::uint64_t granule) noexcept;
    /// Shrinks a block in place.
    void shrink(Page page, unsigned start, unsigned old_granules, unsigned granules);

    /// The page's front granules now belong to the run before it. Requires: the page is available.
    void begin_tail(Page page, unsigned granules);
    /// Frees front granules that belonged to the run before it.
    void end_tail(Page page, unsigned granules);
    /// The same in a page of small blocks whose front is free.
    void add_tail(Page page, unsigned granules);
    /// Clears the line if nothing but the run's tail lies in the page and no class fills it; true: the page must become an available one.
    bool clear_tail(Page page, unsigned granules);
    /// Whether nothing but the run's tail lies in the page.
    bool only_tail(Page page, unsigned granules) const;
    /// Turns such a page into an available one; `refresh` must follow.
    void surrender_tail(Page page);

    /// Gives those of the pages that hold no block back to the page map, of content any packed ones, too; true if there were any.
    bool reclaim(PageRun run);
    /// Gives known pages without blocks, of content any packed ones, too, back to the page map; true if there were any.
    bool release_empty_pages();
    /// Files pages with room, of content any packed ones, too, that are not known yet, from a bounded number of segments; true if there were any.
    bool know_some() { return know_some(segments_per_refill); }
    /// The same without a bound, then releases empty ones. True if any page was released or any hint filed.
    bool know_all();
    /// Largest number of granules that a page of small blocks could give, by what is known.
    unsigned longest_known() const { return bins_.longest_run(); }

    /// Drops the hints about pages [first, first + count).
    void forget(PageRun run);

private:
    static constexpr unsigned magazine_slots = 26;
    static constexpr unsigned empty_pages_kept = 32;
    static constexpr unsigned segments_per_refill = 8;

    /// The page that a class fills, and the start positions of one of its pairs.
    struct Cursor {
        std::uint64_t candidates = 0;
        layout::Pair* pair = nullptr;  ///< null: none
        std::uint64_t granule = 0;     ///< span offset / 16 of the pair's first granule
        std::uint64_t starts = 0;      ///< positions that the class uses in this page
        Page page() const { return static_cast<Page>(granule / layout::page_granules); }
        unsigned index() const { return static_cast<unsigned>(granule % layout::page_granules / 64); }
    };
    /// What is kept for each class: its cursor, and a magazine of places that were freed lately.
    struct ClassHints {
        Cursor cursor;
        std::uint64_t block = 0;                               ///< the class's granules as low bits
        int last_bit = -1;                                     ///< last position from which a block stays in its pair; -1: none
        unsigned count = 0;                                    ///< places in the magazine, oldest first
        std::array<std::uint64_t, magazine_slots> granules{};  ///< span offset / 16
    };
    static_assert(sizeof(ClassHints) == 256);
    using Known = PageBins::Known;

    [[gnu::noinline]] void* allocate_slowly(unsigned size_class);
    [[gnu::noinline]] FreeResult free_slowly(std::uint64_t granule) noexcept;
    std::uint64_t refill(unsigned size_class);
    /// Start positions for a class: the line rule, unless the single granules that it leaves over pile up.
    std::uint64_t starts_of(unsigned granules) const;
    std::uint64_t allocate_unclassed(unsigned granules, std::uint64_t starts);
    /// A page with a fitting start (written to `at`), out of the bins. 0: none.
    Page take_fitting(unsigned granules, std::uint64_t starts, unsigned& at);
    /// Turns an available page into an empty one of its own.
    void begin(Page page);
    Page fresh_page(unsigned granules);
    std::uint64_t advance(Cursor& cursor, unsigned size_class);
    void close_cursor(Cursor& cursor);
    bool know_some(unsigned segments);

    std::uint64_t take(Page page, layout::Line& line, unsigned start, unsigned granules);
    bool try_hint(std::uint64_t granule, unsigned granules);
    void flush_magazines();
    void evict(ClassHints& hints, unsigned count) noexcept;
    /// Puts the page into the bin of its longest free run.
    void file(Page page) noexcept;
    /// The same after granule `at` became free: looks at the run around it only, if the page is known.
    void file_around(Page page, unsigned at) noexcept;
    /// All granules of a pair have been taken, by the block at the granule, which it returns.
    [[gnu::noinline]] void* pair_filled(std::uint64_t granule);
    /// All granules of a pair have become free. Returns freed.
    [[gnu::noinline]] FreeResult pair_emptied(std::uint64_t granule) noexcept;
    void* address_of(std::uint64_t granule) const { return span_.base() + granule * layout::granule_bytes; }
    void page_emptied(Page page) noexcept;
    void release(Page page);

    bool is_own(const PageMap::Hot& hot, Page page) const {
        return ((*hot.word(page) >> (page % layout::segment_pages * 4)) & own_mask_) == own_state_;
    }
    bool is_own(Page page) const { return is_own(pages_.hot(page), page); }

    const Span span_;
    PageMap& pages_;
    PageBins& bins_;
    PageSupply& supply_;
    PackedBlocks& packed_;
    const Content content_;
    const PageState full_;
    const PageState room_;
    const std::uint64_t own_mask_;  ///< of a page's state: what tells whose page it is
    const std::uint64_t own_state_;
    std::array<ClassHints, class_count + 1> classes_{};          ///< the last one, for sizes of no class, has a magazine that is full of nothing
    std::array<Page, layout::region_count_max> unknown_from_{};  ///< per region: segments before it hold no unknown page with room
    bool all_known_ = false;                                     ///< no page with room is unknown
};

// `Observed` leaves the call of the observer, and the registers it costs, out of the path without one.

template <bool Observed>
[[gnu::always_inline]] inline void* SmallBlocks::allocate_class(unsigned size_class) {
    ClassHints& hints = classes_[size_class];
    const std::uint64_t block = hints.block;
    if (hints.count != 0) [[likely]] {
        const std::uint64_t hint = hints.granules[hints.count - 1];
        const auto bit = static_cast<int>(hint % 64);
        const std::uint64_t mask = block << bit;
        const Page page = static_cast<Page>(hint / layout::page_granules);
        const PageMap::Hot& hot = pages_.hot(page);
        layout::Pair& pair = hot.pair(hint);
        if (bit <= hints.last_bit && (pair.occupied & mask) == 0 && is_own(hot, page)) [[likely]] {
            --hints.count;
            if constexpr (Observed) span_.announce(&pair, sizeof pair);
            pair.occupied |= mask;
            pair.start = (pair.start & ~mask) | (std::uint64_t{1} << bit);
            if (pair.occupied == ~std::uint64_t{0}) [[unlikely]]
                return pair_filled(hint);
            return address_of(hint);
        }
        return allocate_slowly(size_class);
    }
    Cursor& cursor = hints.cursor;
    if (cursor.candidates != 0) [[likely]] {
        const auto bit = static_cast<int>(std::countr_zero(cursor.candidates));
        const std::uint64_t mask = block << bit;
        layout::Pair& pair = *cursor.pair;
        if (bit <= hints.last_bit && (pair.occupied & mask) == 0) [[likely]] {
            cursor.candidates &= ~mask;
            if constexpr (Observed) span_.announce(&pair, sizeof pair);
            pair.occupied |= mask;
            pair.start = (pair.start & ~mask) | (std::uint64_t{1} << bit);
            if (pair.occupied == ~std::uint64_t{0}) [[unlikely]]
                return pair_filled(cursor.granule + static_cast<unsigned>(bit));
            return address_of(cursor.granule + static_cast<unsigned>(bit));
        }
    }
    return allocate_slowly(size_class);
}

template <bool Observed>
[[gnu::always_inline]] inline FreeResult SmallBlocks::free(const PageMap::Hot& hot, std::uint64_t granule) noexcept {
    layout::Pair& pair = hot.pair(granule);
    const std::uint64_t occupied = read_alone(pair.occupied);
    const std::uint64_t start = read_alone(pair.start);
    const std::uint64_t first = std::uint64_t{1} << (granule % 64);
    if ((start & occupied & first) == 0) [[unlikely]]
        return FreeResult::not_a_block;
    // The block ends before the next start or free granule; without one in this pair it takes longer, and in a page that was full, too.
    const std::uint64_t stop = (start | ~occupied) & ~(first | (first - 1));
    if (stop != 0 && (occupied != ~std::uint64_t{0} || !line_full(hot.line(static_cast<Page>(granule / layout::page_granules))))) [[likely]] {
        const std::uint64_t end = stop & (~stop + 1);
        ClassHints& hints = classes_[class_tables.exact[static_cast<std::uint64_t>(std::countr_zero(stop)) - granule % 64]];
        const unsigned count = hints.count;
        if (count < magazine_slots) [[likely]] {
            if constexpr (Observed) span_.announce(&pair, sizeof pair);
            const std::uint64_t rest = occupied & ~(end - first);
            pair.occupied = rest;
            pair.start = read_alone(start) & ~first;
            hints.count = count + 1;
            hints.granules[count] = granule;
            if (rest == 0) [[unlikely]]
                return pair_emptied(granule);
            return FreeResult::freed;
        }
    }
    return free_slowly(granule);
}

}  // namespace taiyen::heap
