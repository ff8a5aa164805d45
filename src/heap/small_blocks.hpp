#pragma once
/// Blocks of less than a page: cursors, magazines and best-fit bins over pages of small blocks.
///
/// (I1) The truth is the lines. Cursors, magazines and bins are hints: what they propose is compared with the line before it is taken.
/// (I2) A page is taken from the supply when no hint fits, and goes back when its last block went and enough empty pages are kept.
/// (I3) After `attach` nothing is known; pages become known when they are used or when a refill looks for room (a bounded number per refill).
/// (I4) A free never allocates memory that it can't do without, and never touches the user's page.

#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "heap/line.hpp"
#include "heap/page_map.hpp"
#include "heap/size_classes.hpp"

namespace taiyen::heap {

class PageSupply;

class SmallBlocks {
public:
    SmallBlocks(const Span& span, PageMap& pages, PageSupply& supply);
    ~SmallBlocks();
    SmallBlocks(const SmallBlocks&) = delete;
    SmallBlocks& operator=(const SmallBlocks&) = delete;

    /// Offset of a block of `granules` (1 … small_granules_max), aligned to `alignment` ≤ 1024. Throws: HeapFull, Error{corrupt}.
    std::uint64_t allocate(unsigned granules, unsigned alignment = layout::granule_bytes);
    /// A block at the front of that available page (which the supply handed out).
    std::uint64_t allocate_on_fresh(Page page, unsigned granules);
    /// Takes exactly that place in an available or small page; false if something lies there. Requires: is_user(page), backed by disk blocks.
    bool allocate_at(Page page, unsigned start, unsigned granules);
    /// Requires: is_small(page). False if no block starts there.
    bool free(Page page, unsigned granule) noexcept;
    /// Shrinks a block in place.
    void shrink(Page page, unsigned start, unsigned old_granules, unsigned granules);

    /// The page's front granules now belong to the run before it. Requires: the page is available.
    void begin_tail(Page page, unsigned granules);
    /// Frees front granules that belonged to the run before it.
    void end_tail(Page page, unsigned granules);
    /// The same in a page of small blocks whose front is free.
    void add_tail(Page page, unsigned granules);
    /// Whether nothing but the run's tail lies in the page.
    bool only_tail(Page page, unsigned granules) const;
    /// Turns such a page into an available one; `refresh` must follow.
    void surrender_tail(Page page);

    /// Gives pages without blocks back to the page map; true if there were any.
    bool release_empty_pages();
    /// Looks at each page with room that is not known yet, then releases empty ones. True if any page was released or any hint filed.
    bool know_all();
    /// Largest number of granules that a page of small blocks could give, by what is known.
    unsigned longest_known() const;

    /// Drops the hints about pages [first, first + count).
    void forget(PageRun run);

private:
    static constexpr unsigned magazine_slots = 30;
    static constexpr unsigned empty_pages_kept = 32;
    static constexpr unsigned segments_per_refill = 8;
    static constexpr Page chunk_pages = 256;

    struct Magazine {
        unsigned count = 0;
        std::array<std::uint64_t, magazine_slots> granules{};  ///< span offset / 16, oldest first
    };
    /// The page that a class fills, and the start positions of one of its pairs.
    struct Cursor {
        std::uint64_t candidates = 0;
        layout::Line* line = nullptr;  ///< null: none
        Page page = 0;
        unsigned pair = 0;
    };
    /// What is known about a page; all zero: nothing.
    struct Known {
        Page next;
        Page previous;
        std::uint16_t bin;     ///< 0: in no bin; else longest free run + 1
        std::uint16_t cursors; ///< classes whose cursor is here
    };
    static constexpr unsigned bin_count = layout::page_granules + 1;

    std::uint64_t refill(unsigned size_class);
    std::uint64_t allocate_unclassed(unsigned granules, std::uint64_t starts);
    /// A page with a fitting start (written to `at`), out of the bins. 0: none.
    Page take_fitting(unsigned granules, std::uint64_t starts, unsigned& at);
    Page fresh_page(unsigned granules);
    std::uint64_t advance(Cursor& cursor, unsigned size_class);
    void open_cursor(Cursor& cursor, Page page, unsigned size_class);
    void close_cursor(Cursor& cursor);
    bool know_some(unsigned segments);

    std::uint64_t take(Page page, layout::Line& line, unsigned start, unsigned granules);
    bool try_hint(std::uint64_t granule, unsigned granules);
    void flush_magazines();
    void evict(Magazine& magazine, unsigned count) noexcept;
    /// Puts the page into the bin of its longest free run.
    void file(Page page) noexcept;
    void unfile(Known& known, Page page) noexcept;
    void link(Known& known, Page page, unsigned bin) noexcept;
    void page_emptied(Page page) noexcept;
    void release(Page page);

    Known* known(Page page) const { return chunks_[page / chunk_pages] == nullptr ? nullptr : chunks_[page / chunk_pages] + page % chunk_pages; }
    Known* make_known(Page page) noexcept;

    const Span& span_;
    PageMap& pages_;
    PageSupply& supply_;
    std::array<Magazine, class_count> magazines_{};
    std::array<Cursor, class_count> cursors_{};
    std::array<Page, bin_count> bins_{};                   ///< first page of each bin, 0: empty
    std::array<std::uint64_t, (bin_count + 63) / 64> filled_{};  ///< bit b: bin b is not empty
    unsigned empty_pages_ = 0;                             ///< pages in the last bin
    std::array<Page, layout::region_count_max> unknown_from_{};  ///< per region: segments before it hold no unknown page with room
    std::size_t chunk_count_ = 0;
    Known** chunks_ = nullptr;
};

}  // namespace taiyen::heap
