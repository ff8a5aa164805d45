#include "io/disks.hpp"

#include <algorithm>
#include <random>

#include <fcntl.h>
#include <sys/mman.h>

#include "io/disks/unsynced.hpp"
#include "seed.hpp"

namespace taiyen::io::test {
namespace {

std::vector<std::byte> bytes_of(SimulatedDisk& disk, const char* name) {
    const auto node = disk.storage().node(disk.path(name));
    BOOST_REQUIRE(node != nullptr);
    return {node->data(), node->data() + node->size_bytes()};
}

/// A file with 8 pages of `value`, durable with its name.
void make_durable_file(SimulatedDisk& disk, const char* name, int value) {
    const auto file = disk.storage().create(disk.path(name));
    file->write(repeated(32_KiB, value), 0);
    file->sync();
    disk.storage().sync_directory(disk.directory());
}

BOOST_AUTO_TEST_SUITE(the_simulated_disk)

BOOST_AUTO_TEST_CASE(a_power_cut_loses_what_was_not_synced_and_only_that) {
    SimulatedDisk disk;
    make_durable_file(disk, "a", 1);
    const auto file = disk.storage().open(disk.path("a"), Access::read_write);
    file->write(repeated(4096, 2), 0);
    file->sync();
    file->write(repeated(4096, 3), 4096);
    file->write_durable(filled(4096, 4).span(), 8192);
    file->write(repeated(100, 5), 40'000);
    disk.storage().power_cut();
    auto expected = repeated(32_KiB, 1);
    std::fill_n(expected.begin(), 4096, std::byte{2});
    std::fill_n(expected.begin() + 8192, 4096, std::byte{4});
    BOOST_TEST((bytes_of(disk, "a") == expected));
    BOOST_CHECK_EXCEPTION(file->write(repeated(1, 1), 0), Error, has_code(errc::io_error));
}

BOOST_AUTO_TEST_CASE(a_durable_write_covers_no_other_write) {
    SimulatedDisk disk;
    make_durable_file(disk, "a", 1);
    const auto file = disk.storage().open(disk.path("a"), Access::read_write);
    file->write(repeated(4096, 2), 0);
    file->write(repeated(4096, 2), 4096);
    file->write_durable(filled(4096, 3).span(), 0);
    disk.storage().power_cut();
    auto expected = repeated(32_KiB, 1);
    std::fill_n(expected.begin(), 4096, std::byte{3});
    BOOST_TEST((bytes_of(disk, "a") == expected));
}

BOOST_AUTO_TEST_CASE(a_lost_truncation_brings_the_bytes_back) {
    SimulatedDisk disk;
    make_durable_file(disk, "a", 1);
    const auto file = disk.storage().open(disk.path("a"), Access::read_write);
    file->resize(100);
    file->punch(0, 50);
    disk.storage().power_cut();
    BOOST_TEST((bytes_of(disk, "a") == repeated(32_KiB, 1)));
}

BOOST_AUTO_TEST_CASE(a_name_is_durable_after_its_directory_was_synced) {
    SimulatedDisk disk;
    SimulatedStorage& storage = disk.storage();
    make_durable_file(disk, "a", 1);
    storage.create(disk.path("b"))->sync();
    storage.rename(disk.path("a"), disk.path("c"));
    storage.power_cut();
    BOOST_TEST(storage.find(disk.path("a")).has_value());
    BOOST_TEST(!storage.find(disk.path("b")).has_value());
    BOOST_TEST(!storage.find(disk.path("c")).has_value());
    storage.remove(disk.path("a"));
    storage.sync_directory(disk.directory());
    storage.power_cut();
    BOOST_TEST(!storage.find(disk.path("a")).has_value());
}

BOOST_AUTO_TEST_CASE(a_name_that_comes_through_carries_no_content) {
    SimulatedDisk disk;
    const auto file = disk.storage().create(disk.path("a"));
    file->write(repeated(4096, 1), 0);
    disk.storage().sync_directory(disk.directory());
    disk.storage().power_cut();
    BOOST_TEST(bytes_of(disk, "a").empty());
}

BOOST_AUTO_TEST_CASE(a_random_power_cut_tears_at_sectors_and_never_invents_bytes) {
    SimulatedDisk disk;
    make_durable_file(disk, "a", 1);
    std::mt19937_64 random(taiyen::test::seed_of_run());
    bool some_lost = false;
    bool some_kept = false;
    for (int round = 0; round < 20; ++round) {
        const auto before = bytes_of(disk, "a");
        const auto file = disk.storage().open(disk.path("a"), Access::read_write);
        const int value = round + 2;
        file->write(repeated(8192, value), 4096);
        disk.storage().power_cut(random());
        const auto after = bytes_of(disk, "a");
        BOOST_REQUIRE(after.size() == before.size());
        for (std::size_t sector = 0; sector < after.size(); sector += sector_bytes) {
            const bool kept = std::equal(after.begin() + static_cast<std::ptrdiff_t>(sector),
                                         after.begin() + static_cast<std::ptrdiff_t>(sector + sector_bytes), repeated(sector_bytes, value).begin());
            const bool lost =
                std::equal(after.begin() + static_cast<std::ptrdiff_t>(sector), after.begin() + static_cast<std::ptrdiff_t>(sector + sector_bytes),
                           before.begin() + static_cast<std::ptrdiff_t>(sector));
            BOOST_REQUIRE((kept || lost));
            some_lost |= lost && sector >= 4096 && sector < 12'288;
            some_kept |= kept;
        }
    }
    BOOST_TEST(some_lost);
    BOOST_TEST(some_kept);
}

BOOST_AUTO_TEST_CASE(a_failed_sync_keeps_the_cache_and_loses_the_disk_until_written_again) {
    SimulatedDisk disk;
    make_durable_file(disk, "a", 1);
    auto file = disk.storage().open(disk.path("a"), Access::read_write);
    file->write(repeated(8192, 2), 0);
    dynamic_cast<LosesUnsynced&>(*file).lose_unsynced();
    AlignedBuffer buffer = filled(4096, 0);
    file->read(buffer.span(), 0);
    BOOST_TEST(std::to_integer<int>(buffer.data()[0]) == 2);
    file->read_direct(buffer.span(), 0);
    BOOST_TEST(std::to_integer<int>(buffer.data()[0]) == 1);
    file->sync();                        // says yes, covers nothing
    file->write(repeated(10, 2), 4096);  // dirty again: the whole page counts
    file->sync();
    disk.storage().power_cut();
    auto expected = repeated(32_KiB, 1);
    std::fill_n(expected.begin() + 4096, 4096, std::byte{2});
    BOOST_TEST((bytes_of(disk, "a") == expected));
}

BOOST_AUTO_TEST_CASE(a_direct_read_finds_each_lost_page_of_its_range_whatever_was_written_again) {
    SimulatedDisk disk;
    const auto file = disk.storage().create(disk.path("a"));
    for (int page = 0; page < 6; ++page) file->write(repeated(page_bytes, page + 1), static_cast<std::uint64_t>(page) * page_bytes);
    file->sync();
    file->write(repeated(6 * page_bytes, 99), 0);
    dynamic_cast<LosesUnsynced&>(*file).lose_unsynced();
    const auto value_of = [&](std::uint64_t page) {
        const AlignedBuffer buffer = filled(8 * page_bytes, 77);
        BOOST_TEST(file->read_direct(buffer.first(page_bytes), page * page_bytes) == page_bytes);
        BOOST_TEST(std::all_of(buffer.data() + page_bytes, buffer.data() + buffer.size(), [](std::byte byte) { return byte == std::byte{77}; }));
        return std::to_integer<std::uint64_t>(buffer.data()[0]);
    };
    for (const std::uint64_t written : {std::uint64_t{0}, std::uint64_t{2}}) {
        file->write(repeated(10, 98), written * page_bytes);
        BOOST_TEST(value_of(written) == 98U);
        for (std::uint64_t page = written + 1; page < 6; ++page) BOOST_TEST(value_of(page) == page + 1);
    }
}

BOOST_AUTO_TEST_CASE(of_pages_that_wait_for_a_sync_durable_writes_take_out_their_own) {
    SimulatedDisk disk;
    make_durable_file(disk, "a", 1);
    const auto file = disk.storage().open(disk.path("a"), Access::read_write);
    file->write(repeated(3 * page_bytes, 2), 0);
    file->write_durable(filled(page_bytes, 3).span(), 0);
    file->write_durable(filled(page_bytes, 3).span(), 2 * page_bytes);
    disk.storage().power_cut();
    auto expected = repeated(32_KiB, 3);
    std::fill_n(expected.begin() + page_bytes, page_bytes, std::byte{1});
    std::fill(expected.begin() + 3 * page_bytes, expected.end(), std::byte{1});
    BOOST_TEST((bytes_of(disk, "a") == expected));
}

BOOST_AUTO_TEST_CASE(a_hole_whose_first_write_is_lost_is_a_hole_again) {
    SimulatedDisk disk;
    make_durable_file(disk, "a", 1);
    auto file = disk.storage().open(disk.path("a"), Access::read_write);
    file->resize(64_KiB);
    file->sync();
    file->write(repeated(page_bytes, 2), 40_KiB);
    disk.storage().power_cut();
    file = disk.storage().open(disk.path("a"), Access::read_only);
    BOOST_TEST(file->info().allocated_bytes == 32_KiB);
    BOOST_TEST(disk.storage().used_bytes() == 32_KiB);
    const auto extents = file->data_extents(0, 64_KiB);
    BOOST_TEST_REQUIRE(extents.size() == 1U);
    BOOST_TEST(extents[0].length == 32_KiB);
}

BOOST_AUTO_TEST_CASE(a_rollback_undoes_a_power_cut_too) {
    SimulatedDisk disk;
    const auto make = [&](const char* name, std::uint64_t pages) {
        auto file = disk.storage().create(disk.path(name));
        file->write(repeated(page_bytes, 1), (pages - 1) * page_bytes);  // the last one first
        file->write(repeated((pages - 1) * page_bytes, 1), 0);
        return file;
    };
    make("a", 24)->sync();
    disk.storage().sync_directory(disk.directory());
    make("b", 8);  // neither name nor bytes are durable
    disk.storage().open(disk.path("a"), Access::read_write)->write(repeated(page_bytes, 2), 0);
    const auto a = bytes_of(disk, "a");
    const auto b = bytes_of(disk, "b");
    const ByteCount used = disk.storage().used_bytes();
    disk.storage().mark();
    disk.storage().power_cut();
    BOOST_TEST((disk.storage().node(disk.path("b")) == nullptr));
    disk.storage().rollback();
    for (const bool again : {false, true}) {  // what a rollback leaves is durable
        if (again) disk.storage().power_cut();
        BOOST_TEST((bytes_of(disk, "a") == a));
        BOOST_TEST((bytes_of(disk, "b") == b));
        BOOST_TEST(disk.storage().used_bytes() == used);
    }
}

BOOST_AUTO_TEST_CASE(a_rollback_brings_back_the_marked_disk) {
    SimulatedStorage storage;
    storage.add_directory("/disk");
    std::mt19937_64 random(taiyen::test::seed_of_run());
    {
        const auto a = storage.create("/disk/a");
        a->write(repeated(50'000, 1), 0);
        a->allocate(64_KiB, 64_KiB);
        storage.create("/disk/b")->write(repeated(10, 2), 100'000);
    }
    storage.mark();
    const auto picture = [&] {
        std::map<fs::path, std::pair<std::vector<std::byte>, std::vector<File::Extent>>> all;
        for (const auto& [path, node] : storage.files()) {
            all[path].first.assign(node->data(), node->data() + node->size_bytes());
            all[path].first.push_back(std::byte(node->info().allocated_bytes / page_bytes));
        }
        return all;
    };
    const auto before = picture();
    const ByteCount used = storage.used_bytes();
    for (int round = 0; round < 200; ++round) {
        const auto a = storage.open("/disk/a", Access::read_write);
        BOOST_REQUIRE(a->try_lock(Lock::exclusive));
        for (int step = 0; step < 10; ++step) {
            const std::uint64_t offset = random() % 200'000;
            const ByteCount length = random() % 20'000;
            switch (random() % 6) {
                case 0: a->write(repeated(length, static_cast<int>(random() % 256)), offset); break;
                case 1: a->punch(offset, length); break;
                case 2: a->resize(offset); break;
                case 3: a->allocate(offset, length); break;
                case 4:
                    if (storage.find("/disk/b"))
                        storage.rename("/disk/b", "/disk/c");
                    else
                        storage.remove("/disk/c");
                    break;
                default:
                    if (!storage.find("/disk/d")) storage.create("/disk/d")->write(repeated(length, 7), offset);
            }
        }
        storage.rollback();
        BOOST_REQUIRE((picture() == before));
        BOOST_REQUIRE(storage.used_bytes() == used);
    }
}

BOOST_AUTO_TEST_CASE(a_full_disk_refuses_and_keeps_what_was_there) {
    SimulatedStorage storage({.space_bytes = 64_KiB});
    storage.add_directory("/disk");
    const auto file = storage.create("/disk/a");
    file->write(repeated(48_KiB, 1), 0);
    BOOST_CHECK_EXCEPTION(file->write(repeated(32_KiB, 2), 40_KiB), Error, has_code(errc::no_space));
    BOOST_CHECK_EXCEPTION(file->allocate(48_KiB, 32_KiB), Error, has_code(errc::no_space));
    BOOST_TEST((content(*file) == repeated(48_KiB, 1)));
    file->punch(0, 16_KiB);
    file->allocate(48_KiB, 32_KiB);
    BOOST_TEST(file->info().size_bytes == 80_KiB);
}

BOOST_AUTO_TEST_CASE(files_stay_on_their_device) {
    SimulatedStorage storage;
    storage.add_directory("/one", 1);
    storage.add_directory("/two", 2);
    storage.create("/one/a");
    BOOST_CHECK_EXCEPTION(storage.rename("/one/a", "/two/a"), Error, has_code(errc::invalid_argument));
    const auto unnamed = storage.create_unnamed("/one");
    BOOST_CHECK_EXCEPTION(storage.publish(*unnamed, "/two/b"), Error, has_code(errc::invalid_argument));
    BOOST_TEST(storage.find("/one/a")->device != storage.find("/two")->device);
}

BOOST_AUTO_TEST_CASE(the_pages_written_through_a_private_mapping_can_be_told) {
    SimulatedDisk disk;
    make_durable_file(disk, "a", 1);
    const auto file = disk.storage().open(disk.path("a"), Access::read_write);
    file->resize(16 * page_bytes);
    void* const memory = ::mmap(nullptr, 16 * page_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    BOOST_REQUIRE(memory != MAP_FAILED);
    file->map_private(memory, 16 * page_bytes, 0, Protection::read_write);
    auto* const bytes = static_cast<volatile unsigned char*>(memory);
    int sum = 0;
    for (std::size_t page = 0; page < 16; ++page) sum += bytes[page * page_bytes];
    bytes[3 * page_bytes] = 1;
    bytes[12 * page_bytes] = 0;  // a hole of the file
    const int pagemap = ::open("/proc/thread-self/pagemap", O_RDONLY | O_CLOEXEC);
    BOOST_REQUIRE(pagemap >= 0);
    std::array<std::uint64_t, 16> entries{};
    BOOST_REQUIRE(::pread(pagemap, entries.data(), sizeof entries, static_cast<off_t>(reinterpret_cast<std::uintptr_t>(memory) / page_bytes * 8)) ==
                  sizeof entries);
    ::close(pagemap);
    for (std::size_t page = 0; page < 16; ++page) {
        const bool present = (entries[page] >> 63U & 1U) != 0;
        const bool of_file = (entries[page] >> 61U & 1U) != 0;
        BOOST_TEST((present && !of_file) == (page == 3 || page == 12));
    }
    BOOST_TEST(sum == 8);
    BOOST_TEST(file->info().allocated_bytes == 32_KiB);  // looking at holes allocates nothing
    ::munmap(memory, 16 * page_bytes);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace taiyen::io::test
