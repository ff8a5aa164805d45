// Memory that is given back (S3) and waited for (S4), attacked: hot pages of many threads, closing, forks, locked pages, a kernel that refuses.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <random>
#include <thread>
#include <vector>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>

#include "seed.hpp"
#include "threads.hpp"
#include "txn/snapshots.hpp"
#include "txn/txn_fixture.hpp"

namespace {

using namespace taiyen;
using namespace taiyen::txn::test;
using boost::unit_test::label;

struct GivenBackFixture : TransactionFixture {
    using Words = taiyen::vector<std::uint64_t>;
    static constexpr std::size_t page_words = page_bytes / sizeof(std::uint64_t);

    std::size_t private_pages() {
        std::size_t pages = 0;
        for (const auto& run : HeapAccess::file(*heap).private_pages()) pages += run.count;
        return pages;
    }
    Words& words() { return *heap->find<Words>("words"); }
    std::uint64_t& word(std::size_t page) { return words()[page * page_words]; }
    void make(std::size_t pages, std::size_t limit_pages, Capture capture, Durability durability = Durability::async) {
        PersistentOptions with = small_heap(capture);
        with.log_capacity = std::size_t{1} << 20U;
        with.dirty_limit = limit_pages * page_bytes;
        with.durability = durability;
        replace(with);
        heap->close();
        {
            ArchiveHeap archive(open_only, path);
            archive.construct<Words>("words", (pages + 1) * page_words, std::uint64_t{0});
            archive.snapshot();
        }
        heap.emplace(open_only, path, options);
    }
    void add(std::size_t page, std::uint64_t more) {
        Transaction transaction(*heap);
        std::uint64_t& changed = word(page);
        transaction.touch(&changed, sizeof changed);
        changed += more;
        transaction.commit();
    }
    /// A process that lives `what`; its exit code, or 128 and the signal.
    template <class F>
    static int in_child(F&& what) {
        const pid_t child = ::fork();
        if (child == 0) {
            ::alarm(300);
            int code = 99;
            try {
                code = what();
            } catch (const std::exception& error) {
                std::fprintf(stderr, "in a child: %s\n", error.what());
            }
            ::_exit(code);
        }
        int status = 0;
        if (child < 0 || ::waitpid(child, &status, 0) != child) return -1;
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
};

/// From here on this process's kernel gives no memory back, whatever is asked.
[[maybe_unused]] bool refuse_to_drop() {
    sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[2])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MADV_DONTNEED, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const sock_fprog filter{sizeof program / sizeof *program, program};
    return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

BOOST_FIXTURE_TEST_SUITE(given_back, GivenBackFixture)

BOOST_AUTO_TEST_CASE(hot_pages_of_many_threads_neither_stop_them_nor_lose_a_change, *label("threads")) {
    for (const Capture capture : {Capture::pages, Capture::declared}) {
        BOOST_TEST_CONTEXT(static_cast<int>(capture)) {
            constexpr std::size_t pages = 40;
            constexpr unsigned threads = 8;
            constexpr int rounds = 8;
            make(pages, 8, capture);
            std::atomic<bool> done{false};
            std::atomic<std::uint64_t> wrong{0};
            std::thread reader([&] {
                std::uint64_t newest = 0;
                while (!done) {
                    const ReadLock lock(*heap);
                    const Words& seen = *std::as_const(*heap).find<Words>("words");
                    const std::uint64_t now = seen[0];
                    // Each transaction adds to the first page what it adds to another one.
                    std::uint64_t sum = 0;
                    for (std::size_t page = 1; page < pages; ++page) sum += seen[page * page_words];
                    if (now < newest || sum != now) ++wrong;
                    newest = now;
                }
            });
            const std::uint64_t seed = taiyen::test::seed_of_run();
            taiyen::test::at_once(threads, [&](unsigned thread) {
                std::mt19937_64 random(seed + thread);
                for (int i = 0; i < rounds; ++i) {
                    Transaction transaction(*heap);
                    for (const std::size_t page : {std::size_t{0}, 1 + (random() % 4 == 0 ? random() % (pages - 1) : random() % 2)}) {
                        transaction.touch(&word(page), sizeof(std::uint64_t));
                        ++word(page);
                    }
                    if (random() % 6 == 0) {
                        transaction.rollback();
                        --i;
                    } else {
                        transaction.commit();
                    }
                }
            });
            done = true;
            reader.join();
            BOOST_TEST(wrong == 0U);
            BOOST_TEST(word(0) == std::uint64_t{threads * rounds});
            heap->wait_durable(ReadLock(*heap).serial());
            const std::vector<std::uint64_t> live(words().begin(), words().end());
            BOOST_TEST(heap->verify().ok());
            crash();
            BOOST_TEST((std::vector<std::uint64_t>(words().begin(), words().end()) == live));
        }
    }
}

BOOST_AUTO_TEST_CASE(who_waits_for_memory_while_the_heap_is_closed_is_told_so) {
    for (int round = 0; round < 4; ++round) {
        make(20, 2, Capture::declared);
        std::atomic<unsigned> told{0};
        std::vector<std::uint64_t> committed(4);
        std::vector<std::thread> threads;
        for (std::size_t thread = 0; thread < committed.size(); ++thread) {
            threads.emplace_back([&, thread] {
                try {
                    for (;;) {
                        add(1 + thread, 1);
                        ++committed[thread];
                    }
                } catch (const Error& error) {
                    told += error.code() == errc::closed ? 1U : 0U;
                }
            });
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(round));
        heap->close();
        for (std::thread& thread : threads) thread.join();
        BOOST_TEST(told == committed.size());
        heap.emplace(open_only, path, options);
        for (std::size_t thread = 0; thread < committed.size(); ++thread) BOOST_TEST(word(1 + thread) == committed[thread]);
    }
}

// Children of a process with threads of the sanitizer's own would only show its limits.
#if !defined(TAIYEN_THREAD_SANITIZER)
BOOST_AUTO_TEST_CASE(children_forked_beside_a_trim_are_refused_and_their_parent_loses_nothing) {
    make(200, 8, Capture::pages);
    std::atomic<bool> done{false};
    std::atomic<std::uint64_t> made{0};
    std::thread writer([&] {
        for (std::size_t page = 1; !done; page = page % 199 + 1) {
            add(page, 1);
            ++made;
        }
    });
    while (made < 20) std::this_thread::yield();
    for (int i = 0; i < 30; ++i) {
        const int code = in_child([&] {
            int wrong = throws(errc::forked, [&] { const Transaction another(*heap); }) ? 0 : 1;
            wrong += throws(errc::forked, [&] { const ReadLock lock(*heap); }) ? 0 : 2;
            wrong += throws(errc::forked, [&] { heap->snapshot(); }) ? 0 : 4;
            heap.reset();
            return wrong;
        });
        BOOST_TEST(code == 0);
    }
    done = true;
    writer.join();
    std::uint64_t sum = 0;
    for (std::size_t page = 1; page < 200; ++page) sum += word(page);
    BOOST_TEST(sum == made);
    heap->wait_durable(ReadLock(*heap).serial());
    const std::vector<std::uint64_t> live(words().begin(), words().end());
    crash();
    BOOST_TEST((std::vector<std::uint64_t>(words().begin(), words().end()) == live));
}

/// The thread that gives pages back waits for this thread's ReadLock, and whoever destroys the heap for that thread.
BOOST_AUTO_TEST_CASE(a_heap_that_is_destroyed_under_a_read_lock_of_the_same_thread_does_not_wait_for_its_own_trim) {
    make(200, 8, Capture::declared);
    heap.reset();
    const int code = in_child([&] {
        options.snapshot_interval = std::chrono::milliseconds(1);
        for (int round = 0; round < 10; ++round) {
            heap.emplace(open_only, path, options);
            for (std::size_t page = 0; page < 5; ++page) add(page, 1);
            const ReadLock lock(*heap);
            std::this_thread::sleep_for(std::chrono::milliseconds(30));  // what was saved is about to be given back
            heap.reset();
        }
        return 0;
    });
    BOOST_TEST(code == 0);
}

BOOST_AUTO_TEST_CASE(a_kernel_that_gives_no_memory_back_costs_memory_and_is_told_at_the_close) {
    make(200, 64, Capture::declared);
    heap.reset();
    const int code = in_child([&] {
        if (!refuse_to_drop()) return 77;  // before the heap's threads begin, which inherit it
        heap.emplace(open_only, path, options);
        for (int round = 0; round < 3; ++round)
            for (std::size_t page = 0; page < 200; ++page) add(page, page);
        heap->snapshot();
        if (private_pages() < 150) return 2;  // else nothing was refused
        if (!heap->verify().ok()) return 3;
        for (std::size_t page = 0; page < 200; ++page)
            if (word(page) != 3 * page) return 4;
        return throws(errc::io_error, [&] { heap->close(); }) ? 0 : 5;
    });
    if (code == 77)
        BOOST_TEST_MESSAGE("skipped: this system lets no process filter its own calls");
    else
        BOOST_TEST(code == 0);
    heap.emplace(open_only, path, options);
    if (code == 0)
        for (std::size_t page = 0; page < 200; ++page) BOOST_REQUIRE(word(page) == 3 * page);
}
#endif

/// The thread that saves was asked by a commit a moment ago, and looks at a heap that is being closed.
BOOST_AUTO_TEST_CASE(closing_right_after_a_commit_that_asked_for_a_save_reports_nothing, *label("threads")) {
    const Silence silence;
    for (int round = 0; round < 12; ++round) {
        options.snapshot_dirty_bytes = 1;
        options.durability = round % 2 == 0 ? Durability::async : Durability::sync;
        reopen();
        push(round);
        if (round % 3 == 0) heap->close();
    }
    heap.reset();
    BOOST_TEST(Silence::told.empty());
}

BOOST_AUTO_TEST_CASE(pages_that_the_program_has_locked_are_given_back_as_others) {
    make(100, 16, Capture::declared);
    if (::mlock(words().data(), 100 * page_bytes) != 0) {
        BOOST_TEST_MESSAGE("skipped: this process may not lock so much memory");
        return;
    }
    for (std::size_t page = 0; page < 100; ++page) add(page, page);
    heap->snapshot();
    for (int i = 0; i < 60'000 && private_pages() > 24; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    BOOST_TEST(private_pages() <= 24U);
    for (std::size_t page = 0; page < 100; ++page) BOOST_REQUIRE(word(page) == page);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
