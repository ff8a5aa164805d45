// What threads may do at once with heaps that are files: open and close different ones, race for one, look at one. Each case is run under the thread sanitizer.

#include <atomic>

#include <boost/test/unit_test.hpp>

#include <taiyen/base/report.hpp>

#include "store/heap_probe.hpp"
#include "threads.hpp"

using namespace probe;
using taiyen::test::at_once;
using taiyen::test::require;

namespace {

std::string name(unsigned thread, unsigned round) { return "heap-" + std::to_string(thread) + "-" + std::to_string(round) + ".tyn"; }

}  // namespace

BOOST_AUTO_TEST_SUITE(store_threads)

BOOST_AUTO_TEST_CASE(threads_create_save_close_and_reopen_heaps_of_their_own, *boost::unit_test::label("threads")) {
    const ScratchDirectory dir;
    at_once(4, [&](unsigned number) {
        for (unsigned round = 0; round < 3; ++round) {
            const auto path = dir / name(number, round);
            for (unsigned opening = 0; opening < 3; ++opening) {
                SnapshotHeap heap(open_or_create, path, small_heap());
                if (opening != 0) require(get(heap, "text " + std::to_string(opening - 1)) == path, "what was saved is there");
                put(heap, "text " + std::to_string(opening), path);
                heap.snapshot();
                heap.close();
            }
        }
    });
}

BOOST_AUTO_TEST_CASE(of_threads_that_open_one_heap_at_once_the_others_are_told_that_it_is_busy, *boost::unit_test::label("threads")) {
    const ScratchDirectory dir;
    const auto path = dir / "one.tyn";
    {
        SnapshotHeap heap(create_only, path, small_heap());
        put(heap, "text", "saved");
        heap.snapshot();
    }
    std::atomic<unsigned> open{0};
    std::atomic<unsigned> served{0};
    at_once(4, [&](unsigned) {
        for (unsigned round = 0; round < 15; ++round) {
            const auto refused = code_of([&] {
                const ArchiveHeap heap(open_only, path);
                require(open.fetch_add(1) == 0, "one at a time has it");
                require(get(heap, "text") == "saved", "and finds it whole");
                served.fetch_add(1);
                std::this_thread::yield();
                open.fetch_sub(1);
            });
            require(!refused || *refused == errc::busy, "who doesn't get it is told why");
        }
    });
    BOOST_TEST(served != 0U);
    const ArchiveHeap heap(open_only, path);
    BOOST_TEST(heap.restoration().clean);
}

BOOST_AUTO_TEST_CASE(of_threads_that_create_one_heap_at_once_one_does_and_all_see_it_whole, *boost::unit_test::label("threads")) {
    const ScratchDirectory dir;
    for (unsigned round = 0; round < 6; ++round) {
        const auto path = dir / name(0, round);
        std::atomic<unsigned> made{0};
        at_once(4, [&](unsigned) {
            const auto refused = code_of([&] {
                const SnapshotHeap heap(create_only, path, small_heap());
                made.fetch_add(1);
            });
            // Whoever stumbles over files of a creation that is under way is told that somebody is at it.
            require(!refused || *refused == errc::already_exists || *refused == errc::busy, "who is late is told so");
        });
        BOOST_TEST(made == 1U);
        const SnapshotHeap heap(open_only, path);
        BOOST_TEST(heap.restoration().clean);
    }
}

BOOST_AUTO_TEST_CASE(threads_look_for_written_pages_at_once, *boost::unit_test::label("threads")) {
    const ScratchDirectory dir;
    SnapshotHeap heap(create_only, dir / "one.tyn", small_heap());
    for (unsigned i = 0; i < 40; ++i) put(heap, "text " + std::to_string(i), std::string(5000, 'x'));
    heap.snapshot();  // its pages stay private copies: whether they were written since is decided by content
    for (unsigned i = 0; i < 40; i += 4) find(heap, "text " + std::to_string(i))[100] = 'y';
    const std::size_t expected = heap.dirty_bytes();
    BOOST_TEST(expected != 0U);
    at_once(4, [&](unsigned) {
        for (unsigned round = 0; round < 20; ++round) {
            require(heap.dirty_bytes() == expected, "all see the same");
            require(heap.restoration().clean, "what opening did stays");
            require(get(heap, "text 1")[100] == 'x', "content is read meanwhile");
        }
    });
}

BOOST_AUTO_TEST_CASE(a_heap_is_saved_while_other_threads_open_and_close_others, *boost::unit_test::label("threads")) {
    const ScratchDirectory dir;
    ArchiveHeap saved(create_only, dir / "saved.tyn", small_heap());
    auto* const numbers = reinterpret_cast<std::uintptr_t*>(put(saved, "numbers", std::string(60000, '\0')));
    std::atomic<unsigned> opening{2};
    at_once(3, [&](unsigned number) {
        if (number != 0) {
            for (unsigned round = 0; round < 12; ++round) {
                ArchiveHeap heap(create_only, dir / name(number, round), small_heap());
                put(heap, "text", "a block");
            }
            opening.fetch_sub(1);
            return;
        }
        for (std::uintptr_t value = 0; opening != 0; ++value) {
            // Numbers that look like addresses of heaps: each is looked up.
            for (std::size_t i = 0; i < 7000; i += 10)
                numbers[i] = (reinterpret_cast<std::uintptr_t>(numbers) & ~0xffff'ffffULL) + ((value + i) << 32U) + i;
            try {
                saved.snapshot();
            } catch (const Error& error) {
                require(error.code() == errc::foreign_pointer, "a save is only refused for a pointer into another heap");
            }
        }
    });
    std::fill_n(numbers, 7000, 0U);
    saved.snapshot();
    BOOST_TEST(saved.dirty_bytes() == 0U);
}

BOOST_AUTO_TEST_SUITE_END()
