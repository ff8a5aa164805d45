// What is written from front to back goes to the device while there is more to come, and says what became of it.

#include "io/disks.hpp"

#include <random>
#include <thread>

#include "io/background_writer.hpp"
#include "io/disks/faulty_storage.hpp"
#include "io/sequential_writer.hpp"
#include "seed.hpp"

namespace taiyen::io::test {
namespace {

BOOST_AUTO_TEST_SUITE(the_writers)

BOOST_AUTO_TEST_CASE_TEMPLATE(a_file_with_gaps_has_what_was_written_and_holes, Disk, Disks) {
    std::mt19937_64 random(taiyen::test::seed_of_run());
    Disk disk;
    const auto file = disk.storage().create(disk.path("a"));
    std::vector<std::byte> expected;
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
        }
        writer.finish();
    }
    file->sync();
    BOOST_TEST((content(*file) == expected));
}

BOOST_AUTO_TEST_CASE(the_device_begins_with_each_mebibyte_and_with_the_rest_at_the_end) {
    SimulatedDisk disk;
    FaultyStorage storage(disk.storage());
    storage.arm({.at = 1000});
    const auto file = storage.create(disk.path("a"));
    SequentialWriter writer(*file);
    for (ByteCount written = 64_KiB; written <= 3_MiB + 512_KiB; written += 64_KiB) {
        writer.write(repeated(64_KiB, 1), writer.end());
        BOOST_TEST(storage.begun_bytes() == written / 1_MiB * 1_MiB);
    }
    writer.write(repeated(64_KiB, 1), 8_MiB);
    BOOST_TEST(storage.begun_bytes() == 3_MiB);  // gaps don't count
    writer.write(repeated(512_KiB, 1), writer.end());
    BOOST_TEST(storage.begun_bytes() == writer.end());
    writer.write(repeated(64_KiB, 1), writer.end());
    writer.finish();
    writer.finish();
    BOOST_TEST(storage.begun_bytes() == writer.end());
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
                BOOST_CHECK_THROW(writer.finish(), Error);
            }
            BOOST_TEST(told);
            BOOST_TEST(storage.calls() == k);
            BOOST_TEST(storage.begun_bytes() == (k - 1) * 1_MiB);
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
