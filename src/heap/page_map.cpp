#include "heap/page_map.hpp"

#include <algorithm>
#include <string>

#include <taiyen/base/error.hpp>

#include "heap/line.hpp"
#include "heap/packed_page.hpp"

namespace taiyen::heap {

using layout::segment_pages;
using layout::Summary;

namespace {

constexpr std::uint64_t every_page = 0x1111'1111'1111'1111ULL;
constexpr std::uint64_t top_bits = every_page << 3U;

/// The highest bit of each page that is available.
constexpr std::uint64_t available_bits(std::uint64_t word) { return word & ~(word << 1U) & top_bits; }

/// Bit i of the result: page i of the word is available.
std::uint32_t available_mask(std::uint64_t word) {
    std::uint64_t bits = available_bits(word) >> 3U;
    bits = (bits | bits >> 3U) & 0x0303'0303'0303'0303ULL;
    bits = (bits | bits >> 6U) & 0x000F'000F'000F'000FULL;
    bits = (bits | bits >> 12U) & 0x0000'00FF'0000'00FFULL;
    return static_cast<std::uint32_t>((bits | bits >> 24U) & 0xFFFFU);
}

bool has_room(std::uint64_t word) { return (word & (word >> 2U) & every_page) != 0; }

/// Summary of one state word.
Summary summary_of(std::uint64_t word) {
    const std::uint32_t mask = available_mask(word);
    const std::uint32_t roomy = has_room(word) ? 1 : 0;
    if (mask == 0) return {0, 0, 0, roomy};
    if (mask == 0xFFFFU) return {segment_pages, segment_pages, segment_pages, roomy};
    std::uint32_t longest = 0;
    for (std::uint32_t runs = mask; runs != 0; runs &= runs >> 1U) ++longest;
    return {static_cast<std::uint32_t>(std::countr_one(mask)), static_cast<std::uint32_t>(std::countl_one(mask << 16U)), longest, roomy};
}

/// Summary of the node over up to 16 state words: their pages as 256 bits.
Summary summary_of_words(const std::uint64_t* words, Page count) {
    std::uint64_t bits[4] = {};
    std::uint32_t roomy = 0;
    for (Page i = 0; i < count; ++i) {
        bits[i / 4] |= std::uint64_t{available_mask(words[i])} << (i % 4 * segment_pages);
        roomy += has_room(words[i]) ? 1 : 0;
    }
    Summary summary{0, 0, 0, roomy};
    if ((bits[0] | bits[1] | bits[2] | bits[3]) == 0) return summary;
    for (unsigned i = 0; i < 4; ++i) {
        summary.prefix += static_cast<std::uint32_t>(std::countr_one(bits[i]));
        if (bits[i] != ~std::uint64_t{0}) break;
    }
    std::uint64_t others = 0;  // available pages before the suffix
    for (unsigned i = 4; i-- > 0;) {
        if (others != 0 || summary.suffix != (3 - i) * 64) {
            others |= bits[i];
            continue;
        }
        const auto run = static_cast<unsigned>(std::countl_one(bits[i]));
        summary.suffix += run;
        if (run < 64) others = bits[i] << run;
    }
    summary.longest = others == 0 ? summary.suffix : longest_run(bits);
    return summary;
}

/// Bits of the word's pages [from, to).
std::uint64_t nibbles(unsigned from, unsigned to) {
    const std::uint64_t below = to >= 16 ? ~std::uint64_t{0} : (std::uint64_t{1} << (to * 4)) - 1;
    return below & ~((std::uint64_t{1} << (from * 4)) - 1);
}

/// Joins summaries of neighbours of `child_pages` each, left to right.
class Joiner {
public:
    explicit Joiner(std::uint32_t child_pages) : child_pages_(child_pages) {}
    void add(const Summary& child) {
        if (joined_.prefix == seen_) joined_.prefix = seen_ + child.prefix;
        joined_.longest = std::max({joined_.longest, child.longest, joined_.suffix + child.prefix});
        joined_.suffix = child.prefix == child_pages_ ? joined_.suffix + child_pages_ : child.suffix;
        joined_.roomy += child.roomy != 0 ? 1 : 0;
        seen_ += child_pages_;
    }
    Summary result(std::uint64_t nominal_pages) const {
        Summary summary = joined_;
        if (seen_ < nominal_pages) summary.suffix = 0;  // the missing children are absent pages
        return summary;
    }

private:
    Summary joined_{};
    std::uint32_t child_pages_;
    std::uint32_t seen_ = 0;
};

}  // namespace

void throw_corrupt(std::uint64_t offset, const char* what) {
    throw Error(errc::corrupt, {}, offset, std::string("heap metadata contradicts itself: ") + what + "; run a check, restore a copy");
}

void PageMap::bind() {
    const auto base = reinterpret_cast<std::uintptr_t>(span_.base());
    for (unsigned i = 0; i < geometry_.count(); ++i) {
        const Region& region = geometry_.region(i);
        hot_[i] = {base + region.lines - std::uintptr_t{region.first_user} * sizeof(layout::Line),
                   base + region.states - std::uintptr_t{region.first / segment_pages} * sizeof(std::uint64_t), region.first_user};
    }
}

void PageMap::reload() {
    const std::uint64_t extent = super().extent;
    if (!geometry_.valid_extent(extent)) throw_corrupt(offsetof(layout::SuperBlock, extent), "the extent is impossible");
    set_extent(static_cast<Page>(extent / page_bytes));
}

Summary& PageMap::stored(unsigned region, unsigned level, Page index) const {
    const Region& r = geometry_.region(region);
    if (level == r.levels) return super().regions[region];
    return span_.at<Summary>(r.level_offset[level])[index];
}

Summary PageMap::computed(unsigned region, unsigned level, Page index) const {
    const Region& r = geometry_.region(region);
    const Page pages = r.end - r.first;
    const Page child_pages = level == 0 ? segment_pages : static_cast<Page>(span_pages(level - 1));
    const Page children = (pages + child_pages - 1) / child_pages;
    const Page begin = index * layout::fan_out;
    const Page end = std::min(begin + layout::fan_out, children);
    if (level == 0) return summary_of_words(span_.at<std::uint64_t>(r.states) + begin, end - begin);
    Joiner joiner(child_pages);
    for (Page child = begin; child < end; ++child) joiner.add(stored(region, level - 1, child));
    return joiner.result(span_pages(level));
}

bool PageMap::agrees(unsigned region, unsigned level, Page index) const {
    const Summary& said = stored(region, level, index);
    Summary truth = computed(region, level, index);
    if (level == 0 && said.longest > truth.longest && said.longest <= span_pages(0)) truth.longest = said.longest;
    return said == truth;
}

void PageMap::refresh(PageRun run) {
    const unsigned index = Geometry::region_of(run.first);
    const Region& r = geometry_.region(index);
    const Page from = static_cast<Page>((run.first - r.first) / span_pages(0));
    const Page to = static_cast<Page>((run.first - r.first + run.count - 1) / span_pages(0));
    bool changed = false;
    for (Page node = from; node <= to; ++node) {
        const Summary fresh = computed(index, 0, node);
        if (Summary& old = stored(index, 0, node); fresh != old) {
            span_.store(old, fresh);
            changed = true;
        }
    }
    if (changed) refresh_above(index, 0, from, to);
}

Content PageMap::content_of(Page page) const {
    if (is_packed(page)) {
        const unsigned packed_class = packed_class_of(packed_line(page));
        return packed_class == packed_class_count ? Content::any : packed_content(packed_class);
    }
    if (state(page) == PageState::run_head) return run_line(page).content == 1 ? Content::pointer_free : Content::any;
    return is_pointer_free_small(page) ? Content::pointer_free : Content::any;
}

void PageMap::refresh_above(unsigned index, unsigned level, Page from, Page to) {
    bool changed = true;
    while (changed && level < geometry_.region(index).levels) {
        ++level;
        from /= layout::fan_out;
        to /= layout::fan_out;
        changed = false;
        for (Page node = from; node <= to; ++node) {
            const Summary fresh = computed(index, level, node);
            if (Summary& old = stored(index, level, node); fresh != old) {
                span_.store(old, fresh);
                changed = true;
            }
        }
    }
}

void PageMap::refresh_uniform(PageRun run, bool available) {
    const unsigned index = Geometry::region_of(run.first);
    const Region& r = geometry_.region(index);
    const Page size = static_cast<Page>(span_pages(0));
    const Page from = (run.first - r.first) / size;
    const Page to = (run.first - r.first + run.count - 1) / size;
    bool changed = false;
    for (Page node = from; node <= to; ++node) {
        // In the node, [a, b) has changed within a run of available pages, which came into being or was cut.
        const Page begin = r.first + node * size;
        const Page end = begin + size;
        const Page a = std::max(run.first, begin);
        const Page b = std::min(run.first + run.count, end);
        Summary& old = stored(index, 0, node);
        Summary fresh = old;
        if (available) {
            const Page left = a > begin ? count_available_before(a, a - begin) : 0;
            const Page right = b < std::min(end, r.end) ? count_available(b, end - b) : 0;
            const Page whole = left + (b - a) + right;
            hints_.add(a - left, whole);
            fresh.longest = std::max(old.longest, whole);
            if (a - left == begin) fresh.prefix = whole;
            if (b + right == end) fresh.suffix = whole;
        } else {
            // What is the longest run now would cost a look at all of the node's words: it stays an upper bound, until a search believes it in vain.
            fresh.prefix = std::min(old.prefix, a - begin);
            fresh.suffix = std::min(old.suffix, end - b);
            if (old.prefix == size) fresh.longest = std::max(fresh.prefix, fresh.suffix);
        }
        if (fresh != old) {
            span_.store(old, fresh);
            changed = true;
        }
    }
    if (changed) refresh_above(index, 0, from, to);
}

void PageMap::write_word(Page page, std::uint64_t fresh) {
    std::uint64_t& place = *word(page);
    const std::uint64_t before = place;
    if (fresh == before) return;
    span_.store(place, fresh);
    if (has_room(before) != has_room(fresh)) count_room(Geometry::region_of(page), page, has_room(fresh));
}

void PageMap::write_states(PageRun run, PageState state) {
    const std::uint64_t pattern = static_cast<std::uint64_t>(state) * every_page;
    const Page end = run.first + run.count;
    for (Page page = run.first; page < end;) {
        const unsigned from = page % segment_pages;
        if (const Page whole = from == 0 ? (end - page) / segment_pages : 0; whole != 0) {
            write_words(page, whole, pattern);
            page += whole * segment_pages;
            continue;
        }
        const unsigned to = std::min<unsigned>(segment_pages, from + (end - page));
        const std::uint64_t mask = nibbles(from, to);
        write_word(page, (*word(page) & ~mask) | (pattern & mask));
        page += to - from;
    }
}

void PageMap::write_words(Page first, Page count, std::uint64_t pattern) {
    std::uint64_t* const words = word(first);
    const bool roomy = has_room(pattern);
    for (Page i = 0; i < count; ++i) {
        const std::uint64_t before = words[i];
        if (before == pattern) continue;
        span_.store(words[i], pattern);
        if (has_room(before) != roomy) count_room(Geometry::region_of(first), first + i * segment_pages, roomy);
    }
}

void PageMap::write_run_states(Page head, Page pages, bool tail) {
    // Everything is a body at first; exclusive or turns one state into another.
    constexpr std::uint64_t body = static_cast<std::uint64_t>(PageState::run_body) * every_page;
    const auto turned = [](Page page, PageState state) {
        return (static_cast<std::uint64_t>(PageState::run_body) ^ static_cast<std::uint64_t>(state)) << (page % segment_pages * 4);
    };
    const Page end = head + pages + (tail ? 1 : 0);
    for (Page page = head; page < end;) {
        const unsigned from = page % segment_pages;
        if (const Page whole = from == 0 && page != head ? (head + pages - page) / segment_pages : 0; whole != 0) {
            write_words(page, whole, body);
            page += whole * segment_pages;
            continue;
        }
        const unsigned to = std::min<unsigned>(segment_pages, from + (end - page));
        const std::uint64_t mask = nibbles(from, to);
        std::uint64_t fresh = (*word(page) & ~mask) | (body & mask);
        if (page == head) fresh ^= turned(head, PageState::run_head);
        const Page next = page + to - from;
        if (tail && next == end) fresh ^= turned(end - 1, PageState::small_room);
        write_word(page, fresh);
        page = next;
    }
}

void PageMap::count_room(unsigned index, Page page, bool roomy) {
    // Each count changes only as long as its child turns between none and some.
    const Region& r = geometry_.region(index);
    for (unsigned level = 0; level <= r.levels; ++level) {
        std::uint32_t& count = stored(index, level, static_cast<Page>((page - r.first) / span_pages(level))).roomy;
        if (!roomy && count == 0) return;  // a lie; check() finds it
        span_.store(count, roomy ? count + 1 : count - 1);
        if (count != (roomy ? 1U : 0U)) return;
    }
}

void PageMap::set_state(Page page, PageState state) {
    const unsigned shift = page % segment_pages * 4;
    write_word(page, (*word(page) & ~(std::uint64_t{0xF} << shift)) | static_cast<std::uint64_t>(state) << shift);
}

Page PageMap::scan_end(Page first, Page limit) const {
    const Page end = std::min(geometry_.region(Geometry::region_of(first)).end, extent_);
    return static_cast<Page>(std::min<std::uint64_t>(end, std::uint64_t{first} + limit));
}

Page PageMap::count_equal(Page first, Page limit, PageState state) const {
    const Page end = scan_end(first, limit);
    const std::uint64_t pattern = static_cast<std::uint64_t>(state) * every_page;
    Page page = first;
    const std::uint64_t* at = word(first);
    while (page < end) {
        const unsigned from = page % segment_pages;
        const std::uint64_t different = (*at++ ^ pattern) >> (from * 4);
        if (different != 0) {
            page += static_cast<Page>(std::countr_zero(different)) / 4;
            break;
        }
        page += segment_pages - from;
    }
    return page <= first ? 0 : std::min(page, end) - first;
}

bool PageMap::any_released(PageRun run) const {
    const Page end = run.first + run.count;
    for (Page page = run.first; page < end;) {
        const unsigned from = page % segment_pages;
        const unsigned to = std::min<unsigned>(segment_pages, from + (end - page));
        if ((*word(page) & nibbles(from, to) & every_page) != 0) return true;
        page += to - from;
    }
    return false;
}

Page PageMap::count_released(PageRun run) const {
    const Page end = run.first + run.count;
    Page count = 0;
    for (Page page = run.first; page < end;) {
        const unsigned from = page % segment_pages;
        const unsigned to = std::min<unsigned>(segment_pages, from + (end - page));
        count += static_cast<Page>(std::popcount(*word(page) & available_bits(*word(page)) >> 3U & nibbles(from, to)));
        page += to - from;
    }
    return count;
}

PageMap::Counts PageMap::count_states() const {
    Counts counts;
    for (unsigned index = 0; index < geometry_.count() && opened(index); ++index) {
        const Region& r = geometry_.region(index);
        const std::uint64_t* const words = span_.at<std::uint64_t>(r.states);
        const Page end = std::min(r.end, extent_);
        std::uint64_t free = 0;
        std::uint64_t released = 0;
        for (Page i = 0; i < (end - r.first + segment_pages - 1) / segment_pages; ++i) {
            const std::uint64_t available = available_bits(words[i]) >> 3U;
            free += static_cast<unsigned>(std::popcount(available));
            released += static_cast<unsigned>(std::popcount(available & words[i]));
        }
        counts.used += end - r.first_user - free;
        counts.available += free - released;
        counts.released += released;
    }
    geometry_.for_each_zone(0, extent_, [&](Page first, Page end) {
        for (Page page = first; page < end; ++page) counts.used -= state(page) == PageState::absent ? 1 : 0;
    });
    return counts;
}

Page PageMap::count_available(Page first, Page limit) const {
    const Page end = scan_end(first, limit);
    Page page = first;
    const std::uint64_t* at = word(first);
    while (page < end) {
        const unsigned from = page % segment_pages;
        const std::uint64_t others = (top_bits & ~available_bits(*at++)) >> (from * 4);
        if (others != 0) {
            page += static_cast<Page>(std::countr_zero(others)) / 4;
            break;
        }
        page += segment_pages - from;
    }
    return page <= first ? 0 : std::min(page, end) - first;
}

Page PageMap::count_available_before(Page end, Page limit) const {
    const Region& r = geometry_.region(Geometry::region_of(end - 1));
    Page count = 0;
    Page page = end;
    while (count < limit && page > r.first_user) {
        const unsigned behind = (page - 1) % segment_pages + 1;
        const std::uint64_t others = (top_bits & ~available_bits(*word(page - 1))) << ((segment_pages - behind) * 4);
        const Page run = std::min({others == 0 ? segment_pages : static_cast<Page>(std::countl_zero(others)) / 4, behind, page - r.first_user});
        count += run;
        page -= run;
        if (run < behind) break;
    }
    return std::min(count, limit);
}

Page PageMap::skip_back(Page page) const {
    const Page first = geometry_.region(Geometry::region_of(page)).first_user;
    constexpr std::uint64_t body = static_cast<std::uint64_t>(PageState::run_body) * every_page;
    while (page > first) {
        if (page % segment_pages == segment_pages - 1 && page - first >= segment_pages && *word(page) == body) {
            page -= segment_pages;
            continue;
        }
        const PageState here = state(page);
        if (here != PageState::run_body && here != PageState::growth) break;
        --page;
    }
    return page;
}

std::optional<Page> PageMap::find_in(unsigned index, Page count) {
    const Region& r = geometry_.region(index);
    const Page pages = r.end - r.first;
    unsigned level = r.levels;
    Page node = 0;
    for (;;) {
        const Page child_pages = level == 0 ? segment_pages : static_cast<Page>(span_pages(level - 1));
        const Page children = (pages + child_pages - 1) / child_pages;
        const Page begin = node * layout::fan_out;
        const Page end = std::min(begin + layout::fan_out, children);
        Page open = 0;  // available pages right before the child
        std::optional<Page> found;
        Page child = begin;
        for (; child < end; ++child) {
            const Summary s = level == 0 ? summary_of(span_.at<std::uint64_t>(r.states)[child]) : stored(index, level - 1, child);
            if (s.prefix > child_pages || s.suffix > child_pages || s.longest > child_pages)
                throw_corrupt(span_.offset_of(&stored(index, level - 1, child)), "a summary is larger than what it covers");
            if (open + s.prefix >= count) {
                found = r.first + child * child_pages - open;
                break;
            }
            if (s.longest >= count) break;
            open = s.prefix == child_pages ? open + child_pages : s.suffix;
        }
        if (found) {
            if (!is_user(*found) || count_available(*found, count) != count)
                throw_corrupt(span_.offset_of(word(*found)), "a summary promises available pages that are not there");
            return found;
        }
        if (child == end) {
            Summary& promise = stored(index, level, node);
            const Page truth = level == 0 ? computed(index, level, node).longest : promise.longest;
            if (truth >= promise.longest) throw_corrupt(span_.offset_of(&promise), "a summary promises a run that its children don't have");
            span_.store(promise.longest, truth);
            refresh_above(index, level, node, node);
            return std::nullopt;
        }
        if (level == 0) {
            const std::uint32_t mask = available_mask(span_.at<std::uint64_t>(r.states)[child]);
            std::uint32_t runs = mask;
            for (Page i = 1; i < count; ++i) runs &= mask >> i;
            const Page page = r.first + child * segment_pages + static_cast<Page>(std::countr_zero(runs));
            if (!is_user(page) || count_available(page, count) != count)
                throw_corrupt(span_.offset_of(word(page)), "a page outside the extent is marked available");
            return page;
        }
        node = child;
        --level;
    }
}

std::optional<Page> PageMap::take_hint(Page count) {
    for (;;) {
        const auto [first, length] = hints_.take(count);
        if (length == 0) return std::nullopt;
        if (!is_user(first) || !is_available(first) || count_available_before(first, 1) != 0 || count_available(first, length + 1) != length)
            continue;  // it has grown or gone
        hints_.add(first + count, length - count);
        return first;
    }
}

std::optional<Page> PageMap::find_available(Page count) {
    for (unsigned index = 0; index < geometry_.count() && opened(index); ++index)
        while (root(index).longest >= count)
            if (const auto found = find_in(index, count)) return found;
    return std::nullopt;
}

std::optional<Page> PageMap::find_aligned(Page count, Page alignment) {
    if (alignment <= 1) return find_available(count);
    if (const auto roomy = find_available(count + alignment - 1)) return static_cast<Page>(round_up(*roomy, alignment));
    for (unsigned index = 0; index < geometry_.count() && opened(index); ++index) {
        if (root(index).longest < count) continue;
        const Region& r = geometry_.region(index);
        const Page end = std::min(r.end, extent_);
        for (std::uint64_t page = round_up(r.first_user, alignment); page + count <= end; page += alignment)
            if (count_available(static_cast<Page>(page), count) == count) return static_cast<Page>(page);
    }
    return std::nullopt;
}

std::optional<Page> PageMap::find_with_memory(Page from, Page count, Page alignment) const {
    constexpr Page words_max = 4096;
    constexpr std::uint64_t pattern = static_cast<std::uint64_t>(PageState::available) * every_page;
    Page left = words_max;
    for (unsigned index = Geometry::region_of(from); index < geometry_.count() && opened(index) && left != 0; ++index) {
        const Region& r = geometry_.region(index);
        if (root(index).longest < count) continue;
        const Page end = std::min(r.end, extent_);
        Page first = std::max(from, r.first_user);  // of the run that is looked at
        const auto fitting = [&](Page run_end) -> std::optional<Page> {
            const std::uint64_t aligned = round_up(first, alignment);
            return aligned + count <= run_end ? std::optional(static_cast<Page>(aligned)) : std::nullopt;
        };
        Page page = first - first % segment_pages;
        for (const std::uint64_t* at = word(page); page < end && left != 0; page += segment_pages, --left) {
            const std::uint64_t different = *at++ ^ pattern;
            if (different == 0) continue;
            if (const auto found = fitting(page + static_cast<Page>(std::countr_zero(different)) / 4)) return found;
            first = std::max(first, page + segment_pages - static_cast<Page>(std::countl_zero(different)) / 4);
        }
        if (const auto found = fitting(std::min(page, end))) return found;
    }
    return std::nullopt;
}

Page PageMap::longest_available() const {
    Page longest = 0;
    for (unsigned index = 0; index < geometry_.count() && opened(index); ++index) {
        const Region& r = geometry_.region(index);
        longest = std::min(longest_below(index, r.levels, 0, longest), std::max(longest, r.end - r.first_user));
    }
    return std::max(longest, longest_over_zones());
}

Page PageMap::longest_below(unsigned index, unsigned level, Page node, Page least) const {
    if (stored(index, level, node).longest <= least) return least;
    if (level == 0) return std::max(least, computed(index, level, node).longest);
    const Region& r = geometry_.region(index);
    const Page child_pages = static_cast<Page>(span_pages(level - 1));
    const Page children = (r.end - r.first + child_pages - 1) / child_pages;
    Page open = 0;  // available pages right before the child
    for (Page child = node * layout::fan_out; child < std::min((node + 1) * layout::fan_out, children); ++child) {
        const Summary& s = stored(index, level - 1, child);
        least = longest_below(index, level - 1, child, std::max(least, open + s.prefix));
        open = s.prefix == child_pages ? open + child_pages : s.suffix;
    }
    return least;
}

std::optional<Page> PageMap::find_roomy_segment(unsigned index, Page from) const {
    const Region& r = geometry_.region(index);
    const Page first = r.first / segment_pages;
    const Page end = (std::min(r.end, extent_) + segment_pages - 1) / segment_pages;
    Page segment = std::max(from, first);
    while (segment < end) {
        const Page relative = segment - first;
        // At a node's beginning, step over the largest node without room.
        Page step = 0;
        for (unsigned level = 0; level < r.levels + 1; ++level) {
            const Page segments = static_cast<Page>(span_pages(level) / segment_pages);
            if (relative % segments != 0 || stored(index, level, relative / segments).roomy != 0) break;
            step = segments;
        }
        if (step == 0) {
            if (has_room(span_.at<std::uint64_t>(r.states)[relative])) return segment;
            step = 1;
        }
        segment += step;
    }
    return std::nullopt;
}

void PageMap::adopt(Page end) {
    const Page old = extent_;
    span_.store(super().extent, std::uint64_t{end} * page_bytes);
    set_extent(end);
    for (unsigned index = 0; index < geometry_.count(); ++index) {
        const Region& r = geometry_.region(index);
        const Page from = std::max(old, r.first_user);
        const Page to = std::min(end, r.end);
        if (from < to) set_available({from, to - from}, fresh_state_);
    }
}

Page PageMap::next_user(Page page) const {
    if (page >= extent_) return extent_;
    return std::min(extent_, std::max(page, geometry_.region(Geometry::region_of(page)).first_user));
}

}  // namespace taiyen::heap
