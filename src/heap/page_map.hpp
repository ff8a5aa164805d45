#pragma once
/// The truth about pages: state words and the tree of summaries over them, region by region. Volatile are only a few hints where to find a run that fits.
///
/// (I1) A summary equals what its children say, except that `longest` of the lowest level may be too large: each changing call here ends with that.
///      A search that was promised too much makes it true.
/// (I2) Pages beyond the extent and metadata pages are `absent`, and so are pages of zones that no block lies over: searches by states pass them by.
/// (I3) Values read from the span are compared with the geometry before they are used; a lie is Error{corrupt}.
/// Complexity: refreshing after a change touches O(log16 of the region's pages) summaries; finding a run too, amortised over the allocations since the last search.

#include <optional>
#include <utility>

#include <taiyen/heap/detail/access.hpp>

#include "heap/geometry.hpp"
#include "heap/run_hints.hpp"
#include "heap/span.hpp"

namespace taiyen::heap {

using layout::PageState;

/// Throws Error{corrupt} that names the place.
[[noreturn]] void throw_corrupt(std::uint64_t offset, const char* what);

/// Pages [first, first + count).
struct PageRun {
    Page first = 0;
    Page count = 0;
};

class PageMap {
public:
    PageMap(const Span& span, const Geometry& geometry, bool read_only) : span_(span), geometry_(geometry), read_only_(read_only) { bind(); }

    /// Reads the extent from the super block. Throws: Error{corrupt}.
    void reload();
    Page extent() const { return extent_; }
    /// Blocks at smaller offsets may be freed: the extent in bytes, 0 in a heap opened for reading.
    std::uint64_t free_end() const { return free_end_; }
    /// Whether the page lies in the extent and is not metadata.
    bool is_user(Page page) const { return page < extent_ && page >= hot(page).first_user; }

    /// Requires of these: is_user(page).
    PageState state(Page page) const { return static_cast<PageState>((*word(page) >> (page % layout::segment_pages * 4)) & 0xFU); }
    /// Of either content.
    bool is_small(Page page) const { return hot(page).is_small(page) || is_pointer_free_small(page); }
    bool is_pointer_free_small(Page page) const { return state(page) == PageState::pointer_free_room || state(page) == PageState::pointer_free_full; }
    bool is_small(Page page, Content content) const { return content == Content::any ? hot(page).is_small(page) : is_pointer_free_small(page); }
    bool is_packed(Page page) const { return state(page) == PageState::packed_room || state(page) == PageState::packed_full; }
    bool is_available(Page page) const { return layout::is_available(state(page)); }
    layout::Line& line(Page page) const { return hot(page).line(page); }
    layout::PackedLine& packed_line(Page page) const { return reinterpret_cast<layout::PackedLine&>(line(page)); }
    /// What blocks that begin on the page hold.
    Content content_of(Page page) const;
    layout::RunLine& run_line(Page page) const { return reinterpret_cast<layout::RunLine&>(line(page)); }

    /// Writes states; of the summaries only the counts of children with room follow: `refresh…` must come next.
    void write_states(PageRun run, PageState state);
    /// Writes the states of a run of `pages` pages, and of a tail's page behind it.
    void write_run_states(Page head, Page pages, bool tail);
    /// Makes the summaries above the pages true again.
    void refresh(PageRun run);
    /// The same if all of the pages became available, or all became unavailable.
    void refresh_uniform(PageRun run, bool available);
    void set_states(PageRun run, PageState state) {
        write_states(run, state);
        refresh_uniform(run, layout::is_available(state));
    }
    /// The pages become available in that state, but for those of zones.
    void set_available(PageRun run, PageState state = PageState::available) {
        set_states(run, state);
        geometry_.for_each_zone(run.first, run.first + run.count, [this](Page first, Page end) {
            set_states({first, end - first}, PageState::absent);
            zones_were_used_ = true;
        });
    }
    /// The same as `write_states`.
    void write_available(PageRun run, PageState state = PageState::available) {
        write_states(run, state);
        geometry_.for_each_zone(run.first, run.first + run.count, [this](Page first, Page end) {
            write_states({first, end - first}, PageState::absent);
            zones_were_used_ = true;
        });
    }
    /// Pages of zones among these become available where no block lies over them.
    void open_zones(PageRun run);
    /// What is available in zones among these is so no longer.
    void close_zones(PageRun run);
    /// Whether pages of zones may have memory though no block lies over them; false from then on, until there are such pages again.
    bool take_zones_were_used() { return std::exchange(zones_were_used_, false); }
    /// From no room to room, or back, of one page of small or packed blocks.
    void set_state(Page page, PageState state);

    /// Pages from `first` on, at most `limit`, that are in `state`; they end with their region.
    Page count_equal(Page first, Page limit, PageState state) const;
    /// Whether one of these pages, all available, is released.
    bool any_released(PageRun run) const;
    /// Released pages among these.
    Page count_released(PageRun run) const;
    struct Counts {
        std::uint64_t used = 0;
        std::uint64_t available = 0;  ///< and not released
        std::uint64_t released = 0;
    };
    /// Of all user pages, but for those of zones that no block lies over.
    Counts count_states() const;
    /// Whether released pages may be used like others, as memory comes by itself: then fresh pages count as released.
    bool memory_comes_with_use() const { return fresh_state_ == PageState::released; }
    void set_memory_comes_with_use() { fresh_state_ = PageState::released; }
    /// Pages from `first` on, at most `limit`, that are available (released ones too).
    Page count_available(Page first, Page limit) const;
    /// Like `count_available`, with pages of zones that no block lies over. Complexity: O(log16 of the pages) for each stretch between zones.
    Page count_over_zones(Page first, Page limit) const;
    Page count_over_zones_before(Page end, Page limit) const;
    /// Available pages right before `end`, at most `limit`, within its region's user pages.
    Page count_available_before(Page end, Page limit) const;

    /// The last page at or before `page`, in its region's user pages, that is neither run_body nor growth; the region's first user page if all are.
    Page skip_back(Page page) const;

    /// First page of a run of at least `count` available pages, by a hint: the shortest that lately came into being and is long enough.
    std::optional<Page> take_hint(Page count);
    /// First page of the lowest run of `count` available pages. Throws: Error{corrupt}.
    std::optional<Page> find_available(Page count);
    /// The same with the first page a multiple of `alignment` (a power of two). Complexity: linear in the extent if there are many shorter or unaligned runs.
    std::optional<Page> find_aligned(Page count, Page alignment);
    /// First page of the lowest run of `count` (at least 16) available pages at or behind `from` that all have memory, its first page a multiple of `alignment`. Looks at 65,536 pages
    /// at most, a word for 16 of them. Nothing: none is among them.
    std::optional<Page> find_with_memory(Page from, Page count, Page alignment) const;
    /// First page of a run of `count` pages that are available or closed in zones, a multiple of `alignment`; it lies over a zone. A run that begins outside zones comes first.
    /// Writes nothing. Throws: Error{corrupt}. Complexity: linear in the words of zones.
    std::optional<Page> find_over_zones(Page count, Page alignment) const;
    /// Longest run of available pages and those of zones, exactly. Complexity: linear in the lowest summaries at worst.
    Page longest_available() const;

    /// First segment (page number / 16) of the region at or behind `from` that has a page with room.
    std::optional<Page> find_roomy_segment(unsigned region, Page from) const;

    /// Makes [extent, end) part of the extent: its user pages become available, but for zones. Requires: the host has extended.
    void adopt(Page end);

    /// First page at or behind `page` that is a user page of the extent; the extent if none.
    Page next_user(Page page) const;
    const Geometry& geometry() const { return geometry_; }
    const layout::Summary& root(unsigned region) const { return super().regions[region]; }
    layout::SuperBlock& super() const { return *span_.at<layout::SuperBlock>(0); }
    /// There is going to be a pointer-free block.
    void begin_pointer_free() {
        if (super().version != layout::version_with_content) span_.store(super().version, layout::version_with_content);
    }
    std::uint64_t* word(Page page) const { return hot(page).word(page); }
    /// Whether the region has pages in the extent.
    bool opened(unsigned region) const { return extent_ > geometry_.region(region).first_user; }

    /// What a summary should say, from its children: `level` as in Region::level_offset, `levels` for the root; `index` within the level.
    layout::Summary computed(unsigned region, unsigned level, Page index) const;
    layout::Summary& stored(unsigned region, unsigned level, Page index) const;
    /// Whether a summary says what (I1) demands.
    bool agrees(unsigned region, unsigned level, Page index) const;
    static std::uint64_t span_pages(unsigned level) { return std::uint64_t{layout::segment_pages} << (4 * (level + 1)); }

    /// What the paths of nanoseconds need of a region.
    struct Hot {
        std::uintptr_t lines;   ///< where page 0's line would be if the region's lines began there
        std::uintptr_t states;  ///< likewise, its word
        Page first_user;

        std::uint64_t* word(Page page) const { return reinterpret_cast<std::uint64_t*>(states) + page / layout::segment_pages; }
        layout::Line& line(Page page) const { return reinterpret_cast<layout::Line*>(lines)[page]; }
        /// `granule`: span offset / 16.
        layout::Pair& pair(std::uint64_t granule) const { return reinterpret_cast<layout::Pair*>(lines)[granule / 64]; }
        /// With content of any kind.
        bool is_small(Page page) const { return ((*word(page) >> (page % layout::segment_pages * 4)) & 0b1011U) == 1; }
    };
    const Hot& hot(Page page) const { return hot_[Geometry::region_of(page)]; }

private:
    void bind();
    /// Replaces a state word and keeps the counts of children with room.
    void write_word(Page page, std::uint64_t fresh);
    /// The same for `count` words from that of `first` on, which all become `pattern`.
    void write_words(Page first, Page count, std::uint64_t pattern);
    /// Recomputes the parents of the nodes [from, to] of `level`, upwards as far as something changes.
    void refresh_above(unsigned region, unsigned level, Page from, Page to);
    /// A page of the region got the first room of its segment, or lost the last.
    void count_room(unsigned region, Page page, bool roomy);
    void set_extent(Page extent) {
        extent_ = extent;
        free_end_ = read_only_ ? 0 : std::uint64_t{extent} * page_bytes;
    }
    /// First page of the lowest such run in the region, whose root promises one; nothing: a promise turned out to be too large, and is no more.
    std::optional<Page> find_in(unsigned region, Page count);
    /// The longest run below the node, or `least` if that is longer.
    Page longest_below(unsigned region, unsigned level, Page node, Page least) const;
    /// Calls `visit(PageRun)`, ascending, for each longest run with closed pages of zones in it, until it returns false.
    template <class F>
    void for_each_run_over_zones(F&& visit) const {
        bool goes_on = true;
        Page seen = 0;
        geometry_.for_each_zone(0, extent_, [&](Page first, Page end) {
            for (Page page = std::max(first, seen); goes_on && page < end; ++page) {
                if (state(page) != PageState::absent) continue;
                const Page before = count_over_zones_before(page, page);
                const Page count = before + count_over_zones(page, extent_ - page);
                goes_on = visit(PageRun{page - before, count});
                seen = page - before + count;
                page = seen;
            }
        });
    }
    Page longest_over_zones() const;
    /// Available pages from `first` on, or right before `end`, up to a page of the same region, by summaries.
    Page count_by_summaries(Page first, Page end) const;
    Page count_by_summaries_before(Page end, Page least) const;
    /// Behind the pages that a scan from `first` over at most `limit` pages may visit.
    Page scan_end(Page first, Page limit) const;

    const Span span_;
    const Geometry& geometry_;
    bool read_only_;
    PageState fresh_state_ = PageState::available;
    bool zones_were_used_ = false;
    RunHints hints_;
    Page extent_ = 0;
    std::uint64_t free_end_ = 0;
    std::array<Hot, layout::region_count_max + 8> hot_{};
};

}  // namespace taiyen::heap
