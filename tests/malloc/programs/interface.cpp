/// Calls every function that allocates, as its manual page describes it. Says what was wrong; silent success is "all as the manual says".

#include <malloc.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

namespace {

int wrong = 0;

void expect(bool fine, const char* what) {
    if (fine) return;
    ++wrong;
    std::printf("wrong: %s\n", what);
}

bool is_aligned(const void* block, std::size_t alignment) { return reinterpret_cast<std::uintptr_t>(block) % alignment == 0; }

bool all(const void* block, unsigned char value, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i)
        if (static_cast<const unsigned char*>(block)[i] != value) return false;
    return true;
}

/// The largest request, hidden from the compiler, which knows that it can't be met.
std::size_t too_much() {
    volatile std::size_t bytes = SIZE_MAX / 2;
    return bytes;
}

void plain() {
    for (const std::size_t bytes : {0U, 1U, 15U, 16U, 17U, 100U, 2048U, 2049U, 4096U, 5000U, 100'000U, 5'000'000U}) {
        void* const block = std::malloc(bytes);
        expect(block != nullptr && is_aligned(block, 16), "malloc gives a block at a multiple of 16");
        expect(malloc_usable_size(block) >= bytes, "malloc_usable_size is at least what was asked for");
        std::memset(block, 0x5A, bytes);
        void* const zeros = std::calloc(bytes, 1);
        expect(zeros != nullptr && all(zeros, 0, bytes), "calloc gives zeros");
        std::memset(zeros, 1, bytes);
        std::free(zeros);
        void* const again = std::calloc(1, bytes);
        expect(again != nullptr && all(again, 0, bytes), "calloc gives zeros where other bytes were");
        std::free(again);
        expect(all(block, 0x5A, bytes), "a block's bytes are its own");
        errno = 77;
        std::free(block);
        expect(errno == 77, "free leaves errno alone");
    }
    std::free(nullptr);
    expect(malloc_usable_size(nullptr) == 0, "no block has no size");
}

void resized() {
    auto* block = static_cast<unsigned char*>(std::realloc(nullptr, 10));
    expect(block != nullptr, "realloc of nothing allocates");
    std::size_t filled = 10;
    std::memset(block, 3, filled);
    for (const std::size_t bytes : {20U, 2000U, 2049U, 6000U, 300'000U, 9'000'000U, 200'000U, 5000U, 300U, 7U}) {
        auto* const moved = static_cast<unsigned char*>(std::realloc(block, bytes));
        expect(moved != nullptr && all(moved, 3, filled < bytes ? filled : bytes), "realloc keeps the content");
        block = moved;
        filled = bytes;
        std::memset(block, 3, filled);
    }
    errno = 0;
    expect(std::realloc(block, too_much()) == nullptr && errno == ENOMEM && all(block, 3, 7), "a realloc that fails leaves the block");
    errno = 0;
    expect(reallocarray(block, SIZE_MAX / 4, 8) == nullptr && errno == ENOMEM, "reallocarray sees the overflow");
    block = static_cast<unsigned char*>(reallocarray(block, 100, 8));
    expect(block != nullptr && all(block, 3, 7), "reallocarray resizes");
    expect(std::realloc(block, 0) == nullptr, "realloc to nothing frees");
}

void aligned() {
    for (std::size_t alignment = sizeof(void*); alignment <= std::size_t{2} << 20U; alignment *= 2)
        for (const std::size_t bytes : {1U, 24U, 100U, 1000U, 3000U, 10'000U}) {
            void* block = nullptr;
            errno = 55;
            expect(posix_memalign(&block, alignment, bytes) == 0 && is_aligned(block, alignment) && errno == 55, "posix_memalign aligns");
            std::memset(block, 1, bytes);
            std::free(block);
            block = aligned_alloc(alignment, bytes);
            expect(block != nullptr && is_aligned(block, alignment) && malloc_usable_size(block) >= bytes, "aligned_alloc aligns");
            std::free(block);
            block = memalign(alignment, bytes);
            expect(block != nullptr && is_aligned(block, alignment), "memalign aligns");
            block = std::realloc(block, bytes * 3);
            expect(block != nullptr && malloc_usable_size(block) >= bytes * 3, "an aligned block can be resized");
            std::free(block);
        }
    void* untouched = &wrong;
    expect(posix_memalign(&untouched, 3, 8) == EINVAL && untouched == &wrong, "posix_memalign refuses an alignment of 3");
    expect(posix_memalign(&untouched, 64, too_much()) == ENOMEM && untouched == &wrong, "posix_memalign says that there is no memory");
    void* block = valloc(100);
    expect(block != nullptr && is_aligned(block, 4096), "valloc aligns to a page");
    std::free(block);
    block = pvalloc(4097);
    expect(block != nullptr && is_aligned(block, 4096) && malloc_usable_size(block) >= 8192, "pvalloc gives whole pages");
    std::free(block);
}

void refused() {
    errno = 0;
    expect(std::malloc(too_much()) == nullptr && errno == ENOMEM, "malloc says ENOMEM");
    errno = 0;
    expect(std::malloc(SIZE_MAX - 7) == nullptr && errno == ENOMEM, "malloc says ENOMEM at the very end, too");
    errno = 0;
    expect(std::calloc(SIZE_MAX / 2, 3) == nullptr && errno == ENOMEM, "calloc sees the overflow");
    bool thrown = false;
    try {
        ::operator delete(::operator new(too_much()));
    } catch (const std::bad_alloc&) {
        thrown = true;
    }
    expect(thrown, "operator new throws bad_alloc");
    expect(::operator new(too_much(), std::nothrow) == nullptr, "its nothrow variant returns null");
    static int asked;
    asked = 0;
    std::set_new_handler([] {
        if (++asked == 3) std::set_new_handler(nullptr);
    });
    expect(::operator new(too_much(), std::nothrow) == nullptr&& asked == 3, "the new-handler is asked until there is none");
}

struct alignas(256) Wide {
    char bytes[256];
};

void operators() {
    ::operator delete(::operator new(10));
    ::operator delete(::operator new(10), std::size_t{10});
    ::operator delete[](::operator new[](10));
    ::operator delete[](::operator new[](10), std::size_t{10});
    ::operator delete(::operator new(10, std::nothrow), std::nothrow);
    ::operator delete[](::operator new[](10, std::nothrow), std::nothrow);
    constexpr auto line = std::align_val_t{64};
    void* const block = ::operator new(100, line);
    expect(is_aligned(block, 64), "aligned operator new aligns");
    ::operator delete(block, line);
    ::operator delete(::operator new(100, line), 100, line);
    ::operator delete[](::operator new[](100, line), line);
    ::operator delete[](::operator new[](100, line), 100, line);
    ::operator delete(::operator new(100, line, std::nothrow), line, std::nothrow);
    ::operator delete[](::operator new[](100, line, std::nothrow), line, std::nothrow);
    std::vector<Wide*> wides;
    for (int i = 0; i < 100; ++i) wides.push_back(new Wide);
    for (Wide* wide : wides) {
        expect(is_aligned(wide, 256), "new of an aligned type aligns");
        delete wide;
    }
}

/// Bad pointers are told on stderr and left alone: the program goes on.
void bad_pointers() {
    auto* const block = static_cast<char*>(std::malloc(100));
    std::memset(block, 9, 100);
    int local = 0;
    std::free(&local);
    std::free(block + 16);
    expect(std::realloc(block + 16, 50) == nullptr, "realloc of an interior pointer is refused");
    expect(all(block, 9, 100), "nothing happened to the block");
    std::free(block);
    std::free(block);
    void* const first = std::malloc(100);
    void* const second = std::malloc(100);
    expect(first != second, "a block that was freed twice is handed out once");
    std::free(first);
    std::free(second);
}

}  // namespace

int main(int argc, char**) {
    plain();
    resized();
    aligned();
    refused();
    operators();
    // The C library's own malloc aborts there.
    if (argc > 1) bad_pointers();
    std::printf(wrong == 0 ? "all as the manual says\n" : "%d wrong\n", wrong);
    return wrong == 0 ? 0 : 1;
}
