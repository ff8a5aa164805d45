// Safeguards of log heaps that no single crash needs: without them something is lost.

#include <memory>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "base/planted.hpp"
#include "io/disks/simulated_storage.hpp"
#include "logheap/log_model.hpp"
#include "logheap/object_log.hpp"

namespace {

BOOST_AUTO_TEST_SUITE(log_heap_planted)

using namespace taiyen;
using logheap::ObjectLog;

LogHeapOptions small_log() {
    LogHeapOptions options;
    options.background = false;
    options.segment_bytes = 64_KiB;
    options.capacity = 24 * 64_KiB;
    options.log_capacity = 256_KiB;
    options.checkpoint_bytes = 1_GiB;
    return options;
}

struct Disk {
    io::SimulatedStorage storage;
    Disk() { storage.add_directory("/disk"); }
    std::unique_ptr<ObjectLog> make() { return ObjectLog::open(storage, "/disk/x.tyl", small_log(), ObjectLog::Opening::create); }
    /// Closed, or as a crash of the process leaves it.
    std::unique_ptr<ObjectLog> reopened(std::unique_ptr<ObjectLog> log, bool closes) {
        if (closes) log->close();
        log->abandon();
        log.reset();
        storage.disconnect();
        return ObjectLog::open(storage, "/disk/x.tyl", small_log(), ObjectLog::Opening::open);
    }
};

/// Whether a life of the log hands the same id out after a crash again.
bool gives_an_id_twice() {
    Disk disk;
    auto log = disk.make();
    const LogHandle first = log->put({});
    log->remove(first);
    log = disk.reopened(std::move(log), false);
    const bool same = log->put({}).id <= first.id;
    log->close();
    return same;
}

BOOST_AUTO_TEST_CASE(a_header_that_sets_no_ids_aside_is_noticed) {
    BOOST_TEST(!gives_an_id_twice());
    planted_bug = Bug::log_heap_ids_given_twice;
    const bool noticed = gives_an_id_twice();
    planted_bug = Bug::none;
    BOOST_TEST(noticed);
}

/// Whether a value that cleaning moved, and that was updated afterwards, is what it was updated to when both records are read again.
bool loses_an_update() {
    Disk disk;
    auto log = disk.make();
    logheap::test::Values values;
    std::mt19937_64 random(1);
    const auto put = [&](std::uint64_t id, std::size_t length) {
        values[id] = logheap::test::some_bytes(random, length);
        log->put_as(LogId{id}, values[id]);
    };
    for (std::uint64_t id = 1; id <= 100; ++id) put(id, 2000);
    log = disk.reopened(std::move(log), true);
    for (std::uint64_t id = 1; id <= 100; ++id) {
        if (id % 4 == 0) continue;
        log->remove(LogId{id});
        values.erase(id);
    }
    log->clean(64_KiB);
    for (std::uint64_t id = 4; id <= 20; id += 4) put(id, 100);
    for (std::uint64_t id = 200; id < 280; ++id) put(id, 100);  // so many that the ring's room is needed: the updates are in segments only
    log = disk.reopened(std::move(log), false);
    const bool loses = logheap::test::values_of(*log) != values;
    log->close();
    return loses;
}

BOOST_AUTO_TEST_CASE(of_several_records_the_newest_counts) {
    BOOST_TEST(!loses_an_update());
    planted_bug = Bug::log_heap_last_read_counts;
    const bool noticed = loses_an_update();
    planted_bug = Bug::none;
    BOOST_TEST(noticed);
}

/// Whether what was put before closing is all there when the heap is opened again, and counted.
bool closes_wholly() {
    Disk disk;
    auto log = disk.make();
    for (std::uint64_t id = 1; id <= 100; ++id) log->put_as(LogId{id}, {});
    log = disk.reopened(std::move(log), true);
    const std::uint64_t from_segments = log->restoration().from_segments;
    const bool is_whole = log->size() == 100 && from_segments == 0;
    log->close();
    return is_whole;
}

BOOST_AUTO_TEST_CASE(closing_writes_an_image_of_what_changed) {
    BOOST_TEST(closes_wholly());
    planted_bug = Bug::log_heap_closed_without_image;
    const bool noticed = !closes_wholly();
    planted_bug = Bug::none;
    BOOST_TEST(noticed);
}

BOOST_AUTO_TEST_CASE(large_values_of_one_batch_are_all_found_in_the_tail) {
    Disk disk;
    auto log = disk.make();
    logheap::test::Values values;
    std::mt19937_64 random(1);
    LogBatch batch;
    for (std::uint64_t id = 1; id <= 3; ++id) {
        values[id] = logheap::test::some_bytes(random, id == 3 ? 10 : 100'000);
        batch.put(LogId{id}, values[id]);
    }
    log->commit(batch);
    log->do_ahead(ObjectLog::Task::flush, [] {}, [] {});
    log = disk.reopened(std::move(log), false);
    BOOST_TEST(log->restoration().from_segments == 3U);
    logheap::test::require_equal(logheap::test::values_of(*log), values, "after a crash");
    log->close();
}

BOOST_AUTO_TEST_CASE(a_batch_that_finds_its_work_done_waits_for_who_did_it) {
    Disk disk;
    const auto log = disk.make();
    log->put_as(LogId{7}, {});
    planted_bug = Bug::log_heap_acknowledged_early;  // as if another thread were waiting still
    log->remove(LogId{7});
    planted_bug = Bug::none;
    BOOST_TEST(log->last_durable().value == 1U);
    LogBatch batch;
    batch.remove(LogId{7});
    BOOST_TEST(log->commit(batch).value == 2U);
    BOOST_TEST(log->last_durable().value == 2U);
    log->close();
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
