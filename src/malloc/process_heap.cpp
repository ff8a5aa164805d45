#include "malloc/process_heap.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <taiyen/base/report.hpp>

#include "base/descriptor.hpp"
#include "malloc/inner_memory.hpp"

namespace taiyen::process {

constinit std::atomic<heap::VolatileCore*> heap{nullptr};

namespace {

thread_local constinit unsigned inside_depth __attribute__((tls_model("initial-exec"))) = 0;

/// (M1), and (M2) on the way out.
class Inside {
public:
    Inside() noexcept { ++inside_depth; }
    ~Inside() {
        --inside_depth;
        errno = error_;
    }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

private:
    int error_ = errno;
};

enum class State : unsigned { none, opening, open, refused };
constinit std::atomic<State> state{State::none};

void say(const char* text) noexcept { [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text, std::strlen(text)); }

heap::VolatileCore* open_heap() noexcept {
    // Registered first, so that a fork takes this lock after those of the heap.
    if (::pthread_atfork(inner::lock, inner::unlock, inner::unlock) != 0) return nullptr;
    // A limit on the address space (ulimit -v) may refuse the larger ones.
    for (std::size_t capacity = std::size_t{1} << 40U; capacity >= std::size_t{256} << 20U; capacity /= 8) {
        try {
            return heap::VolatileCore::open({.capacity = capacity, .tell_memory_tools = false}).release();
        } catch (...) {}
    }
    return nullptr;
}

/// Null: there is none, or this thread is making it.
heap::VolatileCore* opened() noexcept {
    if (heap::VolatileCore* const core = heap.load(std::memory_order_acquire)) return core;
    State seen = State::none;
    if (state.compare_exchange_strong(seen, State::opening)) {
        heap::VolatileCore* const core = open_heap();
        if (core == nullptr) say("libtaiyen-malloc: no address space for a heap; memory comes from a simple allocator\n");
        heap.store(core, std::memory_order_release);
        state.store(core != nullptr ? State::open : State::refused, std::memory_order_release);
        return core;
    }
    while (state.load(std::memory_order_acquire) == State::opening) ::sched_yield();
    return heap.load(std::memory_order_acquire);
}

/// Before this library's other constructors, one of which registers the heap's own handlers of forks: see open_heap.
[[gnu::constructor(101)]] void open_at_load() noexcept {
    const Inside inside;
    (void)opened();
}

/// At the end of the process, for those who want to know whether this library was in use: TAIYEN_MALLOC_STATS=1 to stderr, else to the file of that name.
[[gnu::destructor]] void tell_stats() noexcept {
    const char* const wish = std::getenv("TAIYEN_MALLOC_STATS");
    heap::VolatileCore* const core = heap.load(std::memory_order_acquire);
    if (wish == nullptr || *wish == '\0' || core == nullptr) return;
    const Inside inside;
    try {
        const VolatileStats stats = core->stats();
        char line[256];
        const int length =
            std::snprintf(line, sizeof line, "taiyen-malloc: pid %ld, %llu blocks, %zu live bytes, %zu free, %zu dirty, extent %zu, threads %zu\n",
                          static_cast<long>(::getpid()), static_cast<unsigned long long>(stats.live_blocks), stats.live_bytes, stats.free_bytes,
                          stats.dirty_bytes, stats.extent_bytes, stats.threads);
        const bool to_stderr = std::strcmp(wish, "1") == 0;
        const Descriptor opened(to_stderr ? -1 : ::open(wish, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
        const int file = to_stderr ? STDERR_FILENO : opened.get();
        if (file < 0 || length <= 0) return;
        [[maybe_unused]] const ssize_t written = ::write(file, line, static_cast<std::size_t>(length));
    } catch (...) {}
}

}  // namespace

void* allocate_slowly(std::size_t bytes, std::size_t alignment) noexcept {
    void* block = nullptr;
    if (inside_depth != 0) {
        block = inner::allocate(bytes, alignment);
    } else {
        const Inside inside;
        heap::VolatileCore* const core = opened();
        block = core != nullptr ? core->try_allocate(bytes, alignment) : inner::allocate(bytes, alignment);
        if (core != nullptr) heap::thread_table.process = core->mine_known();
    }
    if (block == nullptr) errno = ENOMEM;
    return block;
}

void free_slowly(void* block) noexcept {
    if (block == nullptr) return;
    const Inside inside;
    if (inner::owns(block)) {
        if (!inner::free(block)) heap::tell(heap::FreeResult::not_a_block, block);
        return;
    }
    if (heap::VolatileCore* const core = heap.load(std::memory_order_acquire))
        core->deallocate(block);
    else
        heap::tell(heap::FreeResult::foreign, block);
}

std::size_t usable_size(const void* block) noexcept {
    if (block == nullptr) return 0;
    if (inner::owns(block)) return inner::usable_size(block);
    const heap::VolatileCore* const core = heap.load(std::memory_order_acquire);
    if (core == nullptr) return 0;
    const Inside inside;
    return core->usable_size(block);
}

void* resize(void* block, std::size_t bytes) noexcept {
    heap::VolatileCore* const core = heap.load(std::memory_order_acquire);
    if (core == nullptr || inner::owns(block) || inside_depth != 0) {
        const std::size_t usable = usable_size(block);
        if (usable == 0) {
            heap::tell(heap::FreeResult::not_a_block, block);
            errno = EINVAL;
            return nullptr;
        }
        if (bytes <= usable && bytes > usable / 4) return block;
        void* const moved = allocate(bytes);
        if (moved == nullptr) return nullptr;
        std::memcpy(moved, block, std::min(bytes, usable));
        free(block);
        return moved;
    }
    int error = 0;
    {
        const Inside inside;
        try {
            return core->resize(block, bytes);
        } catch (const Error& refused) {
            report({static_cast<errc>(refused.code().value()), block, "realloc of a pointer that is no live block; it is left as it is"});
            error = EINVAL;
        } catch (...) {
            error = ENOMEM;
        }
    }
    errno = error;
    return nullptr;
}

void* allocate_zeros(std::size_t bytes) noexcept {
    void* const block = inside_depth == 0 ? allocate(bytes) : inner::allocate(bytes, heap::layout::granule_bytes, true);
    if (block == nullptr || inside_depth != 0) return block;
    // Pages that are given back come again as zeros when they are used, if ever.
    constexpr std::size_t by_the_system = std::size_t{256} << 10U;
    constexpr std::uintptr_t page = 4096;
    if (bytes >= by_the_system) {
        const int error = errno;
        const auto begin = reinterpret_cast<std::uintptr_t>(block);
        const std::uintptr_t from = (begin + page - 1) / page * page;
        const std::uintptr_t to = (begin + bytes) / page * page;
        const bool cleared = ::madvise(reinterpret_cast<void*>(from), to - from, MADV_DONTNEED) == 0;
        errno = error;
        if (cleared) {
            std::memset(block, 0, from - begin);
            std::memset(reinterpret_cast<void*>(to), 0, begin + bytes - to);
            return block;
        }
    }
    return std::memset(block, 0, bytes);
}

void trim() noexcept {
    heap::VolatileCore* const core = heap.load(std::memory_order_acquire);
    if (core == nullptr || inside_depth != 0) return;
    const Inside inside;
    core->trim();
}

}  // namespace taiyen::process
