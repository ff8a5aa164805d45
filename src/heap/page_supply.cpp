#include "heap/page_supply.hpp"

#include <algorithm>

#include "heap/small_blocks.hpp"

namespace taiyen::heap {

namespace {
/// Steps in which the extent grows, in pages.
constexpr Page step_min = 16;
constexpr Page step_max = 4096;
/// A run of so many pages is looked for where they have memory, if memory comes with use: a page fault takes as long as looking at thousands of pages.
constexpr Page warm_pages_min = 16;
}  // namespace

Page PageSupply::find(Page count, Page alignment, ByteCount wanted) {
    proofs_.states();
    std::optional<HeapFull::Cause> refused;
    auto found = alignment <= 1 ? pages_.take_hint(count) : std::nullopt;
    if (!found) found = pages_.find_aligned(count, alignment);
    if (!found && release_empty_pages()) found = pages_.find_aligned(count, alignment);
    bool over_zones = false;
    const auto look_over_zones = [&] {
        found = pages_.find_over_zones(count, alignment);
        over_zones = found.has_value();
    };
    if (!found && count > pages_.geometry().between_zones()) look_over_zones();
    if (!found && grow_for(count, alignment, Zones::avoided, refused)) {
        found = pages_.find_aligned(count, alignment);
        if (!found) look_over_zones();
    }
    if (!found && surrender_growth()) found = pages_.find_aligned(count, alignment);
    if (!found && know_all()) found = pages_.find_aligned(count, alignment);
    if (!found) look_over_zones();
    if (!found && grow_for(count, alignment, Zones::used, refused)) look_over_zones();
    if (found && pages_.memory_comes_with_use() && count >= warm_pages_min && pages_.any_released({*found, count}))
        if (const auto warm = pages_.find_with_memory(*found, count, alignment)) {
            found = warm;
            over_zones = false;
        }
    if (!found) throw_full(wanted, refused.value_or(HeapFull::Cause::capacity));
    proofs_.lines(*found);
    proofs_.lines(*found + count - 1);  // where a run's tail lies
    about_to_use({*found, count});
    if (over_zones) pages_.open_zones({*found, count});  // nothing fails behind this
    return *found;
}

bool PageSupply::look_for_room() { return small_[0]->know_some(); }  // it knows the packed pages

bool PageSupply::reclaim(PageRun run) {
    const bool any = small_[0]->reclaim(run);
    return small_[1]->reclaim(run) || any;
}

bool PageSupply::release_empty_pages() {
    const bool any = small_[0]->release_empty_pages();
    return small_[1]->release_empty_pages() || any;
}

bool PageSupply::know_all() {
    const bool any = small_[0]->know_all();
    return small_[1]->know_all() || any;
}

void PageSupply::about_to_use(PageRun run) { host_.about_to_use(run.count * page_bytes); }

bool PageSupply::extend_to(Page end) {
    if (end > pages_.geometry().page_end()) return false;
    try {
        host_.extend(std::uint64_t{end} * page_bytes);
    } catch (const HeapFull&) {
        return false;
    }
    pages_.adopt(end);
    return true;
}

bool PageSupply::grow_for(Page count, Page alignment, Zones zones, std::optional<HeapFull::Cause>& refused) {
    const Geometry& geometry = pages_.geometry();
    const Page extent = pages_.extent();
    for (unsigned index = Geometry::region_of(extent - 1); index < geometry.count(); ++index) {
        const Region& region = geometry.region(index);
        const Page open_end = std::min(std::max(extent, region.first_user), region.end);
        const Page before = extent > region.first_user && extent <= region.end ? pages_.count_over_zones_before(extent, count) : 0;
        const std::uint64_t lowest = round_up(open_end - before, alignment);
        // Behind each zone in which the run would begin, or over which it would lie without need, if it fits there.
        std::uint64_t aside = lowest;
        const Page part = count <= geometry.between_zones() ? count : 1;
        geometry.for_each_zone(open_end - before, region.end, [&](Page first, Page end) {
            if (aside < end && aside + part > first) aside = round_up(end, alignment);
        });
        if (zones == Zones::used && aside == lowest) continue;  // refused before
        const std::uint64_t need = (zones == Zones::avoided ? aside : lowest) + count;
        if (need > region.end || need <= extent) continue;
        const std::uint64_t step = std::clamp<Page>(extent / 8, step_min, step_max);
        const std::uint64_t generous = std::min<std::uint64_t>(std::max<std::uint64_t>(need, extent + step), region.end);
        for (const std::uint64_t end : {generous, need}) {
            try {
                host_.extend(end * page_bytes);
            } catch (const HeapFull& full) {
                refused = full.cause();
                continue;
            }
            pages_.adopt(static_cast<Page>(end));
            return true;
        }
        return false;
    }
    return false;
}

bool PageSupply::surrender_growth() {
    if (pages_.super().growth_pages == 0) return false;
    bool any = false;
    for (Page page = pages_.next_user(0); page < pages_.extent();) {
        const Page end = std::min<Page>(pages_.extent(), page - page % layout::segment_pages + layout::segment_pages);
        constexpr std::uint64_t ones = 0x1111'1111'1111'1111ULL;
        const std::uint64_t word = *pages_.word(page);
        if (((word >> 1U) & (word >> 2U) & ones) == 0) {
            page = pages_.next_user(end);
            continue;
        }
        for (; page < end; ++page) {
            if (pages_.state(page) != PageState::growth) continue;
            const Page run = std::max<Page>(1, pages_.count_equal(page, pages_.extent() - page, PageState::growth));
            pages_.set_available({page, run});
            any = true;
            page += run - 1;
        }
        page = pages_.next_user(page);
    }
    span_.store(pages_.super().growth_pages, std::uint64_t{0});
    return any;
}

ByteCount PageSupply::largest_block(bool growing) const {
    std::uint64_t pages = pages_.longest_available();
    if (growing) {
        const Geometry& geometry = pages_.geometry();
        const Page extent = pages_.extent();
        for (unsigned index = Geometry::region_of(extent - 1); index < geometry.count(); ++index) {
            const Region& region = geometry.region(index);
            const Page open_end = std::min(std::max(extent, region.first_user), region.end);
            const Page before = extent > region.first_user && extent <= region.end ? pages_.count_over_zones_before(extent, extent) : 0;
            pages = std::max<std::uint64_t>(pages, region.end - open_end + before);
        }
    }
    return std::max<ByteCount>(pages * page_bytes, std::max(small_[0]->longest_known(), small_[1]->longest_known()) * layout::granule_bytes);
}

void PageSupply::throw_full(ByteCount wanted, HeapFull::Cause cause) const {
    throw HeapFull(wanted, largest_block(cause == HeapFull::Cause::capacity), cause, host_.name());
}

}  // namespace taiyen::heap
