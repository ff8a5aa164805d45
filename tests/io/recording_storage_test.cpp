#include "io/disks.hpp"

#include "io/disks/faulty_storage.hpp"
#include "io/disks/recording_storage.hpp"

namespace taiyen::io::test {
namespace {

using Kind = Operation::Kind;

std::vector<Kind> kinds(const Trace& trace) {
    std::vector<Kind> result;
    for (const Operation& operation : trace) result.push_back(operation.kind);
    return result;
}

BOOST_AUTO_TEST_SUITE(the_recording_storage)

BOOST_AUTO_TEST_CASE_TEMPLATE(every_change_is_noted_in_order, Disk, Disks) {
    Disk disk;
    RecordingStorage storage(disk.storage());
    const auto file = storage.create_unnamed(disk.directory());
    file->allocate(0, 16_KiB);
    file->sync();
    storage.issue(1);
    file->write_durable(filled(4096, 1).span(), 4096);
    storage.acknowledge(1);
    file->write(repeated(10, 2), 5);
    file->punch(8192, 4096);
    file->resize(12'288);
    storage.publish(*file, disk.path("a"));
    storage.sync_directory(disk.directory());
    storage.rename(disk.path("a"), disk.path("b"));
    storage.remove(disk.path("b"));
    storage.remove(disk.path("b"));
    const Trace& trace = storage.trace();
    const std::vector<Kind> expected{Kind::created_unnamed,  Kind::allocated, Kind::synced,  Kind::issued,  Kind::durably_written,
                                     Kind::acknowledged,     Kind::written,   Kind::punched, Kind::resized, Kind::published,
                                     Kind::directory_synced, Kind::renamed,   Kind::removed};
    BOOST_TEST((kinds(trace) == expected));
    BOOST_TEST(trace[4].offset == 4096U);
    BOOST_TEST((trace[4].bytes == repeated(4096, 1)));
    BOOST_TEST(trace[6].offset == 5U);
    BOOST_TEST((trace[6].bytes == repeated(10, 2)));
    BOOST_TEST(trace[8].length == 12'288U);
    BOOST_TEST(trace[11].to == disk.path("b"));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_file_keeps_its_id_and_a_new_one_gets_its_own, Disk, Disks) {
    Disk disk;
    disk.storage().create(disk.path("a"));
    RecordingStorage storage(disk.storage());
    const auto first = storage.open(disk.path("a"), Access::read_write);
    const auto second = storage.open(disk.path("a"), Access::read_only);
    storage.rename(disk.path("a"), disk.path("b"));
    storage.open(disk.path("b"), Access::read_write)->write(repeated(1, 1), 0);
    storage.create(disk.path("a"))->write(repeated(1, 1), 0);
    const Trace& trace = storage.trace();
    BOOST_TEST((kinds(trace) == std::vector<Kind>{Kind::opened, Kind::renamed, Kind::written, Kind::created, Kind::written}));
    BOOST_TEST((trace[0].file == trace[2].file));
    BOOST_TEST((trace[3].file == trace[4].file));
    BOOST_TEST((trace[0].file != trace[3].file));
}

BOOST_AUTO_TEST_CASE(a_failed_write_and_a_failed_sync_are_noted_as_failed) {
    SimulatedDisk disk;
    FaultyStorage faulty(disk.storage());
    RecordingStorage storage(faulty);
    const auto file = storage.create(disk.path("a"));
    faulty.arm({.at = 1, .calls = Call::write});
    BOOST_CHECK_THROW(file->write(repeated(10, 1), 0), Error);
    faulty.arm({.at = 1, .calls = Call::sync});
    BOOST_CHECK_THROW(file->sync(), Error);
    const Trace& trace = storage.trace();
    BOOST_TEST((kinds(trace) == std::vector<Kind>{Kind::created, Kind::written, Kind::synced}));
    BOOST_TEST(trace[1].failed);
    BOOST_TEST(trace[2].failed);
}

BOOST_AUTO_TEST_CASE(a_taken_trace_is_gone_and_files_are_announced_again) {
    SimulatedDisk disk;
    RecordingStorage storage(disk.storage());
    storage.create(disk.path("a"));
    BOOST_TEST(storage.take_trace().size() == 1U);
    BOOST_TEST(storage.trace().empty());
    storage.open(disk.path("a"), Access::read_write)->write(repeated(1, 1), 0);
    BOOST_TEST((kinds(storage.trace()) == std::vector<Kind>{Kind::opened, Kind::written}));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace taiyen::io::test
