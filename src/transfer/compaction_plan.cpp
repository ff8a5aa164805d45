#include "transfer/compaction_plan.hpp"

#include <algorithm>
#include <bit>
#include <tuple>

#include "heap/line.hpp"
#include "heap/size_classes.hpp"

namespace taiyen::transfer {

using heap::Page;
using heap::layout::granule_bytes;
using heap::layout::page_granules;
using heap::layout::segment_pages;

namespace {

using Granules = std::array<std::uint64_t, 4>;
constexpr unsigned line_granules = 64 / granule_bytes;

Page page_at(std::uint64_t offset) { return static_cast<Page>(offset / page_bytes); }
bool is_empty(const Granules& bits) { return (bits[0] | bits[1] | bits[2] | bits[3]) == 0; }

Granules shifted_down(const Granules& bits, unsigned by) {
    Granules out{};
    for (unsigned word = 0; word + by / 64 < 4; ++word) {
        out[word] = bits[word + by / 64] >> (by % 64);
        if (by % 64 != 0 && word + by / 64 + 1 < 4) out[word] |= bits[word + by / 64 + 1] << (64 - by % 64);
    }
    return out;
}

/// Where so many free granules begin.
Granules fitting_in(const Granules& taken, unsigned granules) {
    Granules fits{~taken[0], ~taken[1], ~taken[2], ~taken[3]};
    for (unsigned have = 1; have < granules;) {
        const unsigned more = std::min(have, granules - have);
        const Granules moved = shifted_down(fits, more);
        for (unsigned word = 0; word < 4; ++word) fits[word] &= moved[word];
        have += more;
    }
    return fits;
}

std::uint64_t alignment_within_page(std::uint64_t offset, std::uint64_t bytes) {
    const std::uint64_t both = offset | bytes | page_bytes;
    return both & (~both + 1);
}

unsigned lines_of(unsigned start, unsigned granules) { return (start % line_granules + granules + line_granules - 1) / line_granules; }

}  // namespace

CompactionPlan::CompactionPlan(const HeapView& heap, const std::vector<std::uint64_t>& pinned, ByteCount block_bytes_max) : heap_(heap) {
    const heap::Survey survey(heap.bytes, heap.capacity);
    rooms_.resize(survey.extent());
    look_at(survey);
    heap.engine.for_each_block([&](const heap::Block& block) {
        blocks_.push_back({block.offset.value, block.usable_bytes, block.content});
        return true;
    });
    pin(pinned);
    empty_pages();
    lower_pages(block_bytes_max);
}

void CompactionPlan::look_at(const heap::Survey& survey) {
    segments_.resize((survey.extent() + segment_pages - 1) / segment_pages);
    survey.visit([&](const heap::PagesInUse& found) {
        switch (found.use) {
            case heap::PageUse::available:
            case heap::PageUse::released:
                for (Page page = found.first; page < found.first + found.count; ++page) rooms_[page].role = Role::free;
                break;
            case heap::PageUse::small:
            case heap::PageUse::packed: look_at_page(survey, found); break;
            case heap::PageUse::run:
            case heap::PageUse::directory:
                for (Page page = found.first; page < found.first + found.count; ++page) {
                    rooms_[page].role = Role::run;
                    rooms_[page].stays = found.use == heap::PageUse::directory;
                }
                if (found.block_bytes % page_bytes != 0 && found.first + found.count < rooms_.size()) rooms_[found.first + found.count].stays = true;
                break;
            case heap::PageUse::metadata:
            case heap::PageUse::zone:
            case heap::PageUse::growth: break;
        }
        return true;
    });
    for (Page page = 0; page < rooms_.size(); ++page) {
        const bool in_use = rooms_[page].role != Role::other && rooms_[page].role != Role::free;
        pages_in_use_ += in_use ? 1 : 0;
        segments_[page / segment_pages] = static_cast<std::uint16_t>(segments_[page / segment_pages] + (in_use ? 1 : 0));
    }
}

void CompactionPlan::look_at_page(const heap::Survey& survey, const heap::PagesInUse& found) {
    PageRoom& room = rooms_[found.first];
    room.role = found.use == heap::PageUse::small ? Role::small : Role::packed;
    room.content = found.content;
    if (room.role == Role::packed) {
        const unsigned packed_class = heap::packed_class_of(found.block_bytes, found.content);
        if (packed_class == heap::packed_class_count) {  // damage
            room.role = Role::other;
            return;
        }
        room.packed_class = static_cast<std::uint8_t>(packed_class);
    }
    const unsigned unit = room.role == Role::small ? static_cast<unsigned>(granule_bytes) : heap::packed_slot_bytes(room.packed_class);
    survey.for_each_live_range(found.first, [&](unsigned from, unsigned to) {
        for (unsigned at = from / unit; at < to / unit; ++at) room.taken[at / 64] |= std::uint64_t{1} << (at % 64);
    });
    if (is_empty(room.taken)) room.role = Role::free;  // the engine keeps some such pages
}

void CompactionPlan::pin(const std::vector<std::uint64_t>& pinned) {
    for (const std::uint64_t offset : pinned)
        if (page_at(offset) < rooms_.size()) rooms_[page_at(offset)].stays = true;
}

std::uint64_t CompactionPlan::segments_in_use() const {
    return static_cast<std::uint64_t>(std::count_if(segments_.begin(), segments_.end(), [](std::uint16_t pages) { return pages != 0; }));
}

std::pair<std::size_t, std::size_t> CompactionPlan::residents(Page page) const {
    const auto at = [this](std::uint64_t offset) {
        return static_cast<std::size_t>(std::lower_bound(blocks_.begin(), blocks_.end(), offset,
                                                         [](const Resident& block, std::uint64_t value) { return block.offset < value; }) -
                                        blocks_.begin());
    };
    return {at(std::uint64_t{page} * page_bytes), at((std::uint64_t{page} + 1) * page_bytes)};
}

// Emptying pages.

void CompactionPlan::empty_pages() {
    struct Source {
        std::uint64_t segment_bytes;
        std::uint64_t bytes;
        Page page;
    };
    const auto bytes_in = [](const PageRoom& room) {
        std::uint64_t units = 0;
        for (const std::uint64_t word : room.taken) units += static_cast<std::uint64_t>(std::popcount(word));
        if (room.role == Role::run) return static_cast<std::uint64_t>(page_bytes);
        return units * (room.role == Role::packed ? heap::packed_slot_bytes(room.packed_class) : granule_bytes);
    };
    std::vector<std::uint64_t> segment_bytes(segments_.size());
    for (Page page = 0; page < rooms_.size(); ++page) segment_bytes[page / segment_pages] += bytes_in(rooms_[page]);
    std::vector<Source> sources;
    for (Page page = 0; page < rooms_.size(); ++page) {
        const PageRoom& room = rooms_[page];
        if ((room.role == Role::small || room.role == Role::packed) && !room.stays)
            sources.push_back({segment_bytes[page / segment_pages], bytes_in(room), page});
    }
    std::sort(sources.begin(), sources.end(), [](const Source& a, const Source& b) {
        return std::tuple(a.segment_bytes, b.page / segment_pages, a.bytes, b.page) <
               std::tuple(b.segment_bytes, a.page / segment_pages, b.bytes, a.page);
    });
    for (const Source& source : sources)
        if (!rooms_[source.page].receives) try_empty(source.page);
}

bool CompactionPlan::try_empty(Page page) {
    const PageRoom& room = rooms_[page];
    const auto [first, end] = residents(page);
    const std::size_t before = moves_.size();
    std::uint64_t bytes = 0;
    for (std::size_t i = first; i < end; ++i) {
        const Resident& block = blocks_[i];
        const std::uint64_t to = room.role == Role::packed ? place_packed(room.packed_class, page) : place_small(block, page);
        if (to == 0) {
            for (; moves_.size() > before; moves_.pop_back()) mark(moves_.back().to, moves_.back().bytes, false);
            return false;
        }
        mark(to, block.bytes, true);
        moves_.push_back({block.offset, block.bytes, to, block.content});
        bytes += block.bytes;
    }
    if (moves_.size() == before) return false;
    for (std::size_t i = before; i < moves_.size(); ++i) rooms_[page_at(moves_[i].to)].receives = true;
    rooms_[page].leaves = true;
    groups_.push_back({before, moves_.size(), bytes, page, 1, 0, 0});
    return true;
}

CompactionPlan::Shape& CompactionPlan::shape_of(const Resident& block) {
    const auto granules = static_cast<unsigned>(block.bytes / granule_bytes);
    const auto start = static_cast<unsigned>(block.offset % page_bytes / granule_bytes);
    const auto step = static_cast<unsigned>(alignment_within_page(block.offset, block.bytes) / granule_bytes);
    const unsigned lines_max = lines_of(start, granules);
    const auto [at, is_new] = shapes_.try_emplace(granules | step << 8U | lines_max << 20U | static_cast<unsigned>(block.content) << 31U);
    Shape& shape = at->second;
    for (unsigned i = 0; is_new && i < page_granules; i += step)
        if (lines_of(i, granules) <= lines_max) shape.starts[i / 64] |= std::uint64_t{1} << (i % 64);
    return shape;
}

std::uint64_t CompactionPlan::place_small(const Resident& block, Page away_from) {
    Shape& shape = shape_of(block);
    const auto granules = static_cast<unsigned>(block.bytes / granule_bytes);
    bool keep = false;  // the page that is being emptied may have room later
    for (Page page = shape.search_from; page < rooms_.size(); ++page) {
        const PageRoom& room = rooms_[page];
        if (room.role == Role::small && room.content == block.content && !room.leaves && page != away_from) {
            const Granules fits = fitting_in(room.taken, granules);
            for (unsigned word = 0; word < 4; ++word)
                if (const std::uint64_t found = fits[word] & shape.starts[word]; found != 0)
                    return std::uint64_t{page} * page_bytes + (word * 64 + static_cast<unsigned>(std::countr_zero(found))) * granule_bytes;
        }
        keep = keep || page == away_from;
        if (!keep) shape.search_from = page + 1;
    }
    return 0;
}

std::uint64_t CompactionPlan::place_packed(unsigned packed_class, Page away_from) {
    Page& from = packed_from_[packed_class];
    bool keep = false;
    for (Page page = from; page < rooms_.size(); ++page) {
        const PageRoom& room = rooms_[page];
        if (room.role == Role::packed && room.packed_class == packed_class && !room.leaves && page != away_from) {
            for (unsigned word = 0; word < heap::PackedTables::words; ++word)
                if (const std::uint64_t free = ~room.taken[word] & heap::packed_tables.slots[packed_class][word]; free != 0)
                    return std::uint64_t{page} * page_bytes +
                           (word * 64 + static_cast<unsigned>(std::countr_zero(free))) * heap::packed_slot_bytes(packed_class);
        }
        keep = keep || page == away_from;
        if (!keep) from = page + 1;
    }
    return 0;
}

void CompactionPlan::mark(std::uint64_t offset, std::uint64_t bytes, bool taken) {
    PageRoom& room = rooms_[page_at(offset)];
    const unsigned unit = room.role == Role::packed ? heap::packed_slot_bytes(room.packed_class) : static_cast<unsigned>(granule_bytes);
    const auto first = static_cast<unsigned>(offset % page_bytes / unit);
    for (unsigned at = first; at < first + bytes / unit; ++at) {
        const std::uint64_t bit = std::uint64_t{1} << (at % 64);
        room.taken[at / 64] = taken ? room.taken[at / 64] | bit : room.taken[at / 64] & ~bit;
    }
}

// Going down.

void CompactionPlan::lower_pages(ByteCount block_bytes_max) {
    Page lowest = 0;
    for (Page page = static_cast<Page>(rooms_.size()); page-- > 0;) {
        while (lowest < page && !is_free(lowest)) ++lowest;
        if (lowest >= page) return;
        const PageRoom& room = rooms_[page];
        if (room.role == Role::run) {
            const auto block = heap_.engine.find_block(heap_.bytes + std::uint64_t{page} * page_bytes);
            if (!block) continue;  // names
            page = page_at(block->offset.value);
            if (!rooms_[page].stays) lower_run(page, block_bytes_max);
        } else if ((room.role == Role::small || room.role == Role::packed) && !room.stays && !room.leaves && !room.receives) {
            lower_page(page);
        }
    }
}

Page CompactionPlan::find_free(Page pages, unsigned tail_granules, Page before) {
    Page& from = free_from_[std::uint64_t{pages} << 8U | tail_granules];
    Page count = 0;
    for (Page page = from; page < before; ++page) {
        count = is_free(page) ? count + 1 : 0;
        if (count == 0) from = page + 1;
        if (count < pages) continue;
        const Page behind = page + 1;
        const PageRoom& next = rooms_[behind];
        if (tail_granules == 0 || (behind < before && is_free(behind)) ||
            (next.role == Role::small && next.content == heap::Content::any && !next.leaves && (fitting_in(next.taken, tail_granules)[0] & 1U) != 0))
            return from;
        ++from;
        --count;
    }
    return 0;
}

void CompactionPlan::lower_page(Page page) {
    const Page target = find_free(1, 0, page);
    if (target == 0) return;
    const auto [first, end] = residents(page);
    if (first == end) return;
    const std::size_t before = moves_.size();
    std::uint64_t bytes = 0;
    for (std::size_t i = first; i < end; ++i) {
        const Resident& block = blocks_[i];
        moves_.push_back({block.offset, block.bytes, std::uint64_t{target} * page_bytes + block.offset % page_bytes, block.content});
        bytes += block.bytes;
    }
    rooms_[target].receives = true;
    rooms_[page].leaves = true;
    groups_.push_back({before, moves_.size(), bytes, page, 1, target, 1});
}

bool CompactionPlan::leave_tail(Page page, unsigned granules) {
    if (granules == 0) return false;
    // It is no room for others: until something moves it is taken.
    PageRoom& room = rooms_[page];
    const std::uint64_t offset = std::uint64_t{page} * page_bytes;
    mark(offset, granules * granule_bytes, false);
    room.leaves = is_empty(room.taken);
    mark(offset, granules * granule_bytes, true);
    return room.leaves;
}

void CompactionPlan::lower_run(Page head, ByteCount block_bytes_max) {
    const auto [first, end] = residents(head);
    if (first == end || blocks_[first].offset != std::uint64_t{head} * page_bytes) return;
    const Resident& block = blocks_[first];
    const auto pages = static_cast<Page>(block.bytes / page_bytes);
    const auto tail = static_cast<unsigned>(block.bytes % page_bytes / granule_bytes);
    const Page target = find_free(pages, tail, head);
    if (target == 0) return;
    if (block.bytes > block_bytes_max) {
        ++large_blocks_;
        return;
    }
    Page taken = pages;
    if (tail != 0) {
        if (is_free(target + pages))
            ++taken;
        else
            mark((std::uint64_t{target} + pages) * page_bytes, tail * granule_bytes, true);
        rooms_[target + pages].receives = true;
    }
    for (Page page = target; page < target + taken; ++page) rooms_[page].receives = true;
    groups_.push_back({moves_.size(), moves_.size() + 1, block.bytes, head, pages + (leave_tail(head + pages, tail) ? 1 : 0), target, taken});
    moves_.push_back({block.offset, block.bytes, std::uint64_t{target} * page_bytes, block.content});
}

}  // namespace taiyen::transfer
