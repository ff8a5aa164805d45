/// Guarded heaps: each kind of error is found and named; and what is live, or leaked, in guarded and other heaps.

#include <boost/test/unit_test.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstring>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include <taiyen/base/report.hpp>
#include <taiyen/heap/detail/access.hpp>

#include "seed.hpp"
#include "threads.hpp"
#include "volatile/volatile_core.hpp"

BOOST_AUTO_TEST_SUITE(guarded_heap)

namespace {

using namespace taiyen;
using namespace taiyen::heap;
using taiyen::test::at_once;
using taiyen::test::require;

struct Told {
    errc code;
    const void* address;
    std::string text;
};
std::mutex told_mutex;
std::vector<Told> told;
void remember(const Incident& incident) noexcept {
    const std::lock_guard lock(told_mutex);
    told.push_back({incident.code, incident.address, std::string(incident.text)});
}
struct Listening {
    Listening() { told.clear(); }
    ~Listening() { set_report_handler(before); }
    ReportHandler before = set_report_handler(&remember);
};
bool says(const Told& one, const std::string& words) { return one.text.find(words) != std::string::npos; }
std::string hexadecimal(const void* address) {
    char text[32];
    std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(reinterpret_cast<std::uintptr_t>(address)));
    return text;
}

const VolatileOptions guarded{.capacity = 64_MiB, .guarded = true};

VolatileCore& core_of(VolatileHeap& heap) { return *static_cast<VolatileCore*>(heap.core()); }

/// The compiler must not know that the access is wrong.
void poke(volatile std::byte* address, std::byte value) { *address = value; }

BOOST_AUTO_TEST_CASE(a_write_behind_a_block_is_told_with_its_size_and_the_offset) {
    const Listening listening;
    VolatileHeap heap(guarded);
    for (const ByteCount bytes : {1U, 15U, 16U, 100U, 2048U, 3000U, 70'000U}) {
        for (const ByteCount distance : {0U, 1U, 15U}) {
            told.clear();
            auto* const block = static_cast<std::byte*>(heap.allocate(bytes));
            std::memset(block, 7, bytes);
            BOOST_TEST(heap.check_guards() == 0U);
            poke(block + bytes + distance, std::byte{1});
            heap.deallocate(block);
            BOOST_TEST_REQUIRE(told.size() == 1U);
            BOOST_TEST((told[0].code == errc::stray_write));
            BOOST_TEST(told[0].address == block + bytes + distance);
            BOOST_TEST(
                says(told[0], "behind the block of " + std::to_string(bytes) + (bytes == 1 ? " byte at " : " bytes at ") + hexadecimal(block)));
            BOOST_TEST(says(told[0], "at offset " + std::to_string(bytes + distance) + ","));
        }
    }
}

BOOST_AUTO_TEST_CASE(a_heap_with_a_name_is_called_by_it) {
    const Listening listening;
    {
        VolatileHeap heap({.name = "scratch of parser", .guarded = true, .report_leaks = true, .tell_memory_tools = false});
        auto* const block = static_cast<char*>(heap.allocate(40));
        volatile char* const behind = block + 40;
        *behind = 'x';
        BOOST_TEST(heap.check_guards() == 1U);
        BOOST_TEST_REQUIRE(told.size() == 1U);
        BOOST_TEST(says(told[0], "of the heap scratch of parser"));
        told.clear();
        BOOST_TEST(heap.path() == "scratch of parser");
    }
    BOOST_TEST(std::any_of(told.begin(), told.end(), [](const Told& one) { return says(one, "scratch of parser: a heap is closed with"); }));
    BOOST_TEST(VolatileHeap().path().empty());
}

BOOST_AUTO_TEST_CASE(a_write_before_a_block_is_told_once) {
    const Listening listening;
    VolatileHeap heap(guarded);
    auto* const block = static_cast<std::byte*>(heap.allocate(40, 64));
    poke(block - 3, std::byte{1});
    BOOST_TEST(heap.check_guards() == 1U);
    BOOST_TEST(heap.check_guards() == 0U);
    heap.deallocate(block);
    BOOST_TEST_REQUIRE(told.size() == 1U);
    BOOST_TEST((says(told[0], "before the block of 40 bytes") && says(told[0], "at offset -3,")));
}

BOOST_AUTO_TEST_CASE(a_write_into_a_freed_block_is_found_when_it_leaves_quarantine) {
    const Listening listening;
    VolatileOptions options = guarded;
    options.quarantine_bytes = 64_KiB;
    VolatileHeap heap(options);
    auto* const block = static_cast<std::byte*>(heap.allocate(200));
    heap.deallocate(block);
    BOOST_TEST(std::all_of(block, block + 200, [](std::byte byte) { return byte == BlockGuards::poison; }));
    poke(block + 77, std::byte{0});
    for (unsigned i = 0; i < 100; ++i) heap.deallocate(heap.allocate(4000));
    BOOST_TEST_REQUIRE(told.size() == 1U);
    BOOST_TEST((told[0].code == errc::stray_write && told[0].address == block + 77));
    BOOST_TEST((says(told[0], "into the freed block of 200 bytes") && says(told[0], "at offset 77,")));
}

BOOST_AUTO_TEST_CASE(a_write_into_a_freed_block_is_found_at_close) {
    const Listening listening;
    {
        VolatileHeap heap(guarded);
        auto* const block = static_cast<std::byte*>(heap.allocate(200));
        heap.deallocate(block);
        poke(block, std::byte{0});
    }
    BOOST_TEST_REQUIRE(told.size() == 1U);
    BOOST_TEST(says(told[0], "at offset 0,"));
}

BOOST_AUTO_TEST_CASE(freed_memory_is_not_handed_out_before_so_much_was_freed_behind_it) {
    VolatileOptions options = guarded;
    options.quarantine_bytes = 1_MiB;
    VolatileHeap heap(options);
    void* const block = heap.allocate(64);
    heap.deallocate(block);
    for (unsigned i = 0; i < 6'000; ++i) {
        void* const other = heap.allocate(64);
        BOOST_REQUIRE(other != block);
        heap.deallocate(other);
    }
    bool again = false;
    for (unsigned i = 0; i < 40'000 && !again; ++i) {
        void* const other = heap.allocate(64);
        again = other == block;
        heap.deallocate(other);
    }
    BOOST_TEST(again);
    BOOST_TEST(heap.stats().live_bytes < 2_MiB);
}

BOOST_AUTO_TEST_CASE(bad_frees_are_named_and_change_nothing) {
    const Listening listening;
    VolatileHeap heap(guarded);
    auto* const block = static_cast<std::byte*>(heap.allocate(100));
    heap.deallocate(block + 8);
    heap.deallocate(block - 16);
    BOOST_TEST_REQUIRE(told.size() == 2U);
    BOOST_TEST((told[0].code == errc::double_free && says(told[0], "points 8 bytes into the block of 100 bytes")));
    BOOST_TEST(says(told[1], "points 16 bytes before the block of 100 bytes"));
    BOOST_TEST(heap.usable_size(block) == 100U);
    heap.deallocate(block);
    heap.deallocate(block);
    BOOST_TEST_REQUIRE(told.size() == 3U);
    BOOST_TEST((told[2].code == errc::double_free && says(told[2], "a second time: the freed block of 100 bytes at " + hexadecimal(block))));
    int local = 0;
    heap.deallocate(&local);
    heap.deallocate(block + 1_MiB);
    BOOST_TEST_REQUIRE(told.size() == 5U);
    BOOST_TEST((told[3].code == errc::foreign_pointer && told[4].code == errc::double_free));
    BOOST_CHECK_THROW(heap.resize(block, 10), Error);
    BOOST_CHECK_THROW(heap.resize(&local, 10), Error);
    heap.deallocate(nullptr);
    BOOST_TEST(told.size() == 5U);
}

/// A place that reports should name.
[[gnu::noinline]] void* allocate_here(VolatileHeap& heap, ByteCount bytes) {
    void* const block = heap.allocate(bytes);
    asm volatile("");
    return block;
}

BOOST_AUTO_TEST_CASE(places_are_told_on_request) {
    const Listening listening;
    VolatileOptions options = guarded;
    options.record_places = true;
    VolatileHeap heap(options);
    auto* const block = static_cast<std::byte*>(allocate_here(heap, 24));
    const LiveBlocks live = heap.live_blocks();
    BOOST_TEST_REQUIRE(live.listed.size() == 1U);
    // Names need exported symbols; what is always there is the program's file with the offset in it.
    BOOST_TEST(std::count(live.listed[0].place.begin(), live.listed[0].place.end(), '<') >= 3);
    poke(block + 24, std::byte{1});
    heap.deallocate(block);
    heap.deallocate(block);
    BOOST_TEST_REQUIRE(told.size() == 2U);
    BOOST_TEST(says(told[0], "allocated at " + live.listed[0].place));
    BOOST_TEST((says(told[1], "allocated at " + live.listed[0].place) && says(told[1], "; freed at ")));
    // A thousand blocks of one place need one record of it.
    std::string place;
    for (unsigned i = 0; i < 1000; ++i) allocate_here(heap, 8);
    for (const LiveBlock& one : heap.live_blocks(1000).listed) {
        if (place.empty()) place = one.place;
        BOOST_REQUIRE(one.place == place);
    }
}

BOOST_AUTO_TEST_CASE(each_size_has_each_alignment_and_exactly_its_size) {
    const Listening listening;
    VolatileHeap heap(guarded);
    std::vector<void*> blocks;
    for (ByteCount alignment = 1; alignment <= 2_MiB; alignment *= 2)
        for (const ByteCount bytes : {1U, 16U, 100U, 2048U, 5000U}) {
            void* const block = heap.allocate(bytes, alignment);
            BOOST_REQUIRE(reinterpret_cast<std::uintptr_t>(block) % std::max<ByteCount>(alignment, 16) == 0);
            BOOST_REQUIRE(heap.usable_size(block) == bytes);
            std::memset(block, 1, bytes);
            blocks.push_back(block);
        }
    BOOST_CHECK_THROW(heap.allocate(16, 48), Error);
    BOOST_CHECK_THROW(heap.allocate(~std::size_t{0}), HeapFull);
    BOOST_TEST(heap.stats().live_blocks == blocks.size());
    for (void* const block : blocks) heap.deallocate(block);
    BOOST_TEST(told.empty());
    BOOST_TEST(heap.live_blocks().count == 0U);
    BOOST_TEST(heap.stats().live_bytes == 0U);  // although their memory waits in quarantine
}

BOOST_AUTO_TEST_CASE(a_resized_block_keeps_content_and_its_old_place_is_dead) {
    const Listening listening;
    VolatileHeap heap(guarded);
    auto* const block = static_cast<std::byte*>(heap.allocate(100));
    std::memset(block, 5, 100);
    auto* const larger = static_cast<std::byte*>(heap.resize(block, 101));
    BOOST_TEST(larger != block);
    BOOST_TEST(std::count(larger, larger + 100, std::byte{5}) == 100);
    auto* const smaller = static_cast<std::byte*>(heap.resize(larger, 3));
    BOOST_TEST((heap.usable_size(smaller) == 3U && smaller[2] == std::byte{5}));
    heap.deallocate(block);
    BOOST_TEST_REQUIRE(told.size() == 1U);
    BOOST_TEST((told[0].code == errc::double_free));
}

BOOST_AUTO_TEST_CASE(a_full_heap_gives_up_its_quarantine_first) {
    VolatileOptions options = guarded;
    options.capacity = 2_MiB;
    VolatileHeap heap(options);
    void* block = nullptr;
    for (unsigned i = 0; i < 1000; ++i) {
        block = heap.try_allocate(100'000);
        BOOST_REQUIRE(block != nullptr);
        heap.deallocate(block);
    }
    BOOST_CHECK_THROW(heap.allocate(4_MiB), HeapFull);
}

BOOST_AUTO_TEST_CASE(threads_use_a_guarded_heap_at_once, *boost::unit_test::label("threads")) {
    const Listening listening;
    VolatileOptions options = guarded;
    options.quarantine_bytes = 200_KiB;
    VolatileHeap heap(options);
    std::mutex mutex;
    std::vector<std::pair<std::byte*, ByteCount>> shared;
    const std::uint64_t seed = taiyen::test::seed_of_run();
    at_once(4, [&](unsigned number) {
        std::mt19937_64 random(seed + number);
        for (unsigned i = 0; i < 3'000; ++i) {
            const ByteCount bytes = 1 + random() % (random() % 16 == 0 ? 9'000 : 300);
            auto* const block = static_cast<std::byte*>(heap.allocate(bytes));
            std::memset(block, static_cast<int>(number), bytes);
            std::pair<std::byte*, ByteCount> other{};
            {
                const std::lock_guard lock(mutex);
                shared.emplace_back(block, bytes);
                if (shared.size() > 50) {
                    std::swap(shared[random() % shared.size()], shared.back());
                    other = shared.back();
                    shared.pop_back();
                }
            }
            if (other.first == nullptr) continue;
            require(std::all_of(other.first, other.first + other.second, [&](std::byte byte) { return byte == *other.first; }),
                    "a block's content was overwritten");
            heap.deallocate(other.first);
        }
    });
    for (const auto& [block, bytes] : shared) heap.deallocate(block);
    BOOST_TEST(heap.check_guards() == 0U);
    BOOST_TEST(heap.live_blocks().count == 0U);
    BOOST_TEST(told.empty());
    for (const Damage& damage : core_of(heap).check()) BOOST_ERROR(damage.what);
}

BOOST_AUTO_TEST_CASE(a_child_of_a_threaded_program_uses_a_guarded_heap) {
    VolatileHeap heap(guarded);
    std::atomic<bool> stop{false};
    std::thread other([&] {
        while (!stop) heap.deallocate(heap.allocate(50));
    });
    void* const before = heap.allocate(100);
    for (unsigned round = 0; round < 10; ++round) {
        const pid_t child = ::fork();
        BOOST_REQUIRE(child >= 0);
        if (child == 0) {
            heap.deallocate(before);
            for (unsigned i = 0; i < 100; ++i) heap.deallocate(heap.allocate(i * 30));
            ::_exit(heap.check_guards() == 0 ? 0 : 1);
        }
        int status = 0;
        BOOST_REQUIRE(::waitpid(child, &status, 0) == child);
        BOOST_REQUIRE((WIFEXITED(status) && WEXITSTATUS(status) == 0));
    }
    stop = true;
    other.join();
}

BOOST_AUTO_TEST_CASE(a_heap_that_shall_abort_on_damage_does_so_after_the_report) {
    for (const bool aborts : {false, true}) {
        int channel[2];
        BOOST_REQUIRE(::pipe(channel) == 0);
        const pid_t child = ::fork();
        BOOST_REQUIRE(child >= 0);
        if (child == 0) {
            std::signal(SIGABRT, SIG_DFL);
            ::dup2(channel[1], STDERR_FILENO);
            set_report_handler(nullptr);
            VolatileOptions options = guarded;
            options.abort_on_damage = aborts;
            VolatileHeap heap(options);
            auto* const block = static_cast<std::byte*>(heap.allocate(33));
            poke(block + 33, std::byte{1});
            heap.deallocate(block);
            ::_exit(0);
        }
        ::close(channel[1]);
        std::string text(4096, '\0');
        const ssize_t got = ::read(channel[0], text.data(), text.size());
        ::close(channel[0]);
        text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
        int status = 0;
        BOOST_REQUIRE(::waitpid(child, &status, 0) == child);
        BOOST_TEST((aborts ? WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT : WIFEXITED(status) && WEXITSTATUS(status) == 0));
        BOOST_TEST(text.find("taiyen: something wrote behind the block of 33 bytes") == 0U);
    }
}

BOOST_AUTO_TEST_CASE(blocks_that_ended_threads_leaked_are_told_at_close) {
    const Listening listening;
    for (const bool guards : {true, false}) {
        told.clear();
        const void* leaked = nullptr;
        {
            VolatileHeap heap({.capacity = 64_MiB, .guarded = guards, .record_places = guards, .report_leaks = true});
            std::vector<void*> handed;
            for (unsigned i = 0; i < 10; ++i)
                std::thread([&] {
                    for (unsigned j = 0; j < 100; ++j) handed.push_back(heap.allocate(48));
                    void* const mine = heap.allocate(160);
                    std::memcpy(mine, "lost and found", 15);
                    if (i == 7)
                        leaked = mine;
                    else
                        heap.deallocate(mine);
                }).join();
            for (void* const block : handed) heap.deallocate(block);  // remote frees that nobody collects
            const LiveBlocks live = heap.live_blocks();
            BOOST_TEST(live.count == 1U);
            BOOST_TEST(live.bytes == 160U);
            BOOST_TEST(live.by_size.at(160) == 1U);
            BOOST_TEST_REQUIRE(live.listed.size() == 1U);
            BOOST_TEST(live.listed[0].address == leaked);
            BOOST_TEST(std::memcmp(live.listed[0].beginning.data(), "lost and found", 15) == 0);
            BOOST_TEST(live.listed[0].place.empty() == !guards);
            BOOST_TEST(live.text().find("1 live blocks, 160 bytes: 1 of 160\n") == 0U);
            BOOST_TEST(told.empty());
        }
        BOOST_TEST_REQUIRE(told.size() == 2U);
        BOOST_TEST((told[0].code == errc::still_in_use && says(told[0], "1 live blocks of 160 bytes")));
        BOOST_TEST(told[1].address == leaked);
        BOOST_TEST(says(told[1], "160 bytes: 6c 6f 73 74"));
        BOOST_TEST(says(told[1], "allocated at ") == guards);
    }
    told.clear();
    { const VolatileHeap heap({.capacity = 64_MiB, .report_leaks = true}); }
    BOOST_TEST(told.empty());
}

BOOST_AUTO_TEST_CASE(live_blocks_are_counted_by_size_and_listed_up_to_a_limit) {
    VolatileHeap heap({.capacity = 64_MiB});
    for (unsigned i = 0; i < 300; ++i) heap.allocate(64);
    for (unsigned i = 0; i < 20; ++i) heap.allocate(10'000);
    const LiveBlocks live = heap.live_blocks(50);
    BOOST_TEST(live.count == 320U);
    BOOST_TEST(live.by_size.at(64) == 300U);
    BOOST_TEST(live.listed.size() == 50U);
    std::uint64_t blocks = 0;
    for (const auto& [size, count] : live.by_size) blocks += count;
    BOOST_TEST(blocks == live.count);
}

}  // namespace

BOOST_AUTO_TEST_SUITE_END()
