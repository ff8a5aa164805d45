#include "heap/geometry.hpp"

namespace taiyen::heap {

namespace {

/// Lays the region out; false if nothing would be left for the user.
bool lay_out(Region& region) {
    const std::uint64_t pages = region.end - region.first;
    const std::uint64_t own = region.first == 0 ? 1 : 0;  // the super block
    std::uint64_t at = (region.first + own) * page_bytes;
    region.states = at;
    at += (pages + layout::segment_pages - 1) / layout::segment_pages * sizeof(std::uint64_t);
    at = round_up(at, sizeof(layout::Summary));
    std::uint64_t covered = layout::segment_pages * layout::fan_out;
    for (region.levels = 0; covered < pages; ++region.levels, covered *= layout::fan_out) {
        region.level_offset[region.levels] = at;
        at += (pages + covered - 1) / covered * sizeof(layout::Summary);
    }
    region.lines = round_up(at, sizeof(layout::Line));
    const std::uint64_t fixed = region.lines - region.first * page_bytes;
    // Lines only for the pages that remain: the smallest m with fixed + (pages - m) * 64 <= m * 4096.
    const std::uint64_t metadata =
        (fixed + pages * sizeof(layout::Line) + page_bytes + sizeof(layout::Line) - 1) / (page_bytes + sizeof(layout::Line));
    region.first_user = static_cast<Page>(region.first + metadata);
    return metadata < pages;
}

}  // namespace

Geometry::Geometry(ByteCount capacity, Page zone_distance) : zone_distance_(zone_distance) {
    const std::uint64_t pages = capacity / page_bytes;
    for (std::uint64_t first = 0, end = layout::first_region_pages; first < pages && count_ < layout::region_count_max; first = end, end *= 2) {
        Region& region = regions_[count_];
        region.first = static_cast<Page>(first);
        region.end = static_cast<Page>(std::min(end, pages));
        if (!lay_out(region)) break;
        ++count_;
    }
}

bool Geometry::valid_extent(std::uint64_t bytes) const {
    const std::uint64_t pages = bytes / page_bytes;
    if (bytes % page_bytes != 0 || pages < regions_[0].first_user || pages > page_end()) return false;
    const Region& last = regions_[region_of(static_cast<Page>(pages - 1))];
    return last.first == 0 || pages > last.first_user;
}

}  // namespace taiyen::heap
