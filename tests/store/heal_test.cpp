// Healing where the device refuses to read, and where a page of checksums is lost. Pages that one copy has wrong: bad_files_test, recovery_test.

#include <boost/test/unit_test.hpp>

#include <taiyen/base/report.hpp>

#include "io/disks/simulated_storage.hpp"
#include "store/heap_file.hpp"
#include "store/large_heap.hpp"

namespace {
using namespace probe;
using store::FileLayout;
using store::test::LargeHeap;
using store::test::page_in_chunk;
using store::test::place_of_page;

/// What heal() gives if it is to tell each loss.
struct HealedHeap {
    std::uint64_t pages = 0;
    std::vector<Error> lost;
    std::uint64_t done = 0;
    std::uint64_t total = 0;

    explicit HealedHeap(ArchiveHeap& heap) {
        pages = HeapAccess::file(heap).healing().heal([&](const Error& error) { lost.push_back(error); },
                                                      [&](std::uint64_t bytes_done, std::uint64_t bytes_total) {
                                                          BOOST_TEST(bytes_done > done);
                                                          done = bytes_done;
                                                          total = bytes_total;
                                                      });
    }
};
}  // namespace

BOOST_AUTO_TEST_SUITE(healing)

BOOST_AUTO_TEST_CASE(a_page_that_the_device_refuses_is_restored_from_the_other_copy) {
    LargeHeap closed(HeapKind::snapshot);
    ArchiveHeap heap = closed.open();
    for (const auto& victim : {closed.path, closed.data}) {
        for (const std::uint64_t page : page_in_chunk) closed.disk.refuse({victim, place_of_page(page)});
        const HealedHeap healed(heap);
        BOOST_TEST(healed.pages == 3U);
        BOOST_TEST(healed.lost.empty());
        BOOST_TEST(healed.done == healed.total);
        BOOST_TEST(closed.disk.refused() == 0U);
        BOOST_TEST(heap.heal() == 0U);
    }
    BOOST_TEST(heap.restoration().pages_healed == 6U);
    BOOST_TEST((get(heap, "text") == std::string(3U << 20U, 'x')));
}

BOOST_AUTO_TEST_CASE(a_first_page_that_opening_has_healed_is_whole_after_a_power_cut) {
    const std::filesystem::path path = "/disk/a.tyn";
    io::SimulatedStorage disk({.power_cuts = true});
    disk.add_directory("/disk");
    const auto open = [&](store::OpenMode mode) {
        return HeapAccess::make<ArchiveHeap>(store::HeapFile::open(disk, path, mode, HeapKind::snapshot, unverified()));
    };
    open(store::OpenMode::create_only).close();
    const auto first_page = [&] {
        std::vector<std::byte> page(page_bytes);
        disk.open(path, io::Access::read_only)->read(page, store::FileLayout().file_offset({0}));
        return page;
    };
    const auto whole = first_page();
    auto damaged = whole;
    damaged[2000] ^= std::byte{1};
    {
        const auto file = disk.open(path, io::Access::read_write);
        file->write(damaged, store::FileLayout().file_offset({0}));
        file->sync();
    }
    const ReportHandler handler = set_report_handler([](const Incident&) noexcept {});  // of the close without a disk
    {
        const ArchiveHeap heap = open(store::OpenMode::open_only);
        disk.power_cut();
    }
    set_report_handler(handler);
    BOOST_TEST((first_page() == whole));
}

BOOST_AUTO_TEST_CASE(a_page_that_the_device_refuses_in_both_copies_is_lost_and_told_once) {
    LargeHeap closed(HeapKind::snapshot);
    ArchiveHeap heap = closed.open();
    for (const auto& file : {closed.path, closed.data}) closed.disk.refuse({file, place_of_page(1100)});
    closed.disk.refuse({closed.data, place_of_page(1200)});
    const HealedHeap healed(heap);
    BOOST_TEST(healed.pages == 1U);
    BOOST_TEST_REQUIRE(healed.lost.size() == 1U);
    BOOST_TEST((healed.lost[0].code() == errc::corrupt));
    BOOST_TEST(healed.lost[0].offset() == place_of_page(1100));
    BOOST_TEST((code_of([&] { heap.heal(); }) == errc::corrupt));  // nobody is told: it throws
    BOOST_TEST(!HeapAccess::file(heap).condition().is_poisoned());
}

BOOST_AUTO_TEST_CASE(a_page_that_the_device_refuses_is_lost_without_a_second_copy_and_so_are_others_behind_it) {
    LargeHeap closed(HeapKind::archive);
    ArchiveHeap heap = closed.open();
    closed.disk.refuse({closed.path, place_of_page(1100)});
    closed.disk.refuse({closed.path, place_of_page(1200)});
    const HealedHeap healed(heap);
    BOOST_TEST(healed.pages == 0U);
    BOOST_TEST(healed.lost.size() == 2U);
    try {
        heap.heal();
        BOOST_TEST(false);
    } catch (const Error& error) {
        BOOST_TEST((error.code() == errc::corrupt));
        BOOST_TEST(error.offset() == place_of_page(1100));  // the first of them
    }
}

BOOST_AUTO_TEST_CASE(a_page_that_the_device_refuses_again_after_it_was_restored_poisons_the_heap) {
    LargeHeap closed(HeapKind::snapshot);
    ArchiveHeap heap = closed.open();
    closed.disk.refuse({closed.path, place_of_page(1100), false});
    BOOST_TEST((code_of([&] { heap.heal(); }) == errc::corrupt));
    BOOST_TEST(HeapAccess::file(heap).condition().is_poisoned());
    closed.disk.forgive();
    BOOST_TEST((code_of([&] { heap.heal(); }) == errc::poisoned));
}

BOOST_AUTO_TEST_CASE(a_table_page_that_the_device_refuses_is_written_again_from_memory) {
    LargeHeap closed(HeapKind::snapshot);
    ArchiveHeap heap = closed.open();
    BOOST_TEST(heap.heal() == 0U);  // and every table page is in memory
    for (const auto& victim : {closed.path, closed.data}) {
        for (const std::uint64_t index : {0U, 1U, 2U}) closed.disk.refuse({victim, FileLayout().table_offset(index)});
        BOOST_TEST(heap.heal() == 3U);
        BOOST_TEST(closed.disk.refused() == 0U);
        BOOST_TEST(heap.heal() == 0U);
    }
}

BOOST_AUTO_TEST_CASE(a_table_page_that_nobody_has_read_and_the_device_refuses_comes_from_the_other_copy) {
    LargeHeap closed(HeapKind::snapshot);
    ArchiveHeap heap = closed.open();
    closed.disk.refuse({closed.path, FileLayout().table_offset(1)});
    BOOST_TEST(heap.heal() == 1U);
    BOOST_TEST(closed.disk.refused() == 0U);
    BOOST_TEST(heap.heal() == 0U);
}

BOOST_AUTO_TEST_CASE(a_table_page_that_the_device_refuses_in_every_copy_is_told_and_keeps_nothing_else_from_being_restored) {
    for (const HeapKind kind : {HeapKind::archive, HeapKind::snapshot}) {
        LargeHeap closed(kind);
        ArchiveHeap heap = closed.open();
        const bool has_data = kind == HeapKind::snapshot;
        closed.disk.refuse({closed.path, FileLayout().table_offset(1)});
        if (has_data) {
            closed.disk.refuse({closed.data, FileLayout().table_offset(1)});
            closed.disk.refuse({closed.path, place_of_page(1200)});
        }
        const HealedHeap healed(heap);
        BOOST_TEST(healed.pages == (has_data ? 1U : 0U));
        BOOST_TEST_REQUIRE(healed.lost.size() == 1U);
        BOOST_TEST((healed.lost[0].code() == errc::io_error));
        BOOST_TEST(healed.lost[0].offset() == FileLayout().table_offset(1));
        BOOST_TEST((code_of([&] { heap.heal(); }) == errc::io_error));  // nobody is told: it throws
        closed.disk.forgive();
        BOOST_TEST(heap.heal() == 0U);
    }
}

BOOST_AUTO_TEST_CASE(a_process_that_can_not_read_for_another_reason_takes_no_page_for_damaged) {
    LargeHeap closed(HeapKind::snapshot);
    ArchiveHeap heap = closed.open();
    BOOST_TEST(heap.heal() == 0U);
    const auto before = closed.all_bytes();
    for (const std::uint64_t offset : {place_of_page(1100), FileLayout().table_offset(1)}) {
        closed.disk.refuse({closed.path, offset, true, errc::too_many_files});
        BOOST_TEST((code_of([&] { heap.heal(); }) == errc::too_many_files));
        BOOST_TEST(closed.disk.refused() == 1U);
        closed.disk.forgive();
    }
    BOOST_TEST((closed.all_bytes() == before));
    BOOST_TEST(heap.heal() == 0U);
}

BOOST_AUTO_TEST_CASE(a_lost_page_of_checksums_is_told_and_keeps_nothing_else_from_being_restored) {
    for (const HeapKind kind : {HeapKind::archive, HeapKind::snapshot}) {
        LargeHeap closed(kind);
        closed.lose_table_page(1);
        const bool has_data = kind == HeapKind::snapshot;
        if (has_data) {
            flip_bit(closed.path, place_of_page(1100) + 7);
            flip_bit(closed.data, place_of_page(1200) + 7);
        }
        ArchiveHeap heap = closed.open();
        const HealedHeap healed(heap);
        BOOST_TEST(healed.pages == (has_data ? 2U : 0U));
        BOOST_TEST_REQUIRE(healed.lost.size() == 1U);
        BOOST_TEST((healed.lost[0].code() == errc::corrupt));
        BOOST_TEST(healed.done < healed.total);
        BOOST_TEST((code_of([&] { heap.heal(); }) == errc::corrupt));
        BOOST_TEST(!HeapAccess::file(heap).condition().is_poisoned());
    }
}

BOOST_AUTO_TEST_CASE(of_two_lost_pages_of_checksums_the_first_one_is_thrown) {
    LargeHeap closed(HeapKind::archive);
    closed.lose_table_page(2);
    closed.lose_table_page(1);
    ArchiveHeap heap = closed.open();
    try {
        heap.heal();
        BOOST_TEST(false);
    } catch (const Error& error) {
        BOOST_TEST((error.code() == errc::corrupt));
        BOOST_TEST(error.offset() > FileLayout().table_offset(1));
        BOOST_TEST(error.offset() < FileLayout().table_offset(2));
    }
}

BOOST_AUTO_TEST_SUITE_END()
