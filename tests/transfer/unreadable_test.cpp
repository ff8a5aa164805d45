// A heap is compressed although the device refuses to read a page of one of its copies.

#include <boost/test/unit_test.hpp>

#include "store/large_heap.hpp"
#include "transfer/transfer.hpp"

namespace taiyen::transfer {
namespace {

using store::FileLayout;
using store::test::LargeHeap;
using store::test::place_of_page;

std::vector<std::byte> stream_of(const ArchiveHeap& heap) {
    std::vector<std::byte> stream;
    CompressOptions options;
    options.threads = 1;
    compress_to(HeapAccess::file(heap), [&](std::span<const std::byte> bytes) { stream.insert(stream.end(), bytes.begin(), bytes.end()); }, options);
    return stream;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(unreadable_pages)

BOOST_AUTO_TEST_CASE(what_the_device_refuses_of_one_copy_is_compressed_from_the_other_one) {
    LargeHeap closed(HeapKind::snapshot);
    ArchiveHeap heap = closed.open();
    const std::vector<std::byte> whole = stream_of(heap);
    const std::uint64_t metadata = 1;  // a page of it
    for (const std::uint64_t place :
         {place_of_page(metadata), place_of_page(1200), FileLayout().table_offset(0), FileLayout().table_offset(1), FileLayout().table_offset(2)}) {
        BOOST_TEST_CONTEXT("at byte " << place) {
            closed.disk.refuse({closed.path, place});
            BOOST_TEST((stream_of(heap) == whole));
            BOOST_TEST(closed.disk.refused() == 1U);
            closed.disk.forgive();
        }
    }
}

BOOST_AUTO_TEST_CASE(what_the_device_refuses_of_every_copy_is_its_error) {
    for (const HeapKind kind : {HeapKind::archive, HeapKind::snapshot}) {
        LargeHeap closed(kind);
        ArchiveHeap heap = closed.open();
        for (const std::uint64_t place : {place_of_page(1200), FileLayout().table_offset(1)}) {
            for (const auto& file : {closed.path, closed.data}) closed.disk.refuse({file, place});
            BOOST_CHECK_EXCEPTION(stream_of(heap), Error,
                                  [&](const Error& error) { return error.code() == errc::io_error && error.offset() == place; });
            closed.disk.forgive();
        }
        BOOST_TEST(!stream_of(heap).empty());
    }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace taiyen::transfer
