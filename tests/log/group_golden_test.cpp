// The released format of groups: a file written once by version 1 is read, and its bytes are looked at one by one, without the code that wrote them.
// TAIYEN_WRITE_GOLDEN=directory writes the file anew (for a new version, beside the old one).

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <boost/test/unit_test.hpp>

#include "golden_bytes.hpp"
#include "log/group_log.hpp"
#include "ring_fixture.hpp"

using namespace taiyen;
using namespace taiyen::log;
using namespace taiyen::log::test;
using taiyen::test::number_at;
using taiyen::test::read_golden;

BOOST_AUTO_TEST_SUITE(group_golden)

namespace {

const std::filesystem::path golden = std::filesystem::path(TAIYEN_TESTS_DIR) / "log/golden/group-v1.bin";

// 8 KiB, from the second block of the second lap: the second group begins the third.
const RingIdentity identity{uuid_of(0x10), uuid_of(0x80), 8_KiB, false};
const RingStart start{Epoch{0x0123'4567'89ab'cdef}, 12_KiB, 5, 0xfedc'ba98'7654'3210};

std::vector<std::byte> counting(std::size_t size) {
    std::vector<std::byte> bytes(size);
    for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i % 251 + 1);
    return bytes;
}

std::vector<std::byte> written_anew() {
    const auto file = std::make_shared<MemoryFile>();
    Ring::format(*file, identity);
    GroupLog log(std::make_unique<Ring>(file, identity, start, start.position), Serial{41}, {.group_bytes_max = 2_KiB});
    std::uint64_t serial = 41;
    for (const std::size_t size : {5U, 0U, 1000U, 8U}) {
        const auto bytes = counting(size);
        const std::span<const std::byte> piece(bytes);
        log.append({++serial}, {&piece, 1});
        if (size == 1000U) log.wait_durable({serial});
    }
    log.wait_durable({serial});
    return file->bytes;
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_golden_log_holds_its_records) {
    MemoryFile file;
    file.bytes = read_golden(golden);
    const Scanned scanned = scan_all(file, identity, start);
    BOOST_TEST(scanned.result.how == ScanEnd::end);
    BOOST_REQUIRE_EQUAL(scanned.records.size(), 2U);
    const std::vector<std::size_t> sizes{5, 0, 1000, 8};
    std::uint64_t serial = 42;
    for (const Record& group : scanned.records) {
        BOOST_TEST(for_each_in_group(group, [&](Serial at, std::span<const std::byte> bytes) {
            BOOST_TEST(at.value == serial);
            BOOST_TEST((std::vector<std::byte>(bytes.begin(), bytes.end()) == counting(sizes.at(serial - 42))));
            ++serial;
        }));
    }
    BOOST_TEST(serial == 46U);
}

BOOST_AUTO_TEST_CASE(the_writer_makes_the_golden_bytes) {
    const std::vector<std::byte> anew = written_anew();
    if (const char* const directory = std::getenv("TAIYEN_WRITE_GOLDEN")) {
        std::ofstream(std::filesystem::path(directory) / golden.filename(), std::ios::binary)
            .write(reinterpret_cast<const char*>(anew.data()), static_cast<std::streamsize>(anew.size()));
        return;
    }
    BOOST_TEST((read_golden(golden) == anew));
}

BOOST_AUTO_TEST_CASE(the_groups_of_the_golden_log_lie_where_the_format_says) {
    const std::vector<std::byte> bytes = read_golden(golden);
    BOOST_REQUIRE_EQUAL(bytes.size(), 8192U + 8192U);
    const std::size_t first = 8192 + 4096 + 16;          // position 12 KiB; behind the stamp
    BOOST_TEST(number_at(bytes, first + 4, 4) == 3U);    // kind
    BOOST_TEST(number_at(bytes, first + 24, 8) == 42U);  // number: the first serial
    BOOST_TEST(number_at(bytes, first + 40, 8) == 8U + (8 + 8) + 8 + (8 + 1000));
    const std::size_t group = first + 96;
    BOOST_TEST(number_at(bytes, group, 4) == 3U);  // records
    BOOST_TEST(number_at(bytes, group + 4, 4) == 0U);
    BOOST_TEST(number_at(bytes, group + 8, 4) == 5U);  // bytes
    BOOST_TEST(number_at(bytes, group + 12, 4) == 0U);
    BOOST_TEST(number_at(bytes, group + 16, 8) == 0x0504030201U);  // padded
    BOOST_TEST(number_at(bytes, group + 24, 8) == 0U);             // an empty record
    BOOST_TEST(number_at(bytes, group + 32, 8) == 1000U);
    BOOST_TEST(number_at(bytes, group + 40, 1) == 1U);

    const std::size_t second = 8192 + 16;  // position 16 KiB
    BOOST_TEST(number_at(bytes, second + 24, 8) == 45U);
    BOOST_TEST(number_at(bytes, second + 40, 8) == 8U + (8 + 8));
    BOOST_TEST(number_at(bytes, second + 96, 8) == 1U);
    BOOST_TEST(number_at(bytes, second + 96 + 8, 8) == 8U);
}

BOOST_AUTO_TEST_SUITE_END()
