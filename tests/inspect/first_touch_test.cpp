// Verify::at_first_touch: whatever the program reads is proven before it sees it.

#include <sys/mman.h>
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
        options.log_capacity = 1_MiB;
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
    /// The sector of a file that holds that byte of the span is lost.
    void lose_at(std::uint64_t offset, bool in_data = false, const store::FileLayout& layout = {}) const {
        const auto file = io::posix_storage().open(in_data ? options.data_file : path, io::Access::read_write);
        std::array<std::byte, 512> bytes{};
        bytes[0] = std::byte{1};  // so that it is no part of a page of zeros
        file->write(bytes, round_down(layout.file_offset({offset}), bytes.size()));
        file->sync();
    }
    /// The one that holds that number.
    void lose(int number, bool in_data = false) const { lose_at(place + static_cast<std::uint64_t>(number) * sizeof(int), in_data); }
    void lose_both(int number) const {
        lose(number);
        lose(number, true);
    }
    /// A number at the beginning of the page that is so many pages behind the granule of the first number.
    int number_at(std::uint64_t page) const {
        constexpr std::uint64_t granule = 64 * 1024;
        return static_cast<int>((round_down(place, granule) + page * page_bytes - place) / sizeof(int));
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
        lost = file.files().view().layout.file_offset({store::annex_start.value + 5 * page_bytes});
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
        if (writes)
            expect(TransactionalHeap(open_only, path, options));
        else
            expect(ArchiveHeap(open_read_only, path, options));
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

BOOST_AUTO_TEST_CASE(what_only_memory_has_right_gets_into_the_file_before_its_copy_is_dropped) {
    make(true);
    const auto change = [&](ArchiveHeap& heap, int by) {
        auto& all = const_cast<Numbers&>(numbers(heap));
        for (int i = 0; i < 200'000; ++i)
            if (i < 60'000 || i >= 80'000) all[static_cast<std::size_t>(i)] += by;  // more pages than a small save takes
    };
    const auto sum_of_quiet = [&](const ArchiveHeap& heap) {
        return std::accumulate(&numbers(heap)[65'000], &numbers(heap)[75'000], std::int64_t{0});
    };
    constexpr std::int64_t right = (65'001 + std::int64_t{75'000}) * 10'000 / 2;
    lose(70'000);
    {
        SnapshotHeap heap(open_only, path, options);
        BOOST_TEST(sum_of_quiet(heap) == right);
        change(heap, 5);
        heap.snapshot();
        BOOST_TEST(sum_of_quiet(heap) == right);
        BOOST_TEST(heap.verify().ok());
        heap.close();
    }
    lose(70'000);
    {
        TransactionalHeap heap(open_only, path, options);
        BOOST_TEST(sum_of_quiet(heap) == right);
        heap.rebuild();
        BOOST_TEST(sum_of_quiet(heap) == right);
        heap.close();
    }
    lose(70'000);
    {
        TransactionalHeap heap(open_only, path, options);
        BOOST_TEST(sum_of_quiet(heap) == right);
        transact(heap, [&](Transaction& transaction) {
            transaction.touch(const_cast<Numbers*>(&numbers(heap)), sizeof(Numbers));
            change(heap, -5);
        });
        heap.snapshot();
        BOOST_TEST(are_right(heap));
        heap.rebuild();
        BOOST_TEST(are_right(heap));
        heap.close();
    }
    const ArchiveHeap heap(open_read_only, path, options);
    BOOST_TEST(heap.verify().ok());
}

BOOST_AUTO_TEST_CASE(a_lost_page_keeps_its_neighbours_usable) {
    for (const bool snapshot : {false, true}) {
        FirstTouchFixture test;
        test.make(true);
        const int first = test.number_at(2 * 16);
        test.lose(first + 1);
        test.lose_both(first + 8 * 1024);
        const int left = signal_of([&] {
            const auto use = [&](auto& heap, auto&& save) {
                auto& all = const_cast<Numbers&>(numbers(heap));
                const auto expect = [&] {
                    for (const int number : {first, first + 1, first + 7 * 1024 + 1023, first + 9 * 1024})
                        if (const_cast<const volatile int&>(all[static_cast<std::size_t>(number)]) != number + 1) ::_exit(2);
                };
                expect();
                save();
                expect();
            };
            if (snapshot) {
                SnapshotHeap heap(open_only, test.path, test.options);
                use(heap, [&] {
                    const_cast<Numbers&>(numbers(heap))[0] = 1;
                    heap.template construct<int>("other", 5);
                    heap.snapshot();
                });
                heap.close();
            } else {
                TransactionalHeap heap(open_only, test.path, test.options);
                use(heap, [&] {
                    transact(heap, [&] { heap.template construct<int>("other", 5); });
                    heap.snapshot();
                });
                heap.close();
            }
        });
        BOOST_TEST(left == 0);
    }
}

BOOST_AUTO_TEST_CASE(capture_begins_beside_a_lost_page) {
    make(true);
    const int first = number_at(2 * 16);
    lose_both(first);
    BOOST_TEST(signal_of([&] {
                   SnapshotHeap heap(open_only, path, options);
                   auto& all = const_cast<Numbers&>(numbers(heap));
                   if (const_cast<volatile int&>(all[static_cast<std::size_t>(first) - 1]) != first)
                       ::_exit(2);  // what is hidden begins with the lost page
                   heap.attach_undo();
                   {
                       UndoScope scope(heap);
                       all[static_cast<std::size_t>(first) - 1] = -1;
                   }
                   if (!heap.undo() || all[static_cast<std::size_t>(first) - 1] != first) ::_exit(3);
                   heap.close();
               }) == 0);
}

BOOST_AUTO_TEST_CASE(capture_leaves_a_lost_neighbour_out) {
    for (const Verify verify : {Verify::changes, Verify::at_first_touch}) {
        FirstTouchFixture test;
        test.make(true);
        const int first = test.number_at(2 * 16);
        for (const int page : {3, 8, 11}) test.lose_both(first + page * 1024);
        test.options.verify = verify;
        BOOST_TEST(signal_of([&] {
                       TransactionalHeap heap(open_only, test.path, test.options);
                       auto& all = const_cast<Numbers&>(numbers(heap));
                       {
                           // One after the other, so that capture opens more and more at once.
                           Transaction transaction(heap);
                           for (const int page : {0, 1, 2, 4, 5, 6, 7, 9, 10, 12}) all[static_cast<std::size_t>(first + page * 1024)] = -page;
                           transaction.commit();
                       }
                       Transaction transaction(heap);
                       try {
                           transaction.touch(&all[static_cast<std::size_t>(first + 3 * 1024)], sizeof(int));
                           ::_exit(2);
                       } catch (const Error& error) {
                           if (error.code() != errc::poisoned) ::_exit(3);
                       }
                       ::_exit(0);
                   }) == (verify == Verify::changes ? -2 : 0));
        test.options.verify = Verify::changes;
        const ArchiveHeap heap(open_read_only, test.path, test.options);
        for (const int page : {0, 1, 2, 4, 5, 6, 7, 9, 10, 12}) BOOST_TEST(numbers(heap)[static_cast<std::size_t>(first + page * 1024)] == -page);
    }
}

BOOST_AUTO_TEST_CASE(a_declared_change_of_a_lost_page_is_refused) {
    options.capture = Capture::declared;
    make(true);
    lose_both(100'000);
    BOOST_TEST(signal_of([&] {
                   TransactionalHeap heap(open_only, path, options);
                   Transaction transaction(heap);
                   transaction.touch(const_cast<int*>(&numbers(heap)[100'000 - granule_ints]), sizeof(int));
                   try {
                       transaction.touch(const_cast<int*>(&numbers(heap)[100'000]), sizeof(int));
                   } catch (const Error& error) {
                       ::_exit(error.code() == errc::poisoned ? 7 : 8);
                   }
               }) == -7);
}

BOOST_AUTO_TEST_CASE(what_memory_alone_has_right_is_healed_from_there) {
    make(true);
    lose(100'000);
    SnapshotHeap heap(open_only, path, options);
    BOOST_TEST(are_right(heap));
    lose(100'000, true);
    BOOST_TEST(heap.heal() == 2U);
    BOOST_TEST(heap.verify().ok());
    heap.close();
}

BOOST_AUTO_TEST_CASE(a_lost_page_of_checksums_makes_zeros_of_nothing) {
    make(true);
    const auto layout = store::FileLayout();
    const auto before = [&] {
        std::vector<std::byte> bytes(std::filesystem::file_size(path));
        io::posix_storage().open(path, io::Access::read_only)->read(bytes, 0);
        return bytes;
    };
    const std::array<std::byte, page_bytes> zeros{};
    io::posix_storage().open(path, io::Access::read_write)->write(zeros, layout.table_offset(store::place_of(page_of({place + 400'000})).table_page));
    const auto damaged = before();
    {
        SnapshotHeap heap(open_only, path, options);
        BOOST_TEST(throws(errc::corrupt, [&] { heap.heal(); }));
        heap.close();
    }
    const auto after = before();
    const std::uint64_t at = layout.file_offset({place + 400'000});
    BOOST_TEST(std::equal(damaged.begin() + static_cast<std::ptrdiff_t>(at), damaged.begin() + static_cast<std::ptrdiff_t>(at + page_bytes),
                          after.begin() + static_cast<std::ptrdiff_t>(at)));
}

BOOST_AUTO_TEST_CASE(healing_and_reading_wait_for_each_other_only, *boost::unit_test::label("threads")) {
    make(true);
    for (int round = 0; round < 10; ++round) {
        SnapshotHeap heap(open_only, path, options);
        const_cast<Numbers&>(numbers(heap))[0] = 1;
        std::atomic<bool> right = false;
        const std::jthread reader([&] { right = are_right(heap); });
        for (int i = 0; i < 3; ++i) BOOST_TEST(heap.heal() == 0U);
    }
}

BOOST_AUTO_TEST_CASE(a_page_that_the_program_protects_is_its_own_affair) {
    make(true);
    BOOST_TEST(signal_of([&] {
                   const ArchiveHeap heap(open_read_only, path, options);
                   const volatile int& number = numbers(heap)[static_cast<std::size_t>(number_at(2 * 16))];
                   const int seen = number;
                   ::mprotect(const_cast<int*>(&number), page_bytes, PROT_NONE);
                   if (number == seen) ::_exit(2);
               }) == SIGSEGV);
}

BOOST_AUTO_TEST_CASE(a_heap_with_its_last_page_lost_grows) {
    make(true);
    std::uint64_t last = 0;
    {
        TransactionalHeap heap(open_only, path, options);
        // Until the heap ends inside of a granule, in a page that is in use.
        for (int i = 0; i < 8 && last == 0; ++i) {
            // More than the heap grows by in advance.
            const auto name = "block " + std::to_string(i);
            const char* behind = nullptr;
            transact(heap, [&] {
                auto& block = heap.construct<taiyen::vector<char>>(name.c_str());
                block.assign(1'000'000, 1);
                behind = block.data() + block.size();
            });
            const std::uint64_t pages = HeapAccess::file(heap).image().mapped() / page_bytes;
            const std::uint64_t end = reinterpret_cast<std::uintptr_t>(behind) - HeapAccess::file(heap).ranges().durable;
            if (pages % 16 != 0 && (end - 1) / page_bytes / 16 == pages / 16) last = (end - 1) / page_bytes;
        }
        heap.close();
    }
    BOOST_TEST_REQUIRE(last != 0U);
    lose_at(last * page_bytes);
    lose_at(last * page_bytes, true);
    BOOST_TEST(signal_of([&] {
                   TransactionalHeap heap(open_only, path, options);
                   transact(heap, [&] { heap.construct<std::array<char, 2'000'000>>("more").fill(2); });
                   if (heap.find<std::array<char, 2'000'000>>("more")->back() != 2) ::_exit(2);
                   heap.close();
               }) == 0);
}

BOOST_AUTO_TEST_CASE(an_audit_names_a_lost_page) {
    make(true);
    lose_both(100'000);
    options.audit = Audit::scope;
    BOOST_CHECK_EXCEPTION(TransactionalHeap(open_only, path, options), Error, [](const Error& error) { return error.code() == errc::corrupt; });
}

BOOST_AUTO_TEST_CASE(a_reader_replays_a_history_on_pages_that_are_whole) {
    options.data_file = path.string() + ".data";
    options.verify = Verify::at_first_touch;
    const std::filesystem::path left = directory / "left";
    std::filesystem::create_directory(left);
    std::uint64_t end = 0;
    store::FileLayout layout;
    {
        TransactionalHeap heap(create_only, path, options);
        transact(heap, [&] { heap.construct<Numbers>("numbers").fill(1); });
        heap.attach_undo();
        const auto step = [&](int value) { transact(heap, [&] { const_cast<Numbers&>(numbers(heap))[static_cast<std::size_t>(value)] = value; }); };
        for (int i = 0; i < 10; ++i) step(i);
        heap.snapshot();
        end = HeapAccess::file(heap).image().annex().used();
        layout = HeapAccess::file(heap).files().view().layout;
        for (int i = 10; i < 12; ++i) step(i);
        for (const char* suffix : {"", ".data", ".log"}) std::filesystem::copy_file(path.string() + suffix, (left / "heap.tyn").string() + suffix);
    }
    path = left / "heap.tyn";
    options.data_file = path.string() + ".data";
    const auto annex = [&] {
        const ArchiveHeap heap(open_read_only, path, options);
        const auto view = HeapAccess::file(heap).view_annex();
        return std::vector<std::byte>(view.bytes.begin(), view.bytes.end());
    };
    const std::vector<std::byte> whole = annex();
    BOOST_TEST_REQUIRE(whole.size() >= end);
    for (std::uint64_t page = 0; page < end / page_bytes; ++page) lose_at(store::annex_start.value + page * page_bytes, false, layout);
    const std::vector<std::byte> now = annex();
    BOOST_TEST_REQUIRE(now.size() == whole.size());
    // What the log changes: the last page of the steps, and the first one.
    BOOST_TEST(std::equal(now.begin(), now.begin() + page_bytes, whole.begin()));
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
