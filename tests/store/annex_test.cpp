// The annex through its owner's eyes: how far it grows, and who may open it.

#include <algorithm>
#include <cstring>

#include <boost/test/unit_test.hpp>

#include <taiyen/store/parameters.hpp>

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
    BOOST_CHECK_EXCEPTION(file.open_annex(too_much), HeapFull, [&](const HeapFull& full) { return names_heap(full, file.path()); });
    std::byte* const begin = file.open_annex(1_MiB);
    BOOST_TEST(file.open_annex(64_KiB) == begin);
    BOOST_TEST((code_of([&] { file.open_annex(2_MiB); }) == errc::invalid_argument));
    file.extend_annex(1_MiB);
    begin[0] = begin[1_MiB - 1] = std::byte{7};
    BOOST_CHECK_EXCEPTION(file.extend_annex(1_MiB + 1), HeapFull, [&](const HeapFull& full) { return names_heap(full, file.path()); });
    heap.snapshot();
    heap.close();
    ArchiveHeap again(open_only, dir / "a.tyn");
    std::byte* const annex = HeapAccess::file(again).open_annex(0);
    BOOST_TEST((annex[1_MiB - 1] == std::byte{7}));
    annex[1_MiB - 1] = std::byte{8};
    again.snapshot();
    BOOST_TEST(again.heal() == 0U);
    again.close();
    ArchiveHeap later(open_only, dir / "a.tyn");
    BOOST_TEST((HeapAccess::file(later).open_annex(0)[1_MiB - 1] == std::byte{8}));
}

BOOST_AUTO_TEST_CASE(one_that_holds_nothing_yet_is_saved_as_none) {
    file.open_annex(1_MiB);
    put(heap, "a", "1");
    heap.snapshot();
    BOOST_TEST(!file.image().annex().is_saved());
    BOOST_TEST(heap.heal() == 0U);
    heap.close();
    ArchiveHeap again(open_only, dir / "a.tyn");
    BOOST_TEST(get(again, "a") == "1");
}

BOOST_AUTO_TEST_CASE(one_that_a_save_has_ended_is_opened_as_ended_although_that_save_stands_in_the_journal_only) {
    std::byte* const begin = file.open_annex(64_KiB);
    file.extend_annex(16_KiB);
    begin[0] = std::byte{7};
    put(heap, "a", std::string(5 * page_bytes, 'a'));
    heap.snapshot();
    heap.close();
    ArchiveHeap again(open_only, dir / "a.tyn");
    HeapFile& later = HeapAccess::file(again);
    BOOST_TEST_REQUIRE(later.image().annex().is_saved());
    std::fill_n(find(again, "a"), 5 * page_bytes, 'a');
    *find(again, "a") = 'b';  // without the annex, whose content no longer fits
    again.snapshot();
    BOOST_TEST((later.open_annex(0)[0] == std::byte{0}));
}

BOOST_AUTO_TEST_CASE(the_space_of_one_that_has_ended_goes_back_to_the_disk_at_close) {
    std::byte* const begin = file.open_annex(1_MiB);
    file.extend_annex(1_MiB);
    std::fill_n(begin, 1_MiB, std::byte{7});
    put(heap, "a", "1");
    heap.snapshot();
    heap.close();
    const std::size_t with_annex = read_parameters(dir / "a.tyn").allocated_bytes;
    {
        ArchiveHeap again(open_only, dir / "a.tyn");
        *find(again, "a") = '2';
        again.snapshot();
    }
    BOOST_TEST(read_parameters(dir / "a.tyn").allocated_bytes + 1_MiB <= with_annex);
    ArchiveHeap again(open_only, dir / "a.tyn");
    BOOST_TEST(HeapAccess::file(again).image().annex().used() == 0U);
    BOOST_TEST(get(again, "a") == "2");
    BOOST_TEST(again.heal() == 0U);
}

BOOST_AUTO_TEST_SUITE_END()
