#include "transfer/new_places.hpp"

#include <algorithm>

#include <taiyen/base/error.hpp>

#include "heap/engine_layout.hpp"
#include "heap/held_blocks.hpp"
#include "heap/packed_page.hpp"

namespace taiyen::transfer {
namespace {

/// A page at most: more than that no type of a container asks for, and large blocks would lie apart for it.
ByteCount alignment_of(const heap::Block& block) {
    if (block.usable_bytes % heap::layout::granule_bytes != 0) return heap::packed_alignment;
    const std::uint64_t both = block.offset.value | block.usable_bytes | page_bytes;
    return std::max<ByteCount>(both & (~both + 1), heap::layout::granule_bytes);
}

}  // namespace

void NewPlaces::FreshSpan::extend(ByteCount extent_bytes) {
    if (extent_bytes <= mapped) return;
    vm::map_anonymous(memory.data() + mapped, extent_bytes - mapped);
    mapped = extent_bytes;
}

NewPlaces::NewPlaces(const HeapView& old, const std::vector<std::uint64_t>& reached, Defragment order, ByteCount capacity) {
    std::vector<heap::Block> blocks;  // ascending
    old.engine.for_each_block([&](const heap::Block& block) {
        blocks.push_back(block);
        return true;
    });
    moves_.reserve(blocks.size());
    try {
        span_.memory = vm::Reservation::anywhere(capacity);
        heap::Engine::format(span_.memory.data(), capacity, span_);
        engine_ = std::make_unique<heap::Engine>(span_.memory.data(), capacity, span_);
        std::vector<bool> is_placed(blocks.size());
        if (order == Defragment::by_reachability) {
            for (const std::uint64_t offset : reached) {
                const auto at = std::lower_bound(blocks.begin(), blocks.end(), offset,
                                                 [](const heap::Block& block, std::uint64_t value) { return block.offset.value < value; });
                if (at == blocks.end() || at->offset.value != offset) continue;
                place(*at);
                is_placed[static_cast<std::size_t>(at - blocks.begin())] = true;
            }
        }
        for (std::size_t i = 0; i < blocks.size(); ++i) {
            if (!is_placed[i]) place(blocks[i]);
        }
        add_names(old);
    } catch (const HeapFull& full) {
        if (full.cause() != HeapFull::Cause::capacity) throw;
        throw Error(errc::invalid_argument, old.path,
                    "what is live doesn't fit into a capacity of " + std::to_string(capacity) + " bytes; ask for more");
    }
    std::sort(moves_.begin(), moves_.end(), [](const Move& a, const Move& b) { return a.to < b.to; });
}

Relocation NewPlaces::relocation(std::uintptr_t from, std::uintptr_t to) const {
    std::vector<Relocation::Range> ranges;
    ranges.reserve(moves_.size());
    for (const Move& move : moves_) ranges.push_back({from + move.from, move.bytes, to + move.to});
    return Relocation(std::move(ranges));
}

void NewPlaces::place(const heap::Block& block) {
    const auto* const at = static_cast<const std::byte*>(engine_->allocate(block.usable_bytes, alignment_of(block)));
    moves_.push_back({block.offset.value, block.usable_bytes, static_cast<std::uint64_t>(at - span())});
}

void NewPlaces::add_names(const HeapView& old) {
    const Relocation moved = relocation(0, 0);
    for (heap::Root root : old.engine.roots()) {
        const bool is_held = heap::HeldBlocks::is_entry(root);
        if (!moved.moves(root.object.value))
            throw Error(errc::corrupt, old.path, root.object.value,
                        "the named object '" + root.name + "' lies in no live block; run 'taiyen verify'");
        root.object.value = moved.map(root.object.value);
        if (is_held) root.name = heap::HeldBlocks::entry_name(root.object);
        engine_->add_root(root);
    }
}

}  // namespace taiyen::transfer
