/// What a hostile program does to a volatile heap: the same block freed by all threads at once, heaps that close while their threads end, hundreds of threads at once.

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include <taiyen/base/report.hpp>

#include "seed.hpp"
#include "threads.hpp"
#include "volatile/volatile_core.hpp"

BOOST_AUTO_TEST_SUITE(volatile_hostile)

namespace {

using namespace taiyen;
using namespace taiyen::heap;
using taiyen::test::at_once;
using taiyen::test::require;
using taiyen::test::seed_of_run;

std::atomic<unsigned> incidents{0};
void count_incident(const Incident&) noexcept { incidents.fetch_add(1); }
struct Counted {
    Counted() { incidents = 0; }
    ~Counted() { set_report_handler(before); }
    ReportHandler before = set_report_handler(&count_incident);
};

void require_sound(VolatileHeap& heap) {
    for (const Damage& damage : static_cast<VolatileCore*>(heap.core())->check())
        BOOST_ERROR("at offset " << damage.where.value << ": " << damage.what);
}

constexpr ByteCount capacity = 64_MiB;

BOOST_AUTO_TEST_CASE(a_block_that_all_threads_free_at_once_is_freed_once, *boost::unit_test::label("threads")) {
    const Counted counted;
    VolatileHeap heap({.capacity = capacity});
    constexpr unsigned threads = 4;
    constexpr unsigned blocks_max = 100;
    std::vector<void*> blocks(blocks_max);
    std::atomic<unsigned> arrived{0};
    constexpr unsigned rounds = 100;
    const auto wait_for = [&](unsigned count) {
        arrived.fetch_add(1);
        while (arrived.load() < count) std::this_thread::yield();
    };
    at_once(threads, [&](unsigned number) {
        unsigned meetings = 0;
        for (unsigned round = 0; round < rounds; ++round) {
            if (number == round % threads)
                for (void*& block : blocks) block = heap.allocate(round % 2 == 0 ? 64 : 1 + (round * 37) % 3000);
            wait_for(threads * ++meetings);
            for (unsigned i = 0; i < blocks_max; ++i) heap.deallocate(blocks[(i + number * (round % 3)) % blocks_max]);
            wait_for(threads * ++meetings);
            heap.trim();  // each looks into its inbox, before anything is allocated again
            wait_for(threads * ++meetings);
        }
    });
    heap.trim();
    BOOST_TEST(incidents == (threads - 1) * blocks_max * rounds);
    BOOST_TEST(heap.stats().live_blocks == 0U);
    require_sound(heap);
    std::set<void*> fresh;
    for (unsigned i = 0; i < 20'000; ++i) BOOST_REQUIRE(fresh.insert(heap.allocate(64)).second);
}

BOOST_AUTO_TEST_CASE(heaps_close_while_threads_that_used_them_end, *boost::unit_test::label("threads")) {
    const Counted counted;
    VolatileHeap lasting({.capacity = capacity});
    for (unsigned round = 0; round < 60; ++round) {
        auto heap = std::make_unique<VolatileHeap>(VolatileOptions{.capacity = 1_MiB});
        std::atomic<unsigned> done{0};
        std::vector<std::thread> threads;
        for (unsigned number = 0; number < 3; ++number)
            threads.emplace_back([&] {
                void* const block = heap->allocate(100);
                void* const other = lasting.allocate(100);
                heap->deallocate(block);
                done.fetch_add(1);
                lasting.deallocate(other);
            });
        while (done.load() != 3) {}
        heap.reset();
        for (std::thread& thread : threads) thread.join();
    }
    BOOST_TEST(incidents == 0U);
    BOOST_TEST(lasting.stats().live_blocks == 0U);
    BOOST_TEST(lasting.stats().threads == 0U);
    require_sound(lasting);
}

BOOST_AUTO_TEST_CASE(hundreds_of_threads_free_each_others_blocks_and_end, *boost::unit_test::label("threads")) {
    const Counted counted;
    VolatileHeap heap({.capacity = 256_MiB});
    constexpr unsigned threads = 200;
    std::mutex mutex;
    std::vector<unsigned char*> shared;
    std::atomic<unsigned> running{0};
    std::vector<std::thread> all;
    std::atomic<bool> wrong{false};
    const std::uint64_t seed = seed_of_run();
    for (unsigned number = 0; number < threads; ++number)
        all.emplace_back([&, number] {
            running.fetch_add(1);
            std::mt19937_64 random(seed + number);
            for (unsigned i = 0; i < 60; ++i) {
                const ByteCount bytes = 1 + random() % 600;
                auto* const block = static_cast<unsigned char*>(heap.allocate(bytes));
                std::memset(block, static_cast<int>(bytes % 251), bytes);
                unsigned char* other = nullptr;
                {
                    const std::lock_guard lock(mutex);
                    shared.push_back(block);
                    std::swap(shared[random() % shared.size()], shared.back());
                    if (shared.size() > 500) {
                        other = shared.back();
                        shared.pop_back();
                    }
                }
                if (other == nullptr) continue;
                if (heap.usable_size(other) == 0) wrong = true;
                heap.deallocate(other);
            }
        });
    for (std::thread& thread : all) thread.join();
    for (unsigned char* const block : shared) heap.deallocate(block);
    heap.trim();
    BOOST_TEST(!wrong);
    BOOST_TEST(incidents == 0U);
    BOOST_TEST(heap.stats().live_blocks == 0U);
    BOOST_TEST(heap.stats().threads == 0U);  // who only frees needs no record
    require_sound(heap);
}

BOOST_AUTO_TEST_CASE(a_heap_that_runs_full_in_all_threads_recovers, *boost::unit_test::label("threads")) {
    const Counted counted;
    VolatileHeap heap({.capacity = 3_MiB});
    const std::uint64_t seed = seed_of_run();
    at_once(4, [&](unsigned number) {
        std::mt19937_64 random(seed + number);
        std::vector<std::pair<unsigned char*, ByteCount>> held;
        unsigned full = 0;
        for (unsigned i = 0; i < 6'000; ++i) {
            const ByteCount bytes = random() % 10 == 0 ? 2000 + random() % 100'000 : 1 + random() % 1500;
            auto* const block = static_cast<unsigned char*>(heap.try_allocate(bytes));
            if (block == nullptr) {
                ++full;
                for (std::size_t half = held.size() / 2; held.size() > half;) {
                    require(held.back().first[held.back().second - 1] == number, "a block's content was overwritten");
                    heap.deallocate(held.back().first);
                    held.pop_back();
                }
                continue;
            }
            std::memset(block, static_cast<int>(number), bytes);
            held.emplace_back(block, bytes);
        }
        for (const auto& [block, bytes] : held) heap.deallocate(block);
        require(full != 0, "the heap never was full");
    });
    heap.trim();
    BOOST_TEST(incidents == 0U);
    BOOST_TEST(heap.stats().live_blocks == 0U);
    require_sound(heap);
    BOOST_TEST(heap.try_allocate(900_KiB) != nullptr);  // one piece again, as far as a region goes
}

}  // namespace

BOOST_AUTO_TEST_SUITE_END()
