#include "volatile/thread_blocks.hpp"

#include <algorithm>

namespace taiyen::heap {

namespace {

constexpr unsigned first_limit(unsigned size_class) {
    constexpr unsigned parked_bytes = 8192;
    constexpr unsigned parked_blocks = 62;
    return std::clamp<unsigned>(parked_bytes / (class_granules(size_class) * layout::granule_bytes), 2, parked_blocks);
}

constexpr std::uint32_t page_of_granule(std::uint64_t granule) { return static_cast<std::uint32_t>(granule / layout::page_granules); }

/// The block at [start, start + granules) of the page becomes one: live, or parked (S1).
void take_place(layout::Line& line, unsigned start, unsigned granules, bool live) {
    for (unsigned pair = start / 64; pair < 4; ++pair) {
        const std::uint64_t mask = pair_mask(pair, start, granules);
        if (mask == 0) break;
        const std::uint64_t head = pair == start / 64 ? std::uint64_t{1} << (start % 64) : 0;
        layout::Pair& place = line.pairs[pair];
        // The start first: it ends the block before, whose length another thread may be asking for.
        store_word(place.start, load_word(place.start) | head);
        std::atomic_ref(place.occupied).store(load_word(place.occupied) | (live ? mask : mask & ~head), std::memory_order_release);
    }
}

/// What a page without blocks becomes when a class carves it: the line with all blocks parked, and where they start.
struct FreshPages {
    static constexpr unsigned patterns = class_count + 1;
    /// Blocks of 48 bytes without a gap.
    static constexpr unsigned dense = class_count;
    struct Pattern {
        layout::Line line{};
        std::uint16_t first = 0;  ///< of `starts`
        std::uint16_t count = 0;
    };
    std::array<Pattern, patterns> pages{};
    std::array<std::uint8_t, 1536> starts{};

    constexpr FreshPages() {
        unsigned used = 0;
        for (unsigned which = 0; which < patterns; ++which) {
            const unsigned granules = which == dense ? 3 : class_granules(which);
            const std::uint64_t rule = which == dense ? ~std::uint64_t{0} : start_rule(granules);
            Pattern& page = pages[which];
            page.first = static_cast<std::uint16_t>(used);
            for (unsigned at = 0; at + granules <= layout::page_granules;) {
                if ((rule >> (at % 64) & 1U) == 0) {
                    ++at;
                    continue;
                }
                starts[used++] = static_cast<std::uint8_t>(at);
                ++page.count;
                page.line.pairs[at / 64].start |= std::uint64_t{1} << (at % 64);
                for (unsigned granule = at + 1; granule < at + granules; ++granule)
                    page.line.pairs[granule / 64].occupied |= std::uint64_t{1} << (granule % 64);
                at += granules;
            }
        }
    }
};
constexpr FreshPages fresh_pages{};
static_assert(MagazinePlaces::slots(0) >= layout::page_granules && MagazinePlaces::bytes_max >= page_bytes);  // a whole page fits into a magazine
static_assert(fresh_pages.pages[0].count == 256 && fresh_pages.pages[2].count == 64 && fresh_pages.pages[FreshPages::dense].count == 85);

}  // namespace

ThreadBlocks::ThreadBlocks(const OwnedMap& map)
    : map_(map), pairs_of_zero_(reinterpret_cast<std::uintptr_t>(map.pairs) -
                                reinterpret_cast<std::uintptr_t>(map.base) / layout::granule_bytes / 64 * sizeof(layout::Pair)) {
    for (unsigned size_class = 0; size_class < class_count; ++size_class) {
        magazines_[size_class].top = floor_of(size_class);
        *floor_of(size_class) = nullptr;
    }
    reset_limits();
}

void ThreadBlocks::reset_limits() noexcept {
    for (unsigned size_class = 0; size_class < class_count; ++size_class)
        magazines_[size_class].limit = floor_of(size_class) + first_limit(size_class);
    growth_bytes_ = 0;
}

// Allocating.

std::uint64_t ThreadBlocks::starts_of(unsigned granules) const {
    // Blocks of 48 bytes leave each fourth granule over, which only blocks of 16 bytes can use.
    return granules == 3 && single_pages_ >= leftover_pages_max() ? ~std::uint64_t{0} : start_rule(granules);
}

unsigned ThreadBlocks::leftover_pages_max() const { return std::max<unsigned>(16, segment_count_ / 16); }

bool ThreadBlocks::refill(unsigned size_class, bool mix) {
    const unsigned granules = class_granules(size_class);
    std::uint64_t starts = starts_of(granules);
    if (const std::uint32_t page = current_[size_class]; page != 0) {
        if (carve(page, size_class, starts)) return true;
        leave_current(size_class);
        starts = starts_of(granules);
    }
    std::uint32_t page = 0;
    while ((page = first_[run_bins + size_class]) != 0) {
        unlink(page);
        if (carve(page, size_class, starts)) break;
        refile(page);
    }
    if (page == 0) {
        unsigned at = 0;
        // What blocks of 48 bytes leave over waits for those of 16.
        if (granules == 1 && mix && first_[1] != 0) page = take_page(granules, starts, at);
        if (page == 0) page = take_empty_page();
        if (page == 0 && mix) page = take_page(granules, starts, at);
        if (page == 0) return false;
        const bool fresh = map_.notes[page].blocks == 0;
        occupy_page(page, size_class);
        if (fresh)
            carve_whole(page, size_class, starts);
        else
            carve(page, size_class, starts);
    }
    current_[size_class] = page;
    map_.notes[page].current = 1;
    return true;
}

void* ThreadBlocks::allocate_aligned(unsigned size_class, unsigned alignment) {
    const unsigned granules = class_granules(size_class);
    unsigned at = 0;
    const std::uint32_t page = take_page(granules, aligned_starts(alignment), at);
    if (page == 0) return nullptr;
    occupy_page(page, size_class);
    take_place(map_.line(page), at, granules, true);
    ++map_.notes[page].blocks;
    refile(page);
    return map_.address_of(std::uint64_t{page} * layout::page_granules + at);
}

void ThreadBlocks::carve_whole(std::uint32_t page, unsigned size_class, std::uint64_t starts) noexcept {
    const bool dense = class_granules(size_class) == 3 && starts == ~std::uint64_t{0};
    const FreshPages::Pattern& pattern = fresh_pages.pages[dense ? FreshPages::dense : size_class];
    layout::Line& line = map_.line(page);
    for (unsigned pair = 0; pair < 4; ++pair) {
        store_word(line.pairs[pair].start, pattern.line.pairs[pair].start);
        store_word(line.pairs[pair].occupied, pattern.line.pairs[pair].occupied);
    }
    // Handed out in ascending order, from another quarter in each page: else the first blocks of many pages would fight for the same sets of the cache.
    const unsigned count = pattern.count;
    const unsigned begin = count * (page % 4) / 4;
    std::byte* const granule = map_.base + std::uint64_t{page} * page_bytes;
    std::byte** slot = floor_of(size_class) + count;
    magazines_[size_class].top = slot;
    const std::uint8_t* const start = fresh_pages.starts.data() + pattern.first;
    for (unsigned i = begin; i < count; ++i) *slot-- = granule + start[i] * layout::granule_bytes;
    for (unsigned i = 0; i < begin; ++i) *slot-- = granule + start[i] * layout::granule_bytes;
    map_.notes[page].blocks = static_cast<std::uint16_t>(count);
}

bool ThreadBlocks::carve(std::uint32_t page, unsigned size_class, std::uint64_t starts) {
    std::byte** const blocks = floor_of(size_class) + 1;
    const unsigned limit = limit_of(size_class);
    const unsigned granules = class_granules(size_class);
    const std::uint64_t block = low_bits(granules);
    layout::Line& line = map_.line(page);
    layout::Line taken = taken_line(line);
    unsigned count = 0;
    for (unsigned pair = 0; pair < 4 && count < limit; ++pair) {
        if (taken.pairs[pair].occupied == ~std::uint64_t{0}) continue;
        std::uint64_t fits = fitting_starts(taken, pair, granules) & starts;
        std::byte* const begin = map_.base + std::uint64_t{page} * page_bytes + pair * 64 * layout::granule_bytes;
        std::uint64_t occupied = 0;
        std::uint64_t heads = 0;
        while (fits != 0 && count < limit) {
            const auto bit = static_cast<unsigned>(std::countr_zero(fits));
            const std::uint64_t head = std::uint64_t{1} << bit;
            occupied |= (block << bit) ^ head;
            heads |= head;
            fits &= ~(block << bit);
            blocks[count++] = begin + bit * layout::granule_bytes;
            if (bit + granules > 64) {  // the rest lies in the next pairs
                take_place(line, pair * 64 + bit, granules, false);
                take_place(taken, pair * 64 + bit, granules, true);
                break;
            }
        }
        layout::Pair& place = line.pairs[pair];
        store_word(place.occupied, load_word(place.occupied) | occupied);
        store_word(place.start, load_word(place.start) | heads);
    }
    std::reverse(blocks, blocks + count);  // handed out in ascending order
    magazines_[size_class].top = floor_of(size_class) + count;
    map_.notes[page].blocks = static_cast<std::uint16_t>(map_.notes[page].blocks + count);
    return count != 0;
}

std::uint32_t ThreadBlocks::take_page(unsigned granules, std::uint64_t starts, unsigned& at) noexcept {
    unsigned bin = granules;
    while (bin < run_bins) {
        const std::uint64_t word = filled_[bin / 64] >> (bin % 64);
        if (word == 0) {
            bin = (bin / 64 + 1) * 64;
            continue;
        }
        bin += static_cast<unsigned>(std::countr_zero(word));
        std::uint32_t page = first_[bin];
        for (unsigned tries = 0; page != 0 && tries < bin_tries; ++tries) {
            at = first_fit(taken_line(map_.line(page)), granules, starts);
            if (at < layout::page_granules) {
                unlink(page);
                return page;
            }
            page = map_.notes[page].next;
        }
        ++bin;
    }
    at = 0;
    return take_empty_page();
}

std::uint32_t ThreadBlocks::take_empty_page() noexcept {
    if (const std::uint32_t page = first_[layout::page_granules]; page != 0) {
        unlink(page);
        return page;
    }
    if (fresh_ == nullptr || fresh_->fresh == 0) return 0;
    const auto index = static_cast<unsigned>(std::countr_zero(fresh_->fresh));
    fresh_->fresh &= fresh_->fresh - 1;
    return map_.number_of(*fresh_) * layout::segment_pages + index;
}

void ThreadBlocks::occupy_page(std::uint32_t page, unsigned size_class) noexcept {
    PageNote& note = map_.notes[page];
    if (note.blocks == 0) {
        note.size_class = static_cast<std::uint8_t>(size_class);
        SegmentHead& segment = map_.segments[page / layout::segment_pages];
        if (segment.pages_in_use++ == 0) --empty_segments_;
    } else if (note.size_class != size_class) {
        note.size_class = no_class;
    }
}

void ThreadBlocks::leave_current(unsigned size_class) noexcept {
    const std::uint32_t page = current_[size_class];
    current_[size_class] = 0;
    map_.notes[page].current = 0;
    if (map_.notes[page].blocks == 0)
        page_emptied(page);
    else
        refile(page);
}

// Freeing.

bool ThreadBlocks::free(std::uint64_t granule) noexcept {
    if (!is_live(map_, granule)) return false;
    unsigned size_class = map_.notes[granule / layout::page_granules].size_class;
    if (size_class == no_class) size_class = class_tables.exact[granules_at(map_, granule)];
    Magazine& magazine = magazines_[size_class];
    if (magazine.top >= magazine.limit) relieve(size_class);
    layout::Pair& pair = map_.pairs[granule / 64];
    store_word(pair.occupied, load_word(pair.occupied) & ~(std::uint64_t{1} << (granule % 64)));
    *++magazine.top = map_.address_of(granule);
    return true;
}

void ThreadBlocks::relieve(unsigned size_class) noexcept {
    const unsigned limit = limit_of(size_class);
    const unsigned more = std::min(limit / 2 + 1, MagazinePlaces::slots(size_class) - limit);
    const unsigned bytes = more * class_granules(size_class) * layout::granule_bytes;
    if (more != 0 && growth_bytes_ + bytes <= growth_bytes_max) {
        magazines_[size_class].limit += more;
        growth_bytes_ += bytes;
    } else {
        evict(size_class, (limit + 1) / 2);
    }
}

void ThreadBlocks::evict(unsigned size_class, unsigned count) noexcept {
    if (count == 0) return;
    const unsigned granules = class_granules(size_class);
    Magazine& magazine = magazines_[size_class];
    std::byte** const blocks = floor_of(size_class) + 1;
    for (unsigned i = 0; i < count;) i += release(blocks + i, count - i, granules);
    std::copy(blocks + count, magazine.top + 1, blocks);
    magazine.top -= count;
}

unsigned ThreadBlocks::release(std::byte* const* blocks, unsigned count, unsigned granules) noexcept {
    const std::uint64_t granule = map_.granule_of(*blocks);
    const std::uint32_t page = page_of_granule(granule);
    const unsigned start = granule % layout::page_granules;
    layout::Line& line = map_.line(page);
    layout::Pair& first = line.pairs[start / 64];
    unsigned released = 1;
    std::uint64_t heads = std::uint64_t{1} << (start % 64);
    std::uint64_t all = low_bits(granules) << (start % 64);
    if (start % 64 + granules > 64) {
        for (unsigned pair = start / 64 + 1; pair < 4; ++pair) {
            const std::uint64_t mask = pair_mask(pair, start, granules);
            store_word(line.pairs[pair].occupied, load_word(line.pairs[pair].occupied) & ~mask);
        }
    } else {
        // Blocks that were carved or freed one after the other often lie in the same 64 granules: one change for all.
        const auto first_address = reinterpret_cast<std::uintptr_t>(*blocks);
        for (; released < count; ++released) {
            const auto next = reinterpret_cast<std::uintptr_t>(blocks[released]);
            const std::uintptr_t bit = next / layout::granule_bytes % 64;
            if ((next ^ first_address) / (64 * layout::granule_bytes) != 0 || bit + granules > 64) break;
            heads |= std::uint64_t{1} << bit;
        }
        all = heads * low_bits(granules);  // they don't overlap
    }
    store_word(first.occupied, load_word(first.occupied) & ~all);
    store_word(first.start, load_word(first.start) & ~heads);
    PageNote& note = map_.notes[page];
    note.blocks = static_cast<std::uint16_t>(note.blocks - released);
    if (note.current != 0) return released;  // filed when its class leaves it
    if (note.blocks == 0) {
        if (note.bin != 0) unlink(page);
        page_emptied(page);
    } else if (note.size_class != no_class) {
        if (note.bin < run_bins) {
            if (note.bin != 0) unlink(page);
            file_pure(page, note.size_class);
        }
    } else if (released == 1) {
        file_around(page, start);
    } else {
        if (note.bin != 0) unlink(page);
        refile(page);
    }
    return released;
}

void ThreadBlocks::file_around(std::uint32_t page, unsigned at) noexcept {
    // The longest run is the one that was known, or the one that has just grown.
    const unsigned bin = map_.notes[page].bin;
    const unsigned run = free_around(taken_line(map_.line(page)), at);
    if (run <= bin) return;
    if (bin != 0) unlink(page);
    link(page, run);
}

unsigned ThreadBlocks::hot_pages_max() const noexcept { return std::clamp<unsigned>(segment_count_ / 16, 64, 256); }

void ThreadBlocks::file_pure(std::uint32_t page, unsigned size_class) noexcept {
    link(page, run_bins + size_class);
    if (hot_pages_[size_class] <= hot_pages_max()) return;
    const std::uint32_t oldest = oldest_[size_class];
    unlink(oldest);
    refile(oldest);
}

void ThreadBlocks::refile(std::uint32_t page) noexcept {
    const unsigned longest = longest_free(taken_line(map_.line(page)));
    if (longest != 0) link(page, longest);
}

void ThreadBlocks::page_emptied(std::uint32_t page) noexcept {
    link(page, layout::page_granules);
    SegmentHead& segment = map_.segments[page / layout::segment_pages];
    if (--segment.pages_in_use != 0) return;
    ++empty_segments_;
    // To the front, where who looks for one begins.
    SegmentHead* const fresh = fresh_;
    unlink_segment(segment);
    link_segment(segment);
    fresh_ = fresh;
}

// Bins.

void ThreadBlocks::link(std::uint32_t page, unsigned bin) noexcept {
    PageNote& note = map_.notes[page];
    note.bin = static_cast<std::uint16_t>(bin);
    note.previous = 0;
    note.next = first_[bin];
    if (note.next != 0) map_.notes[note.next].previous = page;
    first_[bin] = page;
    if (bin < run_bins) {
        filled_[bin / 64] |= std::uint64_t{1} << (bin % 64);
        if (bin == 1) ++single_pages_;
    } else {
        if (note.next == 0) oldest_[bin - run_bins] = page;
        ++hot_pages_[bin - run_bins];
    }
}

void ThreadBlocks::unlink(std::uint32_t page) noexcept {
    PageNote& note = map_.notes[page];
    const unsigned bin = note.bin;
    if (note.next != 0) map_.notes[note.next].previous = note.previous;
    if (note.previous != 0)
        map_.notes[note.previous].next = note.next;
    else
        first_[bin] = note.next;
    if (bin < run_bins) {
        if (first_[bin] == 0) filled_[bin / 64] &= ~(std::uint64_t{1} << (bin % 64));
        if (bin == 1) --single_pages_;
    } else {
        if (note.next == 0) oldest_[bin - run_bins] = note.previous;
        --hot_pages_[bin - run_bins];
    }
    note.bin = 0;
    note.next = 0;
    note.previous = 0;
}

// Segments.

void ThreadBlocks::announce(SegmentHead& segment) noexcept {
    SegmentHead* head = inbox_.load(std::memory_order_relaxed);
    do {
        segment.next_queued.store(head, std::memory_order_relaxed);
    } while (!inbox_.compare_exchange_weak(head, &segment, std::memory_order_release, std::memory_order_relaxed));
}

void ThreadBlocks::link_segment(SegmentHead& segment) noexcept {
    segment.previous = nullptr;
    segment.next = segments_;
    if (segments_ != nullptr) segments_->previous = &segment;
    segments_ = &segment;
    ++segment_count_;
}

void ThreadBlocks::unlink_segment(SegmentHead& segment) noexcept {
    if (segment.next != nullptr) segment.next->previous = segment.previous;
    if (segment.previous != nullptr)
        segment.previous->next = segment.next;
    else
        segments_ = segment.next;
    if (fresh_ == &segment) fresh_ = nullptr;
    --segment_count_;
}

void ThreadBlocks::take(SegmentHead& segment) noexcept {
    // A stretch that was not used to its end stays reachable through the bins.
    if (fresh_ != nullptr)
        for (; fresh_->fresh != 0; fresh_->fresh &= fresh_->fresh - 1)
            link(map_.number_of(*fresh_) * layout::segment_pages + static_cast<unsigned>(std::countr_zero(fresh_->fresh)), layout::page_granules);
    segment.fresh = (1U << layout::segment_pages) - 1;
    segment.pages_in_use = 0;
    link_segment(segment);
    fresh_ = &segment;
    ++empty_segments_;
    segment.owner.exchange(reinterpret_cast<std::uintptr_t>(this), std::memory_order_seq_cst);
}

bool ThreadBlocks::disown(SegmentHead& segment, std::uintptr_t to) noexcept {
    auto word = reinterpret_cast<std::uintptr_t>(this);
    return segment.owner.compare_exchange_strong(word, to, std::memory_order_seq_cst);  // (S3)
}

bool ThreadBlocks::adopt(ThreadBlocks& from, unsigned granules) noexcept {
    std::uint32_t page = 0;
    for (unsigned bin = run_bins - 1; bin >= granules && page == 0; --bin) page = from.first_[bin];
    SegmentHead* segment = page != 0 ? &map_.segments[page / layout::segment_pages] : nullptr;
    if (segment == nullptr && from.fresh_ != nullptr && from.fresh_->fresh != 0) segment = from.fresh_;
    if (segment == nullptr || !from.disown(*segment, reinterpret_cast<std::uintptr_t>(this))) return false;
    const std::uint32_t first = map_.number_of(*segment) * layout::segment_pages;
    for (std::uint32_t own = first; own < first + layout::segment_pages; ++own) {
        const unsigned bin = map_.notes[own].bin;
        if (bin != 0) from.unlink(own);
        const bool fresh = (segment->fresh >> (own - first) & 1U) != 0;
        if (bin != 0 || fresh) link(own, fresh ? layout::page_granules : bin);
    }
    segment->fresh = 0;
    from.unlink_segment(*segment);
    link_segment(*segment);
    if (segment->pages_in_use == 0) {
        --from.empty_segments_;
        ++empty_segments_;
    }
    return true;
}

void ThreadBlocks::settle() noexcept {
    for (unsigned size_class = 0; size_class < class_count; ++size_class) {
        if (current_[size_class] != 0) leave_current(size_class);
        evict(size_class, count_of(size_class));
    }
    reset_limits();
    for (unsigned size_class = 0; size_class < class_count; ++size_class)
        while (const std::uint32_t page = first_[run_bins + size_class]) {
            unlink(page);
            refile(page);
        }
}

SegmentHead* ThreadBlocks::surrender_empty(unsigned kept) noexcept {
    if (empty_segments_ <= kept) return nullptr;
    SegmentHead* segment = segments_;
    while (segment != nullptr && (segment->pages_in_use != 0 || segment == fresh_)) segment = segment->next;
    if (segment == nullptr && kept == 0 && fresh_ != nullptr && fresh_->pages_in_use == 0) segment = fresh_;
    if (segment == nullptr || !disown(*segment, segment_of_nobody)) return nullptr;
    const std::uint32_t first = map_.number_of(*segment) * layout::segment_pages;
    for (std::uint32_t page = first; page < first + layout::segment_pages; ++page)
        if (map_.notes[page].bin != 0) unlink(page);
    segment->fresh = 0;
    unlink_segment(*segment);
    --empty_segments_;
    return segment;
}

}  // namespace taiyen::heap
