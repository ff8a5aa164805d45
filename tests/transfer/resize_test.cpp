// Another capacity in place.

#include <taiyen/taiyen.hpp>

#include <boost/test/unit_test.hpp>

#include "file_bytes.hpp"
#include "scratch_directory.hpp"
#include "throws.hpp"

namespace {

using namespace taiyen;
using taiyen::test::file_bytes;
using taiyen::test::throws;

constexpr std::size_t mib = std::size_t{1} << 20U;

PersistentOptions of_capacity(std::size_t capacity) {
    PersistentOptions options;
    options.capacity = capacity;
    options.log_capacity = std::size_t{64} << 10U;
    return options;
}

/// As large as the heap lets it be, in pieces.
template <class Heap>
std::size_t fill(Heap& heap, std::size_t piece) {
    std::size_t bytes = 0;
    try {
        for (;; bytes += piece) (void)heap.allocate(piece);
    } catch (const HeapFull&) {
        return bytes;
    }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(resize)

BOOST_AUTO_TEST_CASE(a_heap_grows_with_its_names_its_uuid_and_its_history) {
    const ScratchDirectory dir;
    const auto path = dir / "a.tyn";
    const taiyen::vector<int>* there = nullptr;
    {
        SnapshotHeap heap(create_only, path, of_capacity(4 * mib));
        heap.attach_undo();
        auto& numbers = heap.construct<taiyen::vector<int>>("numbers");
        {
            UndoScope scope(heap, "one");
            numbers.push_back(1);
            scope.commit();
        }
        heap.snapshot();
        there = &numbers;
    }
    const HeapParameters before = read_parameters(path);
    BOOST_TEST(set_capacity(path, 64 * mib) == 4 * mib);
    const HeapParameters after = read_parameters(path);
    BOOST_TEST((after.capacity_bytes == 64 * mib && after.uuid == before.uuid && after.address == before.address));
    SnapshotHeap heap(open_only, path);
    BOOST_TEST(heap.verify().ok());
    heap.attach_undo();
    BOOST_TEST(heap.find<taiyen::vector<int>>("numbers") == there);
    BOOST_TEST((there->size() == 1U && heap.undo() && there->empty() && heap.redo() && there->size() == 1U));
    heap.end_undo();
    BOOST_TEST(fill(heap, mib) >= 40 * mib);
    heap.snapshot();
    BOOST_TEST(heap.verify().ok());
}

BOOST_AUTO_TEST_CASE(a_full_heap_of_a_power_of_two_grows_and_shrinks_to_what_is_in_use) {
    const ScratchDirectory dir;
    const auto path = dir / "a.tyn";
    {
        TransactionalHeap heap(create_only, path, of_capacity(4 * mib));
        transact(heap, [&] { BOOST_TEST(fill(heap, 256 << 10) > 2 * mib); });
    }
    BOOST_TEST(throws(errc::invalid_argument, [&] { set_capacity(path, 2 * mib); }));
    set_capacity(path, 32 * mib);
    {
        TransactionalHeap heap(open_only, path);
        transact(heap, [&] { (void)heap.allocate(5 * mib); });
        BOOST_TEST(heap.verify().ok());
    }
    BOOST_TEST(set_capacity(path, 0) == 32 * mib);
    BOOST_TEST(read_parameters(path).capacity_bytes == 16 * mib);
    TransactionalHeap heap(open_only, path);
    BOOST_TEST(heap.verify().ok());
    BOOST_CHECK_THROW(transact(heap, [&] { (void)heap.allocate(8 * mib); }), HeapFull);
}

BOOST_AUTO_TEST_CASE(what_can_not_be_is_refused_and_nothing_is_touched) {
    const ScratchDirectory dir;
    const auto path = dir / "a.tyn";
    { ArchiveHeap heap(create_only, path, of_capacity(6 * mib)); }
    for (const std::size_t odd : {std::size_t{4096}, 6 * mib + 1, std::size_t{16} << 40U})
        BOOST_TEST(throws(errc::invalid_argument, [&] { set_capacity(path, odd); }));
    set_capacity(path, 7 * mib);  // the part that is cut short isn't in use
    {
        ArchiveHeap heap(open_only, path);
        fill(heap, 256 << 10);
        heap.snapshot();
    }
    const std::string before = file_bytes(path);
    BOOST_TEST(throws(errc::invalid_argument, [&] { set_capacity(path, 64 * mib); }));
    BOOST_TEST(throws(errc::invalid_argument, [&] { set_capacity(path, 0); }));
    BOOST_TEST(read_parameters(path).capacity_bytes == 7 * mib);
    BOOST_TEST(ArchiveHeap(open_only, path).verify().ok());
    ArchiveHeap heap(open_only, path);
    BOOST_TEST(throws(errc::busy, [&] { set_capacity(path, 64 * mib); }));
}

BOOST_AUTO_TEST_SUITE_END()
