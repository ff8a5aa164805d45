#include <array>
#include <cstring>
#include <filesystem>

#include <boost/test/unit_test.hpp>

#include <taiyen/base/error.hpp>

#include "io/storage.hpp"

namespace {
using namespace taiyen;
using namespace taiyen::literals;

BOOST_AUTO_TEST_SUITE(posix_storage_first)

BOOST_AUTO_TEST_CASE(bytes_come_back) {
    const std::filesystem::path directory = std::filesystem::current_path() / "io-first";
    std::filesystem::create_directories(directory);
    io::Storage& storage = io::posix_storage();
    storage.remove(directory / "a");
    {
        const auto file = storage.create_unnamed(directory);
        file->allocate(0, 64_KiB);
        file->sync();
        alignas(4096) std::array<std::byte, 4096> bytes{};
        bytes.fill(std::byte{7});
        file->write_durable(bytes, 4096);
        file->write(bytes, 10000);
        file->sync();
        storage.publish(*file, directory / "a");
        storage.sync_directory(directory);
        alignas(4096) std::array<std::byte, 4096> again{};
        BOOST_TEST(file->read_direct(again, 4096) == 4096U);
        BOOST_TEST((again == bytes));
        BOOST_TEST(file->read(again, 10000) == 4096U);
        BOOST_TEST((again == bytes));
        BOOST_TEST(file->info().size_bytes == 64_KiB);
        BOOST_TEST(file->info().mode == 0600U);
    }
    std::filesystem::remove_all(directory);
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace
