// Systems that have no membarrier, and programs that lose the right to it: played by a call that refuses.

#include "txn/process_barrier.hpp"

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

#include <linux/membarrier.h>

#include <boost/test/unit_test.hpp>

#include "txn/biased_lock.hpp"

namespace {

using boost::unit_test::label;
using taiyen::txn::BiasedLock;
using taiyen::txn::ProcessBarrier;
using taiyen::txn::ReaderSlot;

constinit std::atomic<bool> allowed{true};
constinit std::atomic<int> executed{0};
constinit std::atomic<bool> registered{false};

/// The kernel's answers, without its fences: these tests have nobody who reads while somebody writes.
int play(int command) noexcept {
    if (!allowed) return -1;
    if (command == MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) {
        registered = true;
        return 0;
    }
    if (!registered) return -1;
    ++executed;
    return 0;
}

/// While it lives the system is the one that is played.
class PlayedSystem {
public:
    explicit PlayedSystem(bool allows) {
        allowed = allows;
        registered = false;
        executed = 0;
        before_ = ProcessBarrier::exchange_call(&play);
    }
    ~PlayedSystem() { ProcessBarrier::exchange_call(before_); }
    PlayedSystem(const PlayedSystem&) = delete;
    PlayedSystem& operator=(const PlayedSystem&) = delete;

private:
    ProcessBarrier::Call before_;
};

/// Whether a reader that comes then needs no shared memory.
[[maybe_unused]] bool read_many(BiasedLock& lock) {
    bool in_slot = false;
    for (std::uint32_t i = 0; i < 10 * BiasedLock::reads_without_writer; ++i) {
        ReaderSlot* const slot = lock.lock_shared();
        in_slot = slot != nullptr;
        lock.unlock_shared(slot);
    }
    return in_slot;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(process_barrier)

#if !defined(TAIYEN_THREAD_SANITIZER)

BOOST_AUTO_TEST_CASE(a_system_that_refuses_has_no_barrier_and_locks_are_never_biased) {
    const PlayedSystem system(false);
    BOOST_TEST(!ProcessBarrier::is_there());
    BiasedLock lock;
    BOOST_TEST(!read_many(lock));
    BOOST_TEST(!lock.is_biased());
    const std::lock_guard writer(lock);
    BOOST_TEST(executed == 0);
}

BOOST_AUTO_TEST_CASE(a_process_registers_when_it_is_asked_to_and_again_where_that_is_lost) {
    const PlayedSystem system(true);
    BOOST_TEST(ProcessBarrier::is_there());
    BOOST_TEST(registered);
    const int before = executed;
    registered = false;  // as in a forked child
    ProcessBarrier::execute();
    BOOST_TEST(executed == before + 1);
    BOOST_TEST(ProcessBarrier::is_there());
}

BOOST_AUTO_TEST_CASE(a_system_that_registers_and_refuses_all_the_same_has_no_barrier) {
    const PlayedSystem system(true);
    ProcessBarrier::exchange_call(+[](int command) noexcept { return command == MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED ? play(command) : -1; });
    BOOST_TEST(!ProcessBarrier::is_there());
    BOOST_TEST(registered);
    BiasedLock lock;
    BOOST_TEST(!read_many(lock));
}

BOOST_AUTO_TEST_CASE(a_writer_meets_a_member_that_stays_out_by_a_barrier) {
    const PlayedSystem system(true);
    BiasedLock lock;
    BOOST_TEST(read_many(lock));
    const int before = executed;
    std::thread([&] {
        const std::lock_guard writer(lock);
        BOOST_TEST(!lock.is_biased());
    }).join();
    BOOST_TEST(executed == before + 1);
    BOOST_TEST(lock.fences() == 1U);
}

BOOST_AUTO_TEST_CASE(a_member_that_writes_itself_needs_no_barrier) {
    const PlayedSystem system(true);
    BiasedLock lock;
    for (int i = 0; i < 3; ++i) {
        BOOST_TEST(read_many(lock));
        const int before = executed;
        const std::lock_guard writer(lock);
        BOOST_TEST(!lock.is_biased());
        BOOST_TEST(executed == before);
    }
    BOOST_TEST(lock.fences() == 0U);
}

BOOST_AUTO_TEST_CASE(behind_a_barrier_that_a_writer_took_the_bias_pauses_and_then_it_begins_again) {
    using Clock = std::chrono::steady_clock;
    constexpr std::chrono::nanoseconds pause(BiasedLock::pause_factor * BiasedLock::fence_time_max);
    static constinit std::atomic<Clock::rep> fenced{0};
    const PlayedSystem system(true);
    ProcessBarrier::exchange_call(+[](int command) noexcept {
        const auto begin = Clock::now();
        while (Clock::now() - begin <= std::chrono::nanoseconds(BiasedLock::fence_time_max)) {}
        fenced = Clock::now().time_since_epoch().count();
        return play(command);
    });
    for (bool in_time = false; !in_time;) {  // else something else ran until the pause was over
        BiasedLock lock;
        BOOST_TEST(read_many(lock));
        std::thread([&] { const std::lock_guard writer(lock); }).join();
        BOOST_TEST_REQUIRE(lock.fences() == 1U);
        const bool biased = read_many(lock);
        in_time = Clock::now() < Clock::time_point(Clock::duration(fenced)) + pause;
        if (in_time) BOOST_TEST(!biased);
        while (!read_many(lock)) {}
    }
}

BOOST_AUTO_TEST_CASE(where_the_barrier_is_refused_later_the_bias_ends_and_never_comes_again) {
    const PlayedSystem system(true);
    BiasedLock lock;
    BOOST_TEST(read_many(lock));
    ReaderSlot* const slot = lock.lock_shared();
    BOOST_TEST(slot != nullptr);
    allowed = false;
    std::atomic<bool> wrote{false};
    std::thread writer([&] {
        const std::lock_guard guard(lock);
        wrote = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    BOOST_TEST(!wrote);
    lock.unlock_shared(slot);
    writer.join();
    BOOST_TEST(wrote);
    BOOST_TEST(!ProcessBarrier::is_there());
    BOOST_TEST(!read_many(lock));
    BOOST_TEST(!lock.is_biased());
}

#endif

BOOST_AUTO_TEST_CASE(members_that_read_let_a_writer_in_without_a_barrier, *label("threads")) {
    BiasedLock lock;
    if (!BiasedLock::can_be_biased()) return;
    std::atomic<bool> over{false};
    std::atomic<std::uint64_t> reads{0};
    std::thread reader([&] {
        for (; !over.load(std::memory_order_relaxed); reads.store(reads.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed)) {
            ReaderSlot* const slot = lock.lock_shared();
            lock.unlock_shared(slot);
        }
    });
    // However busy the machine is, at some time the reader runs while a writer comes.
    std::uint64_t ended = 0;
    do {
        while (!lock.is_biased()) std::this_thread::yield();
        const std::lock_guard writer(lock);
        ++ended;
    } while (ended == lock.fences());
    over = true;
    reader.join();
    BOOST_TEST(reads > 0U);
}

BOOST_AUTO_TEST_SUITE_END()
