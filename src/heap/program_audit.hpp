#pragma once
/// The search of what is saved for pointers to the program's own memory.
///
/// (P1) A word counts if it is the address of such memory (program_memory.hpp) and lies in a live block.
/// (P2) It is a pointer unless the blocks of that size hold as many words that lie between the program's areas, where no pointer leads: two ints side by side, text and random bits lie there nearly always, so
///      they tell on themselves. Blocks of a size mostly are one type's.
/// (P3) `linked`: it counts only where the first words there are the address of its own place, or of one shortly before it. Bytes that were never set hold addresses that the stack was full of, but what lies there
///      now doesn't lead back.
/// Cost: one range test per word; the areas are asked for at the first word that passes.
/// Thread rule: external lock on the heap.

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include <taiyen/base/units.hpp>

#include "heap/core.hpp"
#include "heap/program_memory.hpp"

namespace taiyen::heap {

class ProgramAudit {
public:
    ProgramAudit(const HeapCore& core, bool linked) : core_(core), linked_(linked) {}
    /// The words of [offset, offset + length), whose bytes must be readable. Both are multiples of 8.
    void look_at(HeapOffset offset, ByteCount length);
    struct Finding {
        HeapOffset where;  ///< the first such word of blocks of that size
        std::uintptr_t target;
        std::uint64_t count;  ///< of such words
    };
    std::vector<Finding> findings() const;
    /// What it leads to. Requires: a finding's target.
    std::string describe(std::uintptr_t target) const { return memory_->describe(target); }

private:
    struct Words {
        std::uint64_t pointers = 0;
        std::uint64_t numbers = 0;
        HeapOffset where{};
        std::uintptr_t target = 0;
    };
    void count(HeapOffset where, std::uintptr_t value);
    bool leads_back(std::uintptr_t target, HeapOffset where) const;

    const HeapCore& core_;
    const bool linked_;
    std::optional<ProgramMemory> memory_;
    std::map<ByteCount, Words> by_size_;
};

}  // namespace taiyen::heap
