#include "heap/small_blocks.hpp"

#include <algorithm>

#include <taiyen/base/error.hpp>

#include "heap/packed_blocks.hpp"
#include "heap/page_supply.hpp"

namespace taiyen::heap {

namespace {

constexpr unsigned bin_tries = 4;

constexpr std::uint64_t offset_of_granule(Page page, unsigned granule) { return std::uint64_t{page} * page_bytes + granule * layout::granule_bytes; }

}  // namespace

SmallBlocks::SmallBlocks(Content content, const Span& span, PageMap& pages, PageBins& bins, PageSupply& supply, PackedBlocks& packed)
    : span_(span), pages_(pages), bins_(bins), supply_(supply), packed_(packed), content_(content),
      full_(content == Content::any ? PageState::small_full : PageState::pointer_free_full),
      room_(content == Content::any ? PageState::small_room : PageState::pointer_free_room), own_mask_(content == Content::any ? 0b1011 : 0b1110),
      own_state_(content == Content::any ? 0b0001 : 0b1100) {
    for (unsigned size_class = 0; size_class < class_count; ++size_class) {
        const unsigned granules = class_granules(size_class);
        classes_[size_class].block = low_bits(granules);
        classes_[size_class].last_bit = 64 - static_cast<int>(granules);
    }
    classes_[no_class].count = magazine_slots;
}

// Taking and freeing: the truth.

std::uint64_t SmallBlocks::take(Page page, layout::Line& line, unsigned start, unsigned granules) {
    for (unsigned pair = start / 64; pair < 4; ++pair) {
        const std::uint64_t mask = pair_mask(pair, start, granules);
        if (mask == 0) break;
        layout::Pair& place = line.pairs[pair];
        span_.announce(&place, sizeof place);
        place.occupied |= mask;
        place.start = (place.start & ~mask) | (pair == start / 64 ? std::uint64_t{1} << (start % 64) : 0);
    }
    if (line_full(line)) pages_.set_state(page, full_);
    return offset_of_granule(page, start);
}

FreeResult SmallBlocks::free_slowly(std::uint64_t place_granule) noexcept {
    const Page page = static_cast<Page>(place_granule / layout::page_granules);
    const unsigned granule = place_granule % layout::page_granules;
    layout::Line& line = pages_.line(page);
    const unsigned granules = block_granules(line, granule);
    const bool was_full = line_full(line);
    for (unsigned pair = granule / 64; pair < 4; ++pair) {
        const std::uint64_t mask = pair_mask(pair, granule, granules);
        if (mask == 0) break;
        layout::Pair& place = line.pairs[pair];
        span_.announce(&place, sizeof place);
        place.occupied &= ~mask;
        place.start &= ~mask;
    }
    if (was_full) pages_.set_state(page, room_);
    const std::uint8_t size_class = granules <= class_granules_max ? class_tables.exact[granules] : no_class;
    if (size_class != no_class) {
        ClassHints& hints = classes_[size_class];
        if (hints.count == magazine_slots) evict(hints, magazine_slots / 2);
        hints.granules[hints.count++] = place_granule;
    } else {
        file_around(page, granule);
    }
    if (line_empty(line)) page_emptied(page);
    return FreeResult::freed;
}

void SmallBlocks::shrink(Page page, unsigned start, unsigned old_granules, unsigned granules) {
    layout::Line& line = pages_.line(page);
    const bool was_full = line_full(line);
    for (unsigned pair = start / 64; pair < 4; ++pair) {
        const std::uint64_t mask = pair_mask(pair, start + granules, old_granules - granules);
        if (mask == 0) continue;
        layout::Pair& place = line.pairs[pair];
        span_.announce(&place, sizeof place);
        place.occupied &= ~mask;
    }
    if (was_full) pages_.set_state(page, room_);
    file(page);
}

// Allocating: hints first.

std::uint64_t SmallBlocks::allocate(unsigned granules, unsigned alignment) {
    if (granules <= class_granules_max) granules = class_granules(class_tables.rounded[granules]);
    return allocate_unclassed(granules, start_rule(granules) & aligned_starts(alignment));
}

void* SmallBlocks::allocate_slowly(unsigned size_class) {
    const unsigned granules = class_granules(size_class);
    ClassHints& hints = classes_[size_class];
    while (hints.count != 0) {
        const std::uint64_t hint = hints.granules[--hints.count];
        if (try_hint(hint, granules)) return address_of(hint);
    }
    if (hints.cursor.pair != nullptr)
        if (const std::uint64_t offset = advance(hints.cursor, size_class)) return span_.base() + offset;
    return span_.base() + refill(size_class);
}

bool SmallBlocks::try_hint(std::uint64_t granule, unsigned granules) {
    const Page page = static_cast<Page>(granule / layout::page_granules);
    if (!is_own(page)) return false;
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
    const Page page = cursor.page();
    layout::Line& line = pages_.line(page);
    for (;;) {
        while (cursor.candidates != 0) {
            const unsigned bit = static_cast<unsigned>(std::countr_zero(cursor.candidates));
            const unsigned start = cursor.index() * 64 + bit;
            cursor.candidates &= cursor.candidates - 1;
            if (!range_free(line, start, granules)) continue;
            cursor.candidates &= ~low_bits(bit + granules);
            return take(page, line, start, granules);
        }
        if (cursor.index() == 3) break;
        ++cursor.pair;
        cursor.granule += 64;
        cursor.candidates = fitting_starts(line, cursor.index(), granules) & cursor.starts;
    }
    close_cursor(cursor);
    return 0;
}

void SmallBlocks::close_cursor(Cursor& cursor) {
    const Page page = cursor.page();
    cursor = {};
    if (Known* known_page = bins_.known(page); known_page != nullptr && known_page->cursors != 0) --known_page->cursors;
    file(page);
}

std::uint64_t SmallBlocks::starts_of(unsigned granules) const {
    // Blocks of 48 bytes leave each fourth granule over, which only blocks of 16 bytes can use.
    constexpr unsigned leftover_pages_max = 16;
    return granules == 3 && bins_.pages(1) >= leftover_pages_max ? ~std::uint64_t{0} : start_rule(granules);
}

std::uint64_t SmallBlocks::refill(unsigned size_class) {
    const unsigned granules = class_granules(size_class);
    const std::uint64_t starts = starts_of(granules);
    unsigned at = 0;
    Page page = take_fitting(granules, starts, at);
    if (page == 0 && know_some(segments_per_refill)) page = take_fitting(granules, starts, at);
    if (page == 0 && !pages_.find_available(1)) {
        flush_magazines();
        page = take_fitting(granules, starts, at);
    }
    if (page == 0) {
        try {
            page = fresh_page(granules);
            at = 0;
        } catch (const HeapFull&) {
            page = take_fitting(granules, starts, at);  // by now everything is known
            if (page == 0) throw;
        }
    }
    Known* known_page = bins_.make_known(page);
    if (known_page == nullptr)  // nobody would know that a cursor is there: take one block only
        return take(page, pages_.line(page), at, granules);
    ++known_page->cursors;
    layout::Line& line = pages_.line(page);
    const unsigned pair = at / 64;
    Cursor& cursor = classes_[size_class].cursor;
    cursor = {fitting_starts(line, pair, granules) & starts, &line.pairs[pair], std::uint64_t{page} * layout::page_granules + pair * 64, starts};
    return advance(cursor, size_class);
}

std::uint64_t SmallBlocks::allocate_unclassed(unsigned granules, std::uint64_t starts) {
    unsigned at = 0;
    Page page = take_fitting(granules, starts, at);
    if (page == 0 && know_some(segments_per_refill)) page = take_fitting(granules, starts, at);
    if (page == 0) {
        try {
            page = fresh_page(granules);
            at = 0;
        } catch (const HeapFull&) {
            page = take_fitting(granules, starts, at);
            if (page == 0) throw;
        }
    }
    const std::uint64_t offset = take(page, pages_.line(page), at, granules);
    file(page);
    return offset;
}

Page SmallBlocks::take_fitting(unsigned granules, std::uint64_t starts, unsigned& at) {
    for (unsigned bin = bins_.filled_run_bin(granules); bin < PageBins::run_bins; bin = bins_.filled_run_bin(bin + 1)) {
        Page page = bins_.first(bin);
        for (unsigned tries = 0; page != 0 && tries < bin_tries;) {
            Known& entry = *bins_.known(page);
            const Page next = entry.next;
            if (!pages_.is_user(page) || !is_own(page)) {
                bins_.unfile(entry, page);
            } else {
                const layout::Line& line = pages_.line(page);
                at = first_fit(line, granules, starts);
                if (at < layout::page_granules) {
                    bins_.unfile(entry, page);
                    return page;
                }
                if (longest_free(line) == bin)
                    ++tries;
                else
                    file(page);
            }
            page = next;
        }
    }
    return 0;
}

void SmallBlocks::begin(Page page) {
    if (!line_zero(pages_.line(page))) throw_corrupt(span_.offset_of(&pages_.line(page)), "an available page has occupied granules");
    if (content_ == Content::pointer_free) pages_.begin_pointer_free();
    pages_.set_states({page, 1}, room_);
}

Page SmallBlocks::fresh_page(unsigned granules) {
    const Page page = supply_.find(1, 1, granules * layout::granule_bytes);
    begin(page);
    return page;
}

std::uint64_t SmallBlocks::allocate_on_fresh(Page page, unsigned granules) {
    begin(page);
    const std::uint64_t offset = take(page, pages_.line(page), 0, granules);
    file(page);
    return offset;
}

bool SmallBlocks::allocate_at(Page page, unsigned start, unsigned granules) {
    if (pages_.is_available(page))
        begin(page);
    else if (!is_own(page) || !range_free(pages_.line(page), start, granules))
        return false;
    take(page, pages_.line(page), start, granules);
    file(page);
    return true;
}

// Tails of runs.

void SmallBlocks::begin_tail(Page page, unsigned granules) {
    layout::Line& line = pages_.line(page);
    for (unsigned pair = 0; pair < 4; ++pair) {
        const std::uint64_t mask = pair_mask(pair, 0, granules);
        if (mask != 0) span_.store(line.pairs[pair], layout::Pair{mask, 0});
    }
    if (Known* entry = bins_.make_known(page); entry != nullptr && entry->bin == 0 && entry->cursors == 0)
        bins_.link(*entry, page, layout::page_granules - granules);
    else
        file(page);
}

void SmallBlocks::end_tail(Page page, unsigned granules) {
    layout::Line& line = pages_.line(page);
    const bool was_full = line_full(line);
    for (unsigned pair = 0; pair < 4; ++pair) {
        const std::uint64_t mask = pair_mask(pair, 0, granules);
        if (mask != 0) span_.store(line.pairs[pair], layout::Pair{line.pairs[pair].occupied & ~mask, line.pairs[pair].start & ~mask});
    }
    if (was_full) pages_.set_state(page, room_);
    if (line_empty(line))
        page_emptied(page);
    else
        file_around(page, 0);
}

void SmallBlocks::add_tail(Page page, unsigned granules) {
    layout::Line& line = pages_.line(page);
    for (unsigned pair = 0; pair < 4; ++pair) {
        const std::uint64_t mask = pair_mask(pair, 0, granules);
        if (mask != 0) span_.store(line.pairs[pair], layout::Pair{line.pairs[pair].occupied | mask, line.pairs[pair].start & ~mask});
    }
    if (line_full(line)) pages_.set_state(page, full_);
    file(page);
}

bool SmallBlocks::only_tail(Page page, unsigned granules) const {
    const layout::Line& line = pages_.line(page);
    for (unsigned pair = 0; pair < 4; ++pair)
        if (line.pairs[pair].occupied != pair_mask(pair, 0, granules) || line.pairs[pair].start != 0) return false;
    return true;
}

bool SmallBlocks::clear_tail(Page page, unsigned granules) {
    Known* entry = bins_.known(page);
    if (!only_tail(page, granules) || (entry != nullptr && entry->cursors != 0)) return false;
    if (entry != nullptr) bins_.unfile(*entry, page);
    span_.store(pages_.line(page), layout::Line{});
    return true;
}

void SmallBlocks::surrender_tail(Page page) {
    forget({page, 1});
    span_.store(pages_.line(page), layout::Line{});
    pages_.write_states({page, 1}, PageState::available);
}

bool SmallBlocks::reclaim(PageRun run) {
    bool any = false;
    for (Page page = run.first; page < run.first + run.count; ++page) {
        if (content_ == Content::any && pages_.is_packed(page)) any |= packed_.release_if_empty(page);
        if (!is_own(page) || !line_empty(pages_.line(page))) continue;
        forget({page, 1});
        release(page);
        any = true;
    }
    return any;
}

// Bins and what is known.

void SmallBlocks::file(Page page) noexcept {
    Known* entry = bins_.make_known(page);
    if (entry == nullptr) {  // out of memory: found again by a later search for room
        Page& from = unknown_from_[Geometry::region_of(page)];
        from = std::min(from, page / layout::segment_pages);
        all_known_ = false;
        return;
    }
    if (entry->cursors != 0) return;  // filed when the cursor leaves
    const unsigned longest = longest_free(pages_.line(page));
    if (entry->bin == longest + 1) return;
    bins_.unfile(*entry, page);
    if (longest == layout::page_granules && bins_.pages(longest) >= empty_pages_kept)
        release(page);
    else if (longest != 0)
        bins_.link(*entry, page, longest);
}

void SmallBlocks::file_around(Page page, unsigned at) noexcept {
    Known* entry = bins_.known(page);
    if (entry == nullptr || entry->bin == 0) {
        file(page);
        return;
    }
    const unsigned run = free_around(pages_.line(page), at);
    if (run < entry->bin) return;  // what was known is as good
    bins_.unfile(*entry, page);
    if (run == layout::page_granules)
        file(page);
    else
        bins_.link(*entry, page, run);
}

void* SmallBlocks::pair_filled(std::uint64_t granule) {
    const Page page = static_cast<Page>(granule / layout::page_granules);
    if (line_full(pages_.line(page))) pages_.set_state(page, full_);
    return address_of(granule);
}

FreeResult SmallBlocks::pair_emptied(std::uint64_t granule) noexcept {
    const Page page = static_cast<Page>(granule / layout::page_granules);
    if (line_empty(pages_.line(page))) page_emptied(page);
    return FreeResult::freed;
}

void SmallBlocks::page_emptied(Page page) noexcept {
    const Known* entry = bins_.known(page);
    if (entry == nullptr || (entry->cursors == 0 && entry->bin != layout::page_granules + 1)) file(page);
}

void SmallBlocks::release(Page page) { pages_.set_available({page, 1}); }

void SmallBlocks::evict(ClassHints& hints, unsigned count) noexcept {
    for (unsigned i = 0; i < count; ++i) {
        const Page page = static_cast<Page>(hints.granules[i] / layout::page_granules);
        if (is_own(page)) file_around(page, hints.granules[i] % layout::page_granules);
    }
    std::copy(hints.granules.begin() + count, hints.granules.begin() + hints.count, hints.granules.begin());
    hints.count -= count;
}

void SmallBlocks::flush_magazines() {
    for (unsigned size_class = 0; size_class < class_count; ++size_class) evict(classes_[size_class], classes_[size_class].count);
}

bool SmallBlocks::release_empty_pages() {
    flush_magazines();
    bool any = content_ == Content::any && packed_.release_empty_pages();
    for (Page page = bins_.first(layout::page_granules); page != 0;) {
        Known& entry = *bins_.known(page);
        const Page next = entry.next;
        bins_.unfile(entry, page);
        if (pages_.is_user(page) && is_own(page)) {
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
    if (all_known_) return any;
    MetadataProofs& proofs = supply_.proofs();
    proofs.states();
    const Geometry& geometry = pages_.geometry();
    for (unsigned index = 0; index < geometry.count() && pages_.opened(index); ++index) {
        while (const auto segment = pages_.find_roomy_segment(index, unknown_from_[index])) {
            if (segments == 0) return any;
            --segments;
            unknown_from_[index] = *segment + 1;
            for (Page page = *segment * layout::segment_pages; page < (*segment + 1) * layout::segment_pages; ++page) {
                if (!pages_.is_user(page)) continue;
                const PageState state = pages_.state(page);
                const Known* entry = bins_.known(page);
                // Packed pages of either content are in the bins of the first.
                if ((state != room_ && (state != PageState::packed_room || content_ != Content::any)) ||
                    (entry != nullptr && (entry->bin != 0 || entry->cursors != 0)))
                    continue;
                proofs.lines(page);
                if (state == room_)
                    file(page);
                else
                    packed_.file(page);
                any = true;
            }
        }
        unknown_from_[index] = std::max(unknown_from_[index], geometry.region(index).end / layout::segment_pages);
    }
    all_known_ = true;
    return any;
}

bool SmallBlocks::know_all() {
    bool filed = know_some(~0U);
    for (ClassHints& hints : classes_)
        if (hints.cursor.pair != nullptr) {  // what a class has left of its page may serve another one
            close_cursor(hints.cursor);
            filed = true;
        }
    return release_empty_pages() || filed;
}

void SmallBlocks::forget(PageRun run) {
    const Page end = run.first + run.count;
    for (unsigned size_class = 0; size_class < class_count; ++size_class) {
        ClassHints& hints = classes_[size_class];
        if (hints.cursor.pair != nullptr && hints.cursor.page() >= run.first && hints.cursor.page() < end) hints.cursor = {};
        const auto* kept = std::remove_if(hints.granules.data(), hints.granules.data() + hints.count, [&](std::uint64_t granule) {
            return granule / layout::page_granules >= run.first && granule / layout::page_granules < end;
        });
        hints.count = static_cast<unsigned>(kept - hints.granules.data());
    }
    bins_.forget(run.first, end);
    const Geometry& geometry = pages_.geometry();
    for (unsigned index = 0; index < geometry.count(); ++index) {
        const Region& region = geometry.region(index);
        if (run.first < region.end && end > region.first)
            unknown_from_[index] = std::min(unknown_from_[index], std::max(run.first, region.first) / layout::segment_pages);
    }
    all_known_ = false;
}

}  // namespace taiyen::heap
