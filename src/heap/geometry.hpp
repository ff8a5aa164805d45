#pragma once
/// Where the regions of a span and their metadata lie: a function of the capacity alone.
///
/// Region 0 is the first 256 KiB of the span, each further region is as large as everything before it, the last one is cut by the capacity. A region begins with
/// its metadata: state words, summaries, lines; user pages follow. So metadata in use is at most 1/63 of the extent plus one region's, and a small
/// heap in a large capacity is a small file.

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "heap/engine_layout.hpp"

namespace taiyen::heap {

using Page = std::uint32_t;  ///< number of a page of the span

struct Region {
    Page first = 0;                               ///< its first page
    Page end = 0;                                 ///< behind its last page
    Page first_user = 0;                          ///< pages [first, first_user) hold metadata (region 0: the super block too)
    std::uint32_t levels = 0;                     ///< levels of summaries in the region, without its root
    std::uint64_t states = 0;                     ///< offset of the state words
    std::uint64_t lines = 0;                      ///< offset of the line of first_user
    std::array<std::uint64_t, 8> level_offset{};  ///< [l] offset of the summaries of 16^(l+2) pages each
};

class Geometry {
public:
    /// `capacity`: a multiple of 4 KiB in [256 KiB, capacity_max].
    /// `zone_distance`: in pages, a power of two.
    explicit Geometry(ByteCount capacity, Page zone_distance = layout::zone_distance);

    static unsigned region_of(Page page) {
        return static_cast<unsigned>(std::bit_width(page | (layout::first_region_pages - 1))) -
               static_cast<unsigned>(std::bit_width(layout::first_region_pages - 1));
    }
    const Region& region(unsigned index) const { return regions_[index]; }
    unsigned count() const { return count_; }
    /// Pages up to the end of the last region.
    Page page_end() const { return regions_[count_ - 1].end; }
    bool in_zone(Page page) const { return page >= zone_distance_ && page % zone_distance_ < layout::zone_pages; }
    /// Behind the zone's last page. Requires: in_zone(page).
    Page zone_end(Page page) const { return std::min(page - page % layout::zone_pages + layout::zone_pages, page_end()); }
    /// Calls `visit(first, end)`, ascending, for the user pages of zones among these.
    template <class F>
    void for_each_zone(Page first, Page end, F&& visit) const {
        if (end <= zone_distance_) return;
        for (std::uint64_t zone = std::max(first - first % zone_distance_, zone_distance_); zone < end; zone += zone_distance_) {
            const Page from = std::max({static_cast<Page>(zone), first, region(region_of(static_cast<Page>(zone))).first_user});
            const Page to = std::min(static_cast<Page>(zone) + layout::zone_pages, end);
            if (from < to) visit(from, to);
        }
    }
    /// Pages of the longest run that lies between zones.
    Page between_zones() const { return zone_distance_ - layout::zone_pages; }
    /// The least capacity with which everything up to that extent lies where it does: the end of the last region in use. A larger one does, too, unless the capacity cuts that region short.
    ByteCount capacity_min_at(ByteCount extent) const {
        return ByteCount{region(region_of(static_cast<Page>((extent - 1) / page_bytes))).end} * page_bytes;
    }
    /// Whether an engine could have left the extent there.
    bool valid_extent(std::uint64_t bytes) const;

private:
    std::array<Region, layout::region_count_max> regions_{};
    unsigned count_ = 0;
    Page zone_distance_;
};

}  // namespace taiyen::heap
