// Where heaps lie, and how much address space they take.

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <memory>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <taiyen/heap/volatile_heap.hpp>

#include "base/sanitizers.hpp"
#include "heap/scratch.hpp"
#include "store/header.hpp"
#include "store/heap_probe.hpp"
#include "vm/address_space.hpp"

namespace {

using namespace probe;

constexpr std::uintptr_t slot = heap::slot_bytes;

std::uintptr_t base_of(const ArchiveHeap& heap) { return heap.core()->ranges().durable; }

/// An address at which a heap would lie, with `slots` of 4 GiB free.
std::uintptr_t free_place(std::uintptr_t slots) {
    const vm::Zone zone = vm::default_zone();
    const auto place = vm::find_free(slots * slot, slot, vm::Placement::high, zone.first, zone.last);
    BOOST_REQUIRE(place.has_value());
    return *place + heap::base_alignment;
}

PersistentOptions at(std::uintptr_t address, std::size_t capacity) {
    PersistentOptions options = small_heap();
    options.address = address;
    options.capacity = capacity;
    return options;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(placement)

BOOST_AUTO_TEST_CASE(a_heap_lies_at_the_end_of_the_zone_that_it_is_told_and_stays_there) {
    ScratchDirectory dir;
    PersistentOptions options = small_heap();
    const auto make = [&](const char* name, Placement placement) {
        options.placement = placement;
        return std::make_unique<ArchiveHeap>(create_only, dir / name, options);
    };
    auto low = make("low.tyn", Placement::low);
    const auto second = make("second.tyn", Placement::low);
    const auto high = make("high.tyn", Placement::high);
    const auto usual = make("usual.tyn", Placement::automatic);
    const std::uintptr_t lowest = base_of(*low);
    BOOST_TEST(lowest < base_of(*second));
    BOOST_TEST(base_of(*second) < base_of(*usual));
    BOOST_TEST(base_of(*usual) < base_of(*high));
    low.reset();
    options.placement = Placement::high;
    BOOST_TEST(base_of(ArchiveHeap(open_only, dir / "low.tyn", options)) == lowest);
}

BOOST_AUTO_TEST_CASE(a_heap_begins_where_small_numbers_and_text_lead_nowhere) {
    ScratchDirectory dir;
    for (int i = 0; i < 20; ++i) {
        const ArchiveHeap heap(create_only, dir / ("a" + std::to_string(i) + ".tyn"), small_heap());
        BOOST_TEST(base_of(heap) % slot == 0x8000'0000U);
        const vm::Zone zone = vm::default_zone();
        BOOST_TEST((base_of(heap) >= zone.first && base_of(heap) < zone.last));
#if !defined(TAIYEN_THREAD_SANITIZER)
        const std::uintptr_t fifth = base_of(heap) >> 40U;
        BOOST_TEST((fifth >= 0x11U && fifth < 0x1cU));  // no text, and behind the address sanitizer's shadow
#endif
    }
    const VolatileHeap other({.capacity = 1U << 20U});
    BOOST_TEST(other.core()->ranges().durable % slot == 0x8000'0000U);
    void* const scratch = heap::allocate_scratch(100, 16);
    BOOST_TEST(reinterpret_cast<std::uintptr_t>(scratch) % slot >= 0x8000'0000U);
    heap::deallocate(scratch);
}

BOOST_AUTO_TEST_CASE(a_heap_takes_addresses_as_it_grows) {
    ScratchDirectory dir;
    PersistentOptions options;
    options.capacity = std::size_t{1} << 40U;
    ArchiveHeap heap(create_only, dir / "a.tyn", options);
    BOOST_TEST(heap.core()->reserved_bytes() == 16U << 20U);
    void* const block = heap.allocate(100U << 20U);
    BOOST_TEST(heap.core()->reserved_bytes() >= 100U << 20U);
    BOOST_TEST(heap.core()->reserved_bytes() <= 512U << 20U);
    BOOST_TEST(heap.owns(block));
    heap.snapshot();
    heap.close();
    const ArchiveHeap again(open_only, dir / "a.tyn");
    BOOST_TEST(again.core()->reserved_bytes() <= 512U << 20U);
    BOOST_TEST(again.owns(block));
}

BOOST_AUTO_TEST_CASE(a_heap_grows_up_to_who_lies_behind_it_and_is_full_then) {
    ScratchDirectory dir;
    const std::uintptr_t place = free_place(4);
    ArchiveHeap heap(create_only, dir / "a.tyn", at(place, 16U << 20U << 10U));
    const vm::Reservation behind(place + (100U << 20U), page_bytes);
    heap.allocate(20U << 20U);
    BOOST_CHECK_EXCEPTION(heap.allocate(40U << 20U), HeapFull, [&](const HeapFull& full) {
        return full.cause() == HeapFull::Cause::neighbor && names_heap(full, dir / "a.tyn") &&
               std::string(full.what()).find("taiyen rebase") != std::string::npos;
    });
    void* const small = heap.allocate(5U << 20U);  // nothing was changed, and what fits still does
    heap.snapshot();
    BOOST_TEST(HeapAccess::file(heap).engine().check(1).empty());
    BOOST_TEST(heap.owns(small));
}

BOOST_AUTO_TEST_CASE(two_heaps_share_no_slot) {
    ScratchDirectory dir;
    const std::uintptr_t place = free_place(2);
    const ArchiveHeap heap(create_only, dir / "a.tyn", at(place - heap::base_alignment, 1U << 20U));
    BOOST_CHECK_EXCEPTION(ArchiveHeap(create_only, dir / "b.tyn", at(place, 1U << 20U)), Error,
                          [](const Error& error) { return error.code() == errc::address_in_use; });
    BOOST_TEST(!std::filesystem::exists(dir / "b.tyn"));
    BOOST_TEST(heap::core_at(reinterpret_cast<const void*>(place)) == nullptr);
}

BOOST_AUTO_TEST_CASE(a_new_heap_keeps_away_from_where_open_ones_may_grow) {
    ScratchDirectory dir;
    std::vector<std::unique_ptr<ArchiveHeap>> heaps;
    PersistentOptions options = small_heap();
    options.capacity = std::size_t{64} << 30U;
#if defined(TAIYEN_THREAD_SANITIZER)
    constexpr int count = 4;
#else
    constexpr int count = 40;
#endif
    for (int i = 0; i < count; ++i) heaps.push_back(std::make_unique<ArchiveHeap>(create_only, dir / ("a" + std::to_string(i) + ".tyn"), options));
    for (const auto& one : heaps)
        for (const auto& other : heaps)
            BOOST_TEST((one == other || base_of(*one) + options.capacity <= base_of(*other) || base_of(*other) + options.capacity <= base_of(*one)));
}

BOOST_AUTO_TEST_CASE(a_heap_opens_where_another_may_grow_to) {
    ScratchDirectory dir;
    const std::uintptr_t place = free_place(8);
    { ArchiveHeap(create_only, dir / "behind.tyn", at(place + 2 * slot, 1U << 20U)); }
    ArchiveHeap heap(create_only, dir / "a.tyn", at(place, 6 * slot));
    ArchiveHeap behind(open_only, dir / "behind.tyn");
    put(behind, "x", "here");
    BOOST_TEST(heap::core_at(reinterpret_cast<const void*>(base_of(behind))) == behind.core());
    BOOST_TEST(!heap.owns(reinterpret_cast<const void*>(base_of(behind))));
}

BOOST_AUTO_TEST_CASE(a_heap_that_grew_before_its_user_was_killed_says_at_opening_who_lies_behind_it_now) {
    ScratchDirectory dir;
    const std::uintptr_t place = free_place(4);
    {
        ArchiveHeap heap(create_only, dir / "a.tyn", at(place, 8U << 20U << 10U));
        put(heap, "x", "here");
        heap.snapshot();
        heap.allocate(100U << 20U);  // saved by one record, which the files don't hold yet
        heap.snapshot();
        crash_copy(dir / "a.tyn", dir / "copy.tyn");
    }
    {
        const vm::Reservation behind(place + (40U << 20U), page_bytes);
        BOOST_CHECK_EXCEPTION(ArchiveHeap(open_only, dir / "copy.tyn"), Error, [](const Error& error) {
            return error.code() == errc::address_in_use && std::string(error.what()).find("taiyen rebase") != std::string::npos;
        });
    }
    BOOST_TEST(get(ArchiveHeap(open_only, dir / "copy.tyn"), "x") == "here");
}

BOOST_AUTO_TEST_CASE(the_first_4_gib_are_no_place_for_a_heap) {
    ScratchDirectory dir;
    BOOST_TEST((code_of([&] { ArchiveHeap(create_only, dir / "a.tyn", at(heap::base_alignment, 1U << 20U)); }) == errc::invalid_argument));
    BOOST_TEST(!store::is_base(heap::base_alignment, 1U << 20U));
    BOOST_TEST(store::is_base(heap::slot_bytes, 1U << 20U));
}

BOOST_AUTO_TEST_CASE(addresses_that_a_heap_has_not_reserved_are_not_its_own) {
    ScratchDirectory dir;
    const ArchiveHeap heap(create_only, dir / "a.tyn", at(free_place(2), slot));
    const auto* const behind = reinterpret_cast<const std::byte*>(base_of(heap) + heap.core()->reserved_bytes());
    BOOST_TEST(heap::core_at(behind - 1) == heap.core());
    BOOST_TEST(heap::core_at(behind) == nullptr);
}

#if !defined(TAIYEN_ADDRESS_SANITIZER) && !defined(TAIYEN_THREAD_SANITIZER)
BOOST_AUTO_TEST_CASE(heaps_open_in_a_process_with_little_address_space) {
    if (const auto [first, last] = heap::scratch_used(); first != last)
        return;  // other cases came first and took addresses; ctest runs each case alone
    ScratchDirectory dir;
    const pid_t child = ::fork();
    BOOST_REQUIRE(child >= 0);
    if (child == 0) {
        int ended = 1;
        try {
            const rlimit limit{6'144'000'000U, 6'144'000'000U};  // ulimit -v 6000000
            if (::setrlimit(RLIMIT_AS, &limit) == 0) {
                ArchiveHeap small(create_only, dir / "small.tyn", small_heap());
                SnapshotHeap usual(create_only, dir / "usual.tyn");
                put(small, "x", "1");
                put(usual, "x", "1");
                small.snapshot();
                usual.snapshot();
                ended = 0;
            }
        } catch (const std::exception& error) {
            std::fprintf(stderr, "%s\n", error.what());
        }
        ::_exit(ended);
    }
    int status = 0;
    BOOST_REQUIRE(::waitpid(child, &status, 0) == child);
    BOOST_TEST(status == 0);
}
#endif

BOOST_AUTO_TEST_SUITE_END()
