/// The figures of volatile heaps against layouts built by hand, and decay by a clock of the test's own.

#include <boost/test/unit_test.hpp>

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "volatile/volatile_core.hpp"

BOOST_AUTO_TEST_SUITE(volatile_stats)

namespace {

using namespace taiyen;
using namespace taiyen::heap;

VolatileCore& core_of(VolatileHeap& heap) { return *static_cast<VolatileCore*>(heap.core()); }

std::atomic<std::int64_t> milliseconds{0};
std::chrono::steady_clock::time_point fake_now() noexcept {
    return std::chrono::steady_clock::time_point(std::chrono::milliseconds(milliseconds.load()));
}

/// A heap without any free granule: large blocks, then what lies between them.
struct Full {
    explicit Full(ByteCount capacity) : heap({.capacity = capacity, .pages = PageSize::base}) {
        for (ByteCount bytes = 64_KiB; bytes >= 2_KiB + 16; bytes = bytes > 4_KiB ? bytes / 2 : bytes == 4_KiB ? 2_KiB + 16 : 0)
            while (void* const block = heap.try_allocate(bytes))
                if (bytes == 64_KiB) large.push_back(static_cast<std::byte*>(block));
        for (const ByteCount bytes : {2048U, 512U, 128U, 16U})
            while (heap.try_allocate(bytes) != nullptr) {}
        std::sort(large.begin(), large.end());
    }
    VolatileHeap heap;
    std::vector<std::byte*> large;
};

BOOST_AUTO_TEST_CASE(a_full_heap_has_nothing_free) {
    Full full(4_MiB);
    BOOST_TEST(full.large.size() > 40U);
    const VolatileStats stats = full.heap.stats();
    BOOST_TEST(stats.free_bytes == 0U);
    for (std::size_t i = 0; i < VolatileStats::sizes.size(); ++i) BOOST_TEST(stats.availability(i) == 1.0);
    BOOST_TEST(stats.live_bytes > 3'900'000U);
    BOOST_TEST(stats.extent_bytes == 4_MiB);
    BOOST_TEST(stats.capacity_bytes == 4_MiB);
}

BOOST_AUTO_TEST_CASE(availability_is_what_the_pieces_hold_of_what_one_piece_would) {
    Full full(4_MiB);
    const VolatileStats before = full.heap.stats();
    // Three pieces of 64 KiB, none beside another.
    std::vector<std::byte*> freed;
    for (std::byte* const block : full.large) {
        if (freed.size() == 3) break;
        if (!freed.empty() && block - freed.back() < 2 * static_cast<std::ptrdiff_t>(64_KiB)) continue;
        freed.push_back(block);
    }
    BOOST_TEST_REQUIRE(freed.size() == 3U);
    for (std::byte* const block : freed) full.heap.deallocate(block);
    const VolatileStats stats = full.heap.stats();
    BOOST_TEST(stats.free_bytes == 3 * 64_KiB);
    BOOST_TEST(before.live_bytes - stats.live_bytes == 3 * 64_KiB);
    BOOST_TEST(before.live_blocks - stats.live_blocks == 3U);
    BOOST_TEST(stats.largest_free_bytes == 64_KiB);
    for (std::size_t i = 0; i < stats.free_pieces.size(); ++i) BOOST_TEST(stats.free_pieces[i] == (i == 12 ? 3U : 0U));  // 2^12 granules
    for (std::size_t i = 0; i < VolatileStats::sizes.size(); ++i) {
        const std::size_t size = VolatileStats::sizes[i];
        const std::uint64_t fitting = 3 * (64_KiB / size);
        const std::uint64_t whole = 3 * 64_KiB / size;
        BOOST_TEST(stats.fitting[i] == fitting);
        BOOST_TEST(stats.availability(i) == (whole == 0 ? 1.0 : static_cast<double>(fitting) / static_cast<double>(whole)));
    }
    BOOST_TEST(stats.availability(7) == 1.0);  // a MiB would not fit into one piece either
    // 48 bytes: 65,536 leave 16 over in each piece; in one piece there would be room for one more.
    BOOST_TEST(stats.fitting[1] == 3U * 1365U);
    BOOST_TEST(stats.availability(1) < 1.0);
}

BOOST_AUTO_TEST_CASE(neighbours_that_are_free_are_one_piece) {
    Full full(4_MiB);
    std::size_t at = 0;
    while (full.large[at + 1] - full.large[at] != static_cast<std::ptrdiff_t>(64_KiB)) ++at;
    full.heap.deallocate(full.large[at]);
    full.heap.deallocate(full.large[at + 1]);
    const VolatileStats stats = full.heap.stats();
    BOOST_TEST(stats.free_pieces[13] == 1U);
    BOOST_TEST(stats.free_pieces[12] == 0U);
    BOOST_TEST(stats.fitting[6] == 2U);
    BOOST_TEST(stats.largest_free_bytes == 128_KiB);
}

BOOST_AUTO_TEST_CASE(scattered_small_holes_hold_no_larger_block) {
    VolatileHeap heap({.capacity = 64_MiB});
    std::vector<void*> blocks;
    for (unsigned i = 0; i < 64'000; ++i) blocks.push_back(heap.allocate(64));
    const VolatileStats before = heap.stats();
    for (std::size_t i = 0; i < blocks.size(); i += 2) heap.deallocate(blocks[i]);
    const VolatileStats stats = heap.stats();
    BOOST_TEST(stats.free_bytes - before.free_bytes == 32'000U * 64);
    BOOST_TEST(stats.fitting[1] - before.fitting[1] >= 31'990U);          // of 48 bytes, one in each
    BOOST_TEST(stats.fitting[2] - before.fitting[2] <= 10U);              // of 256: none
    BOOST_TEST(stats.free_pieces[2] - before.free_pieces[2] >= 31'990U);  // 4 granules
    BOOST_TEST(stats.availability(2) < before.availability(2));
}

BOOST_AUTO_TEST_CASE(dirty_is_what_was_touched) {
    VolatileHeap heap({.capacity = 256_MiB, .pages = PageSize::base});
    const std::size_t before = heap.stats().dirty_bytes;
    auto* const block = static_cast<std::byte*>(heap.allocate(32_MiB));
    const std::size_t allocated = heap.stats().dirty_bytes;
    BOOST_TEST(allocated - before < 2_MiB);
    // One byte in every other page: where the system gives huge pages unasked, more is resident.
    for (ByteCount at = 0; at < 32_MiB; at += 8_KiB) block[at] = std::byte{1};
    const VolatileStats touched = heap.stats();
    BOOST_TEST(touched.dirty_bytes - allocated >= 16_MiB);
    if (touched.huge_bytes == 0) BOOST_TEST(touched.dirty_bytes - allocated == 16_MiB);
    BOOST_TEST(touched.page_efficiency() == static_cast<double>(touched.live_bytes) / static_cast<double>(touched.dirty_bytes));
    BOOST_TEST(touched.live_bytes == 32_MiB);
    BOOST_TEST(touched.reserved_bytes >= 256_MiB);
    BOOST_TEST(touched.metadata_bytes < 4_MiB);
    heap.deallocate(block);
    heap.trim();
    BOOST_TEST(heap.stats().dirty_bytes <= allocated + 64_KiB);
}

BOOST_AUTO_TEST_CASE(moved_blocks_show_as_mappings) {
    VolatileHeap heap({.capacity = 256_MiB});
    void* const block = heap.allocate(1_MiB);
    heap.allocate(16);
    std::memset(block, 1, 1_MiB);
    const std::size_t before = heap.stats().mappings;
    static_cast<void>(heap.resize(block, 9_MiB));
    BOOST_TEST(core_of(heap).moved_pieces() == 1U);
    const std::size_t after = heap.stats().mappings;
    BOOST_TEST((before < after && after <= before + 3));
}

BOOST_AUTO_TEST_CASE(huge_bytes_are_what_the_system_gave) {
    std::ifstream file("/sys/kernel/mm/transparent_hugepage/enabled");
    std::string setting;
    std::getline(file, setting);
    VolatileHeap heap({.capacity = 256_MiB, .pages = PageSize::huge});
    for (unsigned i = 0; i < 100'000; ++i) std::memset(heap.allocate(200), 1, 200);
    const VolatileStats stats = heap.stats();
    BOOST_TEST(stats.huge_bytes % 2_MiB == 0U);
    BOOST_TEST(stats.huge_bytes <= stats.dirty_bytes);
    if (setting.empty() || setting.find("[never]") != std::string::npos) BOOST_TEST(stats.huge_bytes == 0U);
    BOOST_TEST_MESSAGE("huge pages: " << setting << ", " << stats.huge_bytes << " of " << stats.dirty_bytes << " bytes");
}

BOOST_AUTO_TEST_CASE(threads_that_hold_segments_and_records_of_ended_ones_are_counted) {
    VolatileHeap heap({.capacity = 64_MiB});
    BOOST_TEST(heap.stats().threads == 0U);
    static_cast<void>(heap.allocate(10));
    std::thread([&] { static_cast<void>(heap.allocate(10)); }).join();
    const VolatileStats stats = heap.stats();
    BOOST_TEST(stats.threads == 1U);
    BOOST_TEST(stats.idle_threads == 1U);
}

BOOST_AUTO_TEST_CASE(freed_pages_decay_with_time_and_at_once_when_they_are_many) {
    milliseconds = 0;
    VolatileHeap heap({.capacity = 1_GiB});
    core_of(heap).set_clock(&fake_now);
    std::vector<std::byte*> blocks;
    while (heap.stats().extent_bytes < 128_MiB) {
        blocks.push_back(static_cast<std::byte*>(heap.allocate(1_MiB)));
        std::memset(blocks.back(), 1, 1_MiB);
    }
    const auto free_some = [&](ByteCount bytes) {
        for (; bytes != 0; bytes -= 1_MiB) {
            heap.deallocate(blocks.back());
            blocks.pop_back();
        }
        return heap.stats().dirty_bytes;
    };
    const std::size_t all = heap.stats().dirty_bytes;
    BOOST_TEST(free_some(24_MiB) + 1_MiB >= all);  // a lot, but just now
    milliseconds = 999;
    BOOST_TEST(free_some(6_MiB) + 1_MiB >= all);
    milliseconds = 1000;
    const std::size_t later = free_some(16_MiB);
    BOOST_TEST(later + 15_MiB <= all);
    BOOST_TEST(later + 46_MiB >= all);  // half of it stays for a while
    // More than half of what is in use: no clock is asked.
    free_some(32_MiB);
    const VolatileStats stats = heap.stats();
    BOOST_TEST(stats.dirty_bytes <= stats.live_bytes + stats.live_bytes / 2 + 12_MiB);
}

BOOST_AUTO_TEST_CASE(freed_memory_that_is_used_again_stays) {
    milliseconds = 0;
    VolatileHeap heap({.capacity = 1_GiB});
    core_of(heap).set_clock(&fake_now);
    std::vector<std::byte*> blocks(64);
    const auto renew = [&](std::byte*& block) {
        if (block != nullptr) heap.deallocate(block);
        block = static_cast<std::byte*>(heap.allocate(1_MiB));
        std::memset(block, 1, 1_MiB);
    };
    for (std::byte*& block : blocks) renew(block);
    const std::size_t before = heap.stats().dirty_bytes;
    const auto faults = [] {
        rusage usage{};
        ::getrusage(RUSAGE_SELF, &usage);
        return usage.ru_minflt;
    };
    const long start = faults();
    for (unsigned i = 0; i < 400; ++i) renew(blocks[i * 7 % blocks.size()]);
    BOOST_TEST(faults() - start < 10'000);  // of 102,400 pages
    BOOST_TEST(heap.stats().dirty_bytes <= before + 2_MiB);
}

BOOST_AUTO_TEST_CASE(memory_from_a_node_works_or_is_refused_at_opening) {
    VolatileHeap heap({.capacity = 64_MiB, .numa_node = 0});  // there always is one, or mbind does nothing
    auto* const block = static_cast<std::byte*>(heap.allocate(4_MiB));
    std::memset(block, 1, 4_MiB);
    heap.allocate(16);
    auto* const moved = static_cast<std::byte*>(heap.resize(block, 9_MiB));
    BOOST_TEST((moved[4_MiB - 1] == std::byte{1}));
    BOOST_CHECK_THROW(VolatileHeap({.numa_node = 1023}), Error);
}

}  // namespace

BOOST_AUTO_TEST_SUITE_END()
