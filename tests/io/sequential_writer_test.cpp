// What is written from front to back takes no more of the disk than what was written, and says what became of it.

#include "io/disks.hpp"

#include <random>
#include <thread>

#include "io/background_writer.hpp"
#include "io/faulty_storage.hpp"
#include "io/sequential_writer.hpp"
#include "seed.hpp"

namespace taiyen::io::test {
namespace {

BOOST_AUTO_TEST_SUITE(the_writers)

constexpr ByteCount slack = 128_KiB;  // of the file system's own

/// False: this file system does not set blocks aside.
bool reserves(Storage& storage, const fs::path& directory) {
    const auto file = storage.create_unnamed(directory);
    file->reserve(0, 4_MiB);
    return file->info().allocated_bytes >= 4_MiB;
}

BOOST_AUTO_TEST_CASE(what_is_reserved_changes_neither_bytes_nor_size_and_can_be_given_back) {
    PosixDisk disk;
    const auto file = disk.storage().create(disk.path("a"));
    file->write(repeated(1_MiB, 1), 0);
    file->resize(16_MiB);
    file->sync();
    const ByteCount before = file->info().allocated_bytes;
    for (const std::uint64_t from : {std::uint64_t{2_MiB}, std::uint64_t{14_MiB}, std::uint64_t{20_MiB}}) {  // within, across the end, behind it
        file->reserve(from, 4_MiB);
        BOOST_TEST(file->info().size_bytes == 16_MiB);
        if (reserves(disk.storage(), disk.directory())) BOOST_TEST(file->info().allocated_bytes >= before + 4_MiB);
        file->unreserve(from, 4_MiB);
        BOOST_TEST(file->info().allocated_bytes <= before + slack);
        BOOST_TEST(file->info().size_bytes == 16_MiB);
    }
    std::vector<std::byte> expected = repeated(16_MiB, 0);
    std::fill_n(expected.begin(), 1_MiB, std::byte{1});
    BOOST_TEST((content(*file) == expected));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_file_with_gaps_has_what_was_written_and_holes, Disk, Disks) {
    std::mt19937_64 random(taiyen::test::seed_of_run());
    Disk disk;
    const auto file = disk.storage().create(disk.path("a"));
    std::vector<std::byte> expected;
    ByteCount written = 0;
    {
        SequentialWriter writer(*file);
        for (int run = 0; run < 4; ++run) {
            std::uint64_t at = expected.size() + (run == 0 ? 0 : (1 + random() % 6) * 1_MiB);
            const ByteCount length = run == 3 ? 64_KiB : (1 + random() % 5) * 1_MiB;
            for (ByteCount done = 0; done < length;) {
                const ByteCount part = std::min<ByteCount>(length - done, (1 + random() % 80) * page_bytes);
                const auto bytes = repeated(part, static_cast<int>(1 + random() % 250));
                writer.write(bytes, at);
                expected.resize(at);
                expected.insert(expected.end(), bytes.begin(), bytes.end());
                BOOST_REQUIRE(writer.end() == expected.size());
                at += part;
                done += part;
            }
            written += length;
        }
        writer.finish();
    }
    file->sync();
    BOOST_TEST((content(*file) == expected));
    if constexpr (std::is_same_v<Disk, PosixDisk>) {
        if (reserves(disk.storage(), disk.directory())) BOOST_TEST(file->info().allocated_bytes <= written + slack);
    }
}

BOOST_AUTO_TEST_CASE(a_disk_with_little_room_is_left_alone) {
    PosixDisk disk({.room_left_alone = ByteCount{1} << 60U});
    const auto file = disk.storage().create(disk.path("a"));
    file->reserve(0, 4_MiB);
    BOOST_TEST(file->info().allocated_bytes <= slack);
}

BOOST_AUTO_TEST_CASE(blocks_are_set_aside_while_much_is_written) {
    PosixDisk disk;
    if (!reserves(disk.storage(), disk.directory())) {
        BOOST_TEST_MESSAGE("skipped: this file system does not set blocks aside");
        return;
    }
    const auto file = disk.storage().create(disk.path("a"));
    SequentialWriter writer(*file);
    for (int i = 0; i < 40; ++i) writer.write(repeated(64_KiB, 1), writer.end());
    BOOST_TEST(file->info().allocated_bytes > 2560_KiB + 512_KiB);
    writer.finish();
    file->sync();
    BOOST_TEST(file->info().allocated_bytes <= 2560_KiB + slack);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(what_is_appended_is_in_the_file_in_order, Disk, Disks) {
    std::mt19937_64 random(taiyen::test::seed_of_run());
    for (const ByteCount bytes : {ByteCount{0}, ByteCount{1}, 1_MiB - 1, 1_MiB, 1_MiB + 1, 9_MiB + random() % 1_MiB}) {
        for (const bool with_thread : {false, true}) {
            Disk disk;
            const auto file = disk.storage().create(disk.path("a"));
            std::vector<std::byte> expected(bytes);
            for (std::byte& byte : expected) byte = static_cast<std::byte>(random());
            BackgroundWriter writer(*file, with_thread);
            for (ByteCount done = 0; done < bytes;) {
                const ByteCount part = std::min<ByteCount>(bytes - done, random() % 300'000);
                writer.append(std::span(expected).subspan(done, part));
                done += part;
            }
            writer.finish();
            BOOST_TEST((content(*file) == expected));
            if constexpr (std::is_same_v<Disk, PosixDisk>) BOOST_TEST(file->info().allocated_bytes <= bytes + slack);
        }
    }
}

BOOST_AUTO_TEST_CASE(what_a_write_throws_the_caller_learns_and_nothing_follows_it) {
    for (std::uint64_t k = 1; k <= 9; ++k) {
        for (const bool with_thread : {false, true}) {
            SimulatedDisk disk;
            FaultyStorage storage(disk.storage());
            const auto file = storage.create(disk.path("a"));
            storage.arm({.at = k, .error = ENOSPC, .calls = Call::write});
            bool told = false;
            {
                BackgroundWriter writer(*file, with_thread);
                try {
                    for (int i = 0; i < 8; ++i) writer.append(repeated(1_MiB, i + 1));
                    writer.append(repeated(100, 100));
                    writer.finish();
                } catch (const Error& error) {
                    told = true;
                    BOOST_TEST((error.code() == errc::no_space));
                }
            }
            BOOST_TEST(told);
            BOOST_TEST(storage.calls() == k);
            BOOST_TEST(content(*file).size() == (k - 1) * 1_MiB);
        }
    }
}

BOOST_AUTO_TEST_CASE(who_gives_up_leaves_a_thread_behind_neither_running_nor_waiting) {
    SimulatedDisk disk;
    const auto file = disk.storage().create(disk.path("a"));
    {
        BackgroundWriter writer(*file);
        for (int i = 0; i < 3; ++i) writer.append(repeated(1_MiB + 10, i));
    }
    const auto left = content(*file);
    BOOST_TEST(left.size() % 1_MiB == 0U);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    BOOST_TEST((content(*file) == left));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace taiyen::io::test
