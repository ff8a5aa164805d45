#include "heap/survey.hpp"

#include <algorithm>
#include <utility>
namespace taiyen::heap {

namespace {

/// How many blocks of four granules fit, one beside the other.
std::uint64_t free_pieces(const layout::Line& line) {
    std::uint64_t pieces = 0;
    unsigned run = 0;
    for (const layout::Pair& pair : line.pairs) {
        for (unsigned bit = 0; bit < 64;) {
            const std::uint64_t rest = pair.occupied >> bit;
            const unsigned free = rest == 0 ? 64 - bit : static_cast<unsigned>(std::countr_zero(rest));
            run += free;
            bit += free;
            if (bit < 64) {
                pieces += std::exchange(run, 0) / 4;
                bit += static_cast<unsigned>(std::countr_one(pair.occupied >> bit));
            }
        }
    }
    return pieces + run / 4;
}

}  // namespace

Survey::Survey(const std::byte* span, ByteCount capacity)
    : span_(const_cast<std::byte*>(span), nullptr), geometry_(capacity), pages_(span_, geometry_, true) {  // read only: nothing is ever stored
    pages_.reload();
}

void Survey::visit(const std::function<bool(const PagesInUse&)>& visit) const {
    for (Page page = 0; page < extent();) {
        const PagesInUse found = from(page);
        if (!visit(found)) return;
        page += found.count;
    }
}

void Survey::visit_released(const std::function<void(PageRun)>& visit) const {
    for (Page page = pages_.next_user(0); page < extent(); page = pages_.next_user(page)) {
        const PageState state = pages_.state(page);
        const Page count = std::max<Page>(1, pages_.count_equal(page, extent() - page, state));
        if (state == PageState::released) visit({page, count});
        page += count;
    }
}

PagesInUse Survey::from(Page page) const {
    const Page user = pages_.next_user(page);
    return user != page ? PagesInUse{page, std::min(user, extent()) - page, PageUse::metadata, 0, 0, 0, 0, Content::any} : at(page);
}

Page Survey::free_from(Page page) const {
    if (!pages_.is_user(page)) return 0;
    const PageState state = pages_.state(page);
    const bool is_free = state == PageState::available || state == PageState::released || state == PageState::growth || state == PageState::absent;
    return is_free ? std::max<Page>(1, pages_.count_equal(page, extent() - page, state)) : 0;
}

PagesInUse Survey::at(Page page) const {
    const Page limit = extent() - page;
    PagesInUse found{page, 1, PageUse::metadata, 0, 0, 0, 0, Content::any};
    found.content = pages_.content_of(page);
    switch (pages_.state(page)) {
        case PageState::absent:
            found.use = PageUse::zone;
            found.count = std::max<Page>(1, pages_.count_equal(page, limit, PageState::absent));
            break;
        case PageState::available:
        case PageState::released:
        case PageState::growth:
            found.use = pages_.state(page) == PageState::available ? PageUse::available
                        : pages_.state(page) == PageState::growth  ? PageUse::growth
                                                                   : PageUse::released;
            found.count = std::max<Page>(1, pages_.count_equal(page, limit, pages_.state(page)));
            break;
        case PageState::small_full:
        case PageState::small_room:
        case PageState::pointer_free_full:
        case PageState::pointer_free_room:
            found.use = PageUse::small;
            if (pages_.state(page) != PageState::small_full && pages_.state(page) != PageState::pointer_free_full)
                found.free_pieces = free_pieces(pages_.line(page));
            for (const layout::Pair& pair : pages_.line(page).pairs) {
                found.live_bytes += static_cast<ByteCount>(std::popcount(pair.occupied)) * layout::granule_bytes;
                found.blocks += static_cast<std::uint64_t>(std::popcount(pair.start & pair.occupied));
            }
            break;
        case PageState::packed_full:
        case PageState::packed_room: {
            const layout::PackedLine& line = pages_.packed_line(page);
            const unsigned packed_class = packed_class_of(line);
            found.use = PageUse::packed;
            if (packed_class == packed_class_count) break;
            for (unsigned word = 0; word < PackedTables::words; ++word)
                found.blocks += static_cast<std::uint64_t>(std::popcount(line.occupied[word] & packed_tables.slots[packed_class][word]));
            found.block_bytes = packed_slot_bytes(packed_class);
            found.live_bytes = found.blocks * found.block_bytes;
            break;
        }
        case PageState::run_head: {
            const layout::RunLine& line = pages_.run_line(page);
            found.use = line.kind == static_cast<std::uint32_t>(layout::RunKind::directory) ? PageUse::directory : PageUse::run;
            found.count = 1 + (limit > 1 ? pages_.count_equal(page + 1, limit - 1, PageState::run_body) : 0);
            found.live_bytes = std::min<ByteCount>(line.bytes, found.count * page_bytes);  // a tail lies in the page of small blocks behind
            found.blocks = 1;
            found.block_bytes = line.bytes;
            break;
        }
        case PageState::run_body: found.use = PageUse::run; break;  // without a head: damage
    }
    return found;
}

bool Survey::is_free(HeapOffset offset) const {
    const Page page = page_of(offset).value < extent() ? static_cast<Page>(page_of(offset).value) : extent();
    if (page == extent() || !pages_.is_user(page)) return false;
    const auto within = static_cast<unsigned>(offset.value % page_bytes);
    switch (pages_.state(page)) {
        case PageState::absent:
        case PageState::available:
        case PageState::released:
        case PageState::growth: return true;
        case PageState::small_full:
        case PageState::small_room:
        case PageState::pointer_free_full:
        case PageState::pointer_free_room: {
            const unsigned granule = within / layout::granule_bytes;
            return ((pages_.line(page).pairs[granule / 64].occupied >> (granule % 64)) & 1U) == 0;
        }
        case PageState::packed_full:
        case PageState::packed_room: {
            const layout::PackedLine& line = pages_.packed_line(page);
            const unsigned packed_class = packed_class_of(line);
            if (packed_class == packed_class_count) return false;
            const unsigned slot = packed_slot_at(packed_class, within);
            return slot < packed_slots(packed_class) && !packed_taken(line, slot);
        }
        default: return false;
    }
}

}  // namespace taiyen::heap
