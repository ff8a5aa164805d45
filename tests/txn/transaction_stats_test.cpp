// What a transactional heap counts while it is open, and the reasons for its saves.

#include <numeric>

#include <boost/test/unit_test.hpp>

#include "io/disks/faulty_storage.hpp"
#include "io/disks/simulated_storage.hpp"
#include "txn/transaction_service.hpp"
#include "txn/txn_fixture.hpp"

namespace {

using namespace taiyen;
using namespace taiyen::txn::test;

std::uint64_t background_saves(const TransactionStats& stats) {
    return stats.saves_for_log_fill + stats.saves_for_changed_bytes + stats.saves_for_interval + stats.saves_for_room + stats.saves_for_memory +
           stats.saves_asked_for;
}
std::uint64_t stalls(const TransactionStats& stats) { return std::accumulate(stats.stalls.begin(), stats.stalls.end(), std::uint64_t{0}); }

struct CountedFixture : TransactionFixture {
    void fill(std::size_t numbers_more) {
        transact(*heap, [&] { numbers().insert(numbers().end(), numbers_more, 7); });
    }
};
}  // namespace

BOOST_FIXTURE_TEST_SUITE(transaction_statistics, CountedFixture)

BOOST_AUTO_TEST_CASE(commits_and_what_they_logged_are_counted_from_the_opening_on) {
    push(1);
    reopen();
    TransactionStats stats = heap->transaction_stats();
    BOOST_TEST(stats.commits == 0U);
    BOOST_TEST(stats.logged_bytes == 0U);
    BOOST_TEST(stats.log_capacity_bytes == options.log_capacity);
    for (int i = 0; i < 5; ++i) push(i);
    { const Transaction nothing(*heap); }
    {
        Transaction taken_back(*heap);
        numbers().push_back(9);
    }
    stats = heap->transaction_stats();
    BOOST_TEST(stats.commits == 5U);
    BOOST_TEST(stats.rollbacks == 2U);
    BOOST_TEST(stats.logged_bytes > 5U * sizeof(int));
    BOOST_TEST(stats.log_used_bytes >= stats.logged_bytes);
    BOOST_TEST(stats.log_fill() > 0.0);
    BOOST_TEST(stats.log_fill() < 1.0);
    BOOST_TEST(stats.last_error.empty());
    BOOST_TEST(background_saves(stats) == 0U);
    BOOST_TEST(stalls(stats) == 0U);
}

BOOST_AUTO_TEST_CASE(each_save_is_counted_for_what_it_was_made_for) {
    push(1);
    heap->snapshot();
    BOOST_TEST(heap->transaction_stats().saves_asked_for == 1U);
    BOOST_TEST(heap->transaction_stats().log_used_bytes == 0U);
    heap->snapshot();  // nothing to do
    BOOST_TEST(background_saves(heap->transaction_stats()) == 1U);

    fill(options.log_capacity);  // four times as many bytes as the log has
    BOOST_TEST(heap->transaction_stats().saves_in_commits == 1U);

    PersistentOptions by_log = small_heap();
    by_log.snapshot_log_fill = 0.25;
    replace(by_log);
    for (int i = 0; i < 200; ++i) fill(200);
    const TransactionStats filled = heap->transaction_stats();
    BOOST_TEST(filled.saves_for_log_fill + filled.saves_for_room >= 1U);
    BOOST_TEST(filled.saves_for_changed_bytes == 0U);

    PersistentOptions by_change = small_heap();
    by_change.snapshot_dirty_bytes = 1;
    by_change.snapshot_log_fill = 1;
    replace(by_change);
    push(1);
    heap->snapshot();  // behind the one that the commit asked for, or instead of it
    BOOST_TEST(heap->transaction_stats().saves_for_changed_bytes + heap->transaction_stats().saves_asked_for == 1U);
}

BOOST_AUTO_TEST_CASE(a_commit_that_waits_for_room_in_the_log_is_a_stall) {
    PersistentOptions late = small_heap();
    late.snapshot_log_fill = 1;
    late.log_capacity = std::size_t{64} << 10U;
    replace(late);
    for (int i = 0; i < 60; ++i) push(i);
    const TransactionStats stats = heap->transaction_stats();
    BOOST_TEST(stats.commits == 60U);
    BOOST_TEST(stats.saves_for_room + stats.saves_for_log_fill >= 1U);
    BOOST_TEST(stalls(stats) >= 1U);
}

BOOST_AUTO_TEST_CASE(a_reader_counts_nothing_and_a_closed_heap_is_refused) {
    push(1);
    heap->close();
    BOOST_TEST(throws(errc::closed, [&] { (void)heap->transaction_stats(); }));
    const TransactionalHeap reader(open_read_only, path);
    BOOST_TEST(reader.transaction_stats().commits == 0U);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_CASE(a_save_that_failed_is_told_until_the_next_one_fails_and_a_poisoned_heap_says_why) {
    const Silence silence;
    io::SimulatedStorage disk;
    disk.add_directory("/disk");
    io::FaultyStorage failing(disk);
    const PersistentOptions options = small_heap();
    store::Tuning tuning;
    tuning.join = [&](store::HeapFile& file) { txn::TransactionService::join(file, options); };
    auto heap = HeapAccess::make<TransactionalHeap>(
        store::HeapFile::open(failing, "/disk/a.tyn", store::OpenMode::create_only, HeapKind::transactional, options, tuning));
    transact(heap, [&] { heap.construct<taiyen::vector<int>>("numbers", std::size_t{20'000}, 7); });
    disk.set_space(disk.used_bytes());
    BOOST_TEST(throws(errc::no_space, [&] { heap.snapshot(); }));
    TransactionStats stats = heap.transaction_stats();
    BOOST_TEST(stats.failed_saves == 1U);
    BOOST_TEST(stats.last_save_failed);
    BOOST_TEST(!stats.last_error.empty());
    transact(heap, [&] { heap.find<taiyen::vector<int>>("numbers")->front() = 1; });  // the log has room
    disk.set_space(~ByteCount{0});
    heap.snapshot();
    stats = heap.transaction_stats();
    BOOST_TEST(stats.saves_asked_for == 1U);
    BOOST_TEST(!stats.last_save_failed);
    BOOST_TEST(!stats.last_error.empty());
    transact(heap, [&] { heap.find<taiyen::vector<int>>("numbers")->front() = 2; });
    failing.arm({.at = 1, .error = EIO, .sticky = true, .calls = io::Call::sync});
    BOOST_CHECK_THROW(heap.snapshot(), std::exception);
    failing.disarm();
    stats = heap.transaction_stats();
    BOOST_TEST(stats.last_error.find("saving: ") != std::string::npos, stats.last_error);
    heap.close();
}
