// Pages of a file as those above ask for them.

#include <algorithm>
#include <cstring>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "base/aligned_buffer.hpp"
#include "io/disks/simulated_storage.hpp"
#include "io/disks/unsynced.hpp"
#include "scratch_directory.hpp"
#include "store/page_file.hpp"

namespace {
using namespace taiyen;
using namespace taiyen::store;

bool is_all(const std::byte* begin, const std::byte* end, int value) {
    return std::all_of(begin, end, [&](std::byte byte) { return byte == static_cast<std::byte>(value); });
}
}  // namespace

BOOST_AUTO_TEST_SUITE(page_files)

BOOST_AUTO_TEST_CASE(what_lies_behind_the_end_of_the_file_reads_as_zeros) {
    ScratchDirectory dir;
    PageFile file(io::posix_storage().create(dir / "f"), Header());
    file.file().write(std::vector(page_bytes + 100, std::byte{7}), file.layout.file_offset({0}));
    for (const Via via : {Via::cache, Via::device}) {
        const AlignedBuffer buffer(3 * page_bytes);
        std::fill_n(buffer.data(), buffer.size(), std::byte{9});
        file.read_pages({0}, buffer.span(), via);
        BOOST_TEST(is_all(buffer.data(), buffer.data() + page_bytes + 100, 7));
        BOOST_TEST(is_all(buffer.data() + page_bytes + 100, buffer.data() + buffer.size(), 0));
    }
}

BOOST_AUTO_TEST_CASE(a_table_page_behind_the_end_of_the_file_or_across_it_reads_as_zeros) {
    ScratchDirectory dir;
    PageFile file(io::posix_storage().create(dir / "f"), Header());
    const std::uint64_t half = 1;
    const std::uint64_t missing = 2;
    file.file().write(std::vector(100, std::byte{7}), file.layout.table_offset(half));
    for (const Via via : {Via::cache, Via::device}) {
        for (const std::uint64_t index : {half, missing}) {
            TablePage page;
            std::memset(&page, 9, sizeof page);
            file.read_table_page(index, page, via);
            const auto* const bytes = reinterpret_cast<const std::byte*>(&page);
            const std::size_t there = index == half ? 100 : 0;
            BOOST_TEST(is_all(bytes, bytes + there, 7));
            BOOST_TEST(is_all(bytes + there, bytes + sizeof page, 0));
        }
    }
}

BOOST_AUTO_TEST_CASE(the_device_is_asked_for_what_it_has_and_not_the_page_cache) {
    io::SimulatedStorage disk({.power_cuts = true});
    disk.add_directory("/disk");
    PageFile file(disk.create("/disk/f"), Header());
    for (const int value : {1, 2}) {
        for (const std::uint64_t at : {file.layout.file_offset({0}), file.layout.table_offset(0)})
            file.file().write(std::vector(page_bytes, static_cast<std::byte>(value)), at);
        if (value == 1) file.sync();
    }
    dynamic_cast<io::LosesUnsynced&>(file.file()).lose_unsynced();
    for (const Via via : {Via::cache, Via::device}) {
        const int value = via == Via::cache ? 2 : 1;
        const AlignedBuffer buffer(page_bytes);
        file.read_pages({0}, buffer.span(), via);
        BOOST_TEST(is_all(buffer.data(), buffer.data() + page_bytes, value));
        TablePage page;
        file.read_table_page(0, page, via);
        BOOST_TEST(is_all(reinterpret_cast<const std::byte*>(&page), reinterpret_cast<const std::byte*>(&page) + sizeof page, value));
    }
}

BOOST_AUTO_TEST_SUITE_END()
