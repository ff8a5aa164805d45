// A device that refuses to read: what one of two copies refuses comes from the other one, as what it has wrong does; where nobody has it the error is the device's own.

#include <fstream>

#include <boost/test/unit_test.hpp>

#include "base/aligned_buffer.hpp"
#include "store/large_heap.hpp"

namespace {
using namespace probe;
using store::FileLayout;
using store::header_slot_bytes;
using store::HeapFile;
using store::OpenMode;
using store::TablePage;
using store::Via;
using store::test::LargeHeap;
using store::test::place_of_page;

const std::string text(3U << 20U, 'x');

/// Pages of the text, and the table page of them; another table page.
constexpr std::uint64_t text_page = 1200;
constexpr std::uint64_t early_page = 1100;
constexpr std::uint64_t late_page = 1700;
const std::uint64_t text_table = store::place_of({text_page}).table_page;
constexpr std::uint64_t other_table = 1;

std::uint64_t place_of_table(std::uint64_t index) { return FileLayout().table_offset(index); }

/// That the action throws what the device said of the page at `offset`.
template <class F>
void check_refused(std::uint64_t offset, F&& action) {
    try {
        action();
        BOOST_TEST(false, "nothing was refused");
    } catch (const Error& error) {
        BOOST_TEST((error.code() == errc::io_error));
        BOOST_TEST(error.offset() == offset);
        BOOST_TEST(std::string(error.what()).find("the test refuses") != std::string::npos);
    }
}

/// Where the heap's page lies in memory; of the text, all of it.
char* at_page(const ArchiveHeap& heap, std::uint64_t page) { return reinterpret_cast<char*>(heap.core()->ranges().durable + page * page_bytes); }

/// Makes the table page's checksum another one in all files; its entries stand.
void tear_table_page(const LargeHeap& closed, std::uint64_t index) {
    for (const auto& file : {closed.path, closed.data}) flip_bit(file, place_of_table(index) + offsetof(TablePage, checksum));
}

/// Makes both header slots damaged.
void lose_header(const std::filesystem::path& file) {
    for (const std::uint64_t slot : {0U, 1U}) flip_bit(file, slot * header_slot_bytes + 100);
}
}  // namespace

BOOST_AUTO_TEST_SUITE(unreadable)

BOOST_AUTO_TEST_CASE(a_copy_takes_a_page_that_the_device_refuses_from_the_data_file) {
    LargeHeap closed(HeapKind::snapshot);
    ArchiveHeap heap = closed.open();
    for (const std::uint64_t page : {early_page, text_page, late_page}) closed.disk.refuse({closed.path, place_of_page(page)});
    HeapAccess::file(heap).companions().write_copy(closed.dir / "copy.tyn");
    heap.close();
    std::filesystem::create_directory(closed.dir / "alone");
    std::filesystem::rename(closed.dir / "copy.tyn", closed.dir / "alone/copy.tyn");
    ArchiveHeap copy(open_only, closed.dir / "alone/copy.tyn");
    BOOST_TEST(copy.heal() == 0U);
    BOOST_TEST(HeapAccess::file(copy).engine().check(1).empty());
    BOOST_TEST((get(copy, "text") == text));
}

BOOST_AUTO_TEST_CASE(a_copy_of_a_page_that_nobody_can_read_is_the_devices_error_and_there_is_no_copy) {
    for (const HeapKind kind : {HeapKind::archive, HeapKind::snapshot}) {
        LargeHeap closed(kind);
        ArchiveHeap heap = closed.open();
        for (const auto& file : {closed.path, closed.data}) closed.disk.refuse({file, place_of_page(text_page)});
        check_refused(place_of_page(text_page), [&] { HeapAccess::file(heap).companions().write_copy(closed.dir / "copy.tyn"); });
        BOOST_TEST(!std::filesystem::exists(closed.dir / "copy.tyn"));
        BOOST_TEST(!HeapAccess::file(heap).condition().is_poisoned());
        closed.disk.forgive();
        HeapAccess::file(heap).companions().write_copy(closed.dir / "copy.tyn");
    }
}

BOOST_AUTO_TEST_CASE(a_header_slot_that_the_device_refuses_is_written_again_from_the_other_one) {
    for (const char* suffix : {"", ".data"}) {
        for (const std::uint64_t slot : {0U, 1U}) {
            LargeHeap closed(HeapKind::snapshot);
            closed.disk.refuse({closed.path.string() + suffix, slot * header_slot_bytes});
            ArchiveHeap heap = closed.open();
            BOOST_TEST(heap.restoration().headers_repaired == 1U);
            BOOST_TEST((get(heap, "text") == text));
            heap.snapshot();
            heap.close();
            BOOST_TEST(closed.disk.refused() == 0U);
        }
    }
}

BOOST_AUTO_TEST_CASE(a_header_that_the_device_refuses_altogether_is_an_error_and_nothing_is_written) {
    for (const char* suffix : {"", ".data"}) {
        LargeHeap closed(HeapKind::snapshot);
        const auto before = closed.all_bytes();
        for (const std::uint64_t slot : {0U, 1U}) closed.disk.refuse({closed.path.string() + suffix, slot * header_slot_bytes});
        BOOST_TEST((code_of([&] { closed.open(); }) == errc::io_error));
        BOOST_TEST((closed.all_bytes() == before));
    }
}

BOOST_AUTO_TEST_CASE(what_is_no_heap_as_far_as_the_device_reads_it_is_the_devices_error) {
    ScratchDirectory dir;
    std::ofstream(dir / "a.tyn") << std::string(3 * header_slot_bytes, 'x');
    for (const std::uint64_t slot : {0U, 1U}) {
        store::test::RefusingStorage disk(io::posix_storage());
        disk.refuse({dir / "a.tyn", slot * header_slot_bytes});
        BOOST_TEST((code_of([&] { HeapFile::open(disk, dir / "a.tyn", OpenMode::open_only, HeapKind::archive, small_heap()); }) == errc::io_error));
        disk.forgive();
        BOOST_TEST((code_of([&] { HeapFile::open(disk, dir / "a.tyn", OpenMode::open_only, HeapKind::archive, small_heap()); }) == errc::not_a_heap));
    }
}

BOOST_AUTO_TEST_CASE(a_header_with_one_slot_refused_and_the_other_damaged_is_rebuilt_from_the_data_file) {
    LargeHeap closed(HeapKind::snapshot);
    flip_bit(closed.path, 100);
    closed.disk.refuse({closed.path, header_slot_bytes});
    ArchiveHeap heap = closed.open();
    BOOST_TEST(heap.restoration().backing_rebuilt);
    BOOST_TEST((get(heap, "text") == text));
}

BOOST_AUTO_TEST_CASE(the_first_page_comes_from_the_data_file_if_the_device_refuses_it) {
    LargeHeap closed(HeapKind::snapshot);
    const auto before = closed.all_bytes();
    closed.disk.refuse({closed.path, place_of_page(0)});
    {
        const auto reader = HeapAccess::make<ArchiveHeap>(HeapFile::open(closed.disk, closed.path, OpenMode::read_only, closed.kind, small_heap()));
        BOOST_TEST((get(reader, "text") == text));
        BOOST_TEST((closed.all_bytes() == before));
        BOOST_TEST(closed.disk.refused() == 1U);
    }
    ArchiveHeap heap = closed.open();
    BOOST_TEST(closed.disk.refused() == 0U);
    BOOST_TEST(heap.restoration().pages_healed == 1U);
    BOOST_TEST((get(heap, "text") == text));
    BOOST_TEST(heap.heal() == 0U);
    closed.disk.refuse({closed.path, place_of_page(0)});
    closed.disk.refuse({closed.data, place_of_page(0)});
    heap.close();
    check_refused(place_of_page(0), [&] { closed.open(); });
}

BOOST_AUTO_TEST_CASE(recovery_fills_a_data_file_over_pages_that_the_device_refuses_there) {
    LargeHeap closed(HeapKind::snapshot);
    {
        ArchiveHeap heap = closed.open();
        std::memset(at_page(heap, late_page), 0, page_bytes);
        heap.snapshot();
    }
    lose_header(closed.data);
    closed.disk.refuse({closed.data, place_of_page(early_page)});
    closed.disk.refuse({closed.data, place_of_page(late_page)});
    closed.disk.refuse({closed.data, place_of_table(text_table)});
    ArchiveHeap heap = closed.open();
    BOOST_TEST(heap.restoration().data_rebuilt);
    BOOST_TEST(closed.disk.refused() == 0U);
    BOOST_TEST(heap.heal() == 0U);
    BOOST_TEST(*at_page(heap, early_page) == 'x');
    BOOST_TEST(*at_page(heap, late_page) == 0);
}

BOOST_AUTO_TEST_CASE(recovery_installs_a_journal_over_table_pages_that_the_device_refuses) {
    LargeHeap closed(HeapKind::snapshot);
    const auto copy = closed.dir / "crashed.tyn";
    {
        ArchiveHeap heap = closed.open();
        *at_page(heap, text_page) = 'y';
        heap.snapshot();
        crash_copy(closed.path, copy);
    }
    closed.path = copy;
    closed.data = copy.string() + ".data";
    closed.disk.refuse({closed.path, place_of_table(text_table)});
    closed.disk.refuse({closed.path, place_of_table(other_table)});
    ArchiveHeap heap = closed.open();
    BOOST_TEST(heap.restoration().snapshots_replayed == 1U);
    BOOST_TEST(closed.disk.refused() == 1U);  // what was changed is written
    BOOST_TEST(heap.heal() == 1U);            // and this is the rest
    BOOST_TEST(closed.disk.refused() == 0U);
    BOOST_TEST(heap.heal() == 0U);
    BOOST_TEST(*at_page(heap, text_page) == 'y');
    BOOST_TEST(at_page(heap, text_page)[1] == 'x');
}

BOOST_AUTO_TEST_CASE(a_torn_table_page_is_rebuilt_over_pages_that_only_the_data_file_has_whole) {
    for (const bool is_refused : {true, false}) {
        LargeHeap closed(HeapKind::snapshot);
        tear_table_page(closed, text_table);
        if (is_refused)
            closed.disk.refuse({closed.path, place_of_page(text_page)});
        else
            flip_bit(closed.path, place_of_page(text_page) + 9);
        ArchiveHeap heap = closed.open();
        BOOST_TEST(heap.heal() >= 1U);
        BOOST_TEST(closed.disk.refused() == 0U);
        BOOST_TEST(heap.heal() == 0U);
    }
}

BOOST_AUTO_TEST_CASE(a_torn_table_page_over_a_page_that_nobody_can_read_is_the_devices_error) {
    LargeHeap closed(HeapKind::snapshot);
    tear_table_page(closed, text_table);
    for (const auto& file : {closed.path, closed.data}) closed.disk.refuse({file, place_of_page(text_page)});
    ArchiveHeap heap = closed.open();
    check_refused(place_of_page(text_page), [&] { heap.heal(); });
}

BOOST_AUTO_TEST_CASE(a_save_asks_for_no_page_that_was_proven_before) {
    LargeHeap closed(HeapKind::snapshot);
    ArchiveHeap heap = closed.open();
    *at_page(heap, text_page) = 'y';
    heap.snapshot();
    closed.disk.refuse({closed.path, place_of_page(text_page)});
    std::memset(at_page(heap, early_page), 'z', 400 * page_bytes);  // a large save, which reads its bases by runs
    heap.snapshot();
    BOOST_TEST(heap.heal() == 0U);
}

BOOST_AUTO_TEST_CASE(a_save_on_top_of_a_page_that_the_device_refuses_is_refused_and_the_heap_goes_on) {
    for (const std::size_t pages : {1U, 300U}) {
        LargeHeap closed(HeapKind::snapshot);
        ArchiveHeap heap = closed.open();
        std::memset(at_page(heap, text_page), 'y', pages * page_bytes);
        closed.disk.refuse({closed.path, place_of_page(text_page)});
        // What the program stored can't be told from what may have rotted below it: only the page as it was could.
        check_refused(place_of_page(text_page), [&] { heap.snapshot(); });
        BOOST_TEST(!HeapAccess::file(heap).condition().is_poisoned());
        closed.disk.forgive();
        heap.snapshot();
        BOOST_TEST(heap.heal() == 0U);
    }
}

BOOST_AUTO_TEST_CASE(what_was_committed_on_top_of_a_page_that_the_device_refuses_is_saved_from_the_data_file) {
    LargeHeap closed(HeapKind::snapshot);
    PersistentOptions options = small_heap();
    options.data_file = closed.data;
    options.log_capacity = 256U << 10U;
    const auto file = HeapFile::open(closed.disk, closed.path, OpenMode::open_only, HeapKind::transactional, options);
    const AlignedBuffer image(page_bytes);
    closed.disk.refuse({closed.path, place_of_page(text_page)});
    file->saves().read_base({text_page}, image.span());
    BOOST_TEST(static_cast<char>(image.data()[7]) == 'x');
    closed.disk.refuse({closed.data, place_of_page(text_page)});
    check_refused(place_of_page(text_page), [&] { file->saves().read_base({text_page}, image.span()); });
    BOOST_TEST(file->condition().is_poisoned());
}

BOOST_AUTO_TEST_SUITE_END()
