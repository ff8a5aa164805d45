// A program with a heap that captures through pages, for debuggers: program undo|crash FILE.
// undo: changes a thousand pages in a step and takes it back; says what came of it. crash: a wild store in the middle of such a step.
#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <string>

#include <taiyen/taiyen.hpp>

namespace {

constexpr std::size_t stride = taiyen::page_bytes / sizeof(int);
constexpr std::size_t pages = 1000;

[[gnu::noinline]] void store_wildly() {
    auto* volatile nowhere = reinterpret_cast<volatile std::byte*>(0x10);
    *nowhere = std::byte{1};  // here it crashes
}

/// Where a breakpoint looks at a heap in the middle of a step.
[[gnu::noinline]] void changed(const taiyen::vector<int>& numbers) {
    std::printf("the first number is %d\n", numbers.front());
    std::fflush(stdout);
}

int run(bool crashes, const std::string& path) {
    taiyen::SnapshotHeap heap(taiyen::create_only, path);
    auto& numbers = heap.construct<taiyen::vector<int>>("numbers", pages * stride, 1);
    heap.attach_undo();
    for (int round = 2; round < 5; ++round) {
        taiyen::UndoScope scope(heap, "change");
        for (std::size_t page = 0; page < pages; ++page) numbers[page * stride] = round;
        changed(numbers);
        if (crashes && round == 3) store_wildly();
        scope.commit();
    }
    int undone = 0;
    while (heap.can_undo() && undone < 3) {
        heap.undo();
        ++undone;
    }
    const bool as_before = std::all_of(numbers.begin(), numbers.end(), [](int number) { return number == 1; });
    std::puts(undone == 3 && as_before ? "three steps undone, all is as before" : "undo went wrong");
    return as_before ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) {
        std::fputs("usage: program undo|crash FILE\n", stderr);
        return 2;
    }
    try {
        return run(std::strcmp(argv[1], "crash") == 0, argv[2]);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 2;
    }
}
