#include "io/disks.hpp"

#include <cerrno>

#include "io/disks/faulty_storage.hpp"

namespace taiyen::io::test {
namespace {

BOOST_AUTO_TEST_SUITE(the_faulty_storage)

/// A bit of everything.
void work(Storage& storage, const fs::path& directory) {
    (void)storage.find(directory / "a");
    const auto file = storage.create_unnamed(directory);
    file->allocate(0, 16_KiB);
    file->sync();
    file->write(repeated(100, 1), 0);
    file->write_durable(filled(4096, 2).span(), 4096);
    AlignedBuffer buffer = filled(4096, 0);
    file->read(buffer.span(), 0);
    file->read_direct(buffer.span(), 4096);
    file->punch(8192, 4096);
    (void)file->data_extents(0, 16_KiB);
    file->resize(12'288);
    (void)file->info();
    (void)file->try_lock(Lock::exclusive);
    storage.publish(*file, directory / "a");
    storage.sync_directory(directory);
    storage.rename(directory / "a", directory / "b");
    (void)storage.open(directory / "b", Access::read_only);
    storage.create(directory / "c");
    storage.remove(directory / "b");
    storage.remove(directory / "c");
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_sweep_strikes_each_call_once_and_ends, Disk, Disks) {
    Disk disk;
    std::uint64_t k = 1;
    for (;; ++k) {
        BOOST_REQUIRE(k < 100U);
        FaultyStorage storage(disk.storage());
        storage.arm({.at = k});
        bool threw = false;
        try {
            work(storage, disk.directory());
        } catch (const Error& error) {
            threw = true;
            BOOST_TEST((error.code() == errc::io_error));
        }
        BOOST_TEST(threw == (storage.fired() == 1U));
        for (const char* const name : {"a", "b", "c"}) disk.storage().remove(disk.path(name));
        if (storage.fired() == 0) break;
    }
    BOOST_TEST(k - 1 == 20U);
}

BOOST_AUTO_TEST_CASE(a_sticky_fault_goes_on_and_another_call_is_not_hit) {
    SimulatedDisk disk;
    FaultyStorage storage(disk.storage());
    const auto file = storage.create(disk.path("a"));
    storage.arm({.at = 2, .error = ENOSPC, .sticky = true, .calls = Call::write | Call::allocate});
    file->write(repeated(10, 1), 0);
    BOOST_CHECK_EXCEPTION(file->write(repeated(10, 1), 0), Error, has_code(errc::no_space));
    BOOST_CHECK_EXCEPTION(file->allocate(0, 4096), Error, has_code(errc::no_space));
    file->sync();
    BOOST_TEST(storage.fired() == 2U);
    storage.disarm();
    file->write(repeated(10, 1), 0);
}

BOOST_AUTO_TEST_CASE(a_quota_is_no_space_and_a_fault_names_its_place) {
    SimulatedDisk disk;
    FaultyStorage storage(disk.storage());
    const auto file = storage.create(disk.path("a"));
    storage.arm({.error = EDQUOT, .calls = Call::write});
    BOOST_CHECK_EXCEPTION(file->write(repeated(10, 1), 77), Error, [&](const Error& error) {
        return error.code() == errc::no_space && error.offset() == 77U && error.path() == disk.path("a");
    });
}

BOOST_AUTO_TEST_CASE(a_short_write_brings_its_prefix_through) {
    SimulatedDisk disk;
    FaultyStorage storage(disk.storage());
    const auto file = storage.create(disk.path("a"));
    file->write(repeated(8192, 1), 0);
    file->sync();
    storage.arm({.calls = Call::write, .short_bytes = 100});
    BOOST_CHECK_THROW(file->write(repeated(200, 2), 0), Error);
    storage.arm({.calls = Call::write_durable, .short_bytes = 600});
    BOOST_CHECK_THROW(file->write_durable(filled(4096, 3).span(), 4096), Error);
    auto expected = repeated(8192, 1);
    std::fill_n(expected.begin(), 100, std::byte{2});
    std::fill_n(expected.begin() + 4096, 512, std::byte{3});
    BOOST_TEST((content(*file) == expected));
}

BOOST_AUTO_TEST_CASE(a_name_is_durable_behind_a_storage_without_faults_too) {
    SimulatedDisk disk;
    FaultyStorage storage(disk.storage());
    storage.create(disk.path("a"));
    storage.sync_directory(disk.directory());
    storage.create(disk.path("b"));
    disk.storage().power_cut();
    BOOST_TEST(storage.find(disk.path("a")).has_value());
    BOOST_TEST(!storage.find(disk.path("b")).has_value());
}

BOOST_AUTO_TEST_CASE(a_failed_sync_is_told_once_and_has_lost_the_writes) {
    SimulatedDisk disk;
    FaultyStorage storage(disk.storage());
    const auto file = storage.create(disk.path("a"));
    file->write(repeated(4096, 1), 0);
    file->sync();
    disk.storage().sync_directory(disk.directory());
    file->write(repeated(4096, 2), 0);
    storage.arm({.calls = Call::sync});
    BOOST_CHECK_EXCEPTION(file->sync(), Error, has_code(errc::io_error));
    file->sync();
    disk.storage().power_cut();
    const auto node = disk.storage().node(disk.path("a"));
    BOOST_TEST(std::to_integer<int>(node->data()[0]) == 1);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace taiyen::io::test
