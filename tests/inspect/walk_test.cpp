// Blocks and names of heaps of all kinds, one after the other, and verify() of volatile ones.

#include <boost/test/unit_test.hpp>

#include <taiyen/base/report.hpp>
#include <taiyen/heap/volatile_heap.hpp>
#include <taiyen/inspect/report.hpp>
#include <taiyen/inspect/walk.hpp>
#include <taiyen/txn/transaction.hpp>
#include <taiyen/txn/transactional_heap.hpp>

#include <algorithm>
#include <cstring>
#include <random>
#include <set>

#include "heap/core.hpp"
#include "heap/engine.hpp"
#include "heap/geometry.hpp"
#include "seed.hpp"
#include "store/heap_probe.hpp"

namespace {
using namespace probe;

template <class Heap>
void check_walk(Heap& heap, const std::set<void*>& made) {
    std::set<void*> seen;
    const void* before = nullptr;
    for_each_block(heap, [&](const HeapBlock& block) {
        BOOST_TEST(block.address > before);
        BOOST_TEST(reinterpret_cast<std::uintptr_t>(block.address) - block.offset == heap.core()->ranges().durable);
        BOOST_TEST(block.bytes == heap.usable_size(block.address));
        before = block.address;
        seen.insert(block.address);
        return true;
    });
    BOOST_TEST(std::includes(seen.begin(), seen.end(), made.begin(), made.end()));
    std::size_t visited = 0;
    for_each_block(heap, [&](const HeapBlock&) { return ++visited < 3; });
    BOOST_TEST(visited == 3U);
    std::vector<std::string> names;
    for_each_name(heap, [&](const StoredObject& object) {
        names.push_back(object.name);
        BOOST_TEST(object.fingerprint == "int");
        return true;
    });
    BOOST_TEST((names == std::vector<std::string>{"a", "b", "c"}));
    names.clear();
    for_each_name(heap, [&](const StoredObject& object) {
        names.push_back(object.name);
        return false;
    });
    BOOST_TEST((names == std::vector<std::string>{"a"}));
}

template <class Heap>
std::set<void*> fill(Heap& heap) {
    for (const char* name : {"b", "a", "c"}) heap::add_named(*heap.core(), name, {heap.allocate(4), 4, 1, "int"});
    std::set<void*> made;
    for (std::size_t i = 0; i < 500; ++i) made.insert(heap.allocate(16 + i * 37 % 9000));
    for (int i = 0; i < 100; ++i) {
        heap.deallocate(*made.begin());
        made.erase(made.begin());
    }
    return made;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(walks)

BOOST_AUTO_TEST_CASE(every_block_and_every_name_is_visited_of_a_heap_of_any_kind) {
    const ScratchDirectory dir;
    {
        ArchiveHeap heap(create_only, dir / "a.tyn", small_heap(32U << 20U));
        check_walk(heap, fill(heap));
    }
    {
        SnapshotHeap heap(create_only, dir / "s.tyn", small_heap(32U << 20U));
        check_walk(heap, fill(heap));
    }
    {
        TransactionalHeap heap(create_only, dir / "t.tyn", small_heap(32U << 20U));
        Transaction transaction(heap);
        const std::set<void*> made = fill(heap);
        transaction.commit();
        check_walk(heap, made);
    }
    for (const bool guarded : {false, true}) {
        VolatileOptions options;
        options.guarded = guarded;
        VolatileHeap heap(options);
        check_walk(heap, fill(heap));
        heap.close();
        BOOST_TEST((code_of([&] { for_each_block(heap, [](const HeapBlock&) { return true; }); }) == errc::closed));
        BOOST_TEST((code_of([&] { for_each_name(heap, [](const StoredObject&) { return true; }); }) == errc::closed));
        BOOST_TEST((code_of([&] { (void)verify(heap); }) == errc::closed));
    }
}

BOOST_AUTO_TEST_CASE(a_sound_volatile_heap_is_found_sound_guarded_or_not) {
    for (const bool guarded : {false, true}) {
        VolatileOptions options;
        options.guarded = guarded;
        VolatileHeap heap(options);
        const std::size_t live = fill(heap).size();
        const Report report = verify(heap);
        for (const Finding& finding : report.findings) BOOST_ERROR(finding.offset << ": " << finding.what);
        BOOST_TEST(report.blocks_checked >= live);
        BOOST_TEST(report.pages_checked > 0U);
    }
}

BOOST_AUTO_TEST_CASE(damage_to_the_metadata_of_a_volatile_heap_is_found_and_crashes_nothing) {
    std::mt19937_64 random(taiyen::test::seed_of_run());
    VolatileHeap heap({.capacity = 8U << 20U});
    const std::set<void*> made = fill(heap);
    auto* const base = reinterpret_cast<std::byte*>(heap.core()->ranges().durable);
    const heap::Geometry geometry(8U << 20U);
    const std::size_t metadata = geometry.region(0).first_user * page_bytes;
    unsigned found = 0;
    constexpr unsigned flips = 400;
    for (unsigned i = 0; i < flips; ++i) {
        std::byte& byte = base[random() % metadata];
        const std::byte bit{static_cast<unsigned char>(1U << (random() % 8))};
        byte ^= bit;
        found += verify(heap).ok() ? 0U : 1U;
        byte ^= bit;
    }
    BOOST_TEST(found > flips / 5);  // what parts a block in two, and what nothing uses, contradicts nothing
    BOOST_TEST(verify(heap).ok());
    for (void* block : made) heap.deallocate(block);
    BOOST_TEST(verify(heap).ok());
}

/// A stray store, as code does it that no sanitizer looks at.
[[gnu::no_sanitize_address]] [[gnu::noinline]] void flip(volatile char* place) { *place = static_cast<char>(~*place); }

BOOST_AUTO_TEST_CASE(a_store_behind_a_block_of_a_guarded_heap_is_a_finding) {
    const ReportHandler before = set_report_handler([](const Incident&) noexcept {});
    VolatileOptions options;
    options.guarded = true;
    VolatileHeap heap(options);
    auto* const block = static_cast<char*>(heap.allocate(48));
    BOOST_TEST(verify(heap).ok());
    char* const behind = block + heap.usable_size(block);
    flip(behind);
    BOOST_TEST(!verify(heap).ok());
    flip(behind);
    heap.deallocate(block);
    set_report_handler(before);
}

BOOST_AUTO_TEST_SUITE_END()
