#include "malloc/inner_memory.hpp"

#include <sched.h>
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <bit>
#include <cstring>

namespace taiyen::inner {

namespace {

/// Right before each block.
struct Header {
    std::uint32_t state;
    std::uint32_t size_class;  ///< the place, header included, has 2^size_class bytes
    std::uint64_t distance;    ///< from the place's beginning to the block
};
static_assert(sizeof(Header) == 16);

constexpr std::uint32_t live = 0x7A1B'0E57;
constexpr unsigned smallest_class = 6;
constexpr unsigned largest_class = 36;
constexpr unsigned given_back_class = 18;  ///< free places of that class and larger ones go back to the system

struct Free {
    Free* next;
};

constinit std::atomic<bool> locked{false};
constinit std::atomic<std::uintptr_t> begin{0};
constinit std::atomic<std::uintptr_t> end{0};
constinit std::uintptr_t unused = 0;  ///< from here on nothing was ever handed out
constinit std::array<Free*, largest_class + 1> free_places{};

struct Locked {
    Locked() noexcept { lock(); }
    ~Locked() { unlock(); }
    Locked(const Locked&) = delete;
    Locked& operator=(const Locked&) = delete;
};

bool reserve() noexcept {
    for (std::size_t bytes = std::size_t{64} << 30U; bytes >= std::size_t{1} << 20U; bytes /= 4) {
        void* const range = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (range == MAP_FAILED) continue;
        unused = reinterpret_cast<std::uintptr_t>(range);
        end.store(unused + bytes, std::memory_order_relaxed);
        begin.store(unused, std::memory_order_release);
        return true;
    }
    return false;
}

Header* header_of(const void* block) noexcept { return reinterpret_cast<Header*>(reinterpret_cast<std::uintptr_t>(block) - sizeof(Header)); }

bool is_live(const void* block) noexcept { return reinterpret_cast<std::uintptr_t>(block) % sizeof(Header) == 0 && header_of(block)->state == live; }

}  // namespace

void lock() noexcept {
    while (locked.exchange(true, std::memory_order_acquire)) ::sched_yield();
}
void unlock() noexcept { locked.store(false, std::memory_order_release); }

bool owns(const void* address) noexcept {
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    const std::uintptr_t from = begin.load(std::memory_order_acquire);
    return from != 0 && at > from && at < end.load(std::memory_order_relaxed);
}

void* allocate(std::size_t bytes, std::size_t alignment, bool zeros) noexcept {
    const std::size_t slack = alignment > sizeof(Header) ? alignment : 0;
    if (bytes > std::size_t{1} << largest_class || slack > std::size_t{1} << largest_class) return nullptr;
    const std::size_t wanted = bytes + slack + sizeof(Header);
    const unsigned size_class = wanted <= std::size_t{1} << smallest_class ? smallest_class : static_cast<unsigned>(std::bit_width(wanted - 1));
    if (size_class > largest_class) return nullptr;
    const Locked hold;
    if (begin.load(std::memory_order_relaxed) == 0 && !reserve()) return nullptr;
    std::uintptr_t place = 0;
    bool used_before = false;
    if (Free* const first = free_places[size_class]; first != nullptr) {
        free_places[size_class] = first->next;
        place = reinterpret_cast<std::uintptr_t>(first);
        used_before = true;
    } else if (end.load(std::memory_order_relaxed) - unused >= std::size_t{1} << size_class) {
        place = unused;
        unused += std::size_t{1} << size_class;
    } else {
        return nullptr;
    }
    std::uintptr_t block = place + sizeof(Header);
    if (slack != 0) block = (block + alignment - 1) / alignment * alignment;
    if (zeros && used_before) std::memset(reinterpret_cast<void*>(block), 0, bytes);
    *header_of(reinterpret_cast<void*>(block)) = {live, size_class, block - place};
    return reinterpret_cast<void*>(block);
}

bool free(void* block) noexcept {
    const Locked hold;
    if (!is_live(block)) return false;
    Header& header = *header_of(block);
    header.state = 0;
    const unsigned size_class = header.size_class;
    const std::uintptr_t place = reinterpret_cast<std::uintptr_t>(block) - header.distance;
    if (size_class >= given_back_class) {
        constexpr std::uintptr_t page = 4096;
        const std::uintptr_t from = (place + page - 1) / page * page;
        const std::uintptr_t to = (place + (std::uintptr_t{1} << size_class)) / page * page;
        ::madvise(reinterpret_cast<void*>(from), to - from, MADV_DONTNEED);
    }
    auto* const first = reinterpret_cast<Free*>(place);
    first->next = free_places[size_class];
    free_places[size_class] = first;
    return true;
}

std::size_t usable_size(const void* block) noexcept {
    const Locked hold;
    if (!is_live(block)) return 0;
    const Header& header = *header_of(block);
    return (std::size_t{1} << header.size_class) - header.distance;
}

}  // namespace taiyen::inner
