#pragma once
/// NewPlaces: where the live blocks of a heap go when they are laid close together, as an empty heap would give them out one after the other.
///
/// (I1) Each block keeps at least its usable bytes, and an alignment of up to a page as far as its old address and its size were multiples of it (a type's size is one of its alignment).
/// (I2) Only the engine's metadata comes into being here; the bytes of blocks are copied by who writes the pages.
/// Memory: 1.6 % of the new heap, 48 bytes a block. Thread rule: one thread.

#include <memory>
#include <vector>

#include "heap/engine.hpp"
#include "transfer/pointer_finder.hpp"
#include "vm/address_space.hpp"

namespace taiyen::transfer {

class NewPlaces {
public:
    /// The block at `from` of the old heap lies at `to` in the new one.
    struct Move {
        std::uint64_t from;
        std::uint64_t bytes;
        std::uint64_t to;
    };

    /// Lays the blocks, then the names. `reached`: blocks in the order in which they are met; those that nobody met come last.
    /// Throws: Error{invalid_argument}: they don't fit into the capacity; Error{corrupt}.
    NewPlaces(const HeapView& old, const std::vector<std::uint64_t>& reached, Defragment order, ByteCount capacity);

    const std::byte* span() const { return span_.memory.data(); }
    const heap::Engine& engine() const { return *engine_; }
    /// Ascending by new place.
    const std::vector<Move>& moves() const { return moves_; }
    Relocation relocation(std::uintptr_t from, std::uintptr_t to) const;

private:
    /// Memory that grows where it lies.
    struct FreshSpan final : heap::SpanHost {
        void extend(ByteCount extent_bytes) override;
        void restore_blocks(HeapOffset, ByteCount) override {}
        vm::Reservation memory;
        ByteCount mapped = 0;
    };
    void place(const heap::Block& block);
    void add_names(const HeapView& old);

    std::vector<Move> moves_;
    FreshSpan span_;
    std::unique_ptr<heap::Engine> engine_;
};

}  // namespace taiyen::transfer
