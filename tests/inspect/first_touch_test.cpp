// Verify::at_first_touch: whatever the program reads is proven before it sees it.

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <taiyen/inspect/report.hpp>

#include "io/storage.hpp"
#include "seed.hpp"
#include "store/geometry.hpp"
#include "txn/txn_fixture.hpp"

namespace taiyen::txn::test {
namespace {

using Numbers = std::array<int, 200'000>;
constexpr int granule_ints = 64 * 1024 / sizeof(int);

struct FirstTouchFixture {
    ScratchDirectory directory;
    std::filesystem::path path = directory / "heap.tyn";
    PersistentOptions options = small_heap();
    std::uint64_t place = 0;  ///< of the numbers, in the span

    void make(bool with_data) {
        options.capacity = 16_MiB;
        options.verify = Verify::at_first_touch;
        if (with_data) options.data_file = path.string() + ".data";
        TransactionalHeap heap(create_only, path, options);
        transact(heap, [&](Transaction& transaction) {
            Numbers& numbers = heap.construct<Numbers>("numbers");
            transaction.touch(&numbers, sizeof numbers);
            std::iota(numbers.begin(), numbers.end(), 1);
            place = reinterpret_cast<std::uintptr_t>(&numbers) - HeapAccess::file(heap).ranges().durable;
        });
        heap.close();
    }
    /// The sector of a file that holds that number is lost.
    void lose(int number, bool in_data = false) const {
        const auto file = io::posix_storage().open(in_data ? options.data_file : path, io::Access::read_write);
        const std::array<std::byte, 512> zeros{};
        file->write(zeros, round_down(store::FileLayout().file_offset({place + static_cast<std::uint64_t>(number) * sizeof(int)}), zeros.size()));
        file->sync();
    }
    static const Numbers& numbers(const ArchiveHeap& heap) { return *heap.find<Numbers>("numbers"); }
    static bool are_right(const ArchiveHeap& heap) {
        int expected = 0;
        return std::ranges::all_of(numbers(heap), [&](int number) { return number == ++expected; });
    }
};

/// How a child ends that does that, without whoever else handles its faults.
template <class F>
int signal_of(F&& what) {
    const pid_t child = ::fork();
    if (child == 0) {
        ::signal(SIGSEGV, SIG_DFL);
        ::alarm(60);
        try {
            what();
        } catch (const std::exception& error) {
            std::fprintf(stderr, "in a child: %s\n", error.what());
            ::_exit(1);
        }
        ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFSIGNALED(status) ? WTERMSIG(status) : -WEXITSTATUS(status);
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(first_touch, FirstTouchFixture)

BOOST_AUTO_TEST_CASE(nobody_reads_a_sector_that_was_lost) {
    make(true);
    for (const int number : {0, 70'000, 199'999}) lose(number);
    {
        const ArchiveHeap reader(open_read_only, path, options);
        BOOST_TEST(are_right(reader));
        BOOST_TEST(reader.restoration().pages_healed == 3U);
    }
    {
        TransactionalHeap heap(open_only, path, options);
        BOOST_TEST(are_right(heap));
        BOOST_TEST(heap.restoration().pages_healed == 3U);
        BOOST_TEST(heap.verify().findings.size() == 3U);  // the file still has them wrong
        BOOST_TEST(heap.heal() == 3U);
    }
    options.verify = Verify::changes;
    const ArchiveHeap reader(open_read_only, path, options);
    BOOST_TEST(are_right(reader));
}

BOOST_AUTO_TEST_CASE(where_nobody_has_a_page_whole_the_access_ends_the_program_and_the_rest_is_there) {
    for (const bool with_data : {false, true}) {
        FirstTouchFixture test;
        test.make(with_data);
        test.lose(100'000);
        if (with_data) test.lose(100'000, true);
        for (const bool writes : {false, true}) {
            const auto with_heap = [&](auto&& action) {
                return signal_of([&] {
                    if (writes) {
                        TransactionalHeap heap(open_only, test.path, test.options);
                        action(heap);
                    } else {
                        const ArchiveHeap heap(open_read_only, test.path, test.options);
                        action(heap);
                    }
                });
            };
            const auto read = [](const ArchiveHeap& heap, int number) {
                if (const_cast<const volatile int&>(numbers(heap)[static_cast<std::size_t>(number)]) != number + 1) ::_exit(2);
            };
            BOOST_TEST(with_heap([&](const ArchiveHeap& heap) { read(heap, 100'000); }) == SIGSEGV);
            BOOST_TEST(with_heap([&](const ArchiveHeap& heap) {
                           read(heap, 100'000 - granule_ints);
                           read(heap, 100'000 + granule_ints);
                       }) == 0);
            BOOST_TEST(with_heap([&](const ArchiveHeap& heap) {
                           if (heap.verify().ok()) ::_exit(3);
                       }) == 0);
        }
        BOOST_TEST(signal_of([&] {
                       TransactionalHeap heap(open_only, test.path, test.options);
                       const_cast<volatile int&>(const_cast<Numbers&>(numbers(heap))[100'000]) = 1;
                   }) == SIGSEGV);
    }
}

BOOST_AUTO_TEST_CASE(stores_are_captured_as_ever) {
    for (const Capture capture : {Capture::pages, Capture::declared}) {
        FirstTouchFixture test;
        test.options.capture = capture;
        test.make(true);
        using Map = taiyen::map<int, taiyen::vector<int>>;
        std::map<int, std::vector<int>> model;
        std::mt19937_64 random(taiyen::test::seed_of_run());
        const auto expect = [&](const ArchiveHeap& heap) {
            if (capture != Capture::pages) return;
            const Map& map = *heap.find<Map>("map");
            BOOST_TEST_REQUIRE(map.size() == model.size());
            for (const auto& [key, list] : map) BOOST_TEST_REQUIRE(std::ranges::equal(list, model.at(key)));
        };
        for (int life = 0; life < 6; ++life) {
            if (life > 0) test.lose(static_cast<int>(random() % 200'000));
            TransactionalHeap heap(open_only, test.path, test.options);
            if (life > 0) expect(heap);
            for (int i = 0; i < 40 && capture == Capture::pages; ++i) {
                const bool commits = random() % 4 != 0;
                auto changed = model;
                Transaction transaction(heap);
                Map& map = heap.find_or_construct<Map>("map");
                for (int k = 0; k < 5; ++k) {
                    const int key = static_cast<int>(random() % 200);
                    const std::size_t length = random() % 3000;  // so the heap grows
                    map[key].assign(length, key + life);
                    changed[key].assign(length, key + life);
                }
                if (commits) {
                    transaction.commit();
                    model = changed;
                } else {
                    transaction.rollback();
                }
            }
            expect(heap);
            const std::size_t at = random() % 200'000;
            Numbers& changed = const_cast<Numbers&>(numbers(heap));
            transact(heap, [&](Transaction& transaction) {
                transaction.touch(&changed[at], sizeof(int));
                changed[at] = -1;
            });
            transact(heap, [&](Transaction& transaction) {
                transaction.touch(&changed[at], sizeof(int));
                changed[at] = static_cast<int>(at) + 1;
            });
            BOOST_TEST_REQUIRE(are_right(heap));
            BOOST_TEST_REQUIRE(heap.heal() <= 1U);
            if (life % 2 == 0) heap.close();
        }
        test.options.verify = Verify::at_opening;
        const ArchiveHeap heap(open_read_only, test.path, test.options);
        expect(heap);
        BOOST_TEST(heap.verify().ok());
    }
}

BOOST_AUTO_TEST_CASE(a_plain_save_keeps_what_was_stored_over_rot) {
    make(true);
    for (const int number : {70'000, 70'001, 140'000}) {
        lose(number);
        {
            SnapshotHeap heap(open_only, path, options);
            const_cast<Numbers&>(numbers(heap))[static_cast<std::size_t>(number)] = 0;  // what the lost sector holds, too
            heap.snapshot();
            BOOST_TEST(heap.heal() == 0U);
            heap.close();
        }
        const ArchiveHeap heap(open_read_only, path, options);
        BOOST_TEST(numbers(heap)[static_cast<std::size_t>(number)] == 0);
        BOOST_TEST(numbers(heap)[static_cast<std::size_t>(number) + 2] == number + 3);
        BOOST_TEST(heap.verify().ok());
    }
}

BOOST_AUTO_TEST_CASE(a_history_is_proven_when_it_is_attached) {
    options.verify = Verify::at_first_touch;
    {
        SnapshotHeap heap(create_only, path, options);
        heap.construct<Numbers>("numbers").fill(1);
        heap.attach_undo();
        for (int i = 0; i < 3; ++i) {
            UndoScope scope(heap);
            (*heap.find<Numbers>("numbers")).fill(2 + i);
        }
        heap.snapshot();
        heap.close();
    }
    std::uint64_t lost = 0;
    {
        const ArchiveHeap heap(open_read_only, path, options);
        const auto& file = HeapAccess::file(heap);
        lost = file.view().layout.file_offset({store::annex_start.value + 5 * page_bytes});
    }
    const std::array<std::byte, 512> zeros{};
    io::posix_storage().open(path, io::Access::read_write)->write(zeros, lost);
    SnapshotHeap heap(open_only, path, options);
    heap.attach_undo();
    BOOST_TEST(heap.restoration().pages_healed == 1U);
    for (int i = 2; i >= 1; --i) {
        BOOST_TEST(heap.undo());
        BOOST_TEST((*heap.find<Numbers>("numbers"))[77'777] == 1 + i);
    }
}

BOOST_AUTO_TEST_CASE(a_recovered_heap_is_proven_at_first_touch_too) {
    make(true);
    const std::filesystem::path left = directory / "left";
    {
        TransactionalHeap heap(open_only, path, options);
        transact(heap, [&] { const_cast<Numbers&>(numbers(heap))[10] = -10; });
        std::filesystem::create_directory(left);
        for (const char* suffix : {"", ".data", ".log"}) std::filesystem::copy_file(path.string() + suffix, (left / "heap.tyn").string() + suffix);
    }
    path = left / "heap.tyn";
    options.data_file = path.string() + ".data";
    lose(11);
    lose(150'000);
    for (const bool writes : {false, true}) {
        const auto expect = [&](const ArchiveHeap& heap) {
            BOOST_TEST(numbers(heap)[10] == -10);
            BOOST_TEST(numbers(heap)[11] == 12);
            BOOST_TEST(numbers(heap)[150'000] == 150'001);
            BOOST_TEST(heap.restoration().transactions_replayed == 1U);
            BOOST_TEST(heap.restoration().pages_healed == 2U);
        };
        if (writes) {
            expect(TransactionalHeap(open_only, path, options));
        } else {
            expect(ArchiveHeap(open_read_only, path, options));
        }
    }
}

BOOST_AUTO_TEST_CASE(threads_that_touch_the_same_pages_all_see_them_whole, *boost::unit_test::label("threads")) {
    make(true);
    for (int number = 500; number < 200'000; number += 9'000) lose(number);
    TransactionalHeap heap(open_only, path, options);
    std::atomic<int> right = 0;
    {
        std::vector<std::jthread> threads;
        for (int i = 0; i < 4; ++i) {
            threads.emplace_back([&] {
                const ReadLock reading(heap);
                if (are_right(heap)) ++right;
            });
        }
    }
    BOOST_TEST(right == 4);
    BOOST_TEST(heap.restoration().pages_healed == 23U);
}

BOOST_AUTO_TEST_CASE(a_system_call_is_refused_what_nobody_has_touched) {
    make(false);
    const ArchiveHeap heap(open_read_only, path, options);
    const int* const number = &numbers(heap)[100'000];
    int ends[2];
    BOOST_REQUIRE(::pipe(ends) == 0);
    BOOST_TEST(::write(ends[1], number, sizeof *number) == -1);
    BOOST_TEST(errno == EFAULT);
    BOOST_TEST(*number == 100'001);
    BOOST_TEST(::write(ends[1], number, sizeof *number) == static_cast<ssize_t>(sizeof *number));
    ::close(ends[0]);
    ::close(ends[1]);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace taiyen::txn::test
