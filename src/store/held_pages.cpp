#include "store/held_pages.hpp"

#include <cstring>

#include "heap/held_blocks.hpp"
#include "store/geometry.hpp"
#include "vm/address_space.hpp"

namespace taiyen::store {

HeldPages::HeldPages(const heap::Engine& engine, const std::byte* span, std::span<const HeapOffset> blocks, heap::Links links)
    : blocks_(blocks.size()) {
    if (blocks.empty()) return;
    for (const heap::Block& block : heap::reached_blocks(engine, span, blocks, links)) {
        const std::uint64_t last = (block.offset.value + block.usable_bytes - 1) / page_bytes;
        for (std::uint64_t page = block.offset.value / page_bytes; page <= last; ++page)
            if (pages_.empty() || pages_.back() < page) pages_.push_back(page);
    }
    bytes_.resize(pages_.size() * page_bytes);
    for (std::size_t i = 0; i < pages_.size(); ++i) std::memcpy(bytes_.data() + i * page_bytes, span + pages_[i] * page_bytes, page_bytes);
}

void HeldPages::put_back(std::byte* span) const {
    for (std::size_t i = 0; i < pages_.size(); ++i) {
        std::byte* const place = span + pages_[i] * page_bytes;
        vm::map_anonymous(place, page_bytes);
        std::memcpy(place, bytes_.data() + i * page_bytes, page_bytes);
    }
}

}  // namespace taiyen::store
