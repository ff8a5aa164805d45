// repair() as a call; what the command makes of it is in tests/tool.

#include <boost/test/unit_test.hpp>

#include <taiyen/inspect/repair.hpp>

#include "store/heap_probe.hpp"

namespace {
using namespace probe;
}

BOOST_AUTO_TEST_SUITE(repairing)

BOOST_AUTO_TEST_CASE(nobody_can_open_the_heap_between_the_repair_and_the_second_look) {
    const ScratchDirectory dir;
    const auto path = dir / "a.tyn";
    {
        SnapshotHeap heap(create_only, path, small_heap());
        put(heap, "x", std::string(50'000, 'x'));
        heap.snapshot();
        heap.close();
    }
    flip_bit(path, store::FileLayout().file_offset({6 * page_bytes + 9}));
    std::vector<std::optional<errc>> told;  // what somebody else would be told, whenever something goes on
    const RepairReport report =
        repair(path, {}, [&](std::uint64_t, std::uint64_t) { told.push_back(code_of([&] { const ArchiveHeap other(open_read_only, path); })); });
    BOOST_TEST(report.before.findings.size() == 1U);
    BOOST_TEST(report.pages_healed == 1U);
    BOOST_TEST(report.after.ok());
    BOOST_TEST(report.after.pages_checked == report.before.pages_checked);
    BOOST_TEST(report.stopped == "");
    BOOST_TEST_REQUIRE(told.size() >= 2U);
    BOOST_TEST((told.front() != errc::busy));  // readers look at it together
    BOOST_TEST((told.back() == errc::busy));
    BOOST_TEST(ArchiveHeap(open_only, path).verify().ok());
}

BOOST_AUTO_TEST_CASE(a_sound_heap_is_not_opened_for_writing) {
    const ScratchDirectory dir;
    const auto path = dir / "a.tyn";
    {
        SnapshotHeap heap(create_only, path, small_heap());
        put(heap, "x", "y");
        heap.snapshot();
        heap.close();
    }
    const auto before = bytes_of(path);
    const RepairReport report = repair(path);
    BOOST_TEST(!report.opened);
    BOOST_TEST(report.after.ok());
    BOOST_TEST(report.after.pages_checked != 0U);
    BOOST_TEST((bytes_of(path) == before));
}

BOOST_AUTO_TEST_SUITE_END()
