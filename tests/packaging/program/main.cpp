// What a first program with taiyen does: `program FILE` counts its own runs in a heap and checks that all of them are there.
#include <cstdio>
#include <variant>

#include <taiyen/taiyen.hpp>

struct Run {
    taiyen::string text;
    std::variant<int, taiyen::vector<taiyen::string>> notes;
};

namespace {

int count_runs(const char* path) {
    taiyen::SnapshotHeap heap(taiyen::open_or_create, path);
    auto& runs = heap.find_or_construct<taiyen::map<int, Run>>("runs");
    int expected = 0;
    for (const auto& [number, run] : runs)
        if (number != ++expected || run.text.size() < 64 || std::get<1>(run.notes).size() != 1) return 1;
    Run& now = runs[expected + 1];
    now.text = "a text that is too long for the buffer which a string object keeps inside itself";
    now.notes.emplace<1>().push_back("note");
    heap.snapshot();
    heap.close();
    std::puts("ok");
    return 0;
}

}  // namespace

int main(int, char** arguments) {
    try {
        return count_runs(arguments[1]);
    } catch (const taiyen::Error& error) {
        std::puts(error.what());
        return 2;
    }
}
