// Files that somebody cuts while the heap is open: what is lost is told, and never hidden by making the file long enough again.

#include <boost/test/unit_test.hpp>

#include <functional>

#include "large_heap.hpp"

namespace {

using namespace taiyen;
using namespace taiyen::store::test;

BOOST_AUTO_TEST_SUITE(cut_files)

/// Half of a file of an open heap is cut off; `use` must say so, and leave it as it is.
void cut(HeapKind kind, const char* suffix, const std::function<void(ArchiveHeap&)>& before, const std::function<void(ArchiveHeap&)>& use) {
    LargeHeap closed(kind);
    const std::filesystem::path file = closed.path.string() + suffix;
    std::uint64_t half = 0;
    BOOST_TEST_CONTEXT(file) {
        {
            ArchiveHeap heap = closed.open();
            before(heap);
            half = std::filesystem::file_size(file) / 2;
            std::filesystem::resize_file(file, half);
            BOOST_CHECK_EXCEPTION(use(heap), Error, [](const Error& error) { return error.code() == errc::truncated; });
        }
        BOOST_TEST(std::filesystem::file_size(file) == half);
    }
}

const auto nothing = [](ArchiveHeap&) {};
const auto closes = [](ArchiveHeap& heap) { heap.close(); };
const auto changes = [](ArchiveHeap& heap) { put(heap, "new", "entry"); };
const auto saves = [](ArchiveHeap& heap) { heap.snapshot(); };

BOOST_AUTO_TEST_CASE(closing_does_not_lengthen_them) {
    for (const char* suffix : {"", ".data"}) {
        cut(HeapKind::snapshot, suffix, nothing, closes);
        cut(HeapKind::snapshot, suffix, [](ArchiveHeap& heap) { changes(heap), saves(heap); }, closes);
    }
    cut(HeapKind::archive, "", nothing, closes);
}

BOOST_AUTO_TEST_CASE(saving_and_growing_do_not_either) {
    for (const char* suffix : {"", ".data", ".journal"}) cut(HeapKind::snapshot, suffix, changes, saves);
    const auto stores_much = [](ArchiveHeap& heap) {
        std::memset(find(heap, "text") + page_bytes, 'y', 1U << 20U);
    };  // no room for it in the journal
    for (const char* suffix : {"", ".data"}) cut(HeapKind::snapshot, suffix, stores_much, saves);
    // Of the heap's own file the engine would meet what is gone before it grows.
    cut(HeapKind::snapshot, ".data", nothing, [](ArchiveHeap& heap) {
        store::HeapFile& file = HeapAccess::file(heap);
        file.extend(file.image().mapped() + page_bytes);
    });
}

BOOST_AUTO_TEST_CASE(a_save_after_the_journal_was_cut_acknowledges_nothing_and_what_was_acknowledged_is_kept) {
    LargeHeap closed(HeapKind::archive);
    {
        ArchiveHeap heap = closed.open();
        put(heap, "kept", "1");
        heap.snapshot();
        HeapAccess::file(heap).saves().checkpoint();
        std::filesystem::resize_file(closed.path.string() + ".journal", 0);
        put(heap, "refused", "2");
        BOOST_TEST((code_of([&] { heap.snapshot(); }) == errc::truncated));
        BOOST_TEST((code_of([&] { heap.snapshot(); }) == errc::poisoned));
    }
    BOOST_TEST((code_of([&] { closed.open(); }) == errc::not_a_heap));  // not taken for an empty one
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
