#include "txn/phase_fair_lock.hpp"

#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "threads.hpp"
#include "txn/txn_fixture.hpp"

BOOST_AUTO_TEST_SUITE(phase_fair_lock)

namespace {

using boost::unit_test::label;
using taiyen::test::at_once;
using taiyen::test::require;
using taiyen::txn::PhaseFairLock;
using taiyen::txn::test::sleeps;

void wait_until(const auto& condition) {
    while (!condition()) std::this_thread::yield();
}

}  // namespace

BOOST_AUTO_TEST_CASE(readers_share_and_writers_exclude, *label("threads")) {
    PhaseFairLock lock;
    std::uint64_t a = 0;  // not atomic: the thread sanitizer sees who isn't kept out
    std::uint64_t b = 0;
    std::atomic<int> writers{0};
    at_once(4, [&](unsigned thread) {
        for (int i = 0; i < 3'000; ++i) {
            if ((i + static_cast<int>(thread)) % 4 == 0) {
                const std::lock_guard guard(lock);
                require(++writers == 1, "one writer");
                ++a;
                ++b;
                --writers;
            } else {
                const std::shared_lock guard(lock);
                require(writers == 0, "no writer beside a reader");
                require(a == b, "readers see what a writer has finished");
            }
        }
    });
    BOOST_TEST(a == 3'000U);
}

BOOST_AUTO_TEST_CASE(readers_are_inside_together, *label("threads")) {
    PhaseFairLock lock;
    std::atomic<unsigned> inside{0};
    at_once(4, [&](unsigned) {
        const std::shared_lock guard(lock);
        ++inside;
        wait_until([&] { return inside == 4; });
    });
    BOOST_TEST(inside == 4U);
}

BOOST_AUTO_TEST_CASE(a_writer_waits_only_for_the_readers_before_it, *label("threads")) {
    PhaseFairLock lock;
    lock.lock_shared();
    std::atomic<bool> wrote{false};
    std::atomic<bool> read{false};
    std::atomic<bool> read_too_early{false};
    std::thread writer([&] {
        const std::lock_guard guard(lock);
        wrote = true;
    });
    wait_until([&] { return lock.writer_is_there(); });
    // A reader that comes now does not overtake the writer.
    std::thread reader([&] {
        const std::shared_lock guard(lock);
        read_too_early = !wrote;
        read = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(10));  // time for a wrong one to enter
    BOOST_TEST(!wrote);
    BOOST_TEST(!read);
    lock.unlock_shared();
    writer.join();
    reader.join();
    BOOST_TEST(!read_too_early);
}

BOOST_AUTO_TEST_CASE(readers_that_wait_for_a_writer_enter_before_the_next_one, *label("threads")) {
    PhaseFairLock lock;
    lock.lock();
    std::vector<int> order;  // guarded by the lock and, among readers, by a mutex
    std::mutex mutex;
    std::vector<std::thread> threads;
    std::array<std::atomic<pid_t>, 4> ids{};
    const auto waits = [](const std::atomic<pid_t>& thread) { return thread != 0 && sleeps(thread); };
    for (std::size_t i = 0; i < 3; ++i) {
        threads.emplace_back([&, i] {
            ids[i] = ::gettid();
            const std::shared_lock guard(lock);
            const std::lock_guard entry(mutex);
            order.push_back(0);
        });
    }
    for (std::size_t i = 0; i < 3; ++i) wait_until([&] { return waits(ids[i]); });
    threads.emplace_back([&] {
        ids[3] = ::gettid();
        const std::lock_guard guard(lock);
        order.push_back(1);
    });
    wait_until([&] { return waits(ids[3]); });
    lock.unlock();
    for (std::thread& thread : threads) thread.join();
    BOOST_TEST(order == (std::vector<int>{0, 0, 0, 1}), boost::test_tools::per_element());
}

/// The thread sanitizer sees a reader that touches the lock after it has let go.
BOOST_AUTO_TEST_CASE(a_writer_may_destroy_the_lock_when_the_last_reader_has_let_go, *label("threads")) {
    for (int i = 0; i < 50; ++i) {
        auto lock = std::make_unique<PhaseFairLock>();
        std::atomic<bool> inside{false};
        std::atomic<bool> writer_comes{false};
        std::thread reader([&, shared = lock.get()] {
            shared->lock_shared();
            inside = true;
            wait_until([&] { return writer_comes.load(); });
            if (i % 2 != 0) wait_until([&] { return shared->writer_is_there(); });
            if (i % 4 == 3) std::this_thread::sleep_for(std::chrono::milliseconds(2));  // the writer sleeps
            shared->unlock_shared();
        });
        wait_until([&] { return inside.load(); });
        writer_comes = true;
        lock->lock();
        lock->unlock();
        lock.reset();
        reader.join();
    }
}

BOOST_AUTO_TEST_CASE(writers_come_in_their_order, *label("threads")) {
    PhaseFairLock lock;
    std::vector<unsigned> order;
    std::vector<std::thread> threads;
    lock.lock();
    // More writers than there are seats to sleep on.
    for (unsigned number = 0; number < 40; ++number) {
        std::atomic<bool> begun{false};
        threads.emplace_back([&, number] {
            begun = true;
            lock.lock();
            order.push_back(number);
            lock.unlock();
        });
        wait_until([&] { return begun.load(); });
        wait_until([&] { return lock.writers() == number + 2; });
    }
    lock.unlock();
    for (std::thread& thread : threads) thread.join();
    BOOST_REQUIRE_EQUAL(order.size(), 40U);
    for (unsigned number = 0; number < 40; ++number) BOOST_TEST(order[number] == number);
}

BOOST_AUTO_TEST_CASE(a_stream_of_readers_does_not_starve_a_writer, *label("threads")) {
    PhaseFairLock lock;
    std::atomic<bool> over{false};
    std::atomic<unsigned> reading{0};
    std::vector<std::thread> readers;
    // Each reader leaves only when another one is inside (or it is all over): without fairness there is no moment without readers.
    for (int i = 0; i < 3; ++i) {
        readers.emplace_back([&] {
            while (!over) {
                const std::shared_lock guard(lock);
                ++reading;
                for (int spin = 0; spin < 1'000 && reading < 2 && !over && !lock.writer_is_there(); ++spin) std::this_thread::yield();
                --reading;
            }
        });
    }
    for (int i = 0; i < 200; ++i) {
        const std::lock_guard guard(lock);
        BOOST_REQUIRE_EQUAL(reading, 0U);
    }
    over = true;
    for (std::thread& thread : readers) thread.join();
}

BOOST_AUTO_TEST_CASE(a_stream_of_writers_does_not_starve_a_reader, *label("threads")) {
    PhaseFairLock lock;
    std::atomic<bool> over{false};
    std::vector<std::thread> writers;
    for (int i = 0; i < 3; ++i) {
        writers.emplace_back([&] {
            while (!over) {
                const std::lock_guard guard(lock);
                // Another writer stands behind it before it leaves.
                for (int spin = 0; spin < 1'000 && lock.writers() < 2 && !over; ++spin) std::this_thread::yield();
            }
        });
    }
    for (int i = 0; i < 200; ++i) const std::shared_lock guard(lock);
    over = true;
    for (std::thread& thread : writers) thread.join();
    BOOST_TEST(!lock.writer_is_there());
}

BOOST_AUTO_TEST_SUITE_END()
