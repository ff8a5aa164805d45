// Readers beside writers and cleaning: whoever looks at a value sees one that was put, whole.
#include <taiyen/logheap/log_heap.hpp>

#include <atomic>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "scratch_directory.hpp"
#include "seed.hpp"

namespace {

BOOST_AUTO_TEST_SUITE(log_heap_threads)

using namespace taiyen;

LogHeapOptions small() {
    LogHeapOptions options;
    options.segment_bytes = 64_KiB;
    options.capacity = 24 * 64_KiB;
    options.log_capacity = 256_KiB;
    options.durability = Durability::async;
    return options;
}

/// Every word of a value says whose it is and which of its versions.
std::vector<std::uint64_t> value(std::uint64_t id, std::uint64_t version, std::size_t words) {
    return std::vector<std::uint64_t>(words, id << 32U | version);
}

std::span<const std::byte> bytes_of(const std::vector<std::uint64_t>& words) { return std::as_bytes(std::span(words)); }

BOOST_AUTO_TEST_CASE(readers_see_whole_values, *boost::unit_test::label("threads")) {
    const ScratchDirectory directory;
    LogHeap heap(create_only, directory.path() / "values.tyl", small());
    constexpr std::uint64_t ids = 100;
    for (std::uint64_t id = 1; id <= ids; ++id) heap.put_as(LogId{id}, bytes_of(value(id, 0, 100)));
    std::atomic<bool> done{false};
    std::atomic<std::uint64_t> wrong{0};
    std::atomic<std::uint64_t> reads{0};
    std::vector<std::thread> threads;
    for (unsigned r = 0; r < 2; ++r) {
        threads.emplace_back([&, r] {
            std::mt19937_64 random(r);
            std::vector<LogView> held(8);
            std::vector<std::uint64_t> newest(ids + 1);
            while (!done.load(std::memory_order_relaxed)) {
                const std::uint64_t id = 1 + random() % ids;
                LogView view = heap.get(LogId{id});
                if (!view) {
                    if (id % 10 != 0) wrong.fetch_add(1);  // only each tenth comes and goes
                    continue;
                }
                const auto check = [&](const LogView& of) {
                    const auto* const words = reinterpret_cast<const std::uint64_t*>(of.bytes().data());
                    for (std::size_t i = 0; i < of.bytes().size() / 8; ++i)
                        if (words[i] != words[0] || words[0] >> 32U != static_cast<std::uint64_t>(of.id())) return wrong.fetch_add(1), void();
                };
                check(view);
                const std::uint64_t version = *reinterpret_cast<const std::uint64_t*>(view.bytes().data()) & 0xffff'ffffU;
                if (id % 10 != 0 && version < newest[id]) wrong.fetch_add(1);
                newest[id] = version;
                LogView& place = held[random() % held.size()];
                if (place) check(place);
                place = std::move(view);
                reads.fetch_add(1, std::memory_order_relaxed);
            }
        });
    }
    std::vector<std::thread> writers;
    for (std::uint64_t w = 0; w < 2; ++w) {
        writers.emplace_back([&, w] {
            std::mt19937_64 random(w + 10);
            for (std::uint64_t i = 1; i <= 3000; ++i) {
                const std::uint64_t id = 1 + 2 * (random() % (ids / 2)) + w;
                if (id % 10 == 0 && random() % 2 == 0)
                    heap.remove(LogId{id});
                else
                    heap.put_as(LogId{id}, bytes_of(value(id, i, 50 + random() % 200)));
                if (i % 500 == 0) heap.clean(64_KiB);
            }
        });
    }
    for (std::thread& writer : writers) writer.join();
    done = true;
    for (std::thread& thread : threads) thread.join();
    BOOST_TEST(wrong.load() == 0U);
    BOOST_TEST(reads.load() > 0U);
    BOOST_TEST(heap.stats().views == 0U);
    heap.close();
}

BOOST_AUTO_TEST_CASE(threads_that_wait_share_writes, *boost::unit_test::label("threads")) {
    const ScratchDirectory directory;
    LogHeapOptions options = small();
    options.durability = Durability::sync;
    LogHeap heap(create_only, directory.path() / "values.tyl", options);
    std::vector<std::thread> writers;
    for (unsigned w = 0; w < 4; ++w) {
        writers.emplace_back([&] {
            for (int i = 0; i < 100; ++i) {
                const LogHandle handle = heap.put(i);
                heap.wait_durable(handle.born);
                if (heap.last_durable() < handle.born) throw std::logic_error("acknowledged early");
            }
        });
    }
    for (std::thread& writer : writers) writer.join();
    BOOST_TEST(heap.size() == 400U);
    BOOST_TEST((heap.last_durable() == Serial{400}));
}

/// Writers that never stop find that most of the flushes and cleaning was done ahead; the heap holds what it shall.
BOOST_AUTO_TEST_CASE(the_heaps_own_thread_works_ahead, *boost::unit_test::label("threads")) {
    const ScratchDirectory directory;
    LogHeapOptions options = small();
    options.capacity = 64 * 64_KiB;
    options.checkpoint_bytes = 1_MiB;
    LogHeap heap(create_only, directory.path() / "values.tyl", options);
    constexpr std::uint64_t ids = 3000;
    std::vector<std::uint64_t> versions(ids + 1);
    for (std::uint64_t id = 1; id <= ids; ++id) heap.put_as(LogId{id}, bytes_of(value(id, 0, 60)));
    std::vector<std::thread> writers;
    for (std::uint64_t w = 0; w < 2; ++w) {
        writers.emplace_back([&, w] {
            std::mt19937_64 random(w);
            for (std::uint64_t i = 1; i <= 20'000; ++i) {
                const std::uint64_t id = 1 + 2 * (random() % (ids / 2)) + w;
                heap.update(LogId{id}, bytes_of(value(id, i, 40 + random() % 40)));
                versions[id] = i;
                if (i % 500 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
            }
        });
    }
    for (std::thread& writer : writers) writer.join();
    const LogHeapStats stats = heap.stats();
    BOOST_TEST(stats.ahead > 0U);
    BOOST_TEST(stats.cleaned_segments > 0U);
    BOOST_TEST(stats.checkpoints > 0U);
    const auto check = [&](const LogHeap& of) {
        for (std::uint64_t id = 1; id <= ids; ++id) {
            const LogView view = of.get(LogId{id});
            BOOST_REQUIRE(static_cast<bool>(view));
            BOOST_REQUIRE(*reinterpret_cast<const std::uint64_t*>(view.bytes().data()) == (id << 32U | versions[id]));
        }
    };
    check(heap);
    heap.close();
    check(LogHeap(open_only, directory.path() / "values.tyl", options));
    options.background = false;
    LogHeap quiet(open_only, directory.path() / "values.tyl", options);
    for (int i = 0; i < 2000; ++i) quiet.update(LogId{1}, bytes_of(value(1, 1, 60)));
    BOOST_TEST(quiet.stats().ahead == 0U);
}

BOOST_AUTO_TEST_CASE(a_full_heap_finds_room_beside_readers, *boost::unit_test::label("threads")) {
    const ScratchDirectory directory;
    LogHeap heap(create_only, directory.path() / "values.tyl", small());
    std::uint64_t ids = 0;
    try {
        for (;; ++ids) heap.put_as(LogId{ids + 1}, bytes_of(value(ids + 1, 0, 100)));
    } catch (const HeapFull&) {}
    std::atomic<bool> done{false};
    std::vector<std::thread> readers;
    for (unsigned r = 0; r < 6; ++r) {
        readers.emplace_back([&, r] {
            std::mt19937_64 random(r);
            while (!done.load(std::memory_order_relaxed)) static_cast<void>(heap.contains(LogId{1 + random() % ids}));
        });
    }
    std::mt19937_64 random(taiyen::test::seed_of_run());
    std::uint64_t refused = 0;
    for (std::uint64_t i = 0; i < 4000; ++i) {
        const std::uint64_t id = 1 + random() % ids;
        try {
            heap.update(LogId{id}, bytes_of(value(id, i, 100)));
        } catch (const HeapFull&) {
            ++refused;
        }
    }
    done = true;
    for (std::thread& reader : readers) reader.join();
    BOOST_TEST(refused < 200U);  // by the views of readers that wait for a processor
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
