/// Which bytes of the span each operation changes, announces and touches.

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "test_span.hpp"

namespace {

using namespace taiyen;
using namespace taiyen::heap;
using namespace taiyen::heap::test;
using namespace taiyen::literals;

/// Compares the span before and after each operation with what was announced.
class Watched {
public:
    explicit Watched(ByteCount capacity) : capacity_(capacity), memory_(capacity), shadow_(capacity) {
        Engine::format(memory_.base(), capacity, host, &observer);
        require_announced();
        engine.emplace(memory_.base(), capacity, host, &observer);
    }
    std::byte* base() const { return memory_.base(); }

    /// Number of bytes that changed; each must have been announced.
    ByteCount require_announced() {
        for (const FreeRun& range : observer.announced) BOOST_REQUIRE(range.offset.value + range.length <= capacity_);
        const auto is_announced = [&](ByteCount at) {
            return std::ranges::any_of(observer.announced, [&](const FreeRun& range) { return at - range.offset.value < range.length; });
        };
        ByteCount changed = 0;
        for (ByteCount part = 0; part < capacity_; part += part_bytes) {
            if (std::memcmp(shadow_.data() + part, base() + part, part_bytes) == 0) continue;
            for (ByteCount i = part; i < part + part_bytes; ++i) {
                if (shadow_[i] == base()[i]) continue;
                BOOST_REQUIRE_MESSAGE(is_announced(i), "the byte at " << i << " changed unannounced");
                shadow_[i] = base()[i];
                ++changed;
            }
        }
        observer.announced.clear();
        return changed;
    }
    /// The user's stores are nobody's business here.
    void accept_user_bytes(const void* block, ByteCount bytes) {
        const auto offset = static_cast<const std::byte*>(block) - base();
        std::copy_n(base() + offset, bytes, shadow_.begin() + offset);
    }

    TestHost host;
    TestObserver observer;
    std::optional<Engine> engine;

private:
    static constexpr ByteCount part_bytes = 512;  ///< compared at once
    ByteCount capacity_;
    SpanMemory memory_;
    std::vector<std::byte> shadow_;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(engine_writes)

BOOST_AUTO_TEST_CASE(every_changed_byte_was_announced) {
    std::mt19937_64 random(taiyen::test::seed_of_run());
    Watched watched(512_KiB);
    Engine& engine = *watched.engine;
    std::vector<void*> live;
    for (unsigned step = 0; step < 3000; ++step) {
        try {
            switch (random() % 12) {
                case 0:
                case 1:
                case 2:
                case 3:
                case 4:
                    live.push_back(engine.allocate(random() % 8 == 0 ? random() % 20'000 : random() % 400,
                                                   random() % 9 == 0 ? ByteCount{256} : ByteCount{8} << random() % 2,
                                                   random() % 3 == 0 ? Content::pointer_free : Content::any));
                    break;
                case 5:
                case 6:
                case 7:
                case 8:
                    if (!live.empty()) {
                        std::swap(live[random() % live.size()], live.back());
                        BOOST_REQUIRE((engine.deallocate(live.back()) == FreeResult::freed));
                        live.pop_back();
                    }
                    break;
                case 9:
                    if (!live.empty()) {
                        void*& block = live[random() % live.size()];
                        const ByteCount usable = engine.usable_size(block);
                        std::memset(block, static_cast<int>(step), usable);
                        watched.accept_user_bytes(block, usable);
                        block = engine.resize(block, random() % 30'000);
                    }
                    break;
                case 10:
                    if (random() % 2 == 0)
                        engine.add_root({"r" + std::to_string(step), std::string(random() % 100, 'x'), {0}, 0, 1});
                    else
                        engine.remove_root("r" + std::to_string(random() % (step + 1)));
                    break;
                default:
                    if (random() % 10 == 0)
                        for (const FreeRun& run : engine.release_free_pages(4096)) {
                            std::memset(watched.base() + run.offset.value, 0, run.length);
                            watched.accept_user_bytes(watched.base() + run.offset.value, run.length);
                        }
            }
        } catch (const HeapFull&) {}
        watched.require_announced();
    }
    BOOST_TEST(damage_text(engine) == "");
}

BOOST_AUTO_TEST_CASE(a_small_allocation_or_free_changes_at_most_32_bytes_beside_page_turns) {
    std::mt19937_64 random(taiyen::test::seed_of_run());
    Watched watched(1_MiB);
    Engine& engine = *watched.engine;
    std::vector<void*> live;
    for (unsigned i = 0; i < 2000; ++i) live.push_back(engine.allocate(1 + random() % 200));
    watched.require_announced();
    ByteCount changed = 0;
    unsigned above = 0;
    constexpr unsigned steps = 1000;
    for (unsigned step = 0; step < steps; ++step) {
        void*& block = live[random() % live.size()];
        engine.deallocate(block);
        ByteCount bytes = watched.require_announced();
        changed += bytes;
        above += bytes > 32 ? 1U : 0U;
        block = engine.allocate(1 + random() % 200);
        bytes = watched.require_announced();
        changed += bytes;
        above += bytes > 32 ? 1U : 0U;
    }
    BOOST_TEST(changed <= 2 * steps * 16);
    BOOST_TEST(above <= steps / 50);
}

BOOST_AUTO_TEST_CASE(a_free_never_touches_the_users_page) {
    Watched watched(1_MiB);
    Engine& engine = *watched.engine;
    for (const ByteCount bytes : {16U, 100U, 1000U, 4096U, 6000U, 60'000U}) {
        auto* block = static_cast<std::byte*>(engine.allocate(bytes));
        std::memset(block, 0x5A, bytes);
        watched.observer.announced.clear();
        engine.deallocate(block);
        for (const FreeRun& range : watched.observer.announced) {
            std::byte* at = watched.base() + range.offset.value;
            BOOST_TEST((at + range.length <= block || at >= block + bytes));
        }
        BOOST_TEST(std::all_of(block, block + bytes, [](std::byte byte) { return byte == std::byte{0x5A}; }));
    }
}

BOOST_AUTO_TEST_CASE(opening_a_large_heap_and_allocating_touch_few_pages) {
    // The first heap's bytes, in a file that is mapped again: what is resident afterwards was touched.
    constexpr ByteCount capacity = 512_MiB;
    const int file = memfd_create("engine", 0);
    BOOST_REQUIRE(file >= 0);
    BOOST_REQUIRE(ftruncate(file, static_cast<off_t>(capacity)) == 0);
    const auto map = [&](int flags) {
        void* at = mmap(nullptr, capacity, PROT_READ | PROT_WRITE, flags, file, 0);
        BOOST_REQUIRE(at != MAP_FAILED);
        return static_cast<std::byte*>(at);
    };
    TestHost host;
    std::byte* span = map(MAP_SHARED);
    {
        Engine::format(span, capacity, host);
        Engine engine(span, capacity, host);
        std::mt19937_64 random(1);
        for (unsigned i = 0; i < 12'000; ++i) engine.allocate(random() % 4 == 0 ? random() % 100'000 : random() % 500);
        // Holes of all sizes everywhere.
        std::vector<void*> blocks;
        engine.for_each_block([&](const Block& block) {
            if (random() % 3 == 0) blocks.push_back(span + block.offset.value);
            return true;
        });
        for (void* block : blocks) engine.deallocate(block);
        BOOST_REQUIRE(engine.extent() > 100_MiB);
    }
    munmap(span, capacity);
    // Private anonymous copy on demand can't tell reads; the page table can: pages that were never touched through this mapping are not present in it.
    span = map(MAP_PRIVATE);
    BOOST_REQUIRE(madvise(span, capacity, MADV_RANDOM) == 0);
    const auto touched = [&] {
        const int pagemap = open("/proc/self/pagemap", O_RDONLY);
        BOOST_REQUIRE(pagemap >= 0);
        std::vector<std::uint64_t> entries(capacity / page_bytes);
        const auto at = static_cast<off_t>(reinterpret_cast<std::uintptr_t>(span) / page_bytes * sizeof(std::uint64_t));
        BOOST_REQUIRE(pread(pagemap, entries.data(), entries.size() * sizeof(std::uint64_t), at) ==
                      static_cast<ssize_t>(entries.size() * sizeof(std::uint64_t)));
        close(pagemap);
        return std::count_if(entries.begin(), entries.end(), [](std::uint64_t entry) { return (entry >> 63U) != 0; });
    };
    Engine engine(span, capacity, host);
    BOOST_TEST(touched() <= 16);  // one page; the kernel maps up to 16 around a read
    engine.allocate(100);
    const auto after_small = touched();
    BOOST_TEST(after_small <= 16 * 14);
    engine.allocate(100'000);
    BOOST_TEST(touched() <= after_small + 16 * 8);
    munmap(span, capacity);
    close(file);
}

BOOST_AUTO_TEST_SUITE_END()
