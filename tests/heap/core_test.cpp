#include "heap/core.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <random>
#include <thread>

#include <boost/test/unit_test.hpp>

#include <taiyen/shape/detail/builder.hpp>

#include "heap/foreign_pointers.hpp"
#include "heap/memory_core.hpp"
#include "heap/scratch.hpp"
#include "seed.hpp"

using namespace taiyen;
using heap::test::MemoryCore;
using heap::test::Reports;

namespace {

bool has_code(const Error& error, errc code) { return error.code() == code; }

std::size_t open_count() {
    std::size_t count = 0;
    heap::visit_open_cores([&](const heap::HeapCore&) {
        ++count;
        return true;
    });
    return count;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(heap_core)

BOOST_AUTO_TEST_CASE(an_address_finds_its_heap) {
    MemoryCore first;
    MemoryCore second;
    BOOST_TEST(heap::slot_of(first) != heap::slot_of(second));
    for (MemoryCore* core : {&first, &second}) {
        void* const durable = heap::allocate_durable(*core, 100, 16);
        BOOST_TEST(heap::core_at(durable) == core);
        BOOST_TEST(heap::in_durable(*core, durable));
        BOOST_TEST(heap::core_of_slot(heap::slot_of(*core)) == core);
        heap::deallocate(durable);
        BOOST_TEST(core->engine().stats().live_blocks == 0U);
    }
    int local = 0;
    BOOST_TEST(heap::core_at(&local) == nullptr);
    BOOST_TEST(heap::core_at(nullptr) == nullptr);
    BOOST_TEST(heap::core_at(reinterpret_cast<void*>(~std::uintptr_t{0})) == nullptr);
}

BOOST_AUTO_TEST_CASE(only_the_first_slot_names_a_heap) {
    const MemoryCore core(heap::slot_bytes + heap::slot_bytes / 2);
    const auto* const inside = reinterpret_cast<const std::byte*>(core.ranges().durable + heap::slot_bytes);
    BOOST_TEST(heap::core_at(inside) == &core);
    BOOST_TEST(heap::core_of_slot(heap::slot_of(core) + 1) == nullptr);
    BOOST_TEST(heap::core_of_slot(heap::slot_count + 5) == nullptr);
}

BOOST_AUTO_TEST_CASE(the_rest_of_its_last_slot_is_nobodys) {
    const MemoryCore core(1U << 20U);
    const auto* behind = reinterpret_cast<const std::byte*>(core.ranges().durable + core.ranges().durable_bytes);
    BOOST_TEST(heap::core_at(behind - 1) == &core);
    BOOST_TEST(heap::core_at(behind) == nullptr);
}

BOOST_AUTO_TEST_CASE(a_closed_heap_leaves_its_slots) {
    std::uint32_t slot = 0;
    {
        const MemoryCore core;
        slot = heap::slot_of(core);
        BOOST_TEST(open_count() == 1U);
    }
    BOOST_TEST(heap::core_of_slot(slot) == nullptr);
    BOOST_TEST(open_count() == 0U);
}

BOOST_AUTO_TEST_CASE(a_bad_free_is_reported_and_changes_nothing) {
    const Reports reports;
    MemoryCore core;
    void* orphan = nullptr;
    {
        MemoryCore closed;
        orphan = heap::allocate_durable(closed, 10, 16);
    }
    auto* const durable = static_cast<std::byte*>(heap::allocate_durable(core, 100, 16));
    int local = 0;
    heap::deallocate(nullptr);
    BOOST_TEST(Reports::entries().empty());
    for (void* bad : {static_cast<void*>(durable + 16), static_cast<void*>(&local), orphan}) heap::deallocate(bad);
    heap::deallocate(durable);
    BOOST_TEST(Reports::entries().size() == 3U);
    heap::deallocate(durable);
    const auto& entries = Reports::entries();
    BOOST_REQUIRE(entries.size() == 4U);
    for (const std::size_t doubled : {0U, 3U}) BOOST_TEST((entries[doubled].code == errc::double_free));
    for (const std::size_t foreign : {1U, 2U}) BOOST_TEST((entries[foreign].code == errc::foreign_pointer));
    BOOST_TEST(core.engine().stats().live_blocks == 0U);
}

BOOST_AUTO_TEST_CASE(a_heap_that_refuses_says_why_on_every_durable_call) {
    const Reports reports;
    MemoryCore core;
    void* const block = heap::allocate_durable(core, 100, 16);
    core.refuse(errc::poisoned);
    BOOST_CHECK_EXCEPTION(heap::allocate_durable(core, 1, 1), Error, [](const Error& e) { return has_code(e, errc::poisoned); });
    BOOST_CHECK_EXCEPTION(heap::add_named(core, "x", {block, 1, 1, "t"}), Error, [](const Error& e) { return has_code(e, errc::poisoned); });
    BOOST_CHECK_EXCEPTION(heap::remove_named(core, "x"), Error, [](const Error& e) { return has_code(e, errc::poisoned); });
    BOOST_TEST(!heap::find_named(core, "x").has_value());  // reading goes on
    heap::deallocate(block);
    BOOST_REQUIRE(Reports::entries().size() == 1U);
    BOOST_TEST((Reports::entries()[0].code == errc::poisoned));
    core.refuse(errc{});
    heap::deallocate(block);
    BOOST_TEST(core.engine().stats().live_blocks == 0U);
}

BOOST_AUTO_TEST_CASE(names_lead_to_objects_and_are_taken_once) {
    MemoryCore core;
    void* const object = heap::allocate_durable(core, 40, 8);
    heap::add_named(core, "index", {object, 40, 1, "type text"});
    const auto found = heap::find_named(core, "index");
    BOOST_REQUIRE(found.has_value());
    BOOST_TEST(found->object == object);
    BOOST_TEST(found->bytes == 40U);
    BOOST_TEST(found->fingerprint == "type text");
    BOOST_CHECK_EXCEPTION(heap::add_named(core, "index", *found), Error, [](const Error& e) {
        return has_code(e, errc::name_taken) && std::string(e.what()).find("memory.tyn: ") == 0 &&
               std::string(e.what()).find("'index'") != std::string::npos;
    });
    const std::string unknown;
    shape::TypeShape type{nullptr, &unknown};
    BOOST_CHECK_EXCEPTION(heap::check_type(core, "index", "i 4", "St4pairIiiE 8", type), Error, [](const Error& e) {
        const std::string text = e.what();
        return has_code(e, errc::type_mismatch) && text.find("constructed as int (4)") != std::string::npos &&
               text.find("std::pair<int, int> (8)") != std::string::npos;
    });
    BOOST_TEST(heap::remove_named(core, "index"));
    BOOST_TEST(!heap::remove_named(core, "index"));
}

BOOST_AUTO_TEST_CASE(the_scan_finds_what_leads_out_of_the_heap_and_nothing_else) {
    MemoryCore lower;
    MemoryCore core;
    MemoryCore upper;
    constexpr std::size_t words = 600;
    auto* const block = static_cast<std::uint64_t*>(heap::allocate_durable(core, words * 8, 4096));
    std::fill_n(block, words, 0U);
    auto* const scratch = static_cast<std::byte*>(heap::allocate_scratch(200, 16));
    auto* const below = static_cast<std::byte*>(heap::allocate_durable(lower, 5000, 16));
    auto* const above = static_cast<std::byte*>(heap::allocate_durable(upper, 24, 8));
    const auto number = [](const void* p) { return reinterpret_cast<std::uint64_t>(p); };
    const HeapOffset begin{number(block) - core.ranges().durable};
    const auto find = [&] { return heap::ForeignPointerScan(core).find(begin, words * 8); };

    for (std::size_t i = 0; i < words; ++i) block[i] = number(block + i);  // its own durable memory
    BOOST_TEST(!find().has_value());

    for (const std::size_t at : {std::size_t{0}, std::size_t{7}, std::size_t{8}, words - 1}) {
        for (const void* target : {static_cast<const void*>(scratch), static_cast<const void*>(below), static_cast<const void*>(above)}) {
            const std::uint64_t before = std::exchange(block[at], number(target));
            const auto found = find();
            BOOST_REQUIRE(found.has_value());
            BOOST_TEST(found->where.value == begin.value + at * 8);
            BOOST_TEST(found->target == number(target));
            block[at] = before;
        }
    }

    // The inside of a block, free memory and metadata: numbers, as far as anybody can tell.
    for (const std::byte* inside :
         {scratch + 16, below + 16, below + 4096, above + 8, above + 24 * 8, reinterpret_cast<std::byte*>(lower.ranges().durable)}) {
        block[3] = number(inside);
        BOOST_TEST(!find().has_value());
    }
    block[3] = number(scratch);
    heap::add_named(core, "table", {block, words * 8, 1, "t"});
    heap::ForeignPointerScan scan(core);
    scan.examine(begin, words * 8);
    BOOST_CHECK_EXCEPTION(scan.finish(), Error, [&](const Error& e) {
        return has_code(e, errc::foreign_pointer) && e.offset() == begin.value + 24 && std::string(e.what()).find("'table'") != std::string::npos;
    });
    heap::deallocate(scratch);
    BOOST_TEST(!find().has_value());  // no live block there any more

    void* const other = heap::allocate_scratch(64, 16);
    block[4] = number(other);
    BOOST_TEST(find().has_value());
    heap::remove_named(core, "table");
    heap::deallocate(block);
    BOOST_TEST(!find().has_value());  // free memory is nobody's pointer
    heap::deallocate(other);
    heap::deallocate(below);
    heap::deallocate(above);
}

BOOST_AUTO_TEST_CASE(what_others_see_as_the_beginning_of_a_block_is_one) {
    std::mt19937_64 random(taiyen::test::seed_of_run());
    MemoryCore core;
    std::vector<void*> live;
    for (unsigned i = 0; i < 4000; ++i) {
        const unsigned kind = random() % 16;
        const ByteCount bytes = kind == 0 ? 4096 + random() % 40000 : kind < 6 ? 24 + 16 * (random() % 7) : 1 + random() % 600;
        live.push_back(heap::allocate_durable(core, bytes, kind < 6 ? 8 : 16));
        if (random() % 3 == 0) {
            std::swap(live[random() % live.size()], live.back());
            heap::deallocate(live.back());
            live.pop_back();
        }
    }
    heap::add_named(core, "name", {live.front(), 1, 1, "t"});  // so there is a directory, which is no block of the program
    std::size_t found = 0;
    const std::uintptr_t end = core.ranges().durable + core.engine().extent() + 64 * 1024;
    for (std::uintptr_t at = core.ranges().durable; at < end; at += 8) {
        const auto* const address = reinterpret_cast<const void*>(at);
        const bool begins = core.engine().is_block(address);
        if (begins || random() % 16 == 0) BOOST_REQUIRE(core.begins_block(address) == begins);
        found += begins ? 1 : 0;
    }
    BOOST_TEST(found == live.size());
    BOOST_TEST(!core.begins_block(static_cast<const std::byte*>(live.front()) + 1));
    for (void* const block : live) heap::deallocate(block);
}

BOOST_AUTO_TEST_SUITE_END()
