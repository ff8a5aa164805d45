/// What the block engine promises, one promise per case.

#include "heap/engine.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "heap/engine_layout.hpp"
#include "heap/survey.hpp"
#include "test_span.hpp"

BOOST_AUTO_TEST_SUITE(engine)

namespace {

using namespace taiyen;
using namespace taiyen::heap;
using namespace taiyen::heap::test;
using namespace taiyen::literals;

/// A formatted span with its engine.
struct Heap {
    explicit Heap(ByteCount capacity_bytes, WriteObserver* observer = nullptr) : capacity(capacity_bytes), memory(capacity_bytes) {
        Engine::format(memory.base(), capacity, host, observer);
        engine.emplace(memory.base(), capacity, host, observer);
    }
    void reopen() {
        engine.reset();
        engine.emplace(memory.base(), capacity, host);
    }
    std::byte* base() const { return memory.base(); }
    std::vector<std::byte> copy() const { return {base(), base() + host.extent}; }

    ByteCount capacity;
    SpanMemory memory;
    TestHost host;
    std::optional<Engine> engine;
};

std::uintptr_t address(const void* block) { return reinterpret_cast<std::uintptr_t>(block); }

/// Blocks of that size until HeapFull.
std::vector<void*> fill(Engine& engine, ByteCount bytes) {
    std::vector<void*> blocks;
    try {
        for (;;) blocks.push_back(engine.allocate(bytes));
    } catch (const HeapFull& full) {
        BOOST_TEST(full.wanted() >= bytes);
        BOOST_TEST(full.largest_free() < full.wanted());
    }
    return blocks;
}

}  // namespace

// Space.

BOOST_AUTO_TEST_CASE(an_empty_heap_in_a_large_capacity_is_a_small_file) {
    for (const ByteCount capacity : {256_KiB, 64_GiB, 1_TiB}) {
        Heap heap(capacity);
        BOOST_TEST(heap.engine->extent() <= 16_KiB);
        BOOST_TEST(heap.engine->extent() == heap.host.extent);
        heap.engine->allocate(100);
        BOOST_TEST(heap.engine->extent() <= 128_KiB);
        BOOST_TEST(damage_text(*heap.engine) == "");
    }
}

BOOST_AUTO_TEST_CASE(the_smallest_heap_gives_nine_tenths_of_its_capacity_to_small_blocks) {
    for (const ByteCount bytes : {16U, 64U, 128U, 256U, 512U, 1024U, 2048U, 4096U}) {
        Heap heap(256_KiB);
        const auto blocks = fill(*heap.engine, bytes);
        BOOST_TEST(blocks.size() * bytes * 10 >= 256_KiB * 9);
        BOOST_TEST(damage_text(*heap.engine) == "");
    }
}

BOOST_AUTO_TEST_CASE(eight_mebibytes_give_three_quarters_to_blocks_of_100000_bytes) {
    Heap heap(8_MiB);
    const auto blocks = fill(*heap.engine, 100'000);
    BOOST_TEST(blocks.size() * 100'000 * 4 > 8_MiB * 3);
    BOOST_TEST_MESSAGE(blocks.size() * 100'000 * 100 / 8_MiB << " % of 8 MiB");
}

BOOST_AUTO_TEST_CASE(all_of_a_full_heap_can_be_had_again_in_another_size) {
    Heap heap(4_MiB);
    std::size_t first = 0;
    for (const ByteCount bytes : {48U, 100'000U, 16U, 2000U, 8000U, 48U}) {
        const auto blocks = fill(*heap.engine, bytes);
        if (bytes == 48) BOOST_TEST(blocks.size() >= first * 99 / 100);
        if (first == 0) first = blocks.size();
        BOOST_TEST(blocks.size() * bytes * 10 > 4_MiB * 7);
        for (void* block : blocks) BOOST_REQUIRE((heap.engine->deallocate(block) == FreeResult::freed));
        BOOST_TEST(damage_text(*heap.engine) == "");
    }
}

BOOST_AUTO_TEST_CASE(many_blocks_of_48_bytes_are_packed) {
    Heap heap(64_MiB);
    constexpr std::size_t count = 200'000;
    for (std::size_t i = 0; i < count; ++i) heap.engine->allocate(48);
    const EngineStats stats = heap.engine->stats();
    const ByteCount used = stats.extent_bytes - stats.free_bytes;
    BOOST_TEST(used < count * 48 * 104 / 100);
}

BOOST_AUTO_TEST_CASE(the_rest_of_a_runs_last_page_serves_small_blocks) {
    Heap heap(1_MiB);
    void* run = heap.engine->allocate(5000);
    void* small = heap.engine->allocate(3000);          // fits nowhere but in a fresh page or behind the run
    BOOST_TEST(address(small) == address(run) + 5056);  // 5000 bytes are 313 granules; the line rule asks for the next line
    BOOST_TEST((heap.engine->deallocate(run) == FreeResult::freed));
    BOOST_TEST(heap.engine->usable_size(small) >= 3000U);
    BOOST_TEST(damage_text(*heap.engine) == "");
}

BOOST_AUTO_TEST_CASE(a_run_takes_a_freed_ones_place_though_others_use_its_last_page) {
    for (const ByteCount bytes : {5000U, 10'000U, 100'000U}) {
        Heap heap(4_MiB);
        Engine& engine = *heap.engine;
        void* const first = engine.allocate(bytes);
        auto* const guest = static_cast<std::byte*>(engine.allocate(16));
        engine.allocate(bytes);
        BOOST_REQUIRE(guest < static_cast<std::byte*>(first) + round_up(bytes, page_bytes));
        std::memset(guest, 0x77, 16);
        BOOST_TEST((engine.deallocate(first) == FreeResult::freed));
        BOOST_TEST(engine.allocate(bytes - 100) == first);
        BOOST_TEST((engine.deallocate(first) == FreeResult::freed));
        void* const larger = engine.allocate(bytes + 1000);  // would overlap the guest
        BOOST_TEST(larger != first);
        BOOST_TEST(engine.allocate(bytes) == first);
        BOOST_TEST(std::all_of(guest, guest + 16, [](std::byte byte) { return byte == std::byte{0x77}; }));
        BOOST_TEST(engine.usable_size(guest) == 16U);
        BOOST_TEST(damage_text(engine) == "");
        // A stale hint: the guest's page was given to another run in the meantime.
        BOOST_TEST((engine.deallocate(first) == FreeResult::freed));
        BOOST_TEST((engine.deallocate(guest) == FreeResult::freed));
        engine.release_free_pages(4096);
        void* const whole = engine.allocate(round_up(bytes, page_bytes) + page_bytes);
        engine.allocate(bytes);
        BOOST_TEST(damage_text(engine) == "");
        BOOST_TEST((engine.deallocate(whole) == FreeResult::freed));
    }
}

BOOST_AUTO_TEST_CASE(heap_full_tells_the_largest_block_that_fits) {
    Heap heap(1_MiB);
    heap.engine->allocate(200'000);
    ByteCount largest = 0;
    try {
        heap.engine->allocate(900'000);
        BOOST_ERROR("900,000 bytes fit into a mebibyte beside 200,000");
    } catch (const HeapFull& full) {
        BOOST_TEST(full.wanted() == 900'000U);
        BOOST_TEST((full.cause() == HeapFull::Cause::capacity));
        largest = full.largest_free();
    }
    BOOST_TEST(largest == heap.engine->stats().largest_free_bytes);
    BOOST_TEST(largest > 400'000U);
    BOOST_CHECK_THROW(heap.engine->allocate(largest + 1), HeapFull);
    BOOST_TEST(heap.engine->usable_size(heap.engine->allocate(largest)) >= largest);
}

BOOST_AUTO_TEST_CASE(a_search_that_was_promised_too_much_leaves_the_truth) {
    // Nothing but holes of one page: what an earlier, longer run has left in the summaries must neither hide the end of the heap nor outlive the search.
    for (const ByteCount capacity : {1_MiB, 16_MiB}) {
        Heap heap(capacity);
        const auto pages = fill(*heap.engine, 4096);
        for (void* page : pages) heap.engine->deallocate(page);
        const auto again = fill(*heap.engine, 4096);
        BOOST_TEST(again.size() == pages.size());
        for (std::size_t i = 0; i < again.size(); i += 2) heap.engine->deallocate(again[i]);
        BOOST_TEST(heap.engine->stats().largest_free_bytes == 4096U);
        BOOST_CHECK_EXCEPTION(heap.engine->allocate(8192), HeapFull, [](const HeapFull& full) { return full.largest_free() == 4096; });
        const auto& super = *reinterpret_cast<const layout::SuperBlock*>(heap.base());
        for (const layout::Summary& region : super.regions) BOOST_TEST(region.longest <= 1U);
        BOOST_TEST(damage_text(*heap.engine) == "");
        BOOST_TEST(fill(*heap.engine, 4096).size() == (again.size() + 1) / 2);
    }
}

BOOST_AUTO_TEST_CASE(requests_beyond_any_capacity_are_heap_full_and_bad_alignments_are_errors) {
    Heap heap(1_MiB);
    for (const ByteCount bytes : {1_MiB, 2_MiB, ~ByteCount{0}, ~ByteCount{0} - 14, ByteCount{1} << 63U}) {
        BOOST_CHECK_THROW(heap.engine->allocate(bytes), HeapFull);
        BOOST_CHECK_THROW(heap.engine->allocate(bytes, 4096), HeapFull);
        void* block = heap.engine->allocate(10);
        BOOST_CHECK_THROW(heap.engine->resize(block, bytes), HeapFull);
        BOOST_TEST(heap.engine->usable_size(block) == 16U);
    }
    for (const ByteCount alignment : {ByteCount{24}, ByteCount{100}, 4_MiB, ~ByteCount{0}})
        BOOST_CHECK_THROW(heap.engine->allocate(100, alignment), Error);
    BOOST_TEST(damage_text(*heap.engine) == "");
}

BOOST_AUTO_TEST_CASE(a_refused_growth_leaves_everything_as_it_was) {
    Heap heap(8_MiB);
    heap.engine->allocate(1000);
    heap.host.limit = heap.host.extent;
    const auto small = fill(*heap.engine, 500);
    BOOST_TEST(small.size() > 50U);
    const auto before = heap.copy();
    for (const ByteCount bytes : {500U, 5000U, 100'000U}) {
        try {
            heap.engine->allocate(bytes);
            BOOST_ERROR("the host refused, yet a block came");
        } catch (const HeapFull& full) {
            BOOST_TEST((full.cause() == HeapFull::Cause::disk));
        }
    }
    BOOST_TEST((heap.copy() == before));
    heap.host.limit += 8_KiB;  // too little for a step, enough for the block
    BOOST_TEST(heap.engine->allocate(5000) != nullptr);
    BOOST_TEST(heap.engine->extent() == heap.host.limit);
    BOOST_TEST(damage_text(*heap.engine) == "");
}

BOOST_AUTO_TEST_CASE(growth_takes_few_steps_and_little_too_much) {
    Heap heap(1_GiB);
    const auto big = heap.engine->allocate(300_MiB);
    BOOST_TEST(heap.engine->usable_size(big) >= 300_MiB);
    BOOST_TEST(heap.host.extensions <= 3U);
    Heap gradual(1_GiB);
    for (unsigned i = 0; i < 64; ++i) gradual.engine->allocate(1_MiB);
    BOOST_TEST(gradual.host.extensions < 64U);
    BOOST_TEST(gradual.engine->extent() < 64_MiB * 5 / 4);
}

// Alignment.

BOOST_AUTO_TEST_CASE(alignments_are_kept_up_to_two_mebibytes) {
    Heap heap(64_MiB);
    for (ByteCount alignment = 16; alignment <= Engine::alignment_max; alignment *= 2)
        for (const ByteCount bytes : {1U, 40U, 64U, 200U, 1500U, 4000U, 5000U, 70'000U})
            BOOST_TEST(address(heap.engine->allocate(bytes, alignment)) % alignment == 0U);
    BOOST_TEST(damage_text(*heap.engine) == "");
}

BOOST_AUTO_TEST_CASE(a_block_touches_no_more_cache_lines_than_its_size_needs) {
    Heap heap(16_MiB);
    std::mt19937_64 random(taiyen::test::seed_of_run());
    std::vector<void*> blocks;
    for (unsigned i = 0; i < 20'000; ++i) {
        const ByteCount bytes = 1 + random() % 600;
        if (bytes > 32 && bytes <= 48) continue;  // packed when many of them would leave a quarter of each line
        void* block = heap.engine->allocate(bytes);
        blocks.push_back(block);
        const ByteCount usable = heap.engine->usable_size(block);
        const auto lines = (address(block) + usable - 1) / 64 - address(block) / 64 + 1;
        BOOST_REQUIRE(lines == (usable + 63) / 64);
        if (random() % 3 == 0) {
            std::swap(blocks[random() % blocks.size()], blocks.back());
            heap.engine->deallocate(blocks.back());
            blocks.pop_back();
        }
    }
}

BOOST_AUTO_TEST_CASE(blocks_of_a_page_and_more_begin_at_a_page) {
    Heap heap(16_MiB);
    for (const ByteCount bytes : {4096U, 4097U, 10'000U, 100'000U}) BOOST_TEST(address(heap.engine->allocate(bytes)) % 4096 == 0U);
}

// Bad frees.

BOOST_AUTO_TEST_CASE(bad_frees_are_told_and_change_nothing) {
    Heap heap(4_MiB);
    Heap other(4_MiB);
    Engine& engine = *heap.engine;
    for (const ByteCount bytes : {16U, 48U, 100U, 1000U, 2500U, 4096U, 9000U, 100'000U}) {
        auto* first = static_cast<std::byte*>(engine.allocate(bytes));
        auto* second = static_cast<std::byte*>(engine.allocate(bytes));
        BOOST_TEST((engine.deallocate(second) == FreeResult::freed));
        const auto before = heap.copy();
        BOOST_TEST((engine.deallocate(second) == FreeResult::not_a_block));  // double
        for (const ByteCount inside : {1U, 8U, 15U, 16U, 4096U})
            if (inside < bytes) BOOST_TEST((engine.deallocate(first + inside) == FreeResult::not_a_block));  // interior
        BOOST_TEST((engine.deallocate(first + bytes - 1) == FreeResult::not_a_block));
        BOOST_TEST((engine.deallocate(heap.base()) == FreeResult::not_a_block));  // metadata
        BOOST_TEST((engine.deallocate(heap.base() + 4096) == FreeResult::not_a_block));
        BOOST_TEST((engine.deallocate(heap.base() + 4_MiB - 16) == FreeResult::not_a_block));  // beyond the extent
        BOOST_TEST((engine.deallocate(heap.base() + 4_MiB) == FreeResult::foreign));
        BOOST_TEST((engine.deallocate(other.engine->allocate(bytes)) == FreeResult::foreign));
        BOOST_TEST((engine.deallocate(heap.base() - 16) == FreeResult::foreign));
        BOOST_TEST((heap.copy() == before));
        BOOST_TEST((engine.deallocate(first) == FreeResult::freed));
    }
    BOOST_CHECK_EXCEPTION(engine.resize(heap.base() + 64, 10), Error, [](const Error& error) { return error.code() == errc::double_free; });
    BOOST_CHECK_EXCEPTION(engine.resize(heap.base() + 8_MiB, 10), Error, [](const Error& error) { return error.code() == errc::foreign_pointer; });
}

BOOST_AUTO_TEST_CASE(a_dangling_free_is_detected_after_reopening) {
    Heap heap(1_MiB);
    void* block = heap.engine->allocate(64);
    heap.engine->deallocate(block);
    heap.reopen();
    BOOST_TEST((heap.engine->deallocate(block) == FreeResult::not_a_block));
}

BOOST_AUTO_TEST_CASE(the_root_directory_cannot_be_freed) {
    Heap heap(1_MiB);
    heap.engine->add_root({"name", "type", {4096}, 8, 1});
    for (ByteCount offset = 0; offset < heap.host.extent; offset += 16) {
        BOOST_REQUIRE((heap.engine->deallocate(heap.base() + offset) == FreeResult::not_a_block));
        BOOST_REQUIRE(!heap.engine->find_block(heap.base() + offset));
    }
    BOOST_TEST(heap.engine->find_root("name").has_value());
}

// Dynamic blocks.

BOOST_AUTO_TEST_CASE(a_growing_block_keeps_its_content_and_mostly_its_place) {
    Heap heap(64_MiB);
    auto* block = static_cast<std::byte*>(heap.engine->resize(nullptr, 16));
    std::memset(block, 7, 16);
    unsigned moves = 0;
    for (ByteCount bytes = 16; bytes < 8_MiB; bytes += bytes / 10 + 1) {
        auto* moved = static_cast<std::byte*>(heap.engine->resize(block, bytes));
        moves += moved != block ? 1U : 0U;
        block = moved;
        BOOST_REQUIRE(block[15] == std::byte{7});
        BOOST_REQUIRE(heap.engine->usable_size(block) >= bytes);
        heap.engine->allocate(64);
    }
    BOOST_TEST(moves < 60U);
    BOOST_TEST(damage_text(*heap.engine) == "");
}

BOOST_AUTO_TEST_CASE(growth_buffers_yield_before_the_heap_is_full) {
    Heap heap(8_MiB);
    heap.engine->deallocate(heap.engine->allocate(3'500'000));  // an extent with room
    std::vector<void*> blocks;
    for (unsigned i = 0; i < 8; ++i) blocks.push_back(heap.engine->resize(heap.engine->resize(nullptr, 10'000), 300'000));
    const auto rest = fill(*heap.engine, 4096);
    const EngineStats stats = heap.engine->stats();
    BOOST_TEST(stats.free_bytes < 16_KiB);
    for (void* block : blocks) BOOST_TEST(heap.engine->usable_size(block) >= 300'000U);
    BOOST_TEST(damage_text(*heap.engine) == "");
}

BOOST_AUTO_TEST_CASE(a_block_that_shrank_far_moves_to_a_lower_hole) {
    Heap heap(8_MiB);
    void* hole = heap.engine->allocate(40'000);
    void* block = heap.engine->resize(heap.engine->resize(nullptr, 5000), 400'000);
    std::memset(block, 9, 400'000);
    heap.engine->deallocate(hole);
    void* moved = heap.engine->resize(block, 30'000);
    BOOST_TEST(address(moved) < address(block));
    BOOST_TEST((static_cast<std::byte*>(moved)[29'999] == std::byte{9}));
    BOOST_TEST((heap.engine->deallocate(block) == FreeResult::not_a_block));
    BOOST_TEST(damage_text(*heap.engine) == "");
}

BOOST_AUTO_TEST_CASE(a_refused_resize_leaves_the_block_as_it_was) {
    Heap heap(1_MiB);
    void* block = heap.engine->allocate(200'000);
    std::memset(block, 5, 200'000);
    fill(*heap.engine, 4096);
    const auto before = heap.copy();
    BOOST_CHECK_THROW(heap.engine->resize(block, 400'000), HeapFull);
    BOOST_TEST((heap.copy() == before));
}

// Exactly there.

BOOST_AUTO_TEST_CASE(an_allocation_can_be_replayed_at_its_place_in_another_heap) {
    std::mt19937_64 random(taiyen::test::seed_of_run());
    Heap source(8_MiB);
    Heap replica(8_MiB);
    std::vector<void*> blocks;
    for (unsigned i = 0; i < 3000; ++i) {
        if (!blocks.empty() && random() % 3 == 0) {
            const std::size_t index = random() % blocks.size();
            const auto offset = static_cast<std::byte*>(blocks[index]) - source.base();
            BOOST_REQUIRE((source.engine->deallocate(blocks[index]) == FreeResult::freed));
            BOOST_REQUIRE((replica.engine->deallocate(replica.base() + offset) == FreeResult::freed));
            blocks.erase(blocks.begin() + static_cast<std::ptrdiff_t>(index));
        } else {
            void* block = source.engine->allocate(random() % 10 == 0 ? random() % 20'000 : random() % 300, ByteCount{8} << (random() % 6));
            const auto offset = static_cast<std::byte*>(block) - source.base();
            const ByteCount usable = source.engine->usable_size(block);
            BOOST_REQUIRE(replica.engine->allocate_at(replica.base() + offset, usable, usable % 16 == 0 ? 16 : 8));
            BOOST_REQUIRE(replica.engine->usable_size(replica.base() + offset) == source.engine->usable_size(block));
            blocks.push_back(block);
        }
    }
    BOOST_TEST(damage_text(*replica.engine) == "");
    BOOST_TEST(replica.engine->stats().live_bytes == source.engine->stats().live_bytes);
}

BOOST_AUTO_TEST_CASE(a_place_that_no_block_can_have_is_refused) {
    Heap heap(1_MiB);
    void* block = heap.engine->allocate(4096);
    heap.engine->deallocate(block);
    const auto offset = static_cast<ByteCount>(static_cast<std::byte*>(block) - heap.base());
    const auto before = heap.copy();
    BOOST_TEST(!heap.engine->allocate_at(heap.base() + offset + 8, 16));     // no granule
    BOOST_TEST(!heap.engine->allocate_at(heap.base() + offset + 4080, 32));  // crosses its page
    BOOST_TEST(!heap.engine->allocate_at(heap.base() + offset + 16, 4096));  // a run off a page
    BOOST_TEST(!heap.engine->allocate_at(heap.base(), 16));                  // metadata
    BOOST_TEST(!heap.engine->allocate_at(heap.base() + 1_MiB, 16));          // outside
    BOOST_TEST(!heap.engine->allocate_at(heap.base() + offset, ~ByteCount{0}));
    BOOST_TEST((heap.copy() == before));
}

// Reading back.

BOOST_AUTO_TEST_CASE(find_block_answers_for_each_byte_of_a_block) {
    Heap heap(1_MiB);
    std::vector<std::pair<std::byte*, ByteCount>> blocks;
    for (const ByteCount bytes : {16U, 700U, 1040U, 2600U, 4096U, 5000U, 30'000U})
        blocks.emplace_back(static_cast<std::byte*>(heap.engine->allocate(bytes)), bytes);
    blocks.emplace_back(static_cast<std::byte*>(heap.engine->resize(heap.engine->allocate(5000), 20'000)), 20'000);
    for (const auto& [block, bytes] : blocks)
        for (ByteCount i = 0; i < bytes; ++i) {
            const auto found = heap.engine->find_block(block + i);
            BOOST_REQUIRE(found.has_value());
            BOOST_REQUIRE(heap.base() + found->offset.value == block);
        }
}

BOOST_AUTO_TEST_CASE(the_bytes_of_the_span_do_not_depend_on_its_address) {
    std::mt19937_64 random(taiyen::test::seed_of_run());
    Heap here(8_MiB);
    Heap there(8_MiB);
    for (unsigned round = 0; round < 20; ++round) {
        const auto seed = random();
        for (Heap* heap : {&here, &there}) {
            std::mt19937_64 same(seed);
            std::vector<void*> blocks;
            for (unsigned i = 0; i < 200; ++i) blocks.push_back(heap->engine->allocate(same() % 6 == 0 ? same() % 30'000 : same() % 500));
            for (unsigned i = 0; i < 150; ++i) heap->engine->deallocate(blocks[i]);
        }
        BOOST_REQUIRE((here.copy() == there.copy()));
    }
    // And a copy works elsewhere.
    SpanMemory memory(8_MiB);
    const auto bytes = here.copy();
    std::copy(bytes.begin(), bytes.end(), memory.base());
    TestHost host;
    host.extent = here.host.extent;
    Engine copy(memory.base(), 8_MiB, host);
    BOOST_TEST(damage_text(copy) == "");
    BOOST_TEST(copy.stats().live_blocks == here.engine->stats().live_blocks);
    copy.for_each_block([&](const Block& block) {
        BOOST_REQUIRE((copy.deallocate(memory.base() + block.offset.value) == FreeResult::freed));
        return true;
    });
    BOOST_TEST(copy.stats().live_blocks == 0U);
}

BOOST_AUTO_TEST_CASE(a_visit_can_be_stopped) {
    Heap heap(1_MiB);
    for (unsigned i = 0; i < 10; ++i) heap.engine->allocate(100);
    unsigned seen = 0;
    heap.engine->for_each_block([&](const Block&) { return ++seen < 3; });
    BOOST_TEST(seen == 3U);
}

BOOST_AUTO_TEST_CASE(a_heap_opened_for_reading_is_never_written) {
    Heap heap(1_MiB);
    void* block = heap.engine->allocate(100);
    heap.engine->add_root({"a", "int", {4096}, 4, 1});
    const auto before = heap.copy();
    const Engine reader(heap.base(), 1_MiB, heap.host, nullptr, true);
    auto& engine = const_cast<Engine&>(reader);
    const auto is_read_only = [](const Error& error) { return error.code() == errc::read_only; };
    BOOST_CHECK_EXCEPTION(engine.allocate(0), Error, is_read_only);
    BOOST_CHECK_EXCEPTION(engine.allocate(10), Error, is_read_only);
    BOOST_CHECK_EXCEPTION(engine.allocate(100'000), Error, is_read_only);
    BOOST_CHECK_EXCEPTION(engine.resize(block, 1), Error, is_read_only);
    BOOST_CHECK_EXCEPTION(engine.allocate_at(block, 1), Error, is_read_only);
    BOOST_CHECK_EXCEPTION(engine.add_root({"b", "", {0}, 0, 0}), Error, is_read_only);
    BOOST_CHECK_EXCEPTION(engine.remove_root("a"), Error, is_read_only);
    BOOST_CHECK_EXCEPTION(engine.release_free_pages(0), Error, is_read_only);
    BOOST_TEST((engine.deallocate(block) == FreeResult::not_a_block));
    BOOST_TEST(reader.usable_size(block) >= 100U);
    BOOST_TEST(reader.find_root("a").has_value());
    BOOST_TEST(damage_text(reader) == "");
    BOOST_TEST((heap.copy() == before));
}

// Released pages.

BOOST_AUTO_TEST_CASE(released_pages_are_told_once_and_used_again) {
    Heap heap(8_MiB);
    std::vector<void*> blocks = fill(*heap.engine, 60'000);
    for (void* block : blocks) heap.engine->deallocate(block);
    ByteCount released = 0;
    for (const FreeRun& run : heap.engine->release_free_pages(64_KiB)) {
        BOOST_TEST(run.offset.value % 4096 == 0U);
        BOOST_TEST(run.length >= 64_KiB);
        released += run.length;
    }
    BOOST_TEST(released > 7_MiB);
    BOOST_TEST(heap.engine->release_free_pages(4096).size() <= 1U);  // once only; the smallest region may have given less than 64 KiB
    BOOST_TEST(damage_text(*heap.engine) == "");
    heap.reopen();
    const ByteCount extent = heap.engine->extent();
    for (const ByteCount bytes : {100U, 5000U, 100'000U, 4096U, 3'000'000U}) heap.engine->allocate(bytes);
    BOOST_TEST(heap.engine->extent() == extent);
    BOOST_TEST(damage_text(*heap.engine) == "");
}

BOOST_AUTO_TEST_CASE(a_survey_tells_released_pages_alone_as_it_tells_them_among_all) {
    std::mt19937_64 random(taiyen::test::seed_of_run());
    Heap heap(16_MiB);
    std::vector<void*> blocks;
    for (int round = 0; round < 8; ++round) {
        while (blocks.size() < 400) blocks.push_back(heap.engine->allocate(1 + random() % (random() % 8 == 0 ? 200'000 : 3000)));
        std::shuffle(blocks.begin(), blocks.end(), random);
        for (; blocks.size() > 50 + random() % 200; blocks.pop_back()) heap.engine->deallocate(blocks.back());
        heap.engine->release_free_pages((1 + random() % 8) * 4096);
        using Pages = std::vector<std::pair<Page, Page>>;
        const Survey survey(heap.base(), heap.capacity);
        Pages among_all;
        survey.visit([&](const PagesInUse& pages) {
            if (pages.use == PageUse::released) among_all.emplace_back(pages.first, pages.count);
            return true;
        });
        Pages alone;
        survey.visit_released([&](PageRun run) { alone.emplace_back(run.first, run.count); });
        BOOST_TEST(!alone.empty());
        BOOST_TEST((alone == among_all));
    }
}

// Forgetting.

BOOST_AUTO_TEST_CASE(after_older_bytes_came_back_the_engine_behaves_as_the_older_one) {
    std::mt19937_64 random(taiyen::test::seed_of_run());
    Heap heap(4_MiB);
    std::set<void*> live;
    const auto work = [&](unsigned steps) {
        for (unsigned i = 0; i < steps; ++i) {
            if (!live.empty() && random() % 2 == 0) {
                BOOST_REQUIRE((heap.engine->deallocate(*live.begin()) == FreeResult::freed));
                live.erase(live.begin());
            } else {
                try {
                    BOOST_REQUIRE(live.insert(heap.engine->allocate(random() % 20 == 0 ? random() % 50'000 : random() % 300)).second);
                } catch (const HeapFull&) {}
            }
        }
    };
    work(2000);
    for (unsigned round = 0; round < 30; ++round) {
        const auto old_live = live;
        const auto old_bytes = heap.copy();
        work(200 + static_cast<unsigned>(random() % 400));
        if (round % 5 == 0)
            for (void* block : live) heap.engine->deallocate(block);
        std::memcpy(heap.base(), old_bytes.data(), old_bytes.size());
        std::memset(heap.base() + old_bytes.size(), 0, heap.host.extent - old_bytes.size());
        if (round % 2 == 0)
            heap.engine->forget({0}, 4_MiB);
        else
            for (ByteCount page = 0; page < 4_MiB; page += 4096) heap.engine->forget({page}, 4096);
        heap.host.extent = heap.engine->extent();
        live = old_live;
        BOOST_REQUIRE(heap.engine->extent() == old_bytes.size());
        BOOST_REQUIRE_MESSAGE(damage_text(*heap.engine).empty(), damage_text(*heap.engine));
        std::set<void*> seen;
        heap.engine->for_each_block([&](const Block& block) { return seen.insert(heap.base() + block.offset.value).second; });
        BOOST_REQUIRE((seen == live));
    }
    work(1000);
    BOOST_TEST(damage_text(*heap.engine) == "");
}

BOOST_AUTO_TEST_SUITE_END()
