#pragma once
/// HeldPages: pages of a heap that outlive it, because objects outside still hold blocks in them: at their place in memory, but no more in its files.
/// Thread rule: external lock, the heap's.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "heap/engine.hpp"
#include "heap/links.hpp"

namespace taiyen::store {

class HeldPages {
public:
    HeldPages() = default;
    /// Copies the pages of these blocks, and of all that they lead to. Throws: std::bad_alloc.
    HeldPages(const heap::Engine& engine, const std::byte* span, std::span<const HeapOffset> blocks, heap::Links links);

    /// Objects' blocks, without those that they lead to.
    std::size_t blocks() const { return blocks_; }
    /// Maps memory at their places in the span and lays them there. Throws: Error{out_of_address_space}.
    void put_back(std::byte* span) const;

private:
    std::size_t blocks_ = 0;
    std::vector<std::uint64_t> pages_;  ///< ascending
    std::vector<std::byte> bytes_;      ///< theirs
};

}  // namespace taiyen::store
