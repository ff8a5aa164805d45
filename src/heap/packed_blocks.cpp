#include "heap/packed_blocks.hpp"

#include "heap/line.hpp"
#include "heap/page_supply.hpp"

namespace taiyen::heap {

std::uint64_t PackedBlocks::allocate(unsigned packed_class) {
    for (;;) {
        Page page = bins_.first(bin_of(packed_class));
        if (page == 0) [[unlikely]] {
            page = page_with_room(packed_class);
            if (page == 0) return 0;
        }
        if (pages_.is_user(page) && pages_.state(page) == PageState::packed_room) [[likely]] {
            layout::PackedLine& line = pages_.packed_line(page);
            const unsigned slot = packed_first_free(line, packed_class);
            if (packed_class_of(line) == packed_class && slot < packed_slots(packed_class)) [[likely]]
                return take(page, line, packed_class, slot);
        }
        unfile(page);
    }
}

Page PackedBlocks::page_with_room(unsigned packed_class) {
    const unsigned bin = bin_of(packed_class);
    if (supply_.look_for_room() && bins_.first(bin) != 0) return bins_.first(bin);
    try {
        const Page page = supply_.find(1, 1, packed_slot_bytes(packed_class));
        begin(page, packed_class);
        file(page);
        return page;
    } catch (const HeapFull&) {
        return bins_.first(bin);  // by now everything is known
    }
}

void PackedBlocks::begin(Page page, unsigned packed_class) {
    if (!line_zero(pages_.line(page))) throw_corrupt(span_.offset_of(&pages_.line(page)), "an available page has occupied granules");
    layout::PackedLine& line = pages_.packed_line(page);
    span_.store(line.slot_bytes, packed_slot_bytes(packed_class));
    if (packed_content(packed_class) == Content::pointer_free) {
        pages_.begin_pointer_free();
        span_.store(line.content, std::uint32_t{1});
    }
    pages_.set_states({page, 1}, PageState::packed_room);
}

std::uint64_t PackedBlocks::take(Page page, layout::PackedLine& line, unsigned packed_class, unsigned slot) {
    std::uint64_t& word = line.occupied[slot / 64];
    span_.store(word, word | std::uint64_t{1} << (slot % 64));
    if (packed_full(line, packed_class)) [[unlikely]] {
        pages_.set_state(page, PageState::packed_full);
        unfile(page);
    }
    return slot_of(page, packed_class, slot).offset;
}

bool PackedBlocks::allocate_at(Page page, unsigned offset, unsigned packed_class) {
    const unsigned slot = packed_slot_at(packed_class, offset);
    if (slot * packed_slot_bytes(packed_class) != offset || slot >= packed_slots(packed_class)) return false;
    if (pages_.is_available(page)) begin(page, packed_class);
    layout::PackedLine& line = pages_.packed_line(page);
    if (!pages_.is_packed(page) || packed_class_of(line) != packed_class || packed_taken(line, slot)) return false;
    file(page);
    take(page, line, packed_class, slot);
    return true;
}

FreeResult PackedBlocks::free(std::uint64_t offset) noexcept {
    const Page page = static_cast<Page>(offset / page_bytes);
    const unsigned in_page = static_cast<unsigned>(offset % page_bytes);
    layout::PackedLine& line = pages_.packed_line(page);
    const unsigned packed_class = packed_class_of(line);
    if (packed_class == packed_class_count) return FreeResult::not_a_block;
    const unsigned slot = packed_slot_at(packed_class, in_page);
    if (slot * packed_slot_bytes(packed_class) != in_page || slot >= packed_slots(packed_class) || !packed_taken(line, slot))
        return FreeResult::not_a_block;
    std::uint64_t& word = line.occupied[slot / 64];
    span_.store(word, word & ~(std::uint64_t{1} << (slot % 64)));
    if (pages_.state(page) == PageState::packed_full) [[unlikely]] {
        pages_.set_state(page, PageState::packed_room);
        file(page);
    }
    if (word == 0 && packed_empty(line)) [[unlikely]] {
        file(page);
        if (bins_.pages(bin_of(packed_class)) > 1) release(page);
    }
    return FreeResult::freed;
}

std::optional<PackedBlocks::Slot> PackedBlocks::find(std::uint64_t offset) const {
    const Page page = static_cast<Page>(offset / page_bytes);
    const layout::PackedLine& line = pages_.packed_line(page);
    const unsigned packed_class = packed_class_of(line);
    if (packed_class == packed_class_count) return std::nullopt;
    const unsigned slot = packed_slot_at(packed_class, static_cast<unsigned>(offset % page_bytes));
    if (slot >= packed_slots(packed_class) || !packed_taken(line, slot)) return std::nullopt;
    return slot_of(page, packed_class, slot);
}

void PackedBlocks::file(Page page) noexcept {
    const layout::PackedLine& line = pages_.packed_line(page);
    const unsigned packed_class = packed_class_of(line);
    const bool room = packed_class != packed_class_count && !packed_full(line, packed_class);
    PageBins::Known* entry = bins_.make_known(page);
    if (entry == nullptr || entry->bin == (room ? bin_of(packed_class) + 1 : 0U))
        return;  // a page that can't be known stays unused until the heap is opened again
    bins_.unfile(*entry, page);
    if (room) bins_.link(*entry, page, bin_of(packed_class));
}

void PackedBlocks::unfile(Page page) noexcept {
    if (PageBins::Known* entry = bins_.known(page)) bins_.unfile(*entry, page);
}

void PackedBlocks::release(Page page) noexcept {
    unfile(page);
    span_.store(pages_.packed_line(page), layout::PackedLine{});
    pages_.set_available({page, 1});
}

bool PackedBlocks::release_if_empty(Page page) {
    if (!packed_empty(pages_.packed_line(page))) return false;
    release(page);
    return true;
}

bool PackedBlocks::release_empty_pages() {
    bool any = false;
    for (unsigned packed_class = 0; packed_class < packed_class_count; ++packed_class)
        for (Page page = bins_.first(bin_of(packed_class)); page != 0;) {
            const Page next = bins_.next(page);
            if (pages_.is_user(page) && pages_.is_packed(page)) any |= release_if_empty(page);
            page = next;
        }
    return any;
}

}  // namespace taiyen::heap
