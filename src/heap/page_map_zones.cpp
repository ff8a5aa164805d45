/// Zones in the page map: what is closed there, and runs that lie over it. Searches write nothing.

#include <algorithm>

#include "heap/page_map.hpp"

namespace taiyen::heap {

void PageMap::open_zones(PageRun run) {
    geometry_.for_each_zone(run.first, std::min(extent_, run.first + run.count), [&](Page first, Page end) {
        for (Page page = first; page < end; ++page) {
            const Page count = count_equal(page, end - page, PageState::absent);
            if (count == 0) continue;
            set_states({page, count}, fresh_state_);
            page += count - 1;
        }
    });
}

void PageMap::close_zones(PageRun run) {
    geometry_.for_each_zone(run.first, std::min(extent_, run.first + run.count), [&](Page first, Page end) {
        for (Page page = first; page < end; ++page) {
            const Page count = count_available(page, end - page);
            if (count == 0) continue;
            set_states({page, count}, PageState::absent);
            page += count - 1;
        }
    });
}

std::optional<Page> PageMap::find_over_zones(Page count, Page alignment) const {
    std::optional<Page> outside;  // the first run that begins outside zones
    std::optional<Page> inside;
    for_each_run_over_zones([&](PageRun run) {
        const std::uint64_t end = std::uint64_t{run.first} + run.count;
        for (std::uint64_t page = round_up(run.first, alignment); !outside && page + count <= end;) {
            const Page first = static_cast<Page>(page);
            if (!geometry_.in_zone(first)) {
                outside = first;
            } else {
                if (!inside) inside = first;
                page = round_up(geometry_.zone_end(first), alignment);
            }
        }
        return !outside;
    });
    const auto found = outside ? outside : inside;
    // Summaries may lie.
    for (Page page = found.value_or(0), end = found ? page + count : page; page < end; ++page)
        if (const Page open = count_available(page, end - page); open != 0)
            page += open - 1;
        else if (!geometry_.in_zone(page) || state(page) != PageState::absent)
            throw_corrupt(span_.offset_of(word(page)), "a summary promises available pages that are not there");
    return found;
}

Page PageMap::longest_over_zones() const {
    Page longest = 0;
    for_each_run_over_zones([&](PageRun run) {
        longest = std::max(longest, run.count);
        return true;
    });
    return longest;
}

Page PageMap::count_over_zones(Page first, Page limit) const {
    const Page end = scan_end(first, limit);
    Page page = first;
    while (page < end) {
        page += count_by_summaries(page, end);
        if (page >= end || !geometry_.in_zone(page)) break;
        const Page closed = count_equal(page, std::min(end, geometry_.zone_end(page)) - page, PageState::absent);
        if (closed == 0) break;
        page += closed;
    }
    return page - first;
}

Page PageMap::count_over_zones_before(Page end, Page limit) const {
    const Page least = std::max(geometry_.region(Geometry::region_of(end - 1)).first_user, end - std::min(end, limit));
    Page page = end;
    while (page > least) {
        page -= count_by_summaries_before(page, least);
        const Page behind = page;
        while (page > least && geometry_.in_zone(page - 1) && state(page - 1) == PageState::absent) {
            const bool whole = page % layout::segment_pages == 0 && page - least >= layout::segment_pages && *word(page - 1) == 0;
            page -= whole ? layout::segment_pages : 1;
        }
        if (page == behind) break;
    }
    return end - std::min(page, end);
}

Page PageMap::count_by_summaries(Page first, Page end) const {
    const unsigned index = Geometry::region_of(first);
    const Region& r = geometry_.region(index);
    const Page node_pages = static_cast<Page>(span_pages(0));
    Page page = first;
    while (page < end) {
        const Page within = page - r.first;
        if (within % node_pages != 0) {
            const Page node_end = std::min(end, page - within % node_pages + node_pages);
            page += count_available(page, node_end - page);
            if (page != node_end) break;
            continue;
        }
        unsigned level = 0;
        while (level < r.levels && within % span_pages(level + 1) == 0) ++level;
        const Page prefix = stored(index, level, static_cast<Page>(within / span_pages(level))).prefix;
        page += std::min(prefix, end - page);
        if (prefix < span_pages(level)) break;
    }
    return page - first;
}

Page PageMap::count_by_summaries_before(Page end, Page least) const {
    const unsigned index = Geometry::region_of(end - 1);
    const Region& r = geometry_.region(index);
    const Page node_pages = static_cast<Page>(span_pages(0));
    Page page = end;
    while (page > least) {
        const Page within = page - r.first;
        if (within % node_pages != 0) {
            const Page node_begin = std::max(least, page - within % node_pages);
            page -= count_available_before(page, page - node_begin);
            if (page != node_begin) break;
            continue;
        }
        unsigned level = 0;
        while (level < r.levels && within % span_pages(level + 1) == 0) ++level;
        const Page suffix = stored(index, level, static_cast<Page>(within / span_pages(level) - 1)).suffix;
        page -= std::min(suffix, page - least);
        if (suffix < span_pages(level)) break;
    }
    return end - page;
}

}  // namespace taiyen::heap
