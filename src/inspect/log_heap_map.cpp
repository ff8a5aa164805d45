// The map of a log heap: segments by fill and age.

#include <taiyen/inspect/heap_map.hpp>
#include <taiyen/logheap/log_heap.hpp>

#include <algorithm>
#include <array>
#include <bit>

namespace taiyen {
namespace {

/// Shares of all operations, the oldest last.
struct AgeKey {
    double share;
    const char* label;
};
constexpr std::array<AgeKey, 7> age_keys{{{1 / 64.0, "the newest 64th"},
                                          {1 / 16.0, "the newest 16th"},
                                          {1 / 8.0, "the newest eighth"},
                                          {1 / 4.0, "the newest quarter"},
                                          {1 / 2.0, "the newer half"},
                                          {3 / 4.0, "the older half"},
                                          {1, "the oldest quarter"}}};

std::size_t age_key_of(const LogSegment& segment, std::uint64_t operations) {
    const double share = static_cast<double>(segment.age) / static_cast<double>(std::max<std::uint64_t>(1, operations));
    std::size_t key = 0;
    while (key + 1 < age_keys.size() && share > age_keys[key].share) ++key;
    return key;
}

}  // namespace

HeapMap map_of(const LogHeap& heap, const MapOptions& options) {
    if (options.cells_max == 0) throw Error(errc::invalid_argument, "a map has at least one cell");
    const std::vector<LogSegment> segments = heap.segments();
    const LogHeapStats stats = heap.stats();
    HeapMap map;
    map.path = heap.path();
    map.colour = MapColour::age;
    map.capacity_bytes = stats.segments * stats.segment_bytes;
    std::uint64_t last = 1;  // a sparse heap is drawn up to the last segment that has anything
    for (const LogSegment& segment : segments)
        if (segment.kind != LogSegment::Kind::free) last = segment.number + segment.bytes / stats.segment_bytes - 1;
    map.extent_bytes = last * stats.segment_bytes;
    map.cell_bytes = std::max<std::uint64_t>(stats.segment_bytes, std::bit_ceil((map.extent_bytes + options.cells_max - 1) / options.cells_max));
    map.cells.resize((map.extent_bytes + map.cell_bytes - 1) / map.cell_bytes);
    for (const AgeKey& key : age_keys) map.colours.push_back({key.label, 0, 0});
    std::vector<std::array<std::uint64_t, age_keys.size()>> by_age(map.cells.size());
    std::uint64_t in_use = 0;
    for (const LogSegment& segment : segments) {
        if (segment.number > last) break;
        const std::size_t key = age_key_of(segment, stats.appended.value);
        if (segment.kind != LogSegment::Kind::free) {
            in_use += segment.bytes;
            map.colours[key].bytes += segment.live_bytes;
            map.colours[key].blocks += 1;
        }
        std::uint64_t live = segment.live_bytes;
        for (std::uint64_t at = 0; at < segment.bytes; at += stats.segment_bytes) {  // a run is live wholly, or not at all
            const std::uint64_t cell = ((segment.number - 1) * stats.segment_bytes + at) / map.cell_bytes;
            const std::uint64_t part = std::min<std::uint64_t>(live, stats.segment_bytes);
            map.cells[cell].live_bytes += part;
            (segment.kind != LogSegment::Kind::free || segment.has_blocks ? map.cells[cell].free_bytes : map.cells[cell].released_bytes) +=
                stats.segment_bytes - part;
            by_age[cell][key] += part;
            live -= part;
        }
    }
    for (std::size_t i = 0; i < map.cells.size(); ++i) {
        map.cells[i].colour = static_cast<std::uint32_t>(std::max_element(by_age[i].begin(), by_age[i].end()) - by_age[i].begin());
        map.sum.live_bytes += map.cells[i].live_bytes;
        map.sum.free_bytes += map.cells[i].free_bytes;
        map.sum.released_bytes += map.cells[i].released_bytes;
    }
    map.live_blocks = stats.values;
    map.page_efficiency = in_use == 0 ? 1 : static_cast<double>(stats.live_bytes) / static_cast<double>(in_use);
    return map;
}

}  // namespace taiyen
