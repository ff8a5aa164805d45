// write_copy: the newest save as a heap of its own, whatever one of two copies has lost.

#include <boost/test/unit_test.hpp>

#include "heap_probe.hpp"
#include "io/storage.hpp"
#include "store/geometry.hpp"

namespace {
using namespace probe;
using store::FileLayout;
using store::HeapFile;
using store::OpenMode;

constexpr std::size_t text_bytes = (3U << 20U) + 3;

/// A heap over three chunks, cleanly closed; in the middle a chunk of zeros.
struct Closed {
    ScratchDirectory dir;
    std::filesystem::path path = dir / "a.tyn";
    std::filesystem::path data = dir / "a.tyn.data";
    std::filesystem::path copy = dir / "copy.tyn";
    HeapKind kind;

    explicit Closed(HeapKind of_kind) : kind(of_kind) {
        auto heap = HeapAccess::make<ArchiveHeap>(HeapFile::open(io::posix_storage(), path, OpenMode::create_only, kind, small_heap()));
        put(heap, "text", std::string(1U << 20U, 'x') + std::string(2U << 20U, '\0') + "end");
        heap.snapshot();
    }
    ArchiveHeap open() { return HeapAccess::make<ArchiveHeap>(HeapFile::open(io::posix_storage(), path, OpenMode::open_only, kind, small_heap())); }
    std::string text_of_copy() {
        std::filesystem::create_directory(dir / "alone");
        std::filesystem::rename(copy, dir / "alone/copy.tyn");
        const ArchiveHeap heap(open_read_only, dir / "alone/copy.tyn");
        return text_of(heap);
    }
    static std::string text_of(const ArchiveHeap& heap) { return {find(heap, "text"), text_bytes}; }
};

/// A page in the middle of the text.
constexpr std::uint64_t page = 1100;
std::uint64_t place_of_page() { return FileLayout().file_offset({page * page_bytes}); }
}  // namespace

BOOST_AUTO_TEST_SUITE(copying)

BOOST_AUTO_TEST_CASE(a_copy_is_the_newest_save_and_zeros_take_no_room_in_it) {
    for (const HeapKind kind : {HeapKind::archive, HeapKind::snapshot}) {
        Closed closed(kind);
        auto heap = closed.open();
        const std::string before = Closed::text_of(heap);
        std::uint64_t done = 0;
        std::uint64_t total = 0;
        HeapAccess::file(heap).companions().write_copy(closed.copy, [&](std::uint64_t bytes_done, std::uint64_t bytes_total) {
            BOOST_TEST(bytes_done > done);
            done = bytes_done;
            total = bytes_total;
        });
        BOOST_TEST(done == total);
        BOOST_TEST(total > text_bytes);
        BOOST_TEST(io::posix_storage().open(closed.copy, io::Access::read_only)->info().allocated_bytes < (2U << 20U));
        heap.close();
        BOOST_TEST((closed.text_of_copy() == before));
    }
}

BOOST_AUTO_TEST_CASE(a_page_that_the_backing_file_has_wrong_is_copied_from_the_data_file) {
    Closed closed(HeapKind::snapshot);
    auto heap = closed.open();
    const std::string before = Closed::text_of(heap);
    flip_bit(closed.path, place_of_page() + 9);
    HeapAccess::file(heap).companions().write_copy(closed.copy);
    heap.close();
    BOOST_TEST((closed.text_of_copy() == before));
}

BOOST_AUTO_TEST_CASE(a_page_that_nobody_has_whole_is_not_passed_on) {
    for (const HeapKind kind : {HeapKind::archive, HeapKind::snapshot}) {
        Closed closed(kind);
        auto heap = closed.open();
        flip_bit(closed.path, place_of_page() + 9);
        if (kind == HeapKind::snapshot) flip_bit(closed.data, place_of_page() + 9);
        BOOST_CHECK_EXCEPTION(HeapAccess::file(heap).companions().write_copy(closed.copy), Error,
                              [&](const Error& error) { return error.code() == errc::corrupt && error.offset() == place_of_page(); });
        BOOST_TEST(!std::filesystem::exists(closed.copy));
    }
}

BOOST_AUTO_TEST_CASE(a_copy_overwrites_nothing) {
    Closed closed(HeapKind::archive);
    auto heap = closed.open();
    std::ofstream(closed.copy) << "mine";
    BOOST_CHECK_EXCEPTION(HeapAccess::file(heap).companions().write_copy(closed.copy), Error,
                          [](const Error& error) { return error.code() == errc::already_exists; });
    BOOST_TEST(std::filesystem::file_size(closed.copy) == 4U);
}

BOOST_AUTO_TEST_SUITE_END()
