#pragma once
/// NewPlaces: where the live blocks of a heap go in a new one: close together, as an empty heap would give them out one after the other, or where they lie.
///
/// (I1) Each block keeps at least its usable bytes, and an alignment of up to a page as far as its old address and its size were multiples of it (a type's size is one of its alignment).
/// (I2) Only the engine's metadata comes into being here; the bytes of blocks are copied by who writes the pages.
/// Memory: 1.6 % of the new heap; 32 bytes a block and a bit for each 8 bytes of it, where blocks move. Thread rule: one thread.

#include <memory>
#include <vector>

#include "heap/engine.hpp"
#include "transfer/place_bits.hpp"
#include "transfer/pointer_finder.hpp"

namespace taiyen::transfer {

class NewPlaces {
public:
    /// The block at `from` of the old heap lies at `to` in the new one; both are offsets.
    using Move = Relocation::Range;

    /// Lays the blocks, then the names. `reached`: blocks in the order in which they are met; those that nobody met come last.
    /// Throws: Error{invalid_argument}: they don't fit into the capacity; Error{corrupt}.
    NewPlaces(const HeapView& old, const std::vector<std::uint64_t>& reached, Defragment order, ByteCount capacity);
    /// Each block stays where it is. `blocks`: ascending. Throws: Error{corrupt}: one lies where none can lie.
    NewPlaces(const std::vector<heap::Block>& blocks, std::vector<heap::Root> names, const std::vector<heap::Root>& shapes, ByteCount capacity,
              const std::filesystem::path& path);

    const std::byte* span() const { return span_.memory.data(); }
    const heap::Engine& engine() const { return *engine_; }
    /// Ascending by new place; none where blocks stay.
    const std::vector<Move>& moves() const { return moves_; }
    /// Where the block that began at `from` begins now. Requires: blocks move. Complexity: constant.
    std::uint64_t place_of(std::uint64_t from) const { return by_rank_[(*ranks_)(from)]; }
    /// One range a block, for heaps at these addresses. No place is known any more.
    Relocation take_relocation(std::uintptr_t from, std::uintptr_t to);

private:
    /// Memory that grows where it lies.
    struct FreshSpan final : heap::SpanHost {
        void extend(ByteCount extent_bytes) override;
        vm::Reservation memory;
        ByteCount mapped = 0;
    };
    void make_engine(ByteCount capacity);
    void place(const heap::Block& block);
    void index(ByteCount old_extent);
    void add_names(const HeapView& old);
    /// In one piece: a heap that is full has no more room for them than they had. Shapes are left out before names are.
    void add_all(std::vector<heap::Root> names, const std::vector<heap::Root>& shapes);

    std::vector<Move> moves_;
    std::optional<PlaceBits> starts_;  ///< of blocks of the old heap that have a place
    std::optional<PlaceRanks> ranks_;
    std::vector<std::uint64_t> by_rank_;
    FreshSpan span_;
    std::unique_ptr<heap::Engine> engine_;
};

}  // namespace taiyen::transfer
