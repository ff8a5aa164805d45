#include "heap/small_blocks.hpp"

#include <algorithm>
#include <new>

#include <taiyen/base/error.hpp>

#include "heap/page_supply.hpp"

namespace taiyen::heap {

namespace {

constexpr unsigned bin_tries = 4;

constexpr std::uint64_t offset_of_granule(Page page, unsigned granule) {
    return std::uint64_t{page} * page_bytes + granule * layout::granule_bytes;
}

}  // namespace

SmallBlocks::SmallBlocks(const Span& span, PageMap& pages, PageSupply& supply)
    : span_(span),
      pages_(pages),
      supply_(supply),
      chunk_count_(pages.geometry().page_end() / chunk_pages + 1),
      chunks_(static_cast<Known**>(std::calloc(chunk_count_, sizeof(Known*)))) {
    if (chunks_ == nullptr)
        throw std::bad_alloc();
}

SmallBlocks::~SmallBlocks() {
    for (std::size_t i = 0; i < chunk_count_; ++i)
        std::free(chunks_[i]);
    std::free(chunks_);
}

// Taking and freeing: the truth.

std::uint64_t SmallBlocks::take(Page page, layout::Line& line, unsigned start, unsigned granules) {
    for (unsigned pair = start / 64; pair < 4; ++pair) {
        const std::uint64_t mask = pair_mask(pair, start, granules);
        if (mask == 0)
            break;
        layout::Pair& place = line.pairs[pair];
        span_.announce(&place, sizeof place);
        place.occupied |= mask;
        place.start = (place.start & ~mask) | (pair == start / 64 ? std::uint64_t{1} << (start % 64) : 0);
    }
    if (line_full(line))
        pages_.set_roomy(page, false);
    return offset_of_granule(page, start);
}

bool SmallBlocks::free(Page page, unsigned granule) noexcept {
    layout::Line& line = pages_.line(page);
    if (((line.pairs[granule / 64].start & line.pairs[granule / 64].occupied) >> (granule % 64) & 1U) == 0)
        return false;
    const unsigned granules = block_granules(line, granule);
    const bool was_full = line_full(line);
    for (unsigned pair = granule / 64; pair < 4; ++pair) {
        const std::uint64_t mask = pair_mask(pair, granule, granules);
        if (mask == 0)
            break;
        layout::Pair& place = line.pairs[pair];
        span_.announce(&place, sizeof place);
        place.occupied &= ~mask;
        place.start &= ~mask;
    }
    if (was_full)
        pages_.set_roomy(page, true);
    const std::uint8_t size_class = granules <= class_granules_max ? class_tables.exact[granules] : no_class;
    if (size_class != no_class) {
        Magazine& magazine = magazines_[size_class];
        if (magazine.count == magazine_slots)
            evict(magazine, magazine_slots / 2);
        magazine.granules[magazine.count++] = std::uint64_t{page} * layout::page_granules + granule;
    } else {
        file(page);
    }
    if (line_empty(line))
        page_emptied(page);
    return true;
}

void SmallBlocks::shrink(Page page, unsigned start, unsigned old_granules, unsigned granules) {
    layout::Line& line = pages_.line(page);
    const bool was_full = line_full(line);
    for (unsigned pair = start / 64; pair < 4; ++pair) {
        const std::uint64_t mask = pair_mask(pair, start + granules, old_granules - granules);
        if (mask == 0)
            continue;
        layout::Pair& place = line.pairs[pair];
        span_.announce(&place, sizeof place);
        place.occupied &= ~mask;
    }
    if (was_full)
        pages_.set_roomy(page, true);
    file(page);
}

// Allocating: hints first.

std::uint64_t SmallBlocks::allocate(unsigned granules, unsigned alignment) {
    if (granules > class_granules_max)
        return allocate_unclassed(granules, start_rule(granules) & aligned_starts(alignment));
    const unsigned size_class = class_tables.rounded[granules];
    granules = class_granules(size_class);
    if (alignment > layout::granule_bytes)
        return allocate_unclassed(granules, start_rule(granules) & aligned_starts(alignment));
    Magazine& magazine = magazines_[size_class];
    while (magazine.count != 0) {
        const std::uint64_t hint = magazine.granules[--magazine.count];
        if (try_hint(hint, granules))
            return hint * layout::granule_bytes;
    }
    Cursor& cursor = cursors_[size_class];
    if (cursor.line != nullptr)
        if (const std::uint64_t offset = advance(cursor, size_class))
            return offset;
    return refill(size_class);
}

bool SmallBlocks::try_hint(std::uint64_t granule, unsigned granules) {
    const Page page = static_cast<Page>(granule / layout::page_granules);
    if (!pages_.is_user(page) || !pages_.is_small(page))
        return false;
    layout::Line& line = pages_.line(page);
    const unsigned start = granule % layout::page_granules;
    if (!range_free(line, start, granules)) {
        file(page);  // what is left of the place must not be lost sight of
        return false;
    }
    take(page, line, start, granules);
    return true;
}

std::uint64_t SmallBlocks::advance(Cursor& cursor, unsigned size_class) {
    const unsigned granules = class_granules(size_class);
    for (;;) {
        while (cursor.candidates != 0) {
            const unsigned bit = static_cast<unsigned>(std::countr_zero(cursor.candidates));
            const unsigned start = cursor.pair * 64 + bit;
            cursor.candidates &= cursor.candidates - 1;
            if (!range_free(*cursor.line, start, granules))
                continue;
            cursor.candidates &= ~low_bits(bit + granules);
            return take(cursor.page, *cursor.line, start, granules);
        }
        if (++cursor.pair == 4)
            break;
        cursor.candidates = fitting_starts(*cursor.line, cursor.pair, granules) & start_rule(granules);
    }
    close_cursor(cursor);
    return 0;
}

void SmallBlocks::open_cursor(Cursor& cursor, Page page, unsigned size_class) {
    layout::Line& line = pages_.line(page);
    const unsigned granules = class_granules(size_class);
    cursor = {fitting_starts(line, 0, granules) & start_rule(granules), &line, page, 0};
}

void SmallBlocks::close_cursor(Cursor& cursor) {
    const Page page = cursor.page;
    cursor = {};
    if (Known* known_page = known(page); known_page != nullptr && known_page->cursors != 0)
        --known_page->cursors;
    file(page);
}

std::uint64_t SmallBlocks::refill(unsigned size_class) {
    const unsigned granules = class_granules(size_class);
    const std::uint64_t starts = start_rule(granules);
    unsigned at = 0;
    Page page = take_fitting(granules, starts, at);
    if (page == 0 && know_some(segments_per_refill))
        page = take_fitting(granules, starts, at);
    if (page == 0 && pages_.longest_available() == 0) {
        flush_magazines();
        page = take_fitting(granules, starts, at);
    }
    if (page == 0) {
        try {
            page = fresh_page(granules);
            at = 0;
        } catch (const HeapFull&) {
            page = take_fitting(granules, starts, at);  // by now everything is known
            if (page == 0)
                throw;
        }
    }
    Known* known_page = make_known(page);
    if (known_page == nullptr)  // nobody would know that a cursor is there: take one block only
        return take(page, pages_.line(page), at, granules);
    ++known_page->cursors;
    open_cursor(cursors_[size_class], page, size_class);
    return advance(cursors_[size_class], size_class);
}

std::uint64_t SmallBlocks::allocate_unclassed(unsigned granules, std::uint64_t starts) {
    unsigned at = 0;
    Page page = take_fitting(granules, starts, at);
    if (page == 0 && know_some(segments_per_refill))
        page = take_fitting(granules, starts, at);
    if (page == 0) {
        try {
            page = fresh_page(granules);
            at = 0;
        } catch (const HeapFull&) {
            page = take_fitting(granules, starts, at);
            if (page == 0)
                throw;
        }
    }
    const std::uint64_t offset = take(page, pages_.line(page), at, granules);
    file(page);
    return offset;
}

Page SmallBlocks::take_fitting(unsigned granules, std::uint64_t starts, unsigned& at) {
    for (unsigned bin = granules; bin < bin_count;) {
        const std::uint64_t rest = filled_[bin / 64] & ~low_bits(bin % 64);
        if (rest == 0) {
            bin = bin / 64 * 64 + 64;
            continue;
        }
        bin = bin / 64 * 64 + static_cast<unsigned>(std::countr_zero(rest));
        Page page = bins_[bin];
        for (unsigned tries = 0; page != 0 && tries < bin_tries;) {
            Known& entry = *known(page);
            const Page next = entry.next;
            if (!pages_.is_user(page) || !pages_.is_small(page)) {
                unfile(entry, page);
            } else {
                const layout::Line& line = pages_.line(page);
                at = first_fit(line, granules, starts);
                if (at < layout::page_granules) {
                    unfile(entry, page);
                    return page;
                }
                if (longest_free(line) == bin)
                    ++tries;
                else
                    file(page);
            }
            page = next;
        }
        ++bin;
    }
    return 0;
}

Page SmallBlocks::fresh_page(unsigned granules) {
    const Page page = supply_.find(1, 1, granules * layout::granule_bytes);
    if (!line_zero(pages_.line(page)))
        throw_corrupt(span_.offset_of(&pages_.line(page)), "an available page has occupied granules");
    pages_.set_states({page, 1}, PageState::small_room);
    return page;
}

std::uint64_t SmallBlocks::allocate_on_fresh(Page page, unsigned granules) {
    if (!line_zero(pages_.line(page)))
        throw_corrupt(span_.offset_of(&pages_.line(page)), "an available page has occupied granules");
    pages_.set_states({page, 1}, PageState::small_room);
    const std::uint64_t offset = take(page, pages_.line(page), 0, granules);
    file(page);
    return offset;
}

bool SmallBlocks::allocate_at(Page page, unsigned start, unsigned granules) {
    if (pages_.is_available(page)) {
        if (!line_zero(pages_.line(page)))
            throw_corrupt(span_.offset_of(&pages_.line(page)), "an available page has occupied granules");
        pages_.set_states({page, 1}, PageState::small_room);
    } else if (!pages_.is_small(page) || !range_free(pages_.line(page), start, granules)) {
        return false;
    }
    take(page, pages_.line(page), start, granules);
    file(page);
    return true;
}

// Tails of runs.

void SmallBlocks::begin_tail(Page page, unsigned granules) {
    layout::Line& line = pages_.line(page);
    for (unsigned pair = 0; pair < 4; ++pair) {
        const std::uint64_t mask = pair_mask(pair, 0, granules);
        if (mask != 0)
            span_.store(line.pairs[pair], layout::Pair{mask, 0});
    }
    file(page);
}

void SmallBlocks::end_tail(Page page, unsigned granules) {
    layout::Line& line = pages_.line(page);
    const bool was_full = line_full(line);
    for (unsigned pair = 0; pair < 4; ++pair) {
        const std::uint64_t mask = pair_mask(pair, 0, granules);
        if (mask != 0)
            span_.store(line.pairs[pair], layout::Pair{line.pairs[pair].occupied & ~mask, line.pairs[pair].start & ~mask});
    }
    if (was_full)
        pages_.set_roomy(page, true);
    if (line_empty(line))
        page_emptied(page);
    else
        file(page);
}

void SmallBlocks::add_tail(Page page, unsigned granules) {
    layout::Line& line = pages_.line(page);
    for (unsigned pair = 0; pair < 4; ++pair) {
        const std::uint64_t mask = pair_mask(pair, 0, granules);
        if (mask != 0)
            span_.store(line.pairs[pair], layout::Pair{line.pairs[pair].occupied | mask, line.pairs[pair].start & ~mask});
    }
    if (line_full(line))
        pages_.set_roomy(page, false);
    file(page);
}

bool SmallBlocks::only_tail(Page page, unsigned granules) const {
    const layout::Line& line = pages_.line(page);
    for (unsigned pair = 0; pair < 4; ++pair)
        if (line.pairs[pair].occupied != pair_mask(pair, 0, granules) || line.pairs[pair].start != 0)
            return false;
    return true;
}

void SmallBlocks::surrender_tail(Page page) {
    forget({page, 1});
    span_.store(pages_.line(page), layout::Line{});
    pages_.write_states({page, 1}, PageState::available);
}

// Bins and what is known.

SmallBlocks::Known* SmallBlocks::make_known(Page page) noexcept {
    Known*& chunk = chunks_[page / chunk_pages];
    if (chunk == nullptr)
        chunk = static_cast<Known*>(std::calloc(chunk_pages, sizeof(Known)));
    return chunk == nullptr ? nullptr : chunk + page % chunk_pages;
}

void SmallBlocks::unfile(Known& entry, Page page) noexcept {
    if (entry.bin == 0)
        return;
    const unsigned bin = entry.bin - 1U;
    if (bins_[bin] == page) {
        bins_[bin] = entry.next;
        if (entry.next == 0)
            filled_[bin / 64] &= ~(std::uint64_t{1} << (bin % 64));
    } else {
        known(entry.previous)->next = entry.next;
    }
    if (entry.next != 0)
        known(entry.next)->previous = entry.previous;
    if (bin == layout::page_granules)
        --empty_pages_;
    entry.next = entry.previous = 0;
    entry.bin = 0;
}

void SmallBlocks::link(Known& entry, Page page, unsigned bin) noexcept {
    entry.bin = static_cast<std::uint16_t>(bin + 1);
    entry.previous = 0;
    entry.next = bins_[bin];
    if (entry.next != 0)
        known(entry.next)->previous = page;
    bins_[bin] = page;
    filled_[bin / 64] |= std::uint64_t{1} << (bin % 64);
    if (bin == layout::page_granules)
        ++empty_pages_;
}

void SmallBlocks::file(Page page) noexcept {
    Known* entry = make_known(page);
    if (entry == nullptr) {  // out of memory: found again by a later search for room
        Page& from = unknown_from_[Geometry::region_of(page)];
        from = std::min(from, page / layout::segment_pages);
        return;
    }
    if (entry->cursors != 0)
        return;  // filed when the cursor leaves
    const unsigned longest = longest_free(pages_.line(page));
    if (entry->bin == longest + 1)
        return;
    unfile(*entry, page);
    if (longest == layout::page_granules && empty_pages_ >= empty_pages_kept)
        release(page);
    else if (longest != 0)
        link(*entry, page, longest);
}

void SmallBlocks::page_emptied(Page page) noexcept {
    const Known* entry = known(page);
    if (entry == nullptr || entry->cursors == 0)
        file(page);
}

void SmallBlocks::release(Page page) {
    pages_.set_states({page, 1}, PageState::available);
}

void SmallBlocks::evict(Magazine& magazine, unsigned count) noexcept {
    Page last = 0;
    for (unsigned i = 0; i < count; ++i) {
        const Page page = static_cast<Page>(magazine.granules[i] / layout::page_granules);
        if (page == last)
            continue;
        last = page;
        if (pages_.is_user(page) && pages_.is_small(page))
            file(page);
    }
    std::copy(magazine.granules.begin() + count, magazine.granules.begin() + magazine.count, magazine.granules.begin());
    magazine.count -= count;
}

void SmallBlocks::flush_magazines() {
    for (Magazine& magazine : magazines_)
        evict(magazine, magazine.count);
}

bool SmallBlocks::release_empty_pages() {
    flush_magazines();
    bool any = false;
    for (Page page = bins_[layout::page_granules]; page != 0;) {
        Known& entry = *known(page);
        const Page next = entry.next;
        unfile(entry, page);
        if (pages_.is_user(page) && pages_.is_small(page)) {
            if (line_empty(pages_.line(page))) {
                release(page);
                any = true;
            } else {
                file(page);
            }
        }
        page = next;
    }
    return any;
}

bool SmallBlocks::know_some(unsigned segments) {
    bool any = false;
    const Geometry& geometry = pages_.geometry();
    for (unsigned index = 0; index < geometry.count() && pages_.opened(index); ++index) {
        while (const auto segment = pages_.find_roomy_segment(index, unknown_from_[index])) {
            if (segments == 0)
                return any;
            --segments;
            unknown_from_[index] = *segment + 1;
            for (Page page = *segment * layout::segment_pages; page < (*segment + 1) * layout::segment_pages; ++page) {
                if (!pages_.is_user(page) || pages_.state(page) != PageState::small_room)
                    continue;
                const Known* entry = known(page);
                if (entry != nullptr && (entry->bin != 0 || entry->cursors != 0))
                    continue;
                file(page);
                any = true;
            }
        }
        unknown_from_[index] = std::max(unknown_from_[index], geometry.region(index).end / layout::segment_pages);
    }
    return any;
}

bool SmallBlocks::know_all() {
    const bool filed = know_some(~0U);
    return release_empty_pages() || filed;
}

unsigned SmallBlocks::longest_known() const {
    for (unsigned word = static_cast<unsigned>(filled_.size()); word-- > 0;)
        if (filled_[word] != 0)
            return word * 64 + static_cast<unsigned>(std::bit_width(filled_[word])) - 1;
    return 0;
}

void SmallBlocks::forget(PageRun run) {
    const Page end = run.first + run.count;
    for (Cursor& cursor : cursors_)
        if (cursor.line != nullptr && cursor.page >= run.first && cursor.page < end)
            cursor = {};
    for (Page page = run.first; page < end;) {
        const Page chunk = page / chunk_pages;
        const Page stop = std::min(end, (chunk + 1) * chunk_pages);
        if (chunk < chunk_count_ && chunks_[chunk] != nullptr)
            for (; page < stop; ++page) {
                Known& entry = chunks_[chunk][page % chunk_pages];
                unfile(entry, page);
                entry.cursors = 0;
            }
        page = stop;
    }
    const Geometry& geometry = pages_.geometry();
    for (unsigned index = 0; index < geometry.count(); ++index) {
        const Region& region = geometry.region(index);
        if (run.first < region.end && end > region.first)
            unknown_from_[index] = std::min(unknown_from_[index], std::max(run.first, region.first) / layout::segment_pages);
    }
}

}  // namespace taiyen::heap
