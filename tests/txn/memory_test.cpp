// Private copies of pages: a heap that is open for long gives back what its files hold, and nobody sees a difference.

#include <atomic>
#include <chrono>
#include <fstream>
#include <random>
#include <string>
#include <thread>

#include <malloc.h>

#include <boost/test/unit_test.hpp>

#include "base/sanitizers.hpp"
#include "seed.hpp"
#include "txn/snapshots.hpp"
#include "txn/txn_fixture.hpp"

namespace {

using namespace taiyen;
using namespace taiyen::txn::test;

struct MemoryFixture : TransactionFixture {
    using Words = taiyen::vector<std::uint64_t>;
    static constexpr std::size_t page_words = page_bytes / sizeof(std::uint64_t);

    std::size_t private_bytes() {
        std::size_t bytes = 0;
        for (const auto& run : HeapAccess::file(*heap).private_pages()) bytes += run.count * page_bytes;
        return bytes;
    }
    Words& words() { return *heap->find<Words>("words"); }
    void make(std::size_t pages, std::size_t limit, Capture capture = Capture::pages) {
        PersistentOptions with = small_heap(capture);
        with.log_capacity = std::size_t{4} << 20U;
        with.dirty_limit = limit;
        with.durability = Durability::async;
        replace(with);
        heap->close();
        {
            ArchiveHeap archive(open_only, path);  // whose stores nobody has to declare
            archive.construct<Words>("words", pages * page_words, std::uint64_t{7});
            archive.snapshot();
        }
        heap.emplace(open_only, path, options);
    }
    void set(std::size_t at, std::uint64_t value) {
        std::uint64_t& word = words()[at];
        Transaction transaction(*heap);
        transaction.touch(&word, sizeof word);
        word = value;
        transaction.commit();
    }
    /// Waits until private copies take at most so much: they are given back behind the snapshot's end. False: they never do.
    bool gives_back_to(std::size_t bytes) {
        heap->snapshot();
        for (int i = 0; i < 60'000 && private_bytes() > bytes; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        return private_bytes() <= bytes;
    }
};

BOOST_FIXTURE_TEST_SUITE(memory, MemoryFixture)

BOOST_AUTO_TEST_CASE(what_a_snapshot_has_saved_is_given_back_and_reads_the_same) {
    for (const Capture capture : {Capture::pages, Capture::declared}) {
        BOOST_TEST_CONTEXT(static_cast<int>(capture)) {
            make(1000, std::size_t{1} << 20U, capture);
            std::vector<std::uint64_t> expected(words().begin(), words().end());
            std::mt19937_64 random(taiyen::test::seed_of_run());
            for (int i = 0; i < 2000; ++i) {
                const std::size_t at = random() % expected.size();
                expected[at] = random();
                set(at, expected[at]);
            }
            BOOST_TEST(gives_back_to(std::size_t{1} << 19U));
            BOOST_TEST((std::vector<std::uint64_t>(words().begin(), words().end()) == expected));
            set(5, 55);  // pages that were given back can be changed
            expected[5] = 55;
            {
                Transaction transaction(*heap);
                transaction.touch(&words()[6], 8);
                words()[6] = 66;
                transaction.rollback();
            }
            BOOST_TEST(heap->verify().ok());
            heap->wait_durable(ReadLock(*heap).serial());
            crash();
            BOOST_TEST((std::vector<std::uint64_t>(words().begin(), words().end()) == expected));
        }
    }
}

BOOST_AUTO_TEST_CASE(a_page_of_which_the_files_lack_a_single_byte_is_not_given_back) {
    make(4, std::size_t{64} << 20U, Capture::declared);  // which keeps no page open
    store::HeapFile& file = HeapAccess::file(*heap);
    const std::uint64_t first = page_of({reinterpret_cast<std::uintptr_t>(words().data()) - file.ranges().durable}).value + 1;
    const auto span = reinterpret_cast<std::byte*>(file.ranges().durable);
    const AlignedBuffer buffer(16 * page_bytes);
    const auto drop = [&](std::uint64_t page, std::uint64_t count) {
        std::vector<vm::PageRun> todo{{page, count}};
        return file.saves().drop_saved(todo, buffer.span(), std::chrono::hours(1));
    };
    for (const std::size_t at : {std::size_t{4095}, std::size_t{0}, std::size_t{2000}}) {
        std::byte& byte = span[first * page_bytes + at];
        {
            Transaction transaction(*heap);
            transaction.touch(&byte, 1);
            byte ^= std::byte{0xff};
            transaction.commit();
        }
        const std::byte newest = byte;
        BOOST_TEST(drop(first, 1) == 0U);
        BOOST_TEST(drop(first - 1, 3) < 3U);
        BOOST_TEST((byte == newest));
        heap->snapshot();
        BOOST_TEST(drop(first, 1) == 1U);
        BOOST_TEST((byte == newest));
    }
}

BOOST_AUTO_TEST_CASE(a_page_that_capture_keeps_open_is_not_given_back) {
    make(4, std::size_t{64} << 20U);
    set(page_words, 1);
    heap->snapshot();
    store::HeapFile& file = HeapAccess::file(*heap);
    const auto give_back = [&] {
        std::vector<vm::PageRun> todo{{page_of({reinterpret_cast<std::uintptr_t>(&words()[page_words]) - file.ranges().durable}).value, 1}};
        const AlignedBuffer buffer(page_bytes);
        return file.saves().drop_saved(todo, buffer.span(), std::chrono::hours(1));
    };
    BOOST_TEST(give_back() == 0U);
    for (std::uint64_t i = 0; i < 100; ++i) set(3 * page_words, i);  // capture closes it
    BOOST_TEST(give_back() == 1U);
}

BOOST_AUTO_TEST_CASE(a_heap_below_its_limit_keeps_its_pages) {
    make(200, std::size_t{64} << 20U);
    for (std::size_t page = 0; page < 200; ++page) set(page * page_words, page);
    heap->snapshot();
    set(0, 1);
    heap->snapshot();  // begins when the first one has given back what it could
    BOOST_TEST(private_bytes() >= 200 * page_bytes);
}

BOOST_AUTO_TEST_CASE(who_asks_for_a_snapshot_while_pages_are_given_back_waits_until_enough_of_them_are_and_not_for_all) {
    constexpr std::size_t pages = 3000;
    constexpr std::size_t limit = 2048 * page_bytes;
    make(pages, limit, Capture::declared);
    options.snapshot_dirty_bytes = std::size_t{1} << 30U;  // nobody else asks
    reopen();
    transact(*heap, [&](Transaction& transaction) {
        for (std::size_t page = 0; page < pages; ++page) {
            std::uint64_t& word = words()[page * page_words];
            transaction.touch(&word, sizeof word);
            word = page;
        }
    });
    std::optional<ReadLock> reader(std::in_place, *heap);
    std::thread([&] { heap->snapshot(); }).join();
    BOOST_TEST(private_bytes() >= pages * page_bytes);                   // pages are given back when nobody reads
    { const RelaxedLoading asks(*heap, RelaxedRollback::transaction); }  // when it ends
    reader.reset();
    set(0, 0);
    heap->snapshot();  // begins when the first one has given back what it wanted to
    BOOST_TEST(private_bytes() <= limit / 2);
    BOOST_TEST(private_bytes() >= limit / 8);
    for (std::size_t page = 0; page < pages; ++page) BOOST_REQUIRE(words()[page * page_words] == page);
}

BOOST_AUTO_TEST_CASE(a_page_that_changes_all_the_time_is_no_reason_for_a_snapshot) {
    make(200, 64 * page_bytes);
    heap->snapshot();
    const std::uint64_t generation = heap->stats().generation;
    for (std::uint64_t i = 0; i < 1000; ++i) set(i % 4 * page_words, i);
    heap->wait_durable(ReadLock(*heap).serial());
    BOOST_TEST(heap->stats().generation == generation);
    // But many pages are, and so they are again when they were saved.
    for (std::uint64_t round = 0; round < 2; ++round) {
        heap->snapshot();  // what the round before asked for has ended
        const std::uint64_t before = heap->stats().generation;
        for (std::size_t page = 0; page < 200; ++page) set(page * page_words, 2000 + round * 1000 + page);
        for (int i = 0; i < 60'000 && heap->stats().generation == before; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        BOOST_TEST(heap->stats().generation > before);
    }
}

/// As the system counts it: anonymous memory of this process, file pages not.
std::size_t anonymous_bytes() {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
        if (line.starts_with("RssAnon:")) return std::stoull(line.substr(8)) << 10U;
    return 0;
}

BOOST_AUTO_TEST_CASE(a_long_run_that_changes_many_times_its_limit_stays_near_it) {
    constexpr std::size_t pages = 7600;
    constexpr std::size_t rounds = 2;
    constexpr std::size_t limit = std::size_t{4} << 20U;
    make(pages, limit, Capture::declared);
    set(0, 1);
    heap->snapshot();
    std::size_t most = 0;
    // Other pages in the second half of the run: 3.7 times the limit, twice.
    const auto change_pages = [&](std::size_t first, std::size_t end) {
        for (std::size_t round = 0; round < rounds; ++round) {
            for (std::size_t page = first; page < end; ++page) {
                set(page * page_words, round * pages + page);
                if (page % 64 == 0) most = std::max(most, private_bytes());
            }
        }
        BOOST_TEST(gives_back_to(limit / 2));  // and no snapshot is under way any more, which has buffers of its own
        ::malloc_trim(0);                      // what was freed doesn't count
        return anonymous_bytes();
    };
    [[maybe_unused]] const std::size_t after_one_half = change_pages(0, pages / 2);
    [[maybe_unused]] const std::size_t after_both = change_pages(pages / 2, pages);
    // Beside the limit: what is looked at once more only when a sixteenth of it has come, and pages of the engine.
    BOOST_TEST(most <= limit + limit / 8);
    BOOST_TEST(most >= limit / 4);
    // Buffers of the log and of snapshots are anonymous, too: they are there after one half, and then it is as much as it was.
#if !defined(TAIYEN_ADDRESS_SANITIZER) && !defined(TAIYEN_THREAD_SANITIZER)  // which have memory of their own for each page that was touched
    BOOST_TEST(after_both <= after_one_half + limit);
#endif
    heap->wait_durable(ReadLock(*heap).serial());
    crash();
    for (std::size_t page = 0; page < pages; ++page) BOOST_REQUIRE(words()[page * page_words] == (rounds - 1) * pages + page);
}

BOOST_AUTO_TEST_CASE(what_was_stored_outside_transactions_is_neither_saved_nor_given_back) {
    make(100, 16 * page_bytes, Capture::declared);
    for (std::size_t page = 0; page < 100; ++page) set(page * page_words, page);
    words()[3 * page_words + 1] = 1234;  // nobody says so
    BOOST_TEST(gives_back_to(16 * page_bytes));
    BOOST_TEST(words()[3 * page_words + 1] == 1234U);
    crash();
    BOOST_TEST(words()[3 * page_words + 1] == 7U);
}

/// Pages swing between a few contents, so that they often are what the files hold while a transaction that isn't saved yet lies behind them.
BOOST_AUTO_TEST_CASE(transactions_and_readers_beside_it_see_every_page_as_it_was_committed) {
    for (const Capture capture : {Capture::pages, Capture::declared}) {
        BOOST_TEST_CONTEXT(static_cast<int>(capture)) {
            constexpr std::size_t pages = 64;
            make(pages, 8 * page_bytes, capture);
            for (std::size_t page = 0; page < pages; ++page) set(page * page_words, 0);
            std::atomic<bool> done{false};
            std::atomic<std::uint64_t> wrong{0};
            // What a writer owns: every 4th page. It knows what it wrote, and looks before it writes again.
            const std::uint64_t seed = taiyen::test::seed_of_run();
            const auto write = [&](std::size_t owner) {
                std::mt19937_64 random(seed + owner);
                std::vector<std::uint64_t> mine(pages, 0);
                for (int i = 0; i < 60; ++i) {
                    const std::size_t page = random() % (pages / 4) * 4 + owner;
                    Transaction transaction(*heap);
                    std::uint64_t& first = words()[page * page_words];
                    if (first != mine[page]) ++wrong;
                    const std::uint64_t value = random() % 2;
                    transaction.touch(&first, sizeof first);
                    first = value;
                    if (random() % 5 == 0) {
                        transaction.rollback();
                    } else {
                        transaction.commit();
                        mine[page] = value;
                    }
                }
            };
            std::vector<std::thread> threads;
            for (std::size_t owner = 0; owner < 4; ++owner) threads.emplace_back(write, owner);
            std::thread snapshots([&] {
                while (!done) heap->snapshot();
            });
            std::thread reader([&] {
                while (!done) {
                    const ReadLock lock(*heap);
                    const Words& seen = *std::as_const(*heap).find<Words>("words");
                    for (std::size_t page = 0; page < pages; ++page)
                        if (seen[page * page_words] > 1 || seen[page * page_words + 1] != 7) ++wrong;
                }
            });
            for (std::thread& thread : threads) thread.join();
            done = true;
            snapshots.join();
            reader.join();
            BOOST_TEST(wrong == 0U);
            const std::vector<std::uint64_t> live(words().begin(), words().end());
            BOOST_TEST(heap->verify().ok());
            heap->wait_durable(ReadLock(*heap).serial());
            crash();
            BOOST_TEST((std::vector<std::uint64_t>(words().begin(), words().end()) == live));
        }
    }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
