#pragma once
/// BlockWalk: from block to block along every word that may be a pointer (taiyen/inspect/leaks.hpp says which).
///
/// (I1) A block is visited once in the life of a walk, whoever leads to it.
/// (I2) Memory: the sets below, and a stack of fixed size; what doesn't fit onto it waits in a set.
/// Thread rule: one thread; nobody changes the heap meanwhile.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <taiyen/object/object_id_set.hpp>

#include "heap/core.hpp"
#include "heap/program_memory.hpp"
#include "heap/survey.hpp"
#include "heap/word_walk.hpp"

namespace taiyen::inspect {

/// Blocks, by the eighth of their offset.
using BlockSet = object_id_set<std::allocator<std::int64_t>>;
inline std::int64_t id_of(HeapOffset block) { return static_cast<std::int64_t>(block.value / 8); }
inline HeapOffset block_of(std::int64_t id) { return {static_cast<std::uint64_t>(id) * 8}; }

class BlockWalk {
public:
    explicit BlockWalk(const heap::HeapCore& core)
        : engine_(core.engine()), links_(core.links()), base_(core.ranges().durable), extent_(core.engine().extent()),
          capacity_(core.engine().capacity()), survey_(reinterpret_cast<const std::byte*>(core.ranges().durable), core.engine().capacity()) {}

    /// What a walk tells. `reached` is called with each block before its words are looked at.
    class Listener {
    public:
        virtual ~Listener() = default;
        virtual void reached(const heap::Block& block) = 0;
        /// A word leads to a block that was visited before this walk began.
        virtual void met_again(HeapOffset /*block*/) {}
        /// A word points into free space; of a position-independent heap: a word is an address in the heap.
        virtual void dangles(HeapOffset /*word*/, HeapOffset /*target*/) {}
        /// A word leads to where programs have their own memory (heap::ProgramMemory::may_hold).
        virtual void leads_out(const heap::Block& /*block*/, HeapOffset /*place*/, std::uint64_t /*word*/) {}
    };

    /// Visits the block that contains the place, and whatever it leads to, but for what was visited before.
    void from(HeapOffset place, Listener& listener);
    /// The same from each block that a word hints at, until there are no more.
    void from_hinted(Listener& listener);
    /// Everything visited by walks that are finished.
    const BlockSet& visited() const { return visited_; }

private:
    static constexpr std::size_t stack_max = std::size_t{1} << 18U;

    const std::byte* at(std::uint64_t offset) const { return reinterpret_cast<const std::byte*>(base_) + offset; }
    void push(const heap::Block& block, Listener& listener);
    bool pop(heap::Block& block);
    void look_at(const heap::Block& block, Listener& listener);
    void follow(const heap::Block& from, std::uint64_t place, std::uint64_t target, Listener& listener);
    /// Of a heap whose words are addresses.
    bool may_be_end(const heap::Block& from, std::uint64_t place, std::uint64_t target) const;

    const heap::Engine& engine_;
    const heap::Links links_;
    const std::uintptr_t base_;
    const ByteCount extent_;
    const ByteCount capacity_;
    const heap::Survey survey_;
    BlockSet visited_;
    BlockSet here_;    ///< visited by the walk that runs
    BlockSet hinted_;  ///< a word leads into their middle, is their end, or may as well be the end of the block before them
    std::vector<heap::Block> stack_;
    BlockSet waiting_;
};

}  // namespace taiyen::inspect
