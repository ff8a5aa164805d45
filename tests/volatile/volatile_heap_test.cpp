#include <boost/test/unit_test.hpp>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <set>
#include <thread>
#include <vector>

#include <taiyen/base/report.hpp>
#include <taiyen/heap/detail/access.hpp>

#include "base/sanitizers.hpp"
#include "threads.hpp"
#include "throws.hpp"
#include "volatile/volatile_core.hpp"

BOOST_AUTO_TEST_SUITE(volatile_heap)

namespace {

using namespace taiyen;
using namespace taiyen::heap;
using taiyen::test::at_once;
using taiyen::test::require;

std::atomic<unsigned> double_frees{0};
std::atomic<unsigned> foreign_frees{0};
void count_incident(const Incident& incident) noexcept { (incident.code == errc::foreign_pointer ? foreign_frees : double_frees).fetch_add(1); }

struct Counted {
    Counted() {
        double_frees = 0;
        foreign_frees = 0;
    }
    ~Counted() { set_report_handler(before); }
    ReportHandler before = set_report_handler(&count_incident);
};

VolatileCore& core_of(VolatileHeap& heap) { return *static_cast<VolatileCore*>(heap.core()); }

void require_sound(VolatileHeap& heap) {
    for (const Damage& damage : core_of(heap).check()) BOOST_ERROR("at offset " << damage.where.value << ": " << damage.what);
}

void in_thread(const std::function<void()>& action) {
    at_once(1, [&](unsigned) { action(); });
}

std::size_t segment_of(const void* block) { return reinterpret_cast<std::uintptr_t>(block) / segment_bytes; }

constexpr ByteCount capacity = 256_MiB;

BOOST_AUTO_TEST_CASE(heaps_are_found_by_the_addresses_of_their_blocks) {
    VolatileHeap one({.capacity = capacity});
    VolatileHeap other({.capacity = capacity});
    void* const a = one.allocate(100);
    void* const b = other.allocate(100'000);
    BOOST_TEST(core_at(a) == one.core());
    BOOST_TEST(core_at(b) == other.core());
    BOOST_TEST((one.owns(a) && !one.owns(b) && other.owns(b) && !other.owns(a)));
    taiyen::heap::deallocate(a);
    taiyen::heap::deallocate(b);
    BOOST_TEST(one.stats().live_blocks == 0U);
    BOOST_TEST(other.stats().live_blocks == 0U);
}

BOOST_AUTO_TEST_CASE(no_block_touches_more_cache_lines_than_its_size_needs) {
    VolatileHeap heap({.capacity = capacity});
    for (ByteCount bytes = 1; bytes <= 2048; bytes += 7) {
        if (round_up(bytes, 16) == 48) continue;  // until the places that the rule leaves over pile up
        for (unsigned i = 0; i < 200; ++i) {
            const auto at = reinterpret_cast<std::uintptr_t>(heap.allocate(bytes));
            const ByteCount usable = heap.usable_size(reinterpret_cast<void*>(at));
            BOOST_REQUIRE((at + usable - 1) / 64 - at / 64 + 1 == (usable + 63) / 64);
        }
    }
}

BOOST_AUTO_TEST_CASE(each_size_has_each_alignment) {
    VolatileHeap heap({.capacity = capacity});
    std::vector<void*> blocks;
    for (ByteCount alignment = 1; alignment <= 2_MiB; alignment *= 2)
        for (ByteCount bytes : {0U, 1U, 15U, 16U, 17U, 48U, 100U, 512U, 1000U, 2048U, 2049U, 4000U, 4096U, 5000U, 70000U}) {
            void* const block = heap.allocate(bytes, alignment);
            BOOST_REQUIRE(reinterpret_cast<std::uintptr_t>(block) % std::max<ByteCount>(alignment, 16) == 0);
            BOOST_REQUIRE(heap.usable_size(block) >= bytes);
            std::memset(block, 1, bytes);
            blocks.push_back(block);
        }
    for (ByteCount bytes = 1; bytes <= 2048; ++bytes)
        for (ByteCount alignment = 32; alignment <= 1024; alignment *= 2) {
            void* const block = heap.allocate(bytes, alignment);
            BOOST_REQUIRE(reinterpret_cast<std::uintptr_t>(block) % alignment == 0);
            blocks.push_back(block);
        }
    BOOST_CHECK_THROW(heap.allocate(16, 48), Error);
    BOOST_CHECK_THROW(heap.allocate(16, 4_MiB), Error);
    BOOST_TEST(heap.try_allocate(16, 24) == nullptr);
    require_sound(heap);
    for (void* block : blocks) heap.deallocate(block);
    BOOST_TEST(heap.stats().live_blocks == 0U);
}

BOOST_AUTO_TEST_CASE(a_bad_free_is_reported_and_changes_nothing) {
    const Counted counted;
    VolatileHeap heap({.capacity = capacity});
    VolatileHeap other({.capacity = capacity});
    for (const ByteCount bytes : {16U, 48U, 100U, 2000U, 3000U, 10'000U, 1'000'000U}) {
        double_frees = 0;
        auto* const block = static_cast<std::byte*>(heap.allocate(bytes));
        auto* const neighbour = static_cast<std::byte*>(heap.allocate(bytes));
        for (const std::ptrdiff_t distance : {1, 8, 15}) heap.deallocate(block + distance);
        BOOST_TEST(double_frees == 3U);
        if (bytes > 16) heap.deallocate(block + 16);
        BOOST_TEST(double_frees == (bytes > 16 ? 4U : 3U));
        heap.deallocate(block);
        const unsigned before = double_frees;
        heap.deallocate(block);
        BOOST_TEST(double_frees == before + 1);
        in_thread([&] { heap.deallocate(block); });
        BOOST_TEST(double_frees == before + 2);
        BOOST_TEST(heap.usable_size(block) == 0U);
        BOOST_CHECK_THROW(heap.resize(block, 10), Error);
        heap.deallocate(neighbour);
        BOOST_TEST(double_frees == before + 2);
    }
    int local = 0;
    heap.deallocate(&local);
    BOOST_TEST(foreign_frees == 1U);
    heap.deallocate(other.allocate(10));
    BOOST_TEST(foreign_frees == 2U);
    taiyen::heap::deallocate(reinterpret_cast<void*>(heap.core()->ranges().beside));
    BOOST_TEST(foreign_frees == 3U);
    BOOST_TEST(other.stats().live_blocks == 1U);
    heap.deallocate(nullptr);
    require_sound(heap);
}

BOOST_AUTO_TEST_CASE(a_chunk_lent_to_threads_cannot_be_freed_as_a_block) {
    const Counted counted;
    VolatileHeap heap({.capacity = capacity});
    void* const block = heap.allocate(16);
    auto* const segment = reinterpret_cast<std::byte*>(segment_of(block) * segment_bytes);
    heap.deallocate(block);
    heap.deallocate(segment);
    in_thread([&] { heap.deallocate(segment); });
    BOOST_TEST(double_frees == 2U);
    BOOST_TEST(heap.allocate(16) == block);
}

BOOST_AUTO_TEST_CASE(what_another_thread_freed_is_allocated_again, *boost::unit_test::label("threads")) {
    VolatileHeap heap({.capacity = capacity});
    std::vector<void*> blocks;
    ByteCount extent = 0;
    for (unsigned round = 0; round < 20; ++round) {
        for (unsigned i = 0; i < 20'000; ++i) blocks.push_back(heap.allocate(64));
        in_thread([&] {
            for (void* block : blocks) heap.deallocate(block);
        });
        blocks.clear();
        if (round == 1) extent = heap.stats().extent_bytes;
    }
    BOOST_TEST(heap.stats().extent_bytes <= extent);
    heap.trim();
    require_sound(heap);
    BOOST_TEST(heap.stats().live_blocks == 0U);
}

BOOST_AUTO_TEST_CASE(a_block_freed_by_two_other_threads_is_freed_once, *boost::unit_test::label("threads")) {
    const Counted counted;
    VolatileHeap heap({.capacity = capacity});
    void* const block = heap.allocate(64);
    void* const other = heap.allocate(64);
    in_thread([&] { heap.deallocate(block); });
    in_thread([&] { heap.deallocate(block); });
    BOOST_TEST(double_frees == 1U);
    heap.deallocate(block);  // its owner, who has not looked into its inbox yet
    BOOST_TEST(double_frees == 2U);
    std::set<void*> fresh;
    for (unsigned i = 0; i < 1000; ++i) BOOST_REQUIRE(fresh.insert(heap.allocate(64)).second);
    BOOST_TEST(!fresh.contains(other));
    require_sound(heap);
}

BOOST_AUTO_TEST_CASE(the_size_of_anothers_block_was_too_large_while_its_owner_cut_a_place_behind_it, *boost::unit_test::label("threads")) {
    VolatileHeap heap({.capacity = capacity});
    std::atomic<std::byte*> shared{nullptr};
    std::atomic<bool> stop{false};
    std::thread owner([&] {
        // Blocks of 64 bytes side by side; behind one of them the only place in the page is taken and given back, again and again.
        std::vector<std::byte*> blocks;
        for (unsigned i = 0; i < 200; ++i) blocks.push_back(static_cast<std::byte*>(heap.allocate(64)));
        std::sort(blocks.begin(), blocks.end());
        std::size_t at = 70;
        while (blocks[at + 1] != blocks[at] + 64) ++at;
        std::byte* const hole = blocks[at + 1];
        heap.deallocate(hole);
        heap.trim();
        unsigned hits = 0;
        for (unsigned i = 0; i < 200'000; ++i) {
            void* const block = heap.allocate(64, 64);
            hits += block == hole;
            shared = blocks[at];
            heap.deallocate(block);
            heap.trim();
        }
        stop = true;
        require(hits > 100'000, "the place behind the block was used for something else");
    });
    while (shared.load() == nullptr) std::this_thread::yield();
    ByteCount largest = 0;
    while (!stop) largest = std::max(largest, heap.usable_size(shared.load()));
    owner.join();
    BOOST_TEST(largest == 64U);
}

BOOST_AUTO_TEST_CASE(threads_at_once_share_no_segment, *boost::unit_test::label("threads")) {
    VolatileHeap heap({.capacity = capacity});
    constexpr unsigned threads = 4;
    std::vector<std::set<std::size_t>> segments(threads);
    std::atomic<unsigned> done{0};
    at_once(threads, [&](unsigned number) {
        for (unsigned i = 0; i < 5'000; ++i) segments[number].insert(segment_of(heap.allocate(1 + i % 400)));
        done.fetch_add(1);
        while (done.load() != threads) std::this_thread::yield();  // nobody adopts what another one left
    });
    for (unsigned a = 0; a < threads; ++a)
        for (unsigned b = 0; b < a; ++b)
            for (const std::size_t segment : segments[a]) BOOST_TEST(!segments[b].contains(segment));
    require_sound(heap);
}

BOOST_AUTO_TEST_CASE(blocks_of_48_bytes_touch_one_cache_line_each_as_long_as_blocks_of_16_use_what_they_leave_over) {
    VolatileHeap heap({.capacity = capacity, .tell_memory_tools = false});
    unsigned crossing = 0;
    for (unsigned i = 0; i < 200'000; ++i) {
        heap.allocate(16);
        const auto begin = reinterpret_cast<std::uintptr_t>(heap.allocate(48));
        crossing += begin / 64 != (begin + 47) / 64 ? 1 : 0;
    }
    // The first MiB is laid out for speed.
    BOOST_TEST(crossing < 10'000U);
    BOOST_TEST(heap.stats().extent_bytes < 200'000U * 64 * 3 / 2);
}

BOOST_AUTO_TEST_CASE(blocks_of_two_to_four_kibibytes_are_kept_for_the_next_requests_wherever_they_begin_in_a_page) {
    VolatileHeap heap({.capacity = capacity, .tell_memory_tools = false});
    const Counted counted;
    std::vector<void*> blocks;
    for (unsigned i = 0; i < 40; ++i) {
        heap.deallocate(heap.allocate(1 + i * 100 % 2000));
        blocks.push_back(heap.allocate(2049 + i * 40));
    }
    const std::set<void*> before(blocks.begin(), blocks.end());
    for (void* block : blocks) heap.deallocate(block);
    BOOST_TEST(heap.stats().live_blocks == 0U);
    for (void* block : blocks) heap.deallocate(block);  // parked
    BOOST_TEST(double_frees == 40U);
    unsigned again = 0;
    for (unsigned i = 40; i-- > 0;) {
        void* const block = heap.allocate(2049 + i * 40);
        again += before.count(block) != 0 ? 1 : 0;
        blocks[i] = block;
    }
    BOOST_TEST(again == 40U);
    BOOST_TEST(std::set<void*>(blocks.begin(), blocks.end()).size() == 40U);
    heap.deallocate(static_cast<std::byte*>(blocks[3]) + 16);
    BOOST_TEST(double_frees == 41U);
    for (void* block : blocks) heap.deallocate(block);
    for (unsigned i = 0; i < 40; ++i) {
        void* const block = heap.allocate(2049 + i * 40, 1024);
        BOOST_TEST(reinterpret_cast<std::uintptr_t>(block) % 1024 == 0U);
    }
    heap.trim();
    require_sound(heap);
    BOOST_TEST(heap.stats().live_blocks == 40U);
}

BOOST_AUTO_TEST_CASE(ten_thousand_threads_in_sequence_leave_nothing_behind, *boost::unit_test::label("threads")) {
    VolatileHeap heap({.capacity = capacity});
    void* kept = nullptr;
    std::size_t extent = 0;
    std::size_t metadata = 0;
    for (unsigned i = 0; i < 10'000; ++i) {
        std::thread([&] {
            heap.deallocate(kept);  // of the thread before
            void* blocks[20];
            for (void*& block : blocks) block = heap.allocate(1 + i % 500);
            for (void* block : blocks) heap.deallocate(block);
            kept = heap.allocate(100);
        }).join();
        if (i == 600) {
            extent = heap.stats().extent_bytes;
            metadata = heap.stats().metadata_bytes;
        }
    }
    const VolatileStats stats = heap.stats();
    BOOST_TEST(stats.extent_bytes == extent);
    BOOST_TEST(stats.metadata_bytes == metadata);
    BOOST_TEST(stats.live_blocks == 1U);
    BOOST_TEST(stats.threads + stats.idle_threads == 1U);
    require_sound(heap);
}

BOOST_AUTO_TEST_CASE(a_thread_in_need_adopts_the_segments_of_ended_threads, *boost::unit_test::label("threads")) {
    VolatileHeap heap({.capacity = 4_MiB});
    std::vector<void*> kept;
    at_once(4, [&](unsigned) {
        std::vector<void*> blocks;
        while (void* const block = heap.try_allocate(64)) blocks.push_back(block);
        for (void* block : blocks) heap.deallocate(block);
    });
    ByteCount bytes = 0;
    while (void* const block = heap.try_allocate(48)) {
        kept.push_back(block);
        bytes += 48;
    }
    BOOST_TEST(bytes > 3_MiB);
    require_sound(heap);
}

BOOST_AUTO_TEST_CASE(a_full_heap_tells_its_name) {
    for (const bool guarded : {false, true}) {
        VolatileHeap heap({.capacity = 1_MiB, .name = "parts", .guarded = guarded});
        const auto names = [](const HeapFull& full) { return full.cause() == HeapFull::Cause::capacity && taiyen::test::names_heap(full, "parts"); };
        BOOST_CHECK_EXCEPTION(heap.allocate(2_MiB), HeapFull, names);
        BOOST_CHECK_EXCEPTION(heap.resize(heap.allocate(100), 2_MiB), HeapFull, names);
        BOOST_CHECK_EXCEPTION(heap.resize(heap.allocate(100'000), 2_MiB), HeapFull, names);
    }
    BOOST_CHECK_EXCEPTION(VolatileHeap({.capacity = 1_MiB}).allocate(2_MiB), HeapFull,
                          [](const HeapFull& full) { return std::string(full.what()).starts_with("heap full: "); });
}

BOOST_AUTO_TEST_CASE(a_full_heap_says_so_and_goes_on_after_a_free) {
    VolatileHeap heap({.capacity = 1_MiB});
    BOOST_CHECK_THROW(heap.allocate(2_MiB), HeapFull);
    for (unsigned round = 0; round < 3; ++round) {
        for (const ByteCount bytes : {16U, 300U, 2000U, 3000U, 9000U}) {
            std::vector<void*> blocks;
            while (void* const block = heap.try_allocate(bytes)) {
                std::memset(block, 1, bytes);
                blocks.push_back(block);
            }
            BOOST_TEST(blocks.size() * bytes > 550_KiB);
            BOOST_CHECK_THROW(heap.allocate(bytes), HeapFull);
            BOOST_CHECK_THROW(heap.resize(blocks.back(), 900_KiB), HeapFull);
            BOOST_TEST(heap.usable_size(blocks.back()) >= bytes);
            heap.deallocate(blocks.back());
            blocks.back() = heap.try_allocate(bytes);
            BOOST_TEST(blocks.back() != nullptr);
            require_sound(heap);
            for (void* block : blocks) heap.deallocate(block);
            BOOST_TEST(heap.stats().live_blocks == 0U);
        }
        void* const all = heap.allocate(400_KiB);  // what small blocks used serves large ones
        heap.deallocate(all);
    }
}

BOOST_AUTO_TEST_CASE(blocks_of_some_pages_are_parked_for_their_thread_and_free_for_everybody_else) {
    const Counted counted;
    VolatileHeap heap({.capacity = 2_MiB});
    std::vector<void*> blocks;
    for (unsigned i = 0; i < 20; ++i) {
        blocks.push_back(heap.allocate(30'000));
        std::memset(blocks.back(), 1, 30'000);
    }
    const std::set<void*> before(blocks.begin(), blocks.end());
    const std::size_t extent = heap.stats().extent_bytes;
    for (void* block : blocks) heap.deallocate(block);
    BOOST_TEST(heap.stats().live_blocks == 0U);
    BOOST_TEST(heap.stats().live_bytes == 0U);
    for (void* block : blocks) {
        BOOST_TEST(heap.usable_size(block) == 0U);
        BOOST_CHECK_THROW(heap.resize(block, 100'000), Error);
    }
    // Of two frees one is refused, by whichever thread it comes.
    heap.deallocate(blocks[0]);
    in_thread([&] { heap.deallocate(blocks[1]); });
    BOOST_TEST(double_frees == 2U);
    // The same blocks serve the thread again, those of another thread's frees that thread, and all sizes once memory is short.
    for (void*& block : blocks) {
        block = heap.allocate(30'000);
        BOOST_TEST(before.contains(block));
        BOOST_TEST(heap.usable_size(block) >= 30'000U);
    }
    BOOST_TEST(heap.stats().live_blocks == 20U);
    BOOST_TEST(heap.stats().extent_bytes == extent);
    in_thread([&] {
        for (void* block : blocks) heap.deallocate(block);
    });
    void* const large = heap.allocate(800'000);
    heap.deallocate(large);
    require_sound(heap);
    // A block that was resized is the engine's alone.
    void* block = heap.allocate(5'000);
    block = heap.resize(block, 90'000);
    block = heap.resize(block, 6'000);
    heap.deallocate(block);
    heap.deallocate(block);
    BOOST_TEST(double_frees == 3U);
    heap.trim();
    BOOST_TEST(heap.stats().live_blocks == 0U);
    require_sound(heap);
}

BOOST_AUTO_TEST_CASE(trimming_gives_free_memory_back_to_the_system) {
    VolatileHeap heap({.capacity = capacity});
    std::vector<void*> blocks;
    for (unsigned i = 0; i < 100'000; ++i) {
        blocks.push_back(heap.allocate(200));
        std::memset(blocks.back(), 1, 200);
    }
    void* const large = heap.allocate(30_MiB);
    std::memset(large, 1, 30_MiB);
    const std::size_t dirty = heap.stats().dirty_bytes;
    BOOST_TEST(dirty > 45_MiB);
    for (void* block : blocks) heap.deallocate(block);
    heap.deallocate(large);
    heap.trim();
    BOOST_TEST(heap.stats().dirty_bytes < dirty / 10);
    void* const again = heap.allocate(30_MiB);
    BOOST_TEST(*static_cast<unsigned char*>(again) == 0);
    require_sound(heap);
}

BOOST_AUTO_TEST_CASE(stats_count_what_is_there) {
    VolatileHeap heap({.capacity = capacity});
    std::vector<void*> blocks;
    for (unsigned i = 0; i < 10'000; ++i) blocks.push_back(heap.allocate(48));
    void* const large = heap.allocate(1_MiB);
    VolatileStats stats = heap.stats();
    BOOST_TEST(stats.live_blocks == 10'001U);
    BOOST_TEST(stats.live_bytes == 480'000 + 1_MiB);
    BOOST_TEST(stats.threads == 1U);
    BOOST_TEST(stats.mappings >= 2U);
    BOOST_TEST(stats.reserved_bytes >= stats.capacity_bytes);
    BOOST_TEST(stats.live_bytes + stats.free_bytes <= stats.extent_bytes);
    // Every other block free: none of the pieces holds 256 bytes.
    for (unsigned i = 0; i < 10'000; i += 2) heap.deallocate(blocks[i]);
    heap.deallocate(large);
    heap.trim();
    stats = heap.stats();
    BOOST_TEST(stats.live_blocks == 5'000U);
    std::uint64_t pieces = 0;
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < stats.free_pieces.size(); ++i) {
        pieces += stats.free_pieces[i];
        bytes += stats.free_pieces[i] * (std::size_t{16} << i);
    }
    BOOST_TEST(pieces >= 4'000U);
    BOOST_TEST((bytes <= stats.free_bytes && stats.free_bytes <= 2 * bytes));
    BOOST_TEST((stats.availability(0) > 0.99 && stats.availability(2) <= stats.availability(1)));
}

BOOST_AUTO_TEST_CASE(a_child_of_a_threaded_program_allocates_and_frees) {
    VolatileHeap heap({.capacity = capacity});
    std::atomic<bool> stop{false};
    std::vector<std::thread> threads;
    for (unsigned number = 0; number < 2; ++number)
        threads.emplace_back([&] {
            std::vector<void*> blocks(100, nullptr);
            for (std::size_t i = 0; !stop; ++i) {
                void*& block = blocks[i * 7 % blocks.size()];
                heap.deallocate(block);
                block = heap.allocate(1 + i % 9000);
            }
            for (void* block : blocks) heap.deallocate(block);
        });
    void* const before = heap.allocate(100);
    void* const large_before = heap.allocate(100'000);
    for (unsigned round = 0; round < 20; ++round) {
        const pid_t child = ::fork();
        BOOST_REQUIRE(child >= 0);
        if (child == 0) {
            heap.deallocate(before);
            heap.deallocate(large_before);
            std::vector<void*> blocks;
            for (unsigned i = 0; i < 3'000; ++i) {
                void* const block = heap.try_allocate(1 + i * 3 % 9000);
                if (block == nullptr) ::_exit(1);
                std::memset(block, 1, 1 + i * 3 % 9000);
                blocks.push_back(block);
            }
            for (void* block : blocks) heap.deallocate(block);
            ::_exit(0);
        }
        int status = 0;
        BOOST_REQUIRE(::waitpid(child, &status, 0) == child);
        BOOST_REQUIRE(WIFEXITED(status));
        BOOST_REQUIRE(WEXITSTATUS(status) == 0);
    }
    stop = true;
    for (std::thread& thread : threads) thread.join();
    require_sound(heap);
}

BOOST_AUTO_TEST_CASE(a_thread_uses_many_heaps_and_outlives_them) {
    std::vector<std::unique_ptr<VolatileHeap>> heaps;
    for (unsigned round = 0; round < 3; ++round) {
        for (unsigned i = 0; i < 30; ++i) heaps.push_back(std::make_unique<VolatileHeap>(VolatileOptions{.capacity = 1_MiB}));
        std::vector<void*> blocks;
        for (unsigned i = 0; i < 3'000; ++i) blocks.push_back(heaps[i % 30]->allocate(1 + i % 100));
        for (unsigned i = 0; i < 3'000; ++i) heaps[i % 30]->deallocate(blocks[i]);
        for (const auto& heap : heaps) {
            require_sound(*heap);
            BOOST_TEST(heap->stats().live_blocks == 0U);
        }
        heaps.clear();
    }
}

BOOST_AUTO_TEST_CASE(a_destructor_that_runs_at_the_end_of_its_thread_may_free_and_allocate) {
    VolatileHeap heap({.capacity = capacity});
    struct Late {
        VolatileHeap* heap = nullptr;
        void* block = nullptr;
        ~Late() {
            heap->deallocate(block);
            heap->deallocate(heap->allocate(50));
        }
    };
    for (unsigned i = 0; i < 20; ++i)
        std::thread([&] {
            thread_local Late late;
            late.heap = &heap;
            late.block = heap.allocate(100);
        }).join();
    BOOST_TEST(heap.stats().live_blocks == 0U);
    BOOST_TEST(heap.stats().threads == 0U);
}

BOOST_AUTO_TEST_CASE(a_moved_heap_keeps_its_blocks_and_a_closed_one_refuses) {
    VolatileHeap heap({.capacity = capacity});
    void* const block = heap.allocate(10);
    VolatileHeap moved(std::move(heap));
    BOOST_TEST(moved.usable_size(block) == 16U);
    BOOST_TEST(!heap.is_open());  // NOLINT(bugprone-use-after-move): that is what is asked
    BOOST_CHECK_THROW(heap.allocate(10), Error);
    BOOST_TEST(heap.try_allocate(10) == nullptr);
    moved.close();
    BOOST_TEST(core_at(block) == nullptr);
}

/// What opening one more of that size says when it is refused at last.
std::string refusal_after_all(std::size_t each) {
    std::vector<std::unique_ptr<VolatileHeap>> heaps;
    for (;;) {
        try {
            heaps.push_back(std::make_unique<VolatileHeap>(VolatileOptions{.capacity = each, .tell_memory_tools = false}));
        } catch (const Error& error) {
            BOOST_TEST((error.code() == errc::out_of_address_space));
            return error.what();
        }
    }
}

BOOST_AUTO_TEST_CASE(heaps_that_use_all_addresses_up_are_told_apart_from_a_limit_of_the_system) {
    const std::string used_up = refusal_after_all(std::size_t{1} << 40U);
    BOOST_TEST(used_up.find("used up") != std::string::npos, used_up);
    BOOST_TEST(used_up.find("no limit of the system is in the way") != std::string::npos, used_up);
#if !defined(TAIYEN_ADDRESS_SANITIZER) && !defined(TAIYEN_THREAD_SANITIZER)
    rlimit before{};
    BOOST_REQUIRE(::getrlimit(RLIMIT_AS, &before) == 0);
    const rlimit tight{.rlim_cur = std::size_t{64} << 30U, .rlim_max = before.rlim_max};
    BOOST_REQUIRE(::setrlimit(RLIMIT_AS, &tight) == 0);
    const std::string limited = refusal_after_all(std::size_t{16} << 30U);
    BOOST_REQUIRE(::setrlimit(RLIMIT_AS, &before) == 0);
    BOOST_TEST(limited.find("raise the process's limit of address space") != std::string::npos, limited);
#endif
}

BOOST_AUTO_TEST_CASE(a_heap_lies_where_it_is_told_to) {
    const auto base_of = [](const VolatileHeap& heap) { return heap.core()->ranges().durable; };
    const vm::Zone zone = vm::volatile_zone();
    const auto place = vm::find_free(4 * slot_bytes, slot_bytes, vm::Placement::low, zone.first, zone.last);
    BOOST_REQUIRE(place.has_value());
    const std::uintptr_t address = *place + base_alignment;
    {
        VolatileHeap heap({.capacity = 64_MiB, .address = address});
        BOOST_TEST(base_of(heap) == address);
        BOOST_TEST(heap.owns(heap.allocate(100)));
        BOOST_CHECK_EXCEPTION(VolatileHeap({.capacity = 64_MiB, .address = address, .name = "second"}), Error,
                              [](const Error& error) { return error.code() == errc::address_in_use && error.path() == "second"; });
    }
    VolatileHeap again({.capacity = 64_MiB, .address = address});
    BOOST_TEST(base_of(again) == address);
    const VolatileHeap low({.capacity = 64_MiB, .placement = Placement::low});
    const VolatileHeap high({.capacity = 64_MiB, .placement = Placement::high});
    const VolatileHeap usual({.capacity = 64_MiB});
    BOOST_TEST(base_of(low) < base_of(high));
    BOOST_TEST(base_of(usual) < base_of(high));
    BOOST_TEST(base_of(low) < base_of(usual));
    for (const std::uintptr_t wrong : {address + page_bytes, std::uintptr_t{1} << 31U, vm::address_end})
        BOOST_CHECK_EXCEPTION(VolatileHeap({.capacity = 64_MiB, .address = wrong}), Error,
                              [](const Error& error) { return error.code() == errc::invalid_argument; });
}

BOOST_AUTO_TEST_CASE(options_that_cannot_be_had_are_refused) {
    BOOST_CHECK_THROW(VolatileHeap({.capacity = ~std::size_t{0}}), Error);
    for (const int node : {1000, 1024, -2}) BOOST_CHECK_THROW(VolatileHeap({.numa_node = node}), Error);
    VolatileHeap huge({.capacity = capacity, .pages = PageSize::huge});
    std::vector<void*> blocks;
    for (unsigned i = 0; i < 20'000; ++i) blocks.push_back(huge.allocate(200));
    BOOST_TEST(huge.stats().huge_bytes <= huge.stats().dirty_bytes);
    for (void* block : blocks) huge.deallocate(block);
    require_sound(huge);
}

}  // namespace

BOOST_AUTO_TEST_SUITE_END()
