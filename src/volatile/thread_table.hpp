#pragma once
/// From a thread to its record in each volatile heap, and what happens when the thread ends.
///
/// Heaps are known by serials that are never used again, so what a thread remembers of a closed heap is never followed.
/// Thread rule: each thread has its own table.

#include <cstdint>

namespace taiyen::heap {

class ThreadBlocks;

struct ThreadTable {
    struct Entry {
        std::uint64_t serial;  ///< of the heap; 0: empty
        ThreadBlocks* blocks;
    };
    static constexpr unsigned cached = 8;
    static constexpr unsigned few = 8;

    ThreadBlocks* process;  ///< in the heap that serves malloc of the process, if there is one; the shortest way to it
    Entry cache[cached];    ///< [serial mod cached]: the heap used last
    Entry* all;             ///< null: none
    std::uint32_t count;
    std::uint32_t capacity;
    Entry first_entries[few];

    /// Null: none.
    ThreadBlocks* find(std::uint64_t serial) noexcept;
    /// False: out of memory.
    bool add(std::uint64_t serial, ThreadBlocks* blocks) noexcept;
    void clear_memory() noexcept;
};

// Reached by one load relative to the thread pointer, in shared libraries too.
extern thread_local constinit ThreadTable thread_table __attribute__((tls_model("initial-exec")));

}  // namespace taiyen::heap
