#pragma once
/// Survey: what the pages of a span are used for, read from its metadata alone, page by page and run by run: faster than visiting blocks one by one.
///
/// It looks at the bytes of the super block, states and lines, as Engine does; damaged ones give wrong answers, never a read outside the extent. Thread rule: nobody changes the span meanwhile.

#include <bit>
#include <functional>

#include "heap/geometry.hpp"
#include "heap/packed_page.hpp"
#include "heap/page_map.hpp"

namespace taiyen::heap {

/// `zone`: kept free of blocks.
enum class PageUse { metadata, small, packed, run, directory, growth, available, released, zone };

/// Whether no block and no metadata lies there.
constexpr bool is_nobodys(PageUse use) {
    return use == PageUse::available || use == PageUse::released || use == PageUse::growth || use == PageUse::zone;
}

/// Pages [first, first + count) of one use: each page of small or packed blocks on its own, a run of pages or of free ones in one piece.
struct PagesInUse {
    Page first = 0;
    Page count = 0;
    PageUse use = PageUse::metadata;
    ByteCount live_bytes = 0;        ///< of blocks, in these pages
    std::uint64_t blocks = 0;        ///< that begin in these pages
    std::uint64_t free_pieces = 0;   ///< small blocks: how many of 64 bytes fit between them
    ByteCount block_bytes = 0;       ///< a run: its whole size; packed pages: of each block; else 0
    Content content = Content::any;  ///< of blocks that begin there
};

/// Calls `stretch(first, behind)`, ascending, for bits that are set one beside the other.
template <class F>
void for_each_stretch(std::uint64_t bits, F&& stretch) {
    while (bits != 0) {
        const auto first = static_cast<unsigned>(std::countr_zero(bits));
        const auto behind = first + static_cast<unsigned>(std::countr_one(bits >> first));
        stretch(first, behind);
        bits = behind == 64 ? 0 : bits & (~std::uint64_t{0} << behind);
    }
}

class Survey {
public:
    /// Throws: Error{corrupt}.
    Survey(const std::byte* span, ByteCount capacity);

    Page extent() const { return pages_.extent(); }
    /// From the first page of the extent to the last, metadata included; `visit` returns false to stop.
    void visit(const std::function<bool(const PagesInUse&)>& visit) const;
    /// Free pages without memory, run by run, ascending; without a look at what other pages hold.
    void visit_released(const std::function<void(PageRun)>& visit) const;
    /// What `visit` would tell next if it stood at that page of the extent: from there on.
    PagesInUse from(Page page) const;
    /// How many pages nobody has, from that one of the extent on; 0: it is metadata's or a block's.
    Page free_from(Page page) const;
    /// Calls `range(begin, end)`, ascending, for the bytes of the page that metadata or live blocks have; those of neighbours come as one.
    template <class F>
    void for_each_live_range(Page page, F&& range) const;
    /// Whether the byte is the user's, and no block has it.
    bool is_free(HeapOffset offset) const;

private:
    PagesInUse at(Page page) const;

    Span span_;
    Geometry geometry_;
    PageMap pages_;
};

template <class F>
void Survey::for_each_live_range(Page page, F&& range) const {
    unsigned begin = 0;
    unsigned end = 0;
    const auto add = [&](unsigned from, unsigned to) {
        if (from != end) {
            if (begin != end) range(begin, end);
            begin = from;
        }
        end = to;
    };
    if (!pages_.is_user(page)) {
        range(0U, static_cast<unsigned>(page_bytes));
        return;
    }
    switch (pages_.state(page)) {
        case PageState::absent:
        case PageState::available:
        case PageState::released:
        case PageState::growth: return;
        case PageState::small_full:
        case PageState::small_room:
        case PageState::pointer_free_full:
        case PageState::pointer_free_room: {
            const layout::Line& line = pages_.line(page);
            for (unsigned pair = 0; pair < 4; ++pair) {
                for_each_stretch(line.pairs[pair].occupied, [&](unsigned first, unsigned behind) {
                    add((pair * 64 + first) * layout::granule_bytes, (pair * 64 + behind) * layout::granule_bytes);
                });
            }
            break;
        }
        case PageState::packed_full:
        case PageState::packed_room: {
            const layout::PackedLine& line = pages_.packed_line(page);
            const unsigned packed_class = packed_class_of(line);
            if (packed_class == packed_class_count) {
                add(0, static_cast<unsigned>(page_bytes));  // damage: nothing is left out
                break;
            }
            const unsigned bytes = packed_slot_bytes(packed_class);
            for (unsigned word = 0; word < PackedTables::words; ++word) {
                for_each_stretch(line.occupied[word] & packed_tables.slots[packed_class][word],
                                 [&](unsigned first, unsigned behind) { add((word * 64 + first) * bytes, (word * 64 + behind) * bytes); });
            }
            break;
        }
        default: add(0, static_cast<unsigned>(page_bytes));
    }
    if (begin != end) range(begin, end);
}

}  // namespace taiyen::heap
