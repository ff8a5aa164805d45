#include "heap/scratch.hpp"

#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <functional>
#include <random>
#include <thread>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "heap/memory_core.hpp"
#include "threads.hpp"

using namespace taiyen;
using heap::test::MemoryCore;
using heap::test::Reports;
using taiyen::test::at_once;
using taiyen::test::require;

namespace {

std::uint64_t scratch_blocks() { return scratch_stats().live_blocks; }

/// What a child of this process ends with.
int child_ends_with(const std::function<int()>& action) {
    const pid_t child = fork();
    BOOST_REQUIRE(child >= 0);
    if (child == 0) _exit(action());
    int status = 0;
    BOOST_REQUIRE(waitpid(child, &status, 0) == child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(scratch)

BOOST_AUTO_TEST_CASE(it_lies_in_no_heap_and_needs_none) {
    void* const block = heap::allocate_scratch(100, 64);
    BOOST_TEST(reinterpret_cast<std::uintptr_t>(block) % 64 == 0U);
    BOOST_TEST(heap::in_scratch(block));
    BOOST_TEST(heap::is_scratch_block_start(block));
    BOOST_TEST(!heap::is_scratch_block_start(static_cast<std::byte*>(block) + 16));
    BOOST_TEST(heap::core_at(block) == nullptr);
    const auto [first, last] = heap::scratch_used();
    BOOST_TEST((reinterpret_cast<std::uintptr_t>(block) >= first && reinterpret_cast<std::uintptr_t>(block) + 100 <= last));
    std::size_t open = 0;
    heap::visit_open_cores([&](const heap::HeapCore&) { return ++open != 0; });
    BOOST_TEST(open == 0U);
    const auto live = scratch_blocks();
    heap::deallocate(block);
    BOOST_TEST(!heap::is_scratch_block_start(block));
    BOOST_TEST(scratch_blocks() == live - 1);
    int local = 0;
    BOOST_TEST(!heap::in_scratch(&local));
    BOOST_TEST(!heap::in_scratch(nullptr));
}

BOOST_AUTO_TEST_CASE(it_outlives_every_heap) {
    std::uint64_t* block = nullptr;
    {
        MemoryCore core;
        block = static_cast<std::uint64_t*>(heap::allocate_scratch(1000, 16));
        *block = 7;
    }
    BOOST_TEST(*block == 7U);
    heap::deallocate(block);
}

BOOST_AUTO_TEST_CASE(a_bad_free_in_it_is_reported_and_changes_nothing) {
    const Reports reports;
    auto* const block = static_cast<std::byte*>(heap::allocate_scratch(100, 16));
    const auto live = scratch_blocks();
    heap::deallocate(block + 16);
    BOOST_REQUIRE(Reports::entries().size() == 1U);
    BOOST_TEST((Reports::entries()[0].code == errc::double_free));
    BOOST_TEST(scratch_blocks() == live);
    heap::deallocate(block);
    heap::deallocate(block);
    BOOST_TEST(Reports::entries().size() == 2U);
}

BOOST_AUTO_TEST_CASE(impossible_requests_are_refused) {
    BOOST_CHECK_THROW(heap::allocate_scratch(std::size_t{1} << 50U, 16), HeapFull);
    BOOST_CHECK_EXCEPTION(heap::allocate_scratch(100, 48), Error, [](const Error& error) { return error.code() == errc::invalid_argument; });
}

BOOST_AUTO_TEST_CASE(a_forked_child_goes_on_with_a_copy_of_it) {
    auto* const block = static_cast<unsigned*>(heap::allocate_scratch(1000, 16));
    *block = 5;
    const int ended = child_ends_with([&] {
        if (*block != 5) return 1;
        *block = 6;
        auto* const own = static_cast<unsigned*>(heap::allocate_scratch(5000, 16));
        *own = 1;
        heap::deallocate(block);
        heap::deallocate(own);
        return 0;
    });
    BOOST_TEST(ended == 0);
    BOOST_TEST(*block == 5U);
    heap::deallocate(block);
}

#if !defined(__SANITIZE_THREAD__)  // its operator new hangs in a child that was forked while a thread was in it (GCC 12)
BOOST_AUTO_TEST_CASE(children_of_a_process_with_many_threads_allocate, *boost::unit_test::label("threads")) {
    std::atomic<bool> done{false};
    std::vector<std::thread> busy;
    for (int i = 0; i < 3; ++i)
        busy.emplace_back([&] {
            while (!done) heap::deallocate(heap::allocate_scratch(48 + 5000 * static_cast<std::size_t>(rand() % 2), 16));
        });
    for (int round = 0; round < 30; ++round) {
        const int ended = child_ends_with([] {
            for (std::size_t bytes : {40U, 3000U, 100000U}) heap::deallocate(heap::allocate_scratch(bytes, 16));
            return 0;
        });
        BOOST_TEST(ended == 0);
    }
    done = true;
    for (std::thread& thread : busy) thread.join();
}

/// Whether a child that is forked while three threads use scratch memory for the first time can use it.
bool child_of_a_beginning_allocates() {
    std::atomic<bool> go{false};
    std::vector<std::thread> beginners;
    for (int i = 0; i < 3; ++i)
        beginners.emplace_back([&] {
            while (!go) {}
            heap::deallocate(heap::allocate_scratch(48, 16));
        });
    go = true;
    const int ended = child_ends_with([] {
        alarm(20);  // instead of waiting for ever
        heap::deallocate(heap::allocate_scratch(48, 16));
        return 0;
    });
    for (std::thread& thread : beginners) thread.join();
    return ended == 0;
}

BOOST_AUTO_TEST_CASE(children_forked_while_it_is_used_for_the_first_time_allocate, *boost::unit_test::label("threads")) {
    for (int round = 0; round < 100; ++round) BOOST_TEST(child_ends_with([] { return child_of_a_beginning_allocates() ? 0 : 1; }) == 0);
}
#endif

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
BOOST_AUTO_TEST_CASE(a_process_that_may_have_little_address_space_gets_less_of_it) {
    // A child that has never used it, with room for what it has and 3 GiB more.
    const int ended = child_ends_with([] {
        if (const auto [first, last] = heap::scratch_used(); first != last) return 0;  // the other cases came first
        std::size_t pages = 0;
        if (FILE* const statm = fopen("/proc/self/statm", "r"); statm == nullptr || fscanf(statm, "%zu", &pages) != 1) return 1;
        const rlim_t bytes = pages * 4096 + (rlim_t{3} << 30U);
        const rlimit limit{bytes, bytes};
        if (setrlimit(RLIMIT_AS, &limit) != 0) return 2;
        heap::deallocate(heap::allocate_scratch(1U << 20U, 16));
        return 0;
    });
    BOOST_TEST(ended == 0);
}
#endif

namespace {

/// Uses scratch memory when its thread's own data is destroyed, behind everything else.
void use_late(void* block) {
    heap::deallocate(block);
    heap::deallocate(heap::allocate_scratch(200, 16));
}

}  // namespace

BOOST_AUTO_TEST_CASE(threads_may_use_it_until_their_very_end, *boost::unit_test::label("threads")) {
    const Reports reports;
    const auto live = scratch_blocks();
    pthread_key_t key{};
    BOOST_REQUIRE(pthread_key_create(&key, use_late) == 0);
    for (int round = 0; round < 20; ++round) std::thread([&] { pthread_setspecific(key, heap::allocate_scratch(100, 16)); }).join();
    pthread_key_delete(key);
    BOOST_TEST(scratch_blocks() == live);
    BOOST_TEST(Reports::entries().empty());
    BOOST_TEST(scratch_stats().threads + scratch_stats().idle_threads < 20U);  // records are used again
}

BOOST_AUTO_TEST_CASE(threads_share_it, *boost::unit_test::label("threads")) {
    const auto live = scratch_blocks();
    at_once(4, [&](unsigned seed) {
        std::vector<unsigned*> blocks;
        for (unsigned i = 0; i < 3000; ++i) {
            auto* const block = static_cast<unsigned*>(heap::allocate_scratch(16 + (i * (seed + 1)) % 500, 16));
            *block = seed;
            blocks.push_back(block);
            if (i % 3 == 0) {
                heap::deallocate(blocks.front());
                blocks.erase(blocks.begin());
            }
        }
        for (unsigned* block : blocks) {
            require(*block == seed, "nobody else got the block");
            heap::deallocate(block);
        }
    });
    BOOST_TEST(scratch_blocks() == live);
}

BOOST_AUTO_TEST_CASE(a_thread_frees_the_block_of_another, *boost::unit_test::label("threads")) {
    const Reports reports;
    const auto live = scratch_blocks();
    // Places that blocks are handed over at: who takes one out checks its content and frees it.
    std::array<std::atomic<std::uint64_t*>, 64> places{};
    const auto give_up = [](std::uint64_t* block, std::size_t place) {
        if (block == nullptr) return;
        require(block[0] == place && block[5] == ~place, "what another thread wrote is there");
        heap::deallocate(block);
    };
    at_once(4, [&](unsigned seed) {
        std::mt19937 random(seed);
        for (int i = 0; i < 4000; ++i) {
            const std::size_t place = random() % places.size();
            auto* const block = static_cast<std::uint64_t*>(heap::allocate_scratch(48 + random() % 3000, 16));
            block[0] = place;
            block[5] = ~place;
            give_up(places[place].exchange(block, std::memory_order_acq_rel), place);
        }
    });
    for (std::size_t place = 0; place < places.size(); ++place) give_up(places[place].load(), place);
    BOOST_TEST(Reports::entries().empty());
    BOOST_TEST(scratch_blocks() <= live + 4000U);  // what waits in the boxes of threads that have ended
}

BOOST_AUTO_TEST_CASE(of_two_frees_of_one_block_one_is_reported, *boost::unit_test::label("threads")) {
    static std::atomic<unsigned> reported;
    reported = 0;
    const ReportHandler before =
        set_report_handler([](const Incident& incident) noexcept { reported += incident.code == errc::double_free ? 1U : 0U; });
    std::vector<void*> blocks(500);
    for (void*& block : blocks) block = heap::allocate_scratch(64, 16);
    at_once(3, [&](unsigned) {
        for (void* block : blocks) heap::deallocate(block);
    });
    set_report_handler(before);
    BOOST_TEST(reported == 2 * blocks.size());
}

BOOST_AUTO_TEST_SUITE_END()
