#include "volatile/thread_table.hpp"

#include <sys/mman.h>

#include <algorithm>

namespace taiyen::heap {

thread_local constinit ThreadTable thread_table{};

ThreadBlocks* ThreadTable::find(std::uint64_t serial) noexcept {
    for (std::uint32_t i = 0; i < count; ++i) {
        if (all[i].serial != serial) continue;
        cache[serial % cached] = all[i];
        return all[i].blocks;
    }
    return nullptr;
}

bool ThreadTable::add(std::uint64_t serial, ThreadBlocks* blocks) noexcept {
    if (all == nullptr) {
        all = first_entries;
        capacity = few;
    }
    if (count == capacity) {
        // Not from malloc, which may be one of our heaps.
        const std::uint32_t larger = capacity == few ? 256 : 2 * capacity;
        void* const memory = ::mmap(nullptr, larger * sizeof(Entry), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) return false;
        std::copy(all, all + count, static_cast<Entry*>(memory));
        clear_memory();
        all = static_cast<Entry*>(memory);
        capacity = larger;
    }
    all[count++] = {serial, blocks};
    cache[serial % cached] = {serial, blocks};
    return true;
}

void ThreadTable::clear_memory() noexcept {
    if (all != nullptr && all != first_entries) ::munmap(all, capacity * sizeof(Entry));
    all = nullptr;
}

}  // namespace taiyen::heap
