#pragma once
/// Blocks of 24, 40, … 120 bytes whose user can do with an alignment of 8: nodes of containers, mostly. Each page has slots of one size.
///
/// (I1) The truth is the lines and states of the pages; which pages have a free slot is a hint (PageBins), compared with both when a slot is taken.
/// (I2) A page without blocks goes back to the page map, except the only one of its class with room; that one goes when pages are short.
/// (I3) A free never allocates memory that it can't do without, and never touches the user's page.

#include <optional>

#include "heap/packed_page.hpp"
#include "heap/page_bins.hpp"
#include "heap/page_map.hpp"

namespace taiyen::heap {

class PageSupply;

class PackedBlocks {
public:
    PackedBlocks(const Span& span, PageMap& pages, PageBins& bins, PageSupply& supply) : span_(span), pages_(pages), bins_(bins), supply_(supply) {}

    /// Offset of a block of that class; 0: there is no page to be had (granules may serve). Throws: Error{corrupt}.
    std::uint64_t allocate(unsigned packed_class);
    /// Takes exactly that slot's place in an available page or one of the class; false if it is no free slot. Requires: is_user(page), backed by disk blocks.
    bool allocate_at(Page page, unsigned offset, unsigned packed_class);
    /// Frees the block at that offset of the span. Requires: its page is_packed.
    FreeResult free(std::uint64_t offset) noexcept;

    struct Slot {
        std::uint64_t offset;  ///< of the span
        unsigned bytes;
        Content content;
    };
    /// The block that contains the offset. Requires: is_packed(page).
    std::optional<Slot> find(std::uint64_t offset) const;
    /// Calls visit(Slot) for each block, ascending, until it returns false; then false. Requires: is_packed(page).
    template <class Visit>
    bool for_each(Page page, Visit visit) const {
        const layout::PackedLine& line = pages_.packed_line(page);
        const unsigned packed_class = packed_class_of(line);
        for (unsigned slot = 0; packed_class != packed_class_count && slot < packed_slots(packed_class); ++slot)
            if (packed_taken(line, slot) && !visit(slot_of(page, packed_class, slot))) return false;
        return true;
    }

    /// Puts the page where allocations look for room, if it has some.
    void file(Page page) noexcept;
    /// Gives known pages without blocks back to the page map; true if there were any.
    bool release_empty_pages();
    /// The same for that page. Requires: is_packed(page).
    bool release_if_empty(Page page);

private:
    static constexpr unsigned bin_of(unsigned packed_class) { return PageBins::run_bins + packed_class; }
    static Slot slot_of(Page page, unsigned packed_class, unsigned slot) {
        const unsigned bytes = packed_slot_bytes(packed_class);
        return {std::uint64_t{page} * page_bytes + std::uint64_t{slot} * bytes, bytes, packed_content(packed_class)};
    }
    std::uint64_t take(Page page, layout::PackedLine& line, unsigned packed_class, unsigned slot);
    /// Turns an available page into an empty one of the class.
    void begin(Page page, unsigned packed_class);
    /// A page of the class with room, filed; 0: none, and none to be had.
    Page page_with_room(unsigned packed_class);
    void unfile(Page page) noexcept;
    void release(Page page) noexcept;

    const Span span_;
    PageMap& pages_;
    PageBins& bins_;
    PageSupply& supply_;
};

}  // namespace taiyen::heap
