// What the first program with taiyen does; `program FILE` counts its own runs in the heap.
#include <cstdio>

#include <taiyen/taiyen.hpp>

int main(int, char** arguments) {
    try {
        throw taiyen::Error(taiyen::errc::busy, arguments[1], "a thrown error crosses the library's border");
    } catch (const taiyen::Error& error) {
        if (error.code() != taiyen::errc::busy) {
            return 1;
        }
    }
    std::puts("ok");
}
