// The annex through its owner's eyes: how far it grows, and who may open it.

#include <cstring>

#include <boost/test/unit_test.hpp>

#include "heap_probe.hpp"

namespace {
using namespace probe;
using store::HeapFile;

constexpr ByteCount too_much = ByteCount{1} << 62U;

struct Opened {
    ScratchDirectory dir;
    ArchiveHeap heap{create_only, dir / "a.tyn", small_heap()};
    HeapFile& file = HeapAccess::file(heap);
};
}  // namespace

BOOST_FIXTURE_TEST_SUITE(annex, Opened)

BOOST_AUTO_TEST_CASE(it_grows_to_the_capacity_that_it_was_opened_with_and_no_further) {
    BOOST_CHECK_THROW(file.open_annex(too_much), HeapFull);
    std::byte* const begin = file.open_annex(1_MiB);
    BOOST_TEST(file.open_annex(64_KiB) == begin);
    BOOST_TEST((code_of([&] { file.open_annex(2_MiB); }) == errc::invalid_argument));
    file.extend_annex(1_MiB);
    begin[0] = begin[1_MiB - 1] = std::byte{7};
    BOOST_CHECK_THROW(file.extend_annex(1_MiB + 1), HeapFull);
    heap.snapshot();
    heap.close();
    ArchiveHeap again(open_only, dir / "a.tyn");
    BOOST_TEST((HeapAccess::file(again).open_annex(0)[1_MiB - 1] == std::byte{7}));
}

BOOST_AUTO_TEST_CASE(one_that_holds_nothing_yet_is_saved_as_none) {
    file.open_annex(1_MiB);
    put(heap, "a", "1");
    heap.snapshot();
    BOOST_TEST(!file.annex_is_saved());
    BOOST_TEST(heap.heal() == 0U);
    heap.close();
    ArchiveHeap again(open_only, dir / "a.tyn");
    BOOST_TEST(get(again, "a") == "1");
}

BOOST_AUTO_TEST_SUITE_END()
