/// Dynamic blocks of volatile heaps: random resizes against a model, moving by mappings, and the bounds on what that costs. TAIYEN_SEED replays the random ones.

#include <boost/test/unit_test.hpp>

#include <sys/resource.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "seed.hpp"
#include "threads.hpp"
#include "volatile/volatile_core.hpp"

BOOST_AUTO_TEST_SUITE(dynamic_blocks)

namespace {

using namespace taiyen;
using namespace taiyen::heap;
using taiyen::test::at_once;
using taiyen::test::require;
using taiyen::test::seed_of_run;

VolatileCore& core_of(VolatileHeap& heap) { return *static_cast<VolatileCore*>(heap.core()); }

void require_sound(VolatileHeap& heap) {
    for (const Damage& damage : core_of(heap).check()) BOOST_ERROR("at offset " << damage.where.value << ": " << damage.what);
}

/// A block whose words say whose they are and where they were written: one in 512 bytes, and the last.
class Dynamic {
public:
    std::byte* block = nullptr;
    ByteCount bytes = 0;
    std::uint64_t name = 0;

    void fill(ByteCount from) {
        for (ByteCount at = round_up(from, stride); at + 8 <= bytes; at += stride) write(at);
        if (bytes >= 8) write(last());
    }
    bool holds(ByteCount length) const {
        for (ByteCount at = 0; at + 8 <= length; at += stride)
            if (read(at) != (name ^ at)) return false;
        return length != bytes || bytes < 8 || read(last()) == (name ^ last());
    }
    /// False: the heap was full, and the block is as it was.
    bool resize(VolatileHeap& heap, ByteCount wanted) {
        void* moved = nullptr;
        try {
            moved = heap.resize(block, wanted);
        } catch (const HeapFull&) {
            require(holds(bytes), "a block that could not be resized was changed");
            return false;
        }
        const ByteCount kept = std::min(wanted, bytes);
        block = static_cast<std::byte*>(moved);
        require(kept == bytes ? holds(bytes) : holds(kept / stride * stride), "a resized block lost content");
        require(heap.usable_size(block) >= wanted, "a resized block is smaller than was asked for");
        bytes = wanted;
        fill(kept / stride * stride);
        return true;
    }

private:
    static constexpr ByteCount stride = 512;
    ByteCount last() const { return round_down(bytes - 8, 8); }
    void write(ByteCount at) const {
        const std::uint64_t value = name ^ at;
        std::memcpy(block + at, &value, sizeof value);
    }
    std::uint64_t read(ByteCount at) const {
        std::uint64_t value = 0;
        std::memcpy(&value, block + at, sizeof value);
        return value;
    }
};

/// Sizes from 2^least to 2^most, each power of two alike.
ByteCount log_uniform(std::mt19937_64& random, double least, double most) {
    return static_cast<ByteCount>(std::exp2(std::uniform_real_distribution<double>(least, most)(random)));
}

struct Outcome {
    unsigned full = 0;
    unsigned moved = 0;
};
Outcome run(VolatileHeap& heap, std::uint64_t seed, unsigned blocks, unsigned steps, double least, double most) {
    std::mt19937_64 random(seed);
    Outcome outcome;
    std::vector<Dynamic> live(blocks);
    for (unsigned step = 0; step < steps; ++step) {
        Dynamic& one = live[random() % live.size()];
        const std::uint64_t choice = random() % 100;
        if (one.block == nullptr || choice < 20) {
            if (one.block != nullptr) require(one.holds(one.bytes), "a block's content was overwritten");
            heap.deallocate(one.block);
            one = {};
            one.name = random();
            const ByteCount bytes = log_uniform(random, least, most);
            one.block = static_cast<std::byte*>(heap.try_allocate(bytes));
            one.bytes = one.block == nullptr ? 0 : bytes;
            outcome.full += one.block == nullptr;
            one.fill(0);
            continue;
        }
        const std::byte* const before = one.block;
        ByteCount wanted = choice < 60 ? one.bytes * 23 / 10 : one.bytes * 52 / 100;
        if (choice >= 95) wanted = log_uniform(random, 0, most);
        if (!one.resize(heap, std::min(wanted, static_cast<ByteCount>(std::exp2(most))))) ++outcome.full;
        outcome.moved += one.block != before;
    }
    for (const Dynamic& one : live) {
        require(one.block == nullptr || one.holds(one.bytes), "a block's content was overwritten");
        heap.deallocate(one.block);
    }
    return outcome;
}

/// Where a heap begins, its regions are small, and blocks cross none of their ends: fills them.
void leave_small_regions(VolatileHeap& heap) {
    const std::uintptr_t base = heap.core()->ranges().durable;
    while (reinterpret_cast<std::uintptr_t>(heap.allocate(64_KiB)) - base < 20_MiB) {}
}

BOOST_AUTO_TEST_CASE(random_resizes_keep_content) {
    const std::uint64_t seed = seed_of_run();
    VolatileHeap heap({.capacity = 1_GiB});
    BOOST_TEST(run(heap, seed, 48, 4'000, 14, 21.5).moved > 100U);
    BOOST_TEST(run(heap, seed + 1, 500, 20'000, 4, 15).moved > 100U);
    require_sound(heap);
    BOOST_TEST(heap.stats().live_blocks == 0U);
}

BOOST_AUTO_TEST_CASE(threads_resize_at_once, *boost::unit_test::label("threads")) {
    const std::uint64_t seed = seed_of_run();
    VolatileHeap heap({.capacity = 1_GiB});
    at_once(3, [&](unsigned number) { run(heap, seed + number, 16, 800, 12, 20); });
    heap.trim();
    require_sound(heap);
    BOOST_TEST(heap.stats().live_blocks == 0U);
}

BOOST_AUTO_TEST_CASE(a_heap_that_is_full_again_and_again_keeps_blocks_that_could_not_grow) {
    const std::uint64_t seed = seed_of_run();
    VolatileHeap heap({.capacity = 24_MiB});
    BOOST_TEST(run(heap, seed, 40, 3'000, 12, 21.5).full > 10U);
    require_sound(heap);
    BOOST_TEST(heap.stats().live_blocks == 0U);
}

BOOST_AUTO_TEST_CASE(a_large_block_moves_without_being_copied) {
    VolatileHeap heap({.capacity = 1_GiB});
    Dynamic one{static_cast<std::byte*>(heap.allocate(4_MiB)), 4_MiB, 77};
    heap.allocate(4096);  // in the way
    one.fill(0);
    const std::byte* const before = one.block;
    BOOST_TEST(one.resize(heap, 9_MiB));
    BOOST_TEST(one.block != before);
    BOOST_TEST(core_of(heap).moved_pieces() == 1U);
    // Below it is empty: what was moved from there has no memory any more.
    BOOST_TEST(heap.usable_size(before) == 0U);
    void* const again = heap.allocate(3_MiB);
    BOOST_TEST(*static_cast<std::uint64_t*>(again) == 0U);
    BOOST_TEST(one.holds(one.bytes));
    require_sound(heap);
}

BOOST_AUTO_TEST_CASE(growing_in_place_needs_no_move) {
    VolatileHeap heap({.capacity = 1_GiB});
    leave_small_regions(heap);
    const std::size_t others = heap.stats().live_bytes;
    Dynamic one{static_cast<std::byte*>(heap.allocate(1_MiB)), 1_MiB, 5};
    one.fill(0);
    BOOST_TEST(one.resize(heap, 2_MiB));  // the end of the heap is free
    const std::byte* const before = one.block;
    BOOST_TEST(one.resize(heap, 2_MiB + 900_KiB));
    BOOST_TEST(one.block == before);
    // A growth buffer costs address space only: the neighbour gets it when nothing else is left.
    BOOST_TEST(heap.stats().live_bytes - others == 2_MiB + 900_KiB);
    require_sound(heap);
}

BOOST_AUTO_TEST_CASE(a_block_absorbs_the_free_neighbour_behind_it) {
    VolatileHeap heap({.capacity = 1_GiB});
    leave_small_regions(heap);
    Dynamic one{static_cast<std::byte*>(heap.allocate(256_KiB)), 256_KiB, 5};
    void* const behind = heap.allocate(512_KiB);
    void* const wall = heap.allocate(64_KiB);
    one.fill(0);
    const std::byte* const before = one.block;
    heap.deallocate(behind);
    BOOST_TEST(one.resize(heap, 700_KiB));
    BOOST_TEST(one.block == before);
    heap.deallocate(wall);
    require_sound(heap);
}

BOOST_AUTO_TEST_CASE(a_block_that_shrinks_far_moves_to_a_lower_hole) {
    VolatileHeap heap({.capacity = 1_GiB});
    leave_small_regions(heap);
    void* const low = heap.allocate(256_KiB);
    heap.allocate(64_KiB);
    Dynamic one{static_cast<std::byte*>(heap.allocate(8_MiB)), 8_MiB, 9};
    heap.allocate(64_KiB);
    one.fill(0);
    heap.deallocate(low);
    BOOST_TEST(one.resize(heap, 200_KiB));
    BOOST_TEST(one.block == low);
    require_sound(heap);
}

BOOST_AUTO_TEST_CASE(a_block_that_moves_to_written_pages_changes_places_with_them) {
    for (const ByteCount bytes : {600_KiB, 1_MiB}) {
        VolatileHeap heap({.capacity = 1_GiB});
        const auto make = [&](ByteCount length, std::uint64_t name) {
            Dynamic one{static_cast<std::byte*>(heap.allocate(length)), length, name};
            one.fill(0);
            return one;
        };
        Dynamic moved = make(bytes, 1);
        std::vector<Dynamic> walls;
        const auto wall_behind = [&](const Dynamic& block) {
            do walls.push_back(make(200_KiB, 2));
            while (walls.back().block < block.block);
        };
        wall_behind(moved);
        const Dynamic written = make(2 * bytes, 3);
        wall_behind(written);
        heap.deallocate(written.block);
        const std::size_t dirty = heap.stats().dirty_bytes;
        moved.resize(heap, 2 * bytes - 64_KiB);
        BOOST_TEST(moved.block == written.block);
        BOOST_TEST(moved.holds(moved.bytes));
        for (const Dynamic& wall : walls) BOOST_TEST(wall.holds(wall.bytes));
        BOOST_TEST(core_of(heap).moved_pieces() == 2U);
        // Nothing was lost, and nothing new was needed: the block's old place has memory.
        BOOST_TEST(heap.stats().dirty_bytes <= dirty + 64_KiB);
        BOOST_TEST(heap.stats().dirty_bytes + 64_KiB >= dirty);
        require_sound(heap);
        heap.deallocate(moved.block);
        for (const Dynamic& wall : walls) heap.deallocate(wall.block);
        heap.trim();
        BOOST_TEST(core_of(heap).moved_pieces() == 0U);
    }
}

// Memory that a freed block left behind is used before a lower place that has none, in whatever region of the heap it lies.
BOOST_AUTO_TEST_CASE(a_large_block_comes_to_lie_where_there_is_memory) {
    VolatileHeap heap({.capacity = 1_GiB, .tell_memory_tools = false});
    std::vector<std::byte*> blocks;
    for (unsigned i = 0; i < 200; ++i) blocks.push_back(static_cast<std::byte*>(heap.allocate(1_MiB)));
    for (std::size_t i = 1; i < blocks.size(); i += 2) heap.deallocate(blocks[i]);
    heap.trim();
    for (const std::size_t warm : {150U, 20U, 100U}) {
        heap.deallocate(blocks[warm]);
        BOOST_TEST(heap.allocate(1_MiB) == blocks[warm]);
        std::byte* const smaller = static_cast<std::byte*>(heap.allocate(64_KiB));
        BOOST_TEST(smaller < blocks[2]);  // nothing has memory: the lowest place
        heap.deallocate(smaller);
        heap.trim();
    }
    // Two neighbours.
    for (const std::size_t i : {1U, 3U}) BOOST_TEST(heap.allocate(1_MiB) == blocks[i]);
    for (const std::size_t i : {2U, 3U}) heap.deallocate(blocks[i]);
    BOOST_TEST(heap.allocate(2_MiB) == blocks[2]);
    require_sound(heap);
}

BOOST_AUTO_TEST_CASE(without_a_budget_for_mappings_blocks_move_by_copying) {
    const std::uint64_t seed = seed_of_run();
    VolatileHeap none({.capacity = 1_GiB});
    core_of(none).set_moved_pieces_max(0);
    BOOST_TEST(run(none, seed, 24, 1'000, 16, 21).moved > 20U);
    BOOST_TEST(core_of(none).moved_pieces() == 0U);
    require_sound(none);
    VolatileHeap few({.capacity = 1_GiB});
    core_of(few).set_moved_pieces_max(12);
    BOOST_TEST(run(few, seed, 24, 1'500, 16, 21).moved > 20U);
    BOOST_TEST(core_of(few).moved_pieces() <= 12U);
    BOOST_TEST(few.stats().mappings < 80U);
    require_sound(few);
}

BOOST_AUTO_TEST_CASE(resizes_without_end_need_few_mappings_and_little_memory) {
    const std::uint64_t seed = seed_of_run();
    VolatileHeap heap({.capacity = 4_GiB});
    std::mt19937_64 random(seed);
    constexpr unsigned blocks = 64;
    std::vector<Dynamic> live(blocks);
    ByteCount bytes = 0;
    for (Dynamic& one : live) {
        one = {nullptr, log_uniform(random, 14, 22), random()};
        one.block = static_cast<std::byte*>(heap.allocate(one.bytes));
        one.fill(0);
        bytes += one.bytes;
    }
    std::size_t mappings = 0;
    for (unsigned step = 0; step < 6'000; ++step) {
        Dynamic& one = live[random() % blocks];
        const ByteCount before = one.bytes;
        // Growth and shrinking balance: one step of growth goes back in about 1.3 of shrinking.
        const ByteCount wanted = random() % 100 < 44 ? before * 23 / 10 : before * 52 / 100;
        one.resize(heap, std::clamp<ByteCount>(wanted, 16_KiB, 4_MiB));
        bytes += one.bytes - before;
        if (step % 1000 == 999) mappings = std::max(mappings, heap.stats().mappings);
    }
    const VolatileStats stats = heap.stats();
    BOOST_TEST_MESSAGE("live " << bytes << " dirty " << stats.dirty_bytes << " mappings " << mappings << " pieces " << core_of(heap).moved_pieces());
    BOOST_TEST(mappings <= 6 * blocks);
    BOOST_TEST(stats.dirty_bytes <= 1.5 * static_cast<double>(bytes) + 24_MiB);
    for (const Dynamic& one : live) BOOST_TEST(one.holds(one.bytes));
    require_sound(heap);
}

BOOST_AUTO_TEST_CASE(trimming_joins_the_mappings_of_freed_blocks) {
    VolatileHeap heap({.capacity = 1_GiB});
    std::vector<Dynamic> live(40);
    for (Dynamic& one : live) {
        one = {static_cast<std::byte*>(heap.allocate(256_KiB)), 256_KiB, 3};
        heap.allocate(16);
        one.fill(0);
    }
    for (Dynamic& one : live) one.resize(heap, 600_KiB);
    BOOST_TEST(core_of(heap).moved_pieces() > 30U);
    for (const Dynamic& one : live) heap.deallocate(one.block);
    heap.trim();
    BOOST_TEST(core_of(heap).moved_pieces() == 0U);
    BOOST_TEST(heap.stats().mappings < 10U);
    require_sound(heap);
}

BOOST_AUTO_TEST_CASE(a_system_without_room_for_mappings_makes_blocks_move_by_copying) {
    VolatileHeap heap({.capacity = 1_GiB});
    Dynamic one{static_cast<std::byte*>(heap.allocate(1_MiB)), 1_MiB, 8};
    one.fill(0);
    heap.allocate(4096);
    heap.deallocate(heap.allocate(16_MiB));  // the room to move to is there
    rlimit before{};
    BOOST_REQUIRE(::getrlimit(RLIMIT_AS, &before) == 0);
    const rlimit none{1, before.rlim_max};
    BOOST_REQUIRE(::setrlimit(RLIMIT_AS, &none) == 0);
    const std::byte* const place = one.block;
    const bool resized = one.resize(heap, 3_MiB);
    BOOST_REQUIRE(::setrlimit(RLIMIT_AS, &before) == 0);
    BOOST_TEST(resized);
    BOOST_TEST(one.block != place);
    BOOST_TEST(core_of(heap).moved_pieces() == 0U);
    require_sound(heap);
}

}  // namespace

BOOST_AUTO_TEST_SUITE_END()
