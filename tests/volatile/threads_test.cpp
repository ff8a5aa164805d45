// What threads may do at once with heaps: scratch memory, look-ups from address to heap, opening and closing. Each case is run under the thread sanitizer.

#include <array>
#include <atomic>
#include <random>

#include <boost/test/unit_test.hpp>

#include <taiyen/heap/volatile_heap.hpp>

#include "heap/foreign_pointers.hpp"
#include "heap/memory_core.hpp"
#include "threads.hpp"

using namespace taiyen;
using heap::test::MemoryCore;
using heap::test::Reports;
using taiyen::test::at_once;
using taiyen::test::require;

BOOST_AUTO_TEST_SUITE(heap_threads)

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
    void* const block = heap::allocate_durable(standing, 100, 16);
    int local = 0;
    std::atomic<unsigned> opening{2};
    at_once(4, [&](unsigned number) {
        if (number < 2) {
            for (int i = 0; i < 60; ++i) {
                MemoryCore core(MemoryCore::default_capacity / 16);
                require(heap::core_of_slot(heap::slot_of(core)) == &core, "the slot is the heap's");
                void* const own = heap::allocate_durable(core, 1000, 16);
                require(heap::core_at(own) == &core, "its blocks, too");
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
    for (std::size_t i = 0; i < words; ++i) block[i] = neighbour.durable + i * 64;
    at_once(2, [&](unsigned number) {
        if (number == 0) {
            for (int i = 0; i < 100; ++i) {
                MemoryCore other;
                heap::deallocate(heap::allocate_durable(other, 4000, 16));
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

BOOST_AUTO_TEST_CASE(a_heap_is_searched_for_pointers_into_heaps_that_others_change_meanwhile, *boost::unit_test::label("threads")) {
    MemoryCore searched;
    MemoryCore changing;
    VolatileHeap shared;
    constexpr std::size_t words = 256;
    auto* const block = static_cast<void**>(heap::allocate_durable(searched, words * 8, 4096));
    std::fill_n(block, words, nullptr);
    std::vector<void*> kept;
    for (std::size_t i = 0; i < words; ++i)
        kept.push_back(i % 2 == 0 ? heap::allocate_durable(changing, 24 + i * 8, 8) : shared.allocate(24 + i * 8));
    const HeapOffset begin{reinterpret_cast<std::uintptr_t>(block) - searched.ranges().durable};
    std::atomic<bool> done{false};
    at_once(2, [&](unsigned number) {
        if (number == 0) {
            for (std::size_t i = 0; i < words; ++i) {
                std::vector<void*> passing;
                for (std::size_t n = 0; n < 20; ++n) {
                    passing.push_back(heap::allocate_durable(changing, 24 + (i * n) % 4000, 8));
                    passing.push_back(shared.allocate(24 + (i * n) % 4000));
                }
                for (void* const each : passing) heap::deallocate(each);
            }
            done = true;
            return;
        }
        for (std::size_t i = 0; !done; i = (i + 1) % words) {  // what stays is found whatever comes and goes around it
            block[i] = kept[i];
            const auto found = heap::ForeignPointerScan(searched).find(begin, words * 8);
            require(found && found->where.value == begin.value + i * 8, "a block that stays is found");
            block[i] = static_cast<std::byte*>(kept[i]) + 8;
            require(!heap::ForeignPointerScan(searched).find(begin, words * 8), "its inside is no block");
            block[i] = nullptr;
        }
    });
    for (void* const each : kept) heap::deallocate(each);
    heap::deallocate(block);
}

BOOST_AUTO_TEST_SUITE_END()
