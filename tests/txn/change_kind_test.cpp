#include <taiyen/store/change_kind.hpp>

#include <fstream>

#include <boost/test/unit_test.hpp>

#include "throws.hpp"
#include "txn/txn_fixture.hpp"

namespace {

namespace fs = std::filesystem;
using namespace taiyen;
using taiyen::test::throws;

struct ChangedKinds : txn::test::TransactionFixture {
    fs::path log = path.string() + ".log";
    fs::path data = path.string() + ".data";
    SnapshotHeap without() { return change_kind<SnapshotHeap>(std::move(*heap), options); }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(change_kind, ChangedKinds)

BOOST_AUTO_TEST_CASE(a_heap_in_use_loses_its_log_and_gets_one_again_and_pointers_stay) {
    push(1);
    const Numbers* const known = heap->find<Numbers>("numbers");
    const Uuid uuid = HeapAccess::file(*heap).files().backing().header.heap;
    SnapshotHeap plain = without();
    BOOST_TEST(!heap->is_open());
    BOOST_TEST((!fs::exists(log) && fs::exists(data)));
    BOOST_TEST(plain.find<Numbers>("numbers") == known);
    BOOST_TEST(known->at(0) == 1);
    plain.find<Numbers>("numbers")->push_back(2);  // unsaved
    heap.emplace(taiyen::change_kind<TransactionalHeap>(std::move(plain), options));
    BOOST_TEST((fs::exists(log) && heap->has_data_file()));
    push(3);
    crash();
    BOOST_TEST(values() == (std::vector{1, 2, 3}), boost::test_tools::per_element());
    BOOST_TEST((HeapAccess::file(*heap).files().backing().header.heap == uuid));
    BOOST_TEST(heap->verify().ok());
}

BOOST_AUTO_TEST_CASE(an_archive_keeps_the_data_file_until_it_is_detached) {
    heap->attach_data_file();
    push(1);
    auto archive = taiyen::change_kind<ArchiveHeap>(std::move(*heap));
    BOOST_TEST((archive.has_data_file() && archive.kind() == HeapKind::archive));
    archive.detach_data_file();
    BOOST_TEST((!fs::exists(data) && !fs::exists(log)));
    archive.close();
    BOOST_TEST(ArchiveHeap(open_read_only, path).find<Numbers>("numbers")->size() == 1U);
}

BOOST_AUTO_TEST_CASE(files_that_lie_elsewhere_are_found_again) {
    replace([&] {
        PersistentOptions apart = options;
        apart.data_file = directory / "there.data";
        apart.log_file = directory / "there.log";
        return apart;
    }());
    push(1);
    const PersistentOptions apart = std::exchange(options, {});
    SnapshotHeap plain = without();
    BOOST_TEST((plain.has_data_file() && fs::exists(apart.data_file) && !fs::exists(apart.log_file)));
    heap.emplace(taiyen::change_kind<TransactionalHeap>(std::move(plain)));
    BOOST_TEST((heap->has_data_file() && !fs::exists(path.string() + ".data")));
    push(2);
    BOOST_TEST(values() == (std::vector{1, 2}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(the_undo_history_goes_along) {
    heap->attach_undo();
    push(1);
    push(2);
    SnapshotHeap plain = without();
    plain.attach_undo();
    BOOST_TEST(plain.undo());
    heap.emplace(taiyen::change_kind<TransactionalHeap>(std::move(plain), options));
    heap->attach_undo();
    BOOST_TEST(values() == std::vector{1}, boost::test_tools::per_element());
    BOOST_TEST(heap->redo());
    BOOST_TEST(values() == (std::vector{1, 2}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(what_refuses_a_snapshot_leaves_the_heap_open) {
    push(1);
    {
        Transaction transaction(*heap);
        BOOST_TEST(throws(errc::scope_open, [&] { (void)without(); }));
    }
    BOOST_TEST(heap->is_open());
    push(2);
    heap.reset();
    TransactionalHeap reader(open_read_only, path);
    BOOST_TEST(throws(errc::read_only, [&] { (void)taiyen::change_kind<SnapshotHeap>(std::move(reader)); }));
    BOOST_TEST(reader.find<Numbers>("numbers")->size() == 2U);
}

BOOST_AUTO_TEST_CASE(what_has_come_to_stand_in_the_place_of_the_log_stays) {
    push(1);
    auto closed = store::close_for_another_kind(*heap, options);
    fs::remove(log);
    std::ofstream(log) << "notes";
    SnapshotHeap plain(open_only, closed.path, closed.options);
    store::remove_left_log(plain);
    BOOST_TEST(fs::file_size(log) == 5U);
    BOOST_TEST(plain.find<Numbers>("numbers")->at(0) == 1);
}

BOOST_AUTO_TEST_SUITE_END()
