#pragma once
/// PinnedBlocks: which blocks of a heap must stay where they are, because somebody that no declared type speaks for may know their address.
///
/// (P1) A block moves only if declared types lead to it and say what lies in it, or in a part of it.
/// (P2) Bytes of live blocks that no declared type covers are taken for addresses, wherever they begin, if only one byte of the eight is such a byte: what they lead to stays.
/// Thread rule: one thread; nobody changes the heap meanwhile.

#include <unordered_set>
#include <vector>

#include <taiyen/transfer/compact.hpp>

#include "transfer/pointer_places.hpp"

namespace taiyen::transfer {

class PinnedBlocks {
public:
    /// Fills in what the report says of live blocks and of those that stay. `held`: blocks that objects outside have.
    PinnedBlocks(const HeapView& heap, const PointerWalk::State::Coverage& known, const std::vector<HeapOffset>& held, CompactReport& report);

    /// Ascending.
    const std::vector<std::uint64_t>& offsets() const { return offsets_; }

private:
    using Coverage = PointerWalk::State::Coverage;
    using Part = Coverage::Part;

    void pin(std::uint64_t block, std::uint64_t& count);
    /// The block that the place lies in. False: there is none.
    bool pin_at(std::uint64_t place, std::uint64_t& count);
    void pin_undeclared();
    void pin_suspected();

    const HeapView& heap_;
    const Coverage& known_;
    CompactReport& report_;
    std::vector<Part> unknown_;  ///< bytes of live blocks that no declared type covers, with the neighbours that may belong to the same address
    std::unordered_set<std::uint64_t> pinned_;
    std::vector<std::uint64_t> offsets_;
};

}  // namespace taiyen::transfer
