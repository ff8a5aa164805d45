// When files are brought up to date, and that transactions go on meanwhile.

#include <thread>

#include <boost/test/unit_test.hpp>

#include "txn/txn_fixture.hpp"

namespace {

using namespace taiyen;
using namespace taiyen::txn::test;

struct SnapshotFixture : TransactionFixture {
    Serial saved() { return HeapAccess::file(*heap).files().durable_serial(); }
    /// Commits until the files have followed by themselves; false: they never did.
    bool follows(int limit, bool waits = false) {
        for (int i = 0; i < limit; ++i) {
            push(i);
            if (waits) std::this_thread::sleep_for(std::chrono::milliseconds(1));
            if (saved() > Serial{0}) return true;
        }
        return false;
    }
};

BOOST_FIXTURE_TEST_SUITE(snapshots, SnapshotFixture)

BOOST_AUTO_TEST_CASE(a_log_that_fills_up_starts_a_snapshot) {
    PersistentOptions with = small_heap();
    with.log_capacity = std::size_t{64} << 10U;
    replace(with);
    BOOST_TEST(follows(1000));
}

BOOST_AUTO_TEST_CASE(changed_pages_start_a_snapshot) {
    PersistentOptions with = small_heap();
    with.log_capacity = std::size_t{16} << 20U;
    with.snapshot_dirty_bytes = 4 * page_bytes;
    replace(with);
    for (int i = 0; i < 20; ++i) push(i);
    while (saved() == Serial{0}) std::this_thread::sleep_for(std::chrono::milliseconds(1));  // by itself
}

BOOST_AUTO_TEST_CASE(time_starts_a_snapshot) {
    PersistentOptions with = small_heap();
    with.log_capacity = std::size_t{16} << 20U;
    with.snapshot_interval = std::chrono::milliseconds(2);
    replace(with);
    push(0);
    while (saved() == Serial{0}) std::this_thread::sleep_for(std::chrono::milliseconds(1));  // by itself
}

BOOST_AUTO_TEST_CASE(an_interval_without_end_starts_none_and_a_window_without_end_loses_nothing_that_was_waited_for) {
    PersistentOptions with = small_heap();
    with.log_capacity = std::size_t{16} << 20U;
    with.snapshot_interval = std::chrono::milliseconds::max();
    with.durability = Durability::async;
    with.loss_window = std::chrono::microseconds::max();
    replace(with);
    BOOST_TEST(!follows(30, true));
    const Serial last = ReadLock(*heap).serial();
    heap->wait_durable(last);
    BOOST_TEST((heap->last_durable() == last));
}

BOOST_AUTO_TEST_CASE(without_a_reason_none_starts) {
    PersistentOptions with = small_heap();
    with.log_capacity = std::size_t{16} << 20U;
    replace(with);
    BOOST_TEST(!follows(30, true));
    heap->snapshot();
    BOOST_TEST((saved() == heap->last_durable()));
}

BOOST_AUTO_TEST_CASE(what_is_dirty_falls_to_what_is_not_in_the_files) {
    for (int i = 0; i < 1000; ++i) push(i);
    BOOST_TEST(heap->dirty_bytes() > 0U);
    heap->snapshot();
    BOOST_TEST(heap->dirty_bytes() == 0U);
    BOOST_TEST(heap->stats().dirty_bytes == 0U);
    BOOST_TEST(heap->written_ranges().empty());
    transact(*heap, [&] { numbers().front() = 77; });
    BOOST_TEST(heap->dirty_bytes() == page_bytes);
    const WrittenRange range = heap->written_ranges().at(0);
    BOOST_TEST(range.offset / page_bytes ==
               (reinterpret_cast<std::uintptr_t>(&numbers().front()) - HeapAccess::file(*heap).ranges().durable) / page_bytes);
    heap->snapshot();
    BOOST_TEST(heap->dirty_bytes() == 0U);
}

BOOST_AUTO_TEST_CASE(a_commit_that_does_not_wait_is_durable_within_its_window) {
    PersistentOptions with = small_heap();
    with.durability = Durability::async;
    replace(with);
    const Serial serial = push(1);
    heap->wait_durable(serial);
    BOOST_TEST((heap->last_durable() >= serial));
    const Serial next = push(2);
    while (heap->last_durable() < next) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    crash();
    BOOST_TEST(values().size() == 2U);
}

BOOST_AUTO_TEST_CASE(any_kind_of_heap_opens_as_transactional_and_the_other_way_round) {
    heap.reset();
    const std::filesystem::path other = directory / "other.tyn";
    {
        ArchiveHeap archive(create_only, other, options);
        archive.find_or_construct<Numbers>("numbers").push_back(1);
        archive.snapshot();
    }
    for (int i = 2; i < 4; ++i) {
        TransactionalHeap made(open_only, other, options);
        BOOST_TEST((made.kind() == HeapKind::transactional));
        transact(made, [&] { made.find<Numbers>("numbers")->push_back(i); });
    }
    {
        SnapshotHeap lower(open_only, other, options);
        BOOST_TEST(lower.find<Numbers>("numbers")->size() == 3U);
        lower.find<Numbers>("numbers")->push_back(4);
        lower.snapshot();
    }
    TransactionalHeap again(open_only, other, options);
    BOOST_TEST(again.find<Numbers>("numbers")->size() == 4U);
    BOOST_TEST(again.verify().ok());
}

BOOST_AUTO_TEST_CASE(a_lower_kind_replays_the_log_of_a_crashed_heap) {
    for (int i = 0; i < 20; ++i) push(i);
    const std::filesystem::path left = directory / "left";
    std::filesystem::create_directory(left);
    for (const char* const file : {"heap.tyn", "heap.tyn.log"}) std::filesystem::copy_file(directory / file, left / file);
    heap.reset();
    ArchiveHeap lower(open_only, left / "heap.tyn", options);
    BOOST_TEST(lower.restoration().transactions_replayed == 20U);
    BOOST_TEST(lower.find<Numbers>("numbers")->size() == 20U);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
