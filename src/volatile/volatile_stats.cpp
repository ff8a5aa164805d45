/// Counting and proving: what of a volatile heap is live, free, resident, and whether its metadata agree.

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "heap/geometry.hpp"
#include "heap/leak_search.hpp"
#include "heap/system_view.hpp"
#include "volatile/volatile_core.hpp"

namespace taiyen::heap {

namespace {

void count(LiveBlocks& all, ByteCount bytes) {
    ++all.count;
    all.bytes += bytes;
    ++all.by_size[bytes];
}
LiveBlock with_beginning(const std::byte* address, ByteCount bytes) {
    LiveBlock block;
    block.address = address;
    block.bytes = bytes;
    std::memcpy(block.beginning.data(), address, std::min(bytes, LiveBlock::beginning_max));
    return block;
}

/// Resident bytes of the range.
ByteCount resident_bytes(const std::byte* begin, ByteCount length) {
    constexpr ByteCount step = ByteCount{64} << 20U;
    std::vector<unsigned char> pages(step / page_bytes);
    ByteCount resident = 0;
    for (ByteCount at = 0; at < length; at += step) {
        const ByteCount part = std::min(step, length - at);
        if (::mincore(const_cast<std::byte*>(begin) + at, part, pages.data()) != 0) continue;
        resident += page_bytes * static_cast<ByteCount>(
                                     std::count_if(pages.begin(), pages.begin() + static_cast<std::ptrdiff_t>((part + page_bytes - 1) / page_bytes),
                                                   [](unsigned char page) { return (page & 1U) != 0; }));
    }
    return resident;
}

void add_piece(VolatileStats& stats, ByteCount bytes) {
    if (bytes < layout::granule_bytes) return;  // between packed blocks, which hold multiples of 8 bytes, a rest may be too small for any
    stats.free_bytes += bytes;
    ++stats.free_pieces[static_cast<std::size_t>(std::bit_width(bytes / layout::granule_bytes)) - 1];
    for (std::size_t i = 0; i < VolatileStats::sizes.size(); ++i) stats.fitting[i] += bytes / VolatileStats::sizes[i];
}

/// Visits the blocks and the free pieces of a segment, in order.
template <class Blocks, class Pieces>
void walk_segment(const OwnedMap& map, std::uint64_t first, const Blocks& block, const Pieces& piece) {
    std::uint64_t piece_begin = first;
    const std::uint64_t end = first + (1U << segment_granule_shift);
    for (std::uint64_t at = first; at < end;) {
        const layout::Pair& pair = map.pairs[at / 64];
        const unsigned bit = at % 64;
        const std::uint64_t taken = (load_word(pair.occupied) | load_word(pair.start)) >> bit;
        if (taken == 0) {
            at = (at / 64 + 1) * 64;
            continue;
        }
        at += static_cast<unsigned>(std::countr_zero(taken));
        const unsigned granules = granules_at(map, at);
        const bool live = is_live(map, at);
        if (live) {
            if (at != piece_begin) piece(piece_begin, at - piece_begin);
            block(at, granules);
            piece_begin = at + granules;
        }
        at += granules;  // a parked block is free, and one piece with its neighbours
    }
    if (piece_begin != end) piece(piece_begin, end - piece_begin);
}

}  // namespace

void VolatileCore::visit_segments(const std::function<void(const SegmentHead&)>& visit) const {
    // By chunks: what the engine has lent are its blocks whose first segment says so.
    engine_->for_each_block([&](const Block& block) {
        const std::uint64_t number = block.offset.value / segment_bytes;
        const SegmentHead& first = map_.segments[number];
        if (block.offset.value % segment_bytes != 0 || first.chunk_segments == 0) return true;
        for (std::uint32_t i = 0; i < first.chunk_segments; ++i) visit(map_.segments[number + i]);
        return true;
    });
}

VolatileStats VolatileCore::stats() const {
    // What waits in quarantine is not live. Looked up first: the guards' lock comes before the heap's.
    std::optional<BlockGuards::Totals> guarded;
    if (guards_ != nullptr) guarded = guards_->totals();
    const std::lock_guard lock(mutex_);
    VolatileStats stats;
    const EngineStats engine = engine_->stats();
    stats.capacity_bytes = ranges().durable_bytes;
    stats.extent_bytes = engine.extent_bytes;
    stats.reserved_bytes = reservation_.size();
    stats.largest_free_bytes = engine.largest_free_bytes;
    const Geometry geometry(ranges().durable_bytes);
    // Free pieces between the engine's blocks; metadata lie at the front of each region.
    std::uint64_t free_from = 0;
    const auto gap = [&](std::uint64_t to) {
        while (free_from < to) {
            const Region& region = geometry.region(Geometry::region_of(static_cast<Page>(free_from / page_bytes)));
            const std::uint64_t begin = std::max(free_from, std::uint64_t{region.first_user} * page_bytes);
            const std::uint64_t end = std::min(to, std::uint64_t{region.end} * page_bytes);
            if (end > begin) add_piece(stats, end - begin);
            free_from = std::max(end, begin);
        }
    };
    engine_->for_each_block([&](const Block& block) {
        if (is_parked_run(block.offset)) return true;
        gap(block.offset.value);
        free_from = block.offset.value + block.usable_bytes;
        const std::uint64_t number = block.offset.value / segment_bytes;
        const SegmentHead& first = map_.segments[number];
        if (block.offset.value % segment_bytes == 0 && first.chunk_segments != 0) {
            for (std::uint32_t i = 0; i < first.chunk_segments; ++i)
                walk_segment(
                    map_, (number + i) << segment_granule_shift,
                    [&](std::uint64_t, unsigned granules) {
                        ++stats.live_blocks;
                        stats.live_bytes += granules * layout::granule_bytes;
                    },
                    [&](std::uint64_t, std::uint64_t granules) { add_piece(stats, granules * layout::granule_bytes); });
        } else {
            ++stats.live_blocks;
            stats.live_bytes += block.usable_bytes;
        }
        return true;
    });
    gap(engine.extent_bytes);
    if (guarded) {
        stats.live_blocks = guarded->blocks;
        stats.live_bytes = guarded->bytes;
    }
    const auto* const metadata = reinterpret_cast<const std::byte*>(ranges().beside);
    const ByteCount outside =
        resident_bytes(metadata, round_up(OwnedMap::bytes_for(ranges().durable_bytes) + record_count_ * sizeof(ThreadBlocks), page_bytes));
    stats.metadata_bytes = outside + engine.metadata_bytes;
    stats.dirty_bytes = outside + resident_bytes(map_.base, round_up(engine.extent_bytes, page_bytes));
    const SystemView view = system_view(ranges().durable, ranges().durable + reservation_.size());
    stats.mappings = view.mappings;
    stats.huge_bytes = view.huge_bytes;
    for (const ThreadBlocks* blocks = records_; blocks != nullptr; blocks = blocks->next_record)
        ++(blocks->idle ? stats.idle_threads : stats.threads);
    return stats;
}

LiveBlocks VolatileCore::live_blocks(std::size_t listed_max) const {
    if (guards_ != nullptr) return guards_->live_blocks(listed_max);
    LiveBlocks all;
    for_each_live([&](const std::byte* address, ByteCount bytes) {
        count(all, bytes);
        if (all.listed.size() != listed_max) all.listed.push_back(with_beginning(address, bytes));
    });
    return all;
}

template <class Visit>
void VolatileCore::for_each_live(const Visit& visit) const {
    if (guards_ != nullptr) return guards_->for_each_live(visit);
    for_each_block([&](const std::byte* address, ByteCount bytes) {
        const std::uint64_t granule = map_.granule_of(address);
        const bool freed = (map_.pending[granule / 64].load(std::memory_order_relaxed) >> (granule % 64) & 1U) != 0;
        if (!freed) visit(address, bytes);  // else by another thread; its owner has not looked yet
    });
}

std::vector<Block> VolatileCore::blocks() const {
    std::vector<Block> all;
    for_each_live([&](const std::byte* address, ByteCount bytes) { all.push_back({{static_cast<std::uint64_t>(address - map_.base)}, bytes}); });
    std::sort(all.begin(), all.end(), [](const Block& a, const Block& b) { return a.offset < b.offset; });
    return all;
}

LiveBlocks VolatileCore::leaked_blocks(std::size_t listed_max) const {
    LeakSearch search(tool_, links());
    for_each_live([&](const std::byte* address, ByteCount bytes) { search.add(address, bytes); });
    std::map<const void*, ByteCount> regions;
    {
        const std::lock_guard lock(mutex_);
        regions = leak_roots_;
        for (const Root& named : engine_->roots()) search.reach(map_.base + named.object.value);
    }
    for (const auto& [begin, bytes] : regions) search.reach_from(begin, bytes);
    LiveBlocks all;
    search.for_each_lost([&](const std::byte*, ByteCount bytes) { count(all, bytes); });
    for (const LeakSearch::Leak& leak : search.leaks()) {
        if (all.listed.size() == listed_max) break;
        LiveBlock block = with_beginning(leak.block, leak.bytes);
        block.held_blocks = leak.held_blocks;
        block.held_bytes = leak.held_bytes;
        if (guards_ != nullptr) block.place = guards_->place_of(leak.block);
        all.listed.push_back(std::move(block));
    }
    return all;
}

void VolatileCore::add_leak_root(const void* begin, ByteCount bytes) {
    const std::lock_guard lock(mutex_);
    leak_roots_[begin] = bytes;
}

void VolatileCore::remove_leak_root(const void* begin) noexcept {
    const std::lock_guard lock(mutex_);
    leak_roots_.erase(begin);
}

void VolatileCore::for_each_block(const std::function<void(const std::byte*, ByteCount)>& visit) const {
    const std::lock_guard lock(mutex_);
    visit_segments([&](const SegmentHead& segment) {
        walk_segment(
            map_, std::uint64_t{map_.number_of(segment)} << segment_granule_shift,
            [&](std::uint64_t at, unsigned granules) { visit(map_.address_of(at), granules * layout::granule_bytes); },
            [](std::uint64_t, std::uint64_t) {});
    });
    engine_->for_each_block([&](const Block& block) {
        if (is_parked_run(block.offset)) return true;
        if (block.offset.value % segment_bytes != 0 || map_.segments[block.offset.value / segment_bytes].chunk_segments == 0)
            visit(map_.base + block.offset.value, block.usable_bytes);
        return true;
    });
}

std::vector<Damage> VolatileCore::check() const {
    const std::lock_guard lock(mutex_);
    std::vector<Damage> found = engine_->check();
    const auto wrong = [&](std::uint64_t granule, const char* what) { found.push_back({HeapOffset{granule * layout::granule_bytes}, what}); };
    std::uint32_t waiting = 0;
    for (const SegmentHead* segment = waiting_; segment != nullptr; segment = segment->next) ++waiting;
    if (waiting != waiting_count_) wrong(0, "the list of segments without an owner has another length than was counted");
    std::uint32_t lent = 0;
    visit_segments([&](const SegmentHead& segment) {
        ++lent;
        const std::uint32_t number = map_.number_of(segment);
        const std::uint64_t first = std::uint64_t{number} << segment_granule_shift;
        const std::uintptr_t owner = segment.owner.load() & ~segment_queued;
        if (owner == segment_of_engine) wrong(first, "a segment that was lent counts as the engine's");
        std::uint32_t in_use = 0;
        for (std::uint32_t page = number * layout::segment_pages; page < (number + 1) * layout::segment_pages; ++page) {
            const layout::Line& line = map_.line(page);
            const PageNote& note = map_.notes[page];
            const std::uint64_t begin = std::uint64_t{page} * layout::page_granules;
            if (line_zero(line) != (note.blocks == 0)) wrong(begin, "a page has another number of blocks than was counted");
            if (line_zero(line)) {
                const bool fresh = (segment.fresh >> (page % layout::segment_pages) & 1U) != 0;
                if (owner != segment_of_nobody && note.current == 0 && !fresh && note.bin != layout::page_granules)
                    wrong(begin, "an empty page is in no bin");
                if (note.current != 0) ++in_use;
                continue;
            }
            ++in_use;
            if (owner == segment_of_nobody) wrong(begin, "a page of nobody's segment has blocks");
            const layout::Line taken = taken_line(line);
            const unsigned longest = longest_free(taken);
            const bool hot = note.size_class != no_class && note.bin == layout::page_granules + 1 + note.size_class;
            if (note.current != 0 ? note.bin != 0 : note.bin != longest && !hot) wrong(begin, "a page is in the wrong bin");
            unsigned blocks = 0;
            for (unsigned at = 0; at < layout::page_granules;) {
                const layout::Pair& pair = taken.pairs[at / 64];
                if ((pair.occupied >> (at % 64) & 1U) == 0) {
                    ++at;
                    continue;
                }
                if ((pair.start >> (at % 64) & 1U) == 0) {
                    wrong(begin + at, "occupied granules belong to no block");
                    ++at;
                    continue;
                }
                const unsigned granules = granules_at(map_, begin + at);
                ++blocks;
                if (granules > class_granules_max || class_tables.exact[granules] == no_class)
                    wrong(begin + at, "a block has a size of no class");
                else if (note.size_class != no_class && note.size_class != class_tables.exact[granules])
                    wrong(begin + at, "a block has another size than its page's note says");
                at += granules;
            }
            if (blocks != note.blocks) wrong(begin, "a page has another number of blocks than was counted");
        }
        if (owner != segment_of_nobody && in_use != segment.pages_in_use)
            wrong(first, "a segment has another number of pages in use than was counted");
    });
    if (lent != lent_count_) wrong(0, "there are more or fewer segments than were lent");
    return found;
}

}  // namespace taiyen::heap
