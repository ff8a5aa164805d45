// What threads may do at once with heaps: scratch memory, look-ups from address to heap, opening and closing. Each case is run under the thread sanitizer.

#include <array>
#include <atomic>
#include <random>

#include <boost/test/unit_test.hpp>

#include "heap/foreign_pointers.hpp"
#include "heap/memory_core.hpp"
#include "threads.hpp"

using namespace taiyen;
using heap::test::MemoryCore;
using heap::test::Reports;
using taiyen::test::at_once;
using taiyen::test::require;

BOOST_AUTO_TEST_SUITE(heap_threads)

BOOST_AUTO_TEST_CASE(threads_share_scratch_memory, *boost::unit_test::label("threads")) {
    MemoryCore core;
    at_once(4, [&](unsigned seed) {
        std::vector<unsigned*> blocks;
        for (unsigned i = 0; i < 3000; ++i) {
            auto* const block = static_cast<unsigned*>(heap::allocate_scratch(core, 16 + (i * (seed + 1)) % 500, 16));
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
    BOOST_TEST(core.scratch_live() == 0U);
}

BOOST_AUTO_TEST_CASE(a_thread_frees_the_scratch_block_of_another, *boost::unit_test::label("threads")) {
    const Reports reports;
    MemoryCore core;
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
            auto* const block = static_cast<std::uint64_t*>(heap::allocate_scratch(core, 48 + random() % 3000, 16));
            block[0] = place;
            block[5] = ~place;
            give_up(places[place].exchange(block, std::memory_order_acq_rel), place);
        }
    });
    for (std::size_t place = 0; place < places.size(); ++place) give_up(places[place].load(), place);
    BOOST_TEST(core.scratch_live() == 0U);
    BOOST_TEST(Reports::entries().empty());
}

BOOST_AUTO_TEST_CASE(of_two_frees_of_one_block_one_is_reported, *boost::unit_test::label("threads")) {
    static std::atomic<unsigned> reported;
    reported = 0;
    const ReportHandler before =
        set_report_handler([](const Incident& incident) noexcept { reported += incident.code == errc::double_free ? 1U : 0U; });
    MemoryCore core;
    std::vector<void*> blocks(500);
    for (void*& block : blocks) block = heap::allocate_scratch(core, 64, 16);
    at_once(3, [&](unsigned) {
        for (void* block : blocks) heap::deallocate(block);
    });
    set_report_handler(before);
    BOOST_TEST(reported == 2 * blocks.size());
    BOOST_TEST(core.scratch_live() == 0U);
}

BOOST_AUTO_TEST_CASE(readers_of_one_heap_do_not_disturb_each_other, *boost::unit_test::label("threads")) {
    MemoryCore core;
    std::vector<void*> blocks;
    std::mt19937 random(1);
    for (unsigned i = 0; i < 2000; ++i) {
        blocks.push_back(heap::allocate_durable(core, 1 + random() % (i % 10 == 0 ? 20000 : 300), 16));
        if (i % 4 == 3) {
            heap::deallocate(blocks[i / 2]);
            blocks[i / 2] = heap::allocate_durable(core, 40, 16);
        }
    }
    for (unsigned i = 0; i < 50; ++i) heap::add_named(core, "object " + std::to_string(i), {blocks[i], 1, 1, "t"});
    const heap::HeapCore& readable = core;
    at_once(4, [&](unsigned number) {
        for (unsigned round = 0; round < 3; ++round) {
            for (unsigned i = 0; i < 50; ++i)
                require(heap::find_named(core, "object " + std::to_string(i))->object == blocks[i], "a name leads to its object");
            require(!heap::find_named(core, "none").has_value(), "nothing has that name");
            for (std::size_t i = number; i < blocks.size(); i += 7) {
                require(heap::usable_size(core, blocks[i]) != 0, "the block is alive");
                require(readable.engine().find_block(static_cast<char*>(blocks[i]) + 1).has_value() || heap::usable_size(core, blocks[i]) == 1,
                        "it is found from within");
            }
            require(readable.engine().check().empty(), "the heap is sound");
            require(readable.engine().stats().live_blocks == blocks.size(), "blocks are counted");
            require(readable.engine().roots().size() == 50, "names are counted");
        }
    });
}

BOOST_AUTO_TEST_CASE(threads_open_and_close_heaps_while_others_look_addresses_up, *boost::unit_test::label("threads")) {
    MemoryCore standing;
    void* const block = heap::allocate_scratch(standing, 100, 16);
    int local = 0;
    std::atomic<unsigned> opening{2};
    at_once(4, [&](unsigned number) {
        if (number < 2) {
            for (int i = 0; i < 60; ++i) {
                MemoryCore core(MemoryCore::default_capacity / 16);
                require(heap::core_of_slot(heap::slot_of(core)) == &core, "the slot is the heap's");
                void* const own = heap::allocate_scratch(core, 1000, 16);
                require(heap::core_at(own) == &core, "its scratch memory, too");
                heap::deallocate(own);
            }
            opening.fetch_sub(1);
            return;
        }
        while (opening.load() != 0) {
            require(heap::core_at(block) == &standing, "another heap's comings and goings don't touch this one");
            require(heap::core_at(&local) == nullptr, "nor the stack");
            unsigned seen = 0;
            heap::visit_open_cores([&](const heap::HeapCore& core) {
                seen += &core == &standing ? 1U : 0U;
                return true;
            });
            require(seen == 1, "an open heap is listed once");
        }
    });
    heap::deallocate(block);
}

BOOST_AUTO_TEST_CASE(a_heap_may_be_closed_while_another_is_searched_for_pointers_into_it, *boost::unit_test::label("threads")) {
    MemoryCore searched;
    constexpr std::size_t words = 512;
    auto* const block = static_cast<std::uintptr_t*>(heap::allocate_durable(searched, words * 8, 4096));
    std::atomic<bool> done{false};
    const heap::CoreRanges neighbour = MemoryCore().ranges();  // where the heaps below will lie
    for (std::size_t i = 0; i < words; ++i) block[i] = i % 2 == 0 ? neighbour.scratch + i * 64 : neighbour.durable + i * 64;
    at_once(2, [&](unsigned number) {
        if (number == 0) {
            for (int i = 0; i < 100; ++i) {
                MemoryCore other;
                heap::deallocate(heap::allocate_scratch(other, 4000, 16));
            }
            done = true;
            return;
        }
        const HeapOffset begin{reinterpret_cast<std::uintptr_t>(block) - searched.ranges().durable};
        while (!done) (void)heap::ForeignPointerScan(searched).find(begin, words * 8);
    });
    heap::deallocate(block);
    BOOST_TEST(searched.engine().stats().live_blocks == 0U);
}

BOOST_AUTO_TEST_CASE(each_thread_has_its_own_current_heap, *boost::unit_test::label("threads")) {
    MemoryCore first;
    MemoryCore second;
    MemoryCore* const cores[] = {&first, &second};
    at_once(4, [&](unsigned number) {
        require(heap::current_core() == nullptr, "a thread begins without");
        for (unsigned i = 0; i < 2000; ++i) {
            MemoryCore* const mine = cores[(number + i) % 2];
            require(heap::exchange_current_core(mine) == nullptr, "nobody else's choice is seen");
            require(heap::current_core() == mine, "the own one is");
            require(heap::exchange_current_core(nullptr) == mine, "until it ends");
        }
    });
}

BOOST_AUTO_TEST_CASE(a_heap_that_another_thread_closed_is_current_nowhere, *boost::unit_test::label("threads")) {
    auto core = std::make_unique<MemoryCore>();
    std::atomic<bool> chosen{false};
    std::atomic<bool> closed{false};
    at_once(2, [&](unsigned number) {
        if (number == 0) {
            while (!chosen) std::this_thread::yield();
            core.reset();
            closed = true;
            return;
        }
        heap::exchange_current_core(core.get());
        chosen = true;
        while (!closed) std::this_thread::yield();
        require(heap::current_core() == nullptr, "a closed heap is no current heap");
    });
}

BOOST_AUTO_TEST_SUITE_END()
