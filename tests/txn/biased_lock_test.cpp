#include "txn/biased_lock.hpp"

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>

#include "threads.hpp"

BOOST_AUTO_TEST_SUITE(biased_lock)

namespace {

using boost::unit_test::label;
using taiyen::test::at_once;
using taiyen::test::require;
using taiyen::txn::BiasedLock;
using taiyen::txn::ReaderSlot;

void wait_until(const auto& condition) {
    while (!condition()) std::this_thread::yield();
}

class Reader {
public:
    explicit Reader(BiasedLock& lock) : lock_(lock), slot_(lock.lock_shared()) {}
    ~Reader() { lock_.unlock_shared(slot_); }
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;
    bool in_slot() const { return slot_ != nullptr; }

private:
    BiasedLock& lock_;
    ReaderSlot* slot_;
};

/// Reads until the lock is biased towards readers. False: it never will be here.
bool make_biased(BiasedLock& lock) {
    if (!BiasedLock::can_be_biased()) {
        BOOST_TEST_MESSAGE("this system has no membarrier: locks are never biased");
        return false;
    }
    while (!Reader(lock).in_slot()) {}
    return true;
}

}  // namespace

BOOST_AUTO_TEST_CASE(reads_without_a_writer_between_them_bias_the_lock_and_a_writer_ends_that, *label("threads")) {
    BiasedLock lock;
    BOOST_TEST(!Reader(lock).in_slot());
    if (!make_biased(lock)) return;
    BOOST_TEST(Reader(lock).in_slot());
    {
        const std::lock_guard writer(lock);
        BOOST_TEST(!lock.is_biased());
    }
    BOOST_TEST(!Reader(lock).in_slot());
    BOOST_TEST(make_biased(lock));
}

BOOST_AUTO_TEST_CASE(writers_between_reads_keep_the_lock_unbiased) {
    BiasedLock lock;
    for (std::uint32_t i = 0; i < 20 * BiasedLock::reads_without_writer; ++i) {
        if (i % (BiasedLock::reads_without_writer / 2) == 0) const std::lock_guard writer(lock);
        BOOST_REQUIRE(!Reader(lock).in_slot());
    }
    BOOST_TEST(!lock.is_biased());
}

BOOST_AUTO_TEST_CASE(a_thread_that_read_once_and_sleeps_costs_writers_one_fence, *label("threads")) {
    BiasedLock lock;
    std::atomic<bool> has_read{false};
    std::atomic<bool> over{false};
    std::thread sleeper([&] {
        has_read = make_biased(lock) ? true : has_read.load();
        wait_until([&] { return over.load(); });
    });
    if (BiasedLock::can_be_biased()) {
        wait_until([&] { return has_read.load(); });
        for (int i = 0; i < 20; ++i) {
            make_biased(lock);  // we withdraw before we write; the other thread doesn't
            const std::lock_guard writer(lock);
            BOOST_TEST(lock.fences() == 1U);
        }
    }
    over = true;
    sleeper.join();
}

BOOST_AUTO_TEST_CASE(a_writer_waits_for_a_reader_in_its_slot_and_readers_that_come_later_wait_for_the_writer, *label("threads")) {
    BiasedLock lock;
    if (!make_biased(lock)) return;
    auto first = std::make_unique<Reader>(lock);
    BOOST_TEST(first->in_slot());
    std::atomic<bool> wrote{false};
    std::atomic<bool> read{false};
    std::atomic<bool> read_too_early{false};
    std::thread writer([&] {
        const std::lock_guard guard(lock);
        wrote = true;
    });
    wait_until([&] { return !lock.is_biased(); });
    std::thread reader([&] {
        const Reader late(lock);
        read_too_early = !wrote;
        read = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(30));  // long enough for the writer to fall asleep, and for a wrong one to enter
    BOOST_TEST(!wrote);
    BOOST_TEST(!read);
    first.reset();
    writer.join();
    reader.join();
    BOOST_TEST(!read_too_early);
}

BOOST_AUTO_TEST_CASE(biased_readers_never_see_a_writer, *label("threads")) {
    BiasedLock lock;
    std::uint64_t a = 0;  // not atomic: the thread sanitizer sees who isn't kept out
    std::uint64_t b = 0;
    std::atomic<bool> over{false};
    std::atomic<bool> in_slots{false};  // a plain store: nothing that would keep the processor from reordering
    std::vector<std::thread> readers;
    for (int i = 0; i < 3; ++i) {
        readers.emplace_back([&] {
            while (!over.load(std::memory_order_relaxed)) {
                const Reader reader(lock);
                if (reader.in_slot()) in_slots.store(true, std::memory_order_relaxed);
                require(a == b, "readers see what a writer has finished");
            }
        });
    }
    constexpr std::uint64_t writes = 100;
    for (std::uint64_t i = 0; i < writes; ++i) {
        // Most of them meet a bias.
        for (int turn = 0; turn < 20 && !lock.is_biased(); ++turn) std::this_thread::yield();
        const std::lock_guard writer(lock);
        a = a + 1;
        for (int turn = 0; turn < 20; ++turn) std::atomic_signal_fence(std::memory_order_seq_cst);
        b = b + 1;
    }
    // Without writers the bias comes, however little the readers ran until now.
    if (BiasedLock::can_be_biased()) wait_until([&] { return in_slots.load(); });
    over = true;
    for (std::thread& reader : readers) reader.join();
    BOOST_TEST(a == writes);
}

BOOST_AUTO_TEST_CASE(a_thread_holds_more_locks_than_it_has_slots, *label("threads")) {
    std::vector<std::unique_ptr<BiasedLock>> locks;
    for (int i = 0; i < 9; ++i) {
        locks.push_back(std::make_unique<BiasedLock>());
        if (!make_biased(*locks.back())) return;
    }
    std::vector<std::unique_ptr<Reader>> readers(locks.size());
    std::size_t in_slots = 0;
    for (std::size_t i = locks.size(); i-- > 0;) {  // the newest first: the oldest gave their slots to those
        readers[i] = std::make_unique<Reader>(*locks[i]);
        in_slots += readers[i]->in_slot() ? 1U : 0U;
    }
    BOOST_TEST(in_slots == taiyen::txn::ReaderSlots::count);
    for (std::size_t i = 0; i < locks.size(); ++i) {
        std::atomic<bool> wrote{false};
        std::thread writer([&] {
            const std::lock_guard guard(*locks[i]);
            wrote = true;
        });
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        BOOST_TEST(!wrote);
        readers[i].reset();
        writer.join();
    }
}

BOOST_AUTO_TEST_CASE(threads_that_have_ended_leave_their_slots_to_others, *label("threads")) {
    BiasedLock lock;
    if (!make_biased(lock)) return;
    const auto count = [] {
        std::size_t slots = 0;
        taiyen::txn::ReaderSlots::for_each([&](const ReaderSlot&) { ++slots; });
        return slots;
    };
    std::thread([&] {
        (void)Reader(lock).in_slot();  // joins
        BOOST_TEST(Reader(lock).in_slot());
    }).join();
    const std::size_t before = count();
    for (int i = 0; i < 20; ++i) {
        std::thread([&] { const Reader reader(lock); }).join();
        const std::lock_guard writer(lock);
    }
    BOOST_TEST(count() == before);
    for (int i = 0; i < 20; ++i) std::thread([&] { make_biased(lock); }).join();
    BOOST_TEST(count() == before);
}

BOOST_AUTO_TEST_CASE(a_reader_may_come_and_go_while_a_thread_ends) {
    BiasedLock lock;
    if (!make_biased(lock)) return;
    struct Late {
        BiasedLock* lock = nullptr;
        ~Late() {
            if (lock != nullptr) const Reader reader(*lock);  // after the slots of this thread are gone, or before
        }
    };
    std::thread([&] {
        static thread_local Late early;
        early.lock = &lock;  // made before the slots: destroyed after them
        const Reader reader(lock);
        static thread_local Late later;
        later.lock = &lock;
    }).join();
    const std::lock_guard writer(lock);
    BOOST_TEST(!lock.is_biased());
}

#if !defined(TAIYEN_THREAD_SANITIZER)
BOOST_AUTO_TEST_CASE(a_forked_child_writes_while_threads_of_its_parent_read) {
    BiasedLock parents;
    if (!make_biased(parents)) return;
    std::atomic<bool> reads{false};
    std::atomic<bool> over{false};
    std::thread reader([&] {
        const Reader held(parents);
        reads = true;
        wait_until([&] { return over.load(); });
    });
    wait_until([&] { return reads.load(); });
    const pid_t child = ::fork();
    if (child == 0) {
        ::alarm(300);  // whoever waits for a thread that only the parent has waits for ever
        BiasedLock lock;
        for (int i = 0; i < 3; ++i) {
            if (!make_biased(lock)) ::_exit(2);
            const std::lock_guard writer(lock);
        }
        ::_exit(lock.is_biased() ? 3 : 0);
    }
    BOOST_REQUIRE(child > 0);
    int status = 0;
    BOOST_REQUIRE_EQUAL(::waitpid(child, &status, 0), child);
    BOOST_TEST(status == 0);
    over = true;
    reader.join();
}
#endif

BOOST_AUTO_TEST_CASE(biased_readers_and_writers_take_turns_without_end, *label("threads")) {
    BiasedLock lock;
    std::uint64_t value = 0;
    at_once(4, [&](unsigned thread) {
        for (int i = 0; i < 20'000; ++i) {
            if (thread == 0 && i % 100 == 0) {
                const std::lock_guard guard(lock);
                ++value;
            } else {
                const Reader reader(lock);
                require(value <= 200, "what a writer wrote");
            }
        }
    });
    BOOST_TEST(value == 200U);
}

BOOST_AUTO_TEST_SUITE_END()
