#pragma once
/// ProgramMemory: what of the address space is the program's own, so that the next process finds it elsewhere or not at all: the readable segments of loaded images, malloc's memory, stacks.
///
/// malloc's memory and the stacks of threads are told by what the system says: "[heap]", "[stack]" and all anonymous memory that can be read and is no heap's. So what a program has mapped itself counts as well.
/// Images of programs that are not position-independent lie below 4 GiB, where small numbers are; nobody looks there.
/// Thread rule: a value; what is mapped afterwards it doesn't know.

#include <cstdint>
#include <string>
#include <vector>

namespace taiyen::heap {

class ProgramMemory {
public:
    /// Whether such memory may lie there at all: Linux puts it above what heaps take.
    static constexpr bool may_hold(std::uintptr_t address) { return address - first < last - first; }

    /// As it is now. Throws: std::bad_alloc. Complexity: asks the loader, and the system for the list of mappings.
    ProgramMemory();
    bool holds(std::uintptr_t address) const;
    /// What lies there, for a message. Requires: holds(address).
    std::string describe(std::uintptr_t address) const;

private:
    static constexpr std::uintptr_t first = 0x5000'0000'0000;
    static constexpr std::uintptr_t last = 0x8000'0000'0000;
    struct Area {
        std::uintptr_t begin;
        std::uintptr_t end;
        std::string name;  ///< of the image; "[heap]", "[stack]"; empty: anonymous
        bool is_image;
    };
    const Area* find(std::uintptr_t address) const;

    std::vector<Area> images_;
    std::vector<Area> others_;  ///< ascending
};

}  // namespace taiyen::heap
