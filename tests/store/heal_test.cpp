// Healing where the device refuses to read, and where a page of checksums is lost. Pages that one copy has wrong: bad_files_test, recovery_test.

#include <boost/test/unit_test.hpp>

#include "heap_probe.hpp"
#include "io/storage.hpp"
#include "store/geometry.hpp"
#include "store/refusing_storage.hpp"

namespace {
using namespace probe;
using store::FileLayout;
using store::HeapFile;
using store::OpenMode;
using store::test::RefusingStorage;

/// A heap over three chunks, so that it has three table pages, cleanly closed.
struct LargeHeap {
    ScratchDirectory dir;
    std::filesystem::path path = dir / "a.tyn";
    std::filesystem::path data = dir / "a.tyn.data";
    HeapKind kind;
    RefusingStorage disk{io::posix_storage()};

    explicit LargeHeap(HeapKind of_kind) : kind(of_kind) {
        auto heap = HeapAccess::make<ArchiveHeap>(HeapFile::open(disk, path, OpenMode::create_only, kind, small_heap()));
        put(heap, "text", std::string(3U << 20U, 'x'));
        heap.snapshot();
    }
    ArchiveHeap open() { return HeapAccess::make<ArchiveHeap>(HeapFile::open(disk, path, OpenMode::open_only, kind, small_heap())); }
    /// Makes an entry of that table page and its checksum others, in every file: nobody knows then what its page should be, and the headers stand for another table.
    void lose_table_page(std::uint64_t index) {
        for (const auto& file : {path, data}) {
            if (std::filesystem::exists(file)) {
                flip_bit(file, FileLayout().table_offset(index) + offsetof(store::TablePage, entries) + 100);
                flip_bit(file, FileLayout().table_offset(index) + offsetof(store::TablePage, checksum));
            }
        }
    }
    std::vector<std::vector<char>> all_bytes() const {
        return {bytes_of(path), std::filesystem::exists(data) ? bytes_of(data) : std::vector<char>()};
    }
};

/// Of each chunk a page in the middle of the text.
constexpr std::uint64_t page_in_chunk[] = {100, 300, 600};
std::uint64_t place_of_page(std::uint64_t page) { return FileLayout().file_offset({page * page_bytes}); }

/// What heal() gives if it is to tell each loss.
struct Healed {
    std::uint64_t pages = 0;
    std::vector<Error> lost;
    std::uint64_t done = 0;
    std::uint64_t total = 0;

    explicit Healed(ArchiveHeap& heap) {
        pages = HeapAccess::file(heap).heal([&](const Error& error) { lost.push_back(error); },
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
        for (const std::uint64_t page : page_in_chunk) {
            closed.disk.refuse({victim, place_of_page(page)});
        }
        const Healed healed(heap);
        BOOST_TEST(healed.pages == 3U);
        BOOST_TEST(healed.lost.empty());
        BOOST_TEST(healed.done == healed.total);
        BOOST_TEST(closed.disk.refused() == 0U);
        BOOST_TEST(heap.heal() == 0U);
    }
    BOOST_TEST(heap.restoration().pages_healed == 6U);
    BOOST_TEST((get(heap, "text") == std::string(3U << 20U, 'x')));
}

BOOST_AUTO_TEST_CASE(a_page_that_the_device_refuses_in_both_copies_is_lost_and_told_once) {
    LargeHeap closed(HeapKind::snapshot);
    ArchiveHeap heap = closed.open();
    for (const auto& file : {closed.path, closed.data}) {
        closed.disk.refuse({file, place_of_page(300)});
    }
    closed.disk.refuse({closed.data, place_of_page(600)});
    const Healed healed(heap);
    BOOST_TEST(healed.pages == 1U);
    BOOST_TEST_REQUIRE(healed.lost.size() == 1U);
    BOOST_TEST((healed.lost[0].code() == errc::corrupt));
    BOOST_TEST(healed.lost[0].offset() == place_of_page(300));
    BOOST_TEST((code_of([&] { heap.heal(); }) == errc::corrupt));  // nobody is told: it throws
    BOOST_TEST(!HeapAccess::file(heap).is_poisoned());
}

BOOST_AUTO_TEST_CASE(a_page_that_the_device_refuses_is_lost_without_a_second_copy_and_so_are_others_behind_it) {
    LargeHeap closed(HeapKind::archive);
    ArchiveHeap heap = closed.open();
    closed.disk.refuse({closed.path, place_of_page(100)});
    closed.disk.refuse({closed.path, place_of_page(600)});
    const Healed healed(heap);
    BOOST_TEST(healed.pages == 0U);
    BOOST_TEST(healed.lost.size() == 2U);
    try {
        heap.heal();
        BOOST_TEST(false);
    } catch (const Error& error) {
        BOOST_TEST((error.code() == errc::corrupt));
        BOOST_TEST(error.offset() == place_of_page(100));  // the first of them
    }
}

BOOST_AUTO_TEST_CASE(a_page_that_the_device_refuses_again_after_it_was_restored_poisons_the_heap) {
    LargeHeap closed(HeapKind::snapshot);
    ArchiveHeap heap = closed.open();
    closed.disk.refuse({closed.path, place_of_page(300), false});
    BOOST_TEST((code_of([&] { heap.heal(); }) == errc::corrupt));
    BOOST_TEST(HeapAccess::file(heap).is_poisoned());
    closed.disk.forgive();
    BOOST_TEST((code_of([&] { heap.heal(); }) == errc::poisoned));
}

BOOST_AUTO_TEST_CASE(a_table_page_that_the_device_refuses_is_written_again_from_memory) {
    LargeHeap closed(HeapKind::snapshot);
    ArchiveHeap heap = closed.open();
    BOOST_TEST(heap.heal() == 0U);  // and every table page is in memory
    for (const auto& victim : {closed.path, closed.data}) {
        for (const std::uint64_t index : {0U, 1U, 2U}) {
            closed.disk.refuse({victim, FileLayout().table_offset(index)});
        }
        BOOST_TEST(heap.heal() == 3U);
        BOOST_TEST(closed.disk.refused() == 0U);
        BOOST_TEST(heap.heal() == 0U);
    }
}

BOOST_AUTO_TEST_CASE(a_table_page_that_nobody_has_read_and_the_device_refuses_is_an_error_that_names_it) {
    LargeHeap closed(HeapKind::snapshot);
    ArchiveHeap heap = closed.open();
    closed.disk.refuse({closed.path, FileLayout().table_offset(1)});
    const auto before = closed.all_bytes();
    try {
        heap.heal();
        BOOST_TEST(false);
    } catch (const Error& error) {
        BOOST_TEST((error.code() == errc::io_error));
        BOOST_TEST(error.offset() == FileLayout().table_offset(1));
    }
    BOOST_TEST((code_of([&] { Healed{heap}; }) == errc::io_error));  // it is no loss to be told
    BOOST_TEST((closed.all_bytes() == before));
    closed.disk.forgive();
    BOOST_TEST(heap.heal() == 0U);
}

BOOST_AUTO_TEST_CASE(a_process_that_can_not_read_for_another_reason_takes_no_page_for_damaged) {
    LargeHeap closed(HeapKind::snapshot);
    ArchiveHeap heap = closed.open();
    BOOST_TEST(heap.heal() == 0U);
    const auto before = closed.all_bytes();
    for (const std::uint64_t offset : {place_of_page(300), FileLayout().table_offset(1)}) {
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
            flip_bit(closed.path, place_of_page(100) + 7);
            flip_bit(closed.data, place_of_page(600) + 7);
        }
        ArchiveHeap heap = closed.open();
        const Healed healed(heap);
        BOOST_TEST(healed.pages == (has_data ? 2U : 0U));
        BOOST_TEST_REQUIRE(healed.lost.size() == 1U);
        BOOST_TEST((healed.lost[0].code() == errc::corrupt));
        BOOST_TEST(healed.done < healed.total);
        BOOST_TEST((code_of([&] { heap.heal(); }) == errc::corrupt));
        BOOST_TEST(!HeapAccess::file(heap).is_poisoned());
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
