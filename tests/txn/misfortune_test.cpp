// The disk fails or is full, the process forks: what is lost then, who hears of it, and what goes on.

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <functional>
#include <thread>

#include <boost/test/unit_test.hpp>

#include "io/disks/faulty_storage.hpp"
#include "io/disks/simulated_storage.hpp"
#include "txn/transaction_service.hpp"
#include "txn/txn_fixture.hpp"

namespace {

using namespace taiyen;
using namespace taiyen::txn::test;

/// A heap on a disk in memory that can be made to fail.
struct FailingDisk {
    io::SimulatedStorage memory;
    io::FaultyStorage disk{memory};
    const std::filesystem::path path = "/disk/heap.tyn";
    PersistentOptions options;
    std::optional<TransactionalHeap> heap;
    Silence silence;

    FailingDisk() {
        memory.add_directory("/disk");
        replace(small_heap());
    }
    void open(store::OpenMode mode) {
        auto file = store::HeapFile::open(disk, path, mode, HeapKind::transactional, options);
        txn::TransactionService::join(*file, options);
        heap.emplace(HeapAccess::make<TransactionalHeap>(std::move(file)));
    }
    void reopen() {
        heap.reset();
        open(store::OpenMode::open_only);
    }
    void replace(const PersistentOptions& with) {
        heap.reset();
        for (const char* const suffix : {"", ".log"}) memory.remove(path.string() + suffix);
        options = with;
        open(store::OpenMode::create_only);
    }
    using Numbers = taiyen::vector<int>;
    std::vector<int> values() {
        const Numbers* const found = heap->find<Numbers>("numbers");
        return found == nullptr ? std::vector<int>{} : std::vector<int>(found->begin(), found->end());
    }
    Serial push(int value) {
        Transaction transaction(*heap);
        heap->find_or_construct<Numbers>("numbers").push_back(value);
        return transaction.commit();
    }
    bool is_poisoned() { return HeapAccess::file(*heap).condition().is_poisoned(); }
    /// What is refused from now on.
    void expect_poisoned() {
        BOOST_TEST(is_poisoned());
        BOOST_TEST(throws(errc::poisoned, [&] { const ReadLock lock(*heap); }));
        BOOST_TEST(throws(errc::poisoned, [&] { const Transaction transaction(*heap); }));
        BOOST_TEST(throws(errc::poisoned, [&] { heap->snapshot(); }));
    }
    /// The values 0 … told - 1 are there after reopening, and at most `more` behind them.
    void expect_after_reopening(int told, int more) {
        disk.disarm();
        reopen();
        const std::vector<int> found = values();
        BOOST_TEST(static_cast<int>(found.size()) >= told);
        BOOST_TEST(static_cast<int>(found.size()) <= told + more);
        for (std::size_t i = 0; i < found.size(); ++i) BOOST_TEST(found[i] == static_cast<int>(i));
        BOOST_TEST(heap->verify().ok());
        push(static_cast<int>(found.size()));
    }
};

BOOST_FIXTURE_TEST_SUITE(misfortune, FailingDisk)

BOOST_AUTO_TEST_CASE(a_write_of_the_log_that_fails_during_a_commit_poisons_the_heap_and_loses_nothing_that_was_acknowledged) {
    for (const Durability durability : {Durability::sync, Durability::async}) {
        for (const ByteCount short_bytes : {ByteCount{0}, ByteCount{1024}}) {
            PersistentOptions with = small_heap();
            with.durability = durability;
            replace(with);
            for (int i = 0; i < 3; ++i) heap->wait_durable(push(i));
            disk.arm({.error = EIO, .calls = io::Call::write_durable, .short_bytes = short_bytes});
            bool failed = false;
            try {
                heap->wait_durable(push(3));
            } catch (const Error& error) {
                failed = true;
                BOOST_TEST((error.code() == errc::poisoned || error.code() == errc::io_error), error.what());
            }
            BOOST_TEST(failed);
            BOOST_TEST(disk.fired() == 1U);
            expect_poisoned();
            expect_after_reopening(3, 1);
        }
    }
}

BOOST_AUTO_TEST_CASE(a_write_that_fails_during_a_snapshot_in_the_background_loses_nothing_that_was_acknowledged) {
    bool struck = true;
    for (std::uint64_t k = 1; struck; ++k) {
        replace(small_heap());
        for (int i = 0; i < 20; ++i) push(i);
        // Commits go on beside it, and meet the same disk.
        std::atomic<int> told{20};
        disk.arm({.at = k,
                  .error = EIO,
                  .sticky = true,
                  .calls = io::Call::write | io::Call::write_durable | io::Call::sync | io::Call::allocate | io::Call::resize});
        std::thread commits([&] {
            try {
                for (int i = 20; i < 30; ++i) {
                    push(i);
                    told = i + 1;
                }
            } catch (const Error& error) {
                BOOST_TEST((error.code() == errc::poisoned || error.code() == errc::io_error), error.what());
            }
        });
        try {
            heap->snapshot();
        } catch (const Error& error) {
            BOOST_TEST((error.code() == errc::poisoned || error.code() == errc::io_error), error.what());
        }
        commits.join();
        struck = disk.fired() != 0;
        if (is_poisoned()) expect_poisoned();
        expect_after_reopening(told, 1);
    }
}

BOOST_AUTO_TEST_CASE(a_poisoned_heap_is_closed_without_a_save_and_recovers_what_was_committed) {
    push(1);
    HeapAccess::file(*heap).condition().poison("a test", "it was asked to");
    BOOST_TEST(throws(errc::poisoned, [&] { push(2); }));
    heap->close();
    reopen();
    BOOST_TEST(!heap->restoration().clean);
    BOOST_TEST((values() == std::vector<int>{1}));
}

BOOST_AUTO_TEST_CASE(who_waits_for_a_writer_whose_heap_is_poisoned_meanwhile_is_told_so) {
    const std::function<void()> waits[] = {[&] { const ReadLock lock(*heap); }, [&] { const Transaction another(*heap); }, [&] { heap->rebuild(); }};
    for (const auto& wait : waits) {
        push(1);
        std::optional<Transaction> writer(std::in_place, *heap);
        std::atomic<pid_t> id{0};
        std::atomic<bool> told{false};
        std::thread waiting([&] {
            id = ::gettid();
            told = throws(errc::poisoned, wait);
        });
        while (!sleeps(id)) std::this_thread::yield();
        HeapAccess::file(*heap).condition().poison("a test", "it was asked to");
        writer.reset();
        waiting.join();
        BOOST_TEST(told);
        reopen();
    }
}

BOOST_AUTO_TEST_CASE(a_full_disk_during_a_snapshot_is_told_and_the_heap_goes_on) {
    for (int i = 0; i < 20; ++i) push(i);
    disk.arm({.error = ENOSPC, .sticky = true, .calls = io::Call::allocate});
    BOOST_TEST(throws(errc::no_space, [&] { heap->snapshot(); }));
    BOOST_TEST(!is_poisoned());
    for (int i = 20; i < 30; ++i) push(i);
    BOOST_TEST(throws(errc::no_space, [&] { heap->snapshot(); }));
    disk.disarm();
    heap->snapshot();
    BOOST_TEST((HeapAccess::file(*heap).files().durable_serial() == heap->last_durable()));
    reopen();
    BOOST_TEST(heap->restoration().clean);
    BOOST_TEST(values().size() == 30U);
}

BOOST_AUTO_TEST_CASE(a_full_disk_is_reported_once_when_nobody_waits_for_the_snapshot_and_tried_again_when_the_log_is_full) {
    PersistentOptions with = small_heap();
    with.snapshot_interval = std::chrono::milliseconds(1);
    replace(with);
    push(0);
    heap->snapshot();
    const Serial before = HeapAccess::file(*heap).files().durable_serial();
    disk.arm({.error = ENOSPC, .sticky = true, .calls = io::Call::allocate});
    push(1);
    int next = 2;
    while (disk.fired() < 3) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    BOOST_TEST((HeapAccess::file(*heap).files().durable_serial() == before));
    // Until the log is full: then the commit that can't be made is refused, with the reason.
    bool refused = false;
    while (!refused) {
        try {
            push(next);
            ++next;
        } catch (const Error& error) {
            refused = true;
            BOOST_TEST((error.code() == errc::no_space), error.what());
        }
    }
    BOOST_TEST(!is_poisoned());
    BOOST_TEST(static_cast<int>(values().size()) == next);  // it was rolled back
    BOOST_TEST(Silence::told.size() == 1U);
    BOOST_TEST((!Silence::told.empty() && Silence::told.front() == errc::no_space));
    disk.disarm();
    push(next++);
    BOOST_TEST((HeapAccess::file(*heap).files().durable_serial() > before));
    reopen();
    BOOST_TEST(static_cast<int>(values().size()) == next);
}

BOOST_AUTO_TEST_CASE(a_full_disk_is_told_to_who_waits_for_what_was_loaded_relaxed_and_the_next_wait_saves_it) {
    for (int i = 0; i < 3; ++i) push(i);
    RelaxedLoading loading(*heap, RelaxedRollback::transaction);
    for (int i = 3; i < 10; ++i) push(i);
    disk.arm({.error = ENOSPC, .sticky = true, .calls = io::Call::allocate});
    BOOST_TEST(throws(errc::no_space, [&] { loading.wait_until_strict(); }));
    BOOST_TEST(!is_poisoned());
    // Strict again, so it would be durable with what came before; that can't be.
    BOOST_TEST(throws(errc::no_space, [&] { push(10); }));
    BOOST_TEST(values().size() == 10U);
    BOOST_TEST(heap->last_durable().value == 3U);
    disk.disarm();
    loading.wait_until_strict();
    BOOST_TEST(heap->last_durable().value == 10U);
    push(10);
    reopen();
    BOOST_TEST(values().size() == 11U);
}

BOOST_AUTO_TEST_CASE(a_disk_that_stays_full_bounds_what_is_loaded_relaxed_by_the_dirty_limit) {
    PersistentOptions with = small_heap();
    with.dirty_limit = std::size_t{4} << 20U;
    replace(with);
    constexpr std::size_t piece = std::size_t{64} << 10U;
    using Bytes = taiyen::vector<char>;
    transact(*heap, [&] { heap->construct<Bytes>("bytes", std::size_t{8} << 20U); });
    heap->snapshot();
    const RelaxedLoading loading(*heap, RelaxedRollback::transaction);
    const auto fill = [&](std::size_t round) {
        transact(*heap, [&] {
            Bytes& bytes = *heap->find<Bytes>("bytes");
            std::memset(bytes.data() + round * piece % bytes.size(), static_cast<int>(round + 1), piece);
        });
    };
    disk.arm({.error = ENOSPC, .sticky = true, .calls = io::Call::allocate});
    std::size_t round = 0;
    bool refused = false;
    while (!refused && round < 1000) {
        try {
            fill(round);
            ++round;
        } catch (const Error& error) {
            refused = true;
            BOOST_TEST((error.code() == errc::no_space), error.what());
        }
    }
    BOOST_TEST(refused);
    BOOST_TEST(round <= with.dirty_limit / piece);
    BOOST_TEST(throws(errc::no_space, [&] { fill(round); }));  // it is tried again each time
    BOOST_TEST(!is_poisoned());
    disk.disarm();
    for (std::size_t i = 0; i < 100; ++i) fill(round++);
    BOOST_TEST((heap->last_durable().value > 1U));
}

BOOST_AUTO_TEST_CASE(a_disk_that_fails_while_what_was_loaded_relaxed_is_saved_leaves_all_of_it_or_nothing) {
    bool struck = true;
    for (std::uint64_t k = 1; struck; ++k) {
        replace(small_heap());
        for (int i = 0; i < 3; ++i) push(i);
        int told = 3;
        {
            RelaxedLoading loading(*heap, RelaxedRollback::transaction);
            for (int i = 3; i < 10; ++i) push(i);
            disk.arm({.at = k,
                      .error = EIO,
                      .sticky = true,
                      .calls = io::Call::write | io::Call::write_durable | io::Call::sync | io::Call::allocate | io::Call::resize});
            try {
                loading.wait_until_strict();
                told = 10;
                push(10);
                told = 11;
            } catch (const Error& error) {
                BOOST_TEST((error.code() == errc::poisoned || error.code() == errc::io_error), error.what());
            }
        }
        struck = disk.fired() != 0;
        heap.reset();
        disk.disarm();
        open(store::OpenMode::open_only);
        const std::vector<int> found = values();
        BOOST_TEST((found.size() == 3 || found.size() >= 10));
        expect_after_reopening(told, 11 - told);
    }
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_FIXTURE_TEST_SUITE(misfortune_of_a_process, TransactionFixture)

BOOST_AUTO_TEST_CASE(a_child_that_was_forked_within_a_transaction_gets_nowhere_and_its_parent_goes_on) {
    push(0);
    Transaction transaction(*heap);
    numbers().push_back(1);
    const pid_t child = ::fork();
    BOOST_REQUIRE(child >= 0);
    if (child == 0) {
        int wrong = 0;
        wrong += throws(errc::forked, [&] { transaction.commit(); }) ? 0 : 1;
        wrong += throws(errc::forked, [&] { const Transaction another(*heap); }) ? 0 : 2;
        wrong += throws(errc::forked, [&] { const ReadLock lock(*heap); }) ? 0 : 4;
        wrong += throws(errc::forked, [&] { heap->snapshot(); }) ? 0 : 8;
        transaction.rollback();
        heap.reset();
        ::_exit(wrong);
    }
    int status = 0;
    BOOST_REQUIRE(::waitpid(child, &status, 0) == child);
    BOOST_TEST(WIFEXITED(status));
    BOOST_TEST(WEXITSTATUS(status) == 0);
    numbers().push_back(2);
    transaction.commit();
    push(3);
    heap->snapshot();
    crash();
    BOOST_TEST((values() == std::vector<int>{0, 1, 2, 3}));
}

BOOST_AUTO_TEST_CASE(a_child_made_without_handlers_of_fork_gets_nowhere_and_its_parent_goes_on) {
    push(0);
    Transaction transaction(*heap);
    numbers().push_back(1);
    const pid_t child = ::_Fork();
    BOOST_REQUIRE(child >= 0);
    if (child == 0) {
        ::alarm(300);
        int wrong = 0;
        wrong += throws(errc::forked, [&] { transaction.commit(); }) ? 0 : 1;
        wrong += throws(errc::forked, [&] { const Transaction another(*heap); }) ? 0 : 2;
        wrong += throws(errc::forked, [&] { const ReadLock lock(*heap); }) ? 0 : 4;
        wrong += throws(errc::forked, [&] { heap->snapshot(); }) ? 0 : 8;
        transaction.rollback();
        heap.reset();
        ::_exit(wrong);
    }
    int status = 0;
    BOOST_REQUIRE(::waitpid(child, &status, 0) == child);
    BOOST_TEST(WIFEXITED(status));
    BOOST_TEST(WEXITSTATUS(status) == 0);
    numbers().push_back(2);
    transaction.commit();
    push(3);
    heap->snapshot();
    crash();
    BOOST_TEST((values() == std::vector<int>{0, 1, 2, 3}));
}

BOOST_AUTO_TEST_CASE(what_a_program_without_standard_descriptors_prints_gets_into_no_file_of_the_heap) {
    push(0);
    heap->close();
    const pid_t child = ::fork();
    BOOST_REQUIRE(child >= 0);
    if (child == 0) {
        for (const int standard : {0, 1, 2}) ::close(standard);
        int written = 0;
        const auto print = [&] {
            const std::string text(6000, 'p');
            for (const int standard : {0, 1, 2}) written += ::write(standard, text.data(), text.size()) > 0 ? 1 : 0;
        };
        heap.reset();
        heap.emplace(open_only, path, options);
        print();
        push(1);
        print();
        heap->snapshot();
        print();
        ::_exit(written);
    }
    int status = 0;
    BOOST_REQUIRE(::waitpid(child, &status, 0) == child);
    BOOST_TEST(WIFEXITED(status));
    BOOST_TEST(WEXITSTATUS(status) == 0);
    heap.reset();
    heap.emplace(open_only, path, options);
    BOOST_TEST((values() == std::vector<int>{0, 1}));
    BOOST_TEST(heap->verify().ok());
}

BOOST_AUTO_TEST_CASE(a_heap_that_was_opened_is_changed_and_saved_with_no_other_descriptor_than_one_to_read_its_log) {
    for (const bool has_data_file : {false, true}) {
        PersistentOptions with = small_heap();
        if (has_data_file) with.data_file = directory / "second.data";
        replace(with);
        push(0);
        heap.reset();
        const pid_t child = ::fork();
        BOOST_REQUIRE(child >= 0);
        if (child == 0) {
            int wrong = 0;
            try {
                heap.emplace(open_only, path, options);
                const int lowest = ::dup(0);  // the descriptors below are in use
                ::close(lowest);
                const rlimit few{.rlim_cur = static_cast<rlim_t>(lowest + 1), .rlim_max = 1024};
                ::setrlimit(RLIMIT_NOFILE, &few);
                push(1);
                heap->snapshot();
                push(2);
                const rlimit many{.rlim_cur = static_cast<rlim_t>(lowest + 100), .rlim_max = 1024};
                ::setrlimit(RLIMIT_NOFILE, &many);
                heap->close();
            } catch (const std::exception& error) {
                std::fprintf(stderr, "in a child: %s\n", error.what());
                wrong = 1;
            }
            ::_exit(wrong);
        }
        int status = 0;
        BOOST_REQUIRE(::waitpid(child, &status, 0) == child);
        BOOST_TEST(WIFEXITED(status));
        BOOST_TEST(WEXITSTATUS(status) == 0);
        heap.emplace(open_only, path, options);
        BOOST_TEST((values() == std::vector<int>{0, 1, 2}));
    }
}

BOOST_AUTO_TEST_CASE(a_creation_that_runs_out_of_descriptors_leaves_nothing_behind) {
    const std::filesystem::path folder = directory / "fresh";
    std::filesystem::create_directory(folder);
    options.data_file = folder / "b.data";
    const pid_t child = ::fork();
    BOOST_REQUIRE(child >= 0);
    if (child == 0) {
        const auto limit_to = [](int more) {
            const int lowest = ::dup(0);  // the descriptors below are in use
            ::close(lowest);
            const rlimit limit{.rlim_cur = static_cast<rlim_t>(lowest + more), .rlim_max = 1024};
            ::setrlimit(RLIMIT_NOFILE, &limit);
        };
        int wrong = 0;
        for (int more = 0; wrong == 0; ++more) {
            limit_to(more);
            bool done = false;
            try {
                TransactionalHeap fresh(create_only, folder / "b.tyn", options);
                transact(fresh, [&] { fresh.construct<Numbers>("numbers"); });
                fresh.snapshot();
                fresh.close();
                done = true;
            } catch (const Error& error) {
                if (error.code() != errc::too_many_files) wrong = 1;
            } catch (...) {
                wrong = 2;
            }
            limit_to(100);
            if (done) {
                wrong = more > 4 ? 0 : 3;
                break;
            }
            if (!std::filesystem::is_empty(folder)) wrong = 100 + more;
        }
        ::_exit(wrong);
    }
    int status = 0;
    BOOST_REQUIRE(::waitpid(child, &status, 0) == child);
    BOOST_TEST(WIFEXITED(status));
    BOOST_TEST(WEXITSTATUS(status) == 0);
}

BOOST_AUTO_TEST_CASE(a_child_that_was_forked_while_a_guard_lives_and_a_block_is_held_disturbs_nobody) {
    push(0);
    transact(*heap, [&] { heap->find_or_construct<taiyen::string>("text") = std::string(1000, 't').c_str(); });
    RelaxedLoading loading(*heap, RelaxedRollback::transaction);
    push(1);
    std::optional<taiyen::string> held;
    transact(*heap, [&] { held.emplace(std::move(*heap->find<taiyen::string>("text"))); });
    const pid_t child = ::fork();
    BOOST_REQUIRE(child >= 0);
    if (child == 0) {
        ::alarm(300);
        int wrong = 0;
        wrong += throws(errc::forked, [&] { const RelaxedLoading another(*heap, RelaxedRollback::transaction); }) ? 0 : 1;
        wrong += throws(errc::forked, [&] { loading.wait_until_strict(); }) ? 0 : 2;
        held.reset();
        loading.end();
        heap.reset();
        ::_exit(wrong);
    }
    int status = 0;
    BOOST_REQUIRE(::waitpid(child, &status, 0) == child);
    BOOST_TEST(WIFEXITED(status));
    BOOST_TEST(WEXITSTATUS(status) == 0);
    BOOST_TEST(*held == std::string(1000, 't').c_str());
    held.reset();
    push(2);
    loading.wait_until_strict();
    crash();
    BOOST_TEST((values() == std::vector<int>{0, 1, 2}));
    BOOST_TEST(heap->find<taiyen::string>("text")->empty());
    BOOST_TEST(heap->verify().ok());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
