#pragma once
/// LeakSearch: which live blocks nobody can reach any more, as far as bytes tell.
///
/// Conservative: each aligned word that holds an address within a block, its first byte or another one, refers to the block, whatever the word was meant to be; where blocks are linked by distances, each
/// that could be the distance to one does, too. So a block that is told is one that no
/// root leads to; one that isn't told may still be lost, if something looks like its address.
/// (L1) What a leak leads to isn't told on its own: of each lost structure one block is named, the one that no other lost block refers to, or, of a ring, the one at the lowest address.
/// Complexity: O(bytes of blocks and roots · log blocks). Thread rule: one thread; nobody writes to the blocks meanwhile.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "heap/links.hpp"
#include "heap/memory_tools.hpp"

namespace taiyen::heap {

class LeakSearch {
public:
    /// `tool` is told that words of which nobody knows what they are may be looked at.
    LeakSearch(MemoryTool tool, Links links) : tool_(tool), links_(links) {}

    /// All live blocks, before anything else. Throws: std::bad_alloc.
    void add(const std::byte* block, ByteCount bytes) { blocks_.push_back({reinterpret_cast<std::uintptr_t>(block), bytes, false, false}); }
    /// From these bytes on everything that they lead to is no leak.
    void reach_from(const void* begin, ByteCount bytes);
    /// The block around the address, and what it leads to.
    void reach(const void* address);

    struct Leak {
        const std::byte* block = nullptr;
        ByteCount bytes = 0;
        std::uint64_t held_blocks = 0;  ///< further ones, that this one leads to
        ByteCount held_bytes = 0;
    };
    /// What is left, by address; one for each lost structure (L1). To be asked once.
    std::vector<Leak> leaks();
    /// Visits all blocks that are leaked, with those that others lead to. To be asked before `leaks`.
    template <class Visit>
    void for_each_lost(const Visit& visit) const {
        for (const Block& block : blocks_)
            if (!block.reached) visit(reinterpret_cast<const std::byte*>(block.begin), block.bytes);
    }

private:
    struct Block {
        std::uintptr_t begin;
        ByteCount bytes;
        bool reached;
        bool referred;  ///< by another lost block
    };

    void sort();
    Block* find(std::uintptr_t address);
    /// Calls `visit(block)` for each word of the range that refers to one.
    template <class Visit>
    void for_each_reference(std::uintptr_t begin, ByteCount bytes, const Visit& visit);
    std::uintptr_t word_at(std::uintptr_t address) const;
    /// Marks the block and what it leads to.
    void mark(Block& first);

    const MemoryTool tool_;
    const Links links_;
    bool sorted_ = false;
    std::vector<Block> blocks_;
    std::vector<Block*> open_;  ///< marked, and not looked into yet
    std::uint64_t marked_ = 0;
    ByteCount marked_bytes_ = 0;
};

}  // namespace taiyen::heap
