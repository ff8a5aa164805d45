/// A program with one error in a block of a volatile heap, which a memory checker should see: errors KIND.

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include <taiyen/heap/volatile_heap.hpp>

namespace {

// Reached through memory that the compiler knows nothing about.
volatile char* volatile block = nullptr;

taiyen::VolatileHeap* volatile kept_heap = nullptr;
char** volatile kept_block = nullptr;

}  // namespace

int main(int count, char** arguments) {
    const std::string_view kind = count == 2 ? arguments[1] : "none";
    kept_heap = new taiyen::VolatileHeap({.capacity = std::size_t{64} << 20U});
    taiyen::VolatileHeap& heap = *kept_heap;
    for (const std::size_t bytes : {13U, 40U, 2000U, 100'000U}) {
        block = static_cast<char*>(heap.allocate(bytes));
        for (std::size_t i = 0; i < bytes; ++i) block[i] = 1;
        if (kind == "behind") block[bytes] = 1;
        if (kind == "before") block[-1] = 1;
        auto* resized = static_cast<char*>(heap.resize(const_cast<char*>(block), bytes + 5));
        if (kind == "resized") block[0] = 2;
        if (resized[bytes - 1] != 1) return 3;
        resized[bytes + 4] = 7;
        block = resized;
        heap.deallocate(resized);
        if (kind == "freed" && block[bytes / 2] == 55) return 4;
    }
    if (kind == "fresh") {
        block = static_cast<char*>(heap.allocate(64));
        if (block[7] == 3) std::puts("three");
        heap.deallocate(const_cast<char*>(block));
    }
    // A block of malloc that only a block of ours points to is no leak.
    kept_block = static_cast<char**>(heap.allocate(sizeof(char*)));
    *kept_block = static_cast<char*>(std::malloc(100));
    taiyen::VolatileHeap closed({.capacity = std::size_t{64} << 20U});
    static_cast<void>(closed.allocate(1000));
    closed.close();
    // Whoever gets those addresses next may use them.
    taiyen::VolatileHeap next({.capacity = std::size_t{64} << 20U});
    std::memset(next.allocate(4000), 1, 4000);
    std::puts("fine");
    return 0;
}
