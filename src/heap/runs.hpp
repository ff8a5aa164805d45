#pragma once
/// Blocks of a page and more: runs of pages, with a tail inside a page of small blocks, or with pages reserved for growth behind them.
///
/// A run is a head page, body pages, and one of: nothing; a tail (the front granules of the next page, occupied without a start); growth pages. Tails lie in pages of content any, those of
/// pointer-free runs, too.
/// (I1) `find` believes a head only if its line agrees with the states of its pages.
/// (I2) Growth pages belong to the run right before them and are given up before anybody gets HeapFull.

#include <optional>

#include "heap/page_supply.hpp"
#include "heap/run_hints.hpp"
#include "heap/small_blocks.hpp"

namespace taiyen::heap {

struct Run {
    Page head = 0;
    Page pages = 0;              ///< full pages
    unsigned tail_granules = 0;  ///< in the page behind them
    Page growth = 0;             ///< pages reserved behind them
    std::uint64_t bytes = 0;
    layout::RunKind kind = layout::RunKind::user;
    Content content = Content::any;
};

class Runs {
public:
    Runs(const Span& span, PageMap& pages, PageSupply& supply, SmallBlocks& small) : span_(span), pages_(pages), supply_(supply), small_(small) {}

    /// Where a new run begins, and how many of its pages had memory.
    struct Place {
        Page head = 0;
        Page dirty = 0;
    };

    /// A run of `bytes` (a multiple of the granule, at least a page), its head a multiple of `alignment` pages. Throws: HeapFull, Error{corrupt}.
    Page allocate(std::uint64_t bytes, Page alignment, Content content, layout::RunKind kind = layout::RunKind::user);
    /// Exactly there; false if a page isn't free. Requires: the pages lie in the extent and in one region.
    bool allocate_at(Page head, std::uint64_t bytes, Content content);
    /// The run whose head the page is; nothing if it is none or contradicts itself. Requires: is_user(page).
    std::optional<Run> find(Page head) const;
    /// The run that a body, growth or tail page belongs to. Requires: is_user(page).
    std::optional<Run> find_owner(Page page) const;
    void free(const Run& run);
    /// As PageSupply::throw_full, for want of capacity.
    [[noreturn]] void throw_full(ByteCount wanted) const { supply_.throw_full(wanted, HeapFull::Cause::capacity); }

    /// Makes the run `pages` full pages in place (its tail becomes a page of its own); up to half as many stay reserved behind it. False if it can't.
    bool resize_in_place(Run run, Page pages);
    /// A run of `pages` pages, with up to half as many behind it reserved for growth if they are free. Its head is a multiple of `alignment` pages where there is room for that.
    Place allocate_growing(Page pages, Page alignment, Content content);
    /// A run of `pages` pages below `before`, if there is room without growing.
    std::optional<Place> allocate_below(Page pages, Page before, Content content);

private:
    void write(Page head, std::uint64_t bytes, Content content, layout::RunKind kind = layout::RunKind::user);
    /// First page of so many available ones that end where a page of small blocks has a free front for the tail, by a hint; 0: none.
    Page find_before_front(Page pages, unsigned tail);
    /// Reserves up to `limit` free pages with disk blocks from `first` on.
    Page reserve(Page first, Page limit);
    void count_growth(std::int64_t pages);

    const Span span_;
    PageMap& pages_;
    PageSupply& supply_;
    SmallBlocks& small_;
    RunHints fronts_;  ///< pages of small blocks behind which a freed run has left a free front, by the run's pages
};

}  // namespace taiyen::heap
