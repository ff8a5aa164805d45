#include "transfer/new_places.hpp"

#include <algorithm>

#include <taiyen/base/error.hpp>

#include "heap/engine_layout.hpp"
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

void NewPlaces::make_engine(ByteCount capacity) {
    span_.memory = vm::Reservation::anywhere(capacity);
    heap::Engine::format(span_.memory.data(), capacity, span_);
    engine_ = std::make_unique<heap::Engine>(span_.memory.data(), capacity, span_);
}

NewPlaces::NewPlaces(const HeapView& old, const std::vector<std::uint64_t>& reached, Defragment order, ByteCount capacity)
    : starts_(old.engine.extent()) {
    std::uint64_t count = 0;
    old.engine.for_each_block([&](const heap::Block&) {
        ++count;
        return true;
    });
    moves_.reserve(count);
    try {
        make_engine(capacity);
        if (order == Defragment::by_reachability) {
            for (const std::uint64_t offset : reached)
                if (const auto block = old.find_block(offset)) place(*block);
        }
        old.engine.for_each_block([&](const heap::Block& block) {
            if (!starts_->test(block.offset.value)) place(block);
            return true;
        });
        index(old.engine.extent());
        add_names(old);
    } catch (const HeapFull& full) {
        if (full.cause() != HeapFull::Cause::capacity) throw;
        throw Error(errc::invalid_argument, old.path,
                    "what is live doesn't fit into a capacity of " + std::to_string(capacity) + " bytes; ask for more");
    }
    std::sort(moves_.begin(), moves_.end(), [](const Move& a, const Move& b) { return a.to < b.to; });
}

NewPlaces::NewPlaces(const std::vector<heap::Block>& blocks, std::vector<heap::Root> names, const std::vector<heap::Root>& shapes, ByteCount capacity,
                     const std::filesystem::path& path) {
    make_engine(capacity);
    for (const heap::Block& block : blocks) {
        const bool is_packed = block.usable_bytes % heap::layout::granule_bytes != 0;
        if (!engine_->allocate_at(span_.memory.data() + block.offset.value, block.usable_bytes,
                                  is_packed ? heap::packed_alignment : heap::layout::granule_bytes, block.content))
            throw Error(errc::corrupt, path, block.offset.value,
                        "a block of " + std::to_string(block.usable_bytes) + " bytes lies where no heap puts one");
    }
    add_all(std::move(names), shapes);
}

void NewPlaces::add_all(std::vector<heap::Root> names, const std::vector<heap::Root>& shapes) {
    const std::size_t count = names.size();
    names.insert(names.end(), shapes.begin(), shapes.end());
    try {
        engine_->add_first_roots(names);
    } catch (const HeapFull&) {
        if (shapes.empty()) throw;
        names.resize(count);  // programs that have the types store them again
        engine_->add_first_roots(names);
    }
}

Relocation NewPlaces::take_relocation(std::uintptr_t from, std::uintptr_t to) {
    by_rank_ = {};
    for (Move& move : moves_) {
        move.from += from;
        move.to += to;
    }
    return Relocation(std::exchange(moves_, {}));
}

void NewPlaces::place(const heap::Block& block) {
    const auto* const at = static_cast<const std::byte*>(engine_->allocate(block.usable_bytes, alignment_of(block), block.content));
    starts_->set(block.offset.value);
    moves_.push_back({block.offset.value, block.usable_bytes, static_cast<std::uint64_t>(at - span())});
}

void NewPlaces::index(ByteCount old_extent) {
    ranks_.emplace(*starts_, old_extent);
    by_rank_.resize(moves_.size());
    for (const Move& move : moves_) by_rank_[(*ranks_)(move.from)] = move.to;
}

void NewPlaces::add_names(const HeapView& old) {
    std::vector<heap::Root> names = old.engine.roots();
    for (heap::Root& root : names) {
        const auto block = old.find_block(root.object.value);
        if (!block)
            throw Error(errc::corrupt, old.path, root.object.value,
                        "the named object '" + root.name + "' lies in no live block; run 'taiyen verify'");
        root.object.value = root.object.value - block->offset.value + place_of(block->offset.value);
    }
    add_all(std::move(names), old.engine.shapes());
}

}  // namespace taiyen::transfer
