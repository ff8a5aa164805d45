// The released format: a file written once by version 1 is read, and its bytes are looked at one by one, without the code that wrote them.
// TAIYEN_WRITE_GOLDEN=directory writes the file anew (for a new version, beside the old one).

#include "log/ring.hpp"

#include <boost/test/unit_test.hpp>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/checksum.hpp"
#include "golden_bytes.hpp"
#include "ring_fixture.hpp"

using namespace taiyen;
using namespace taiyen::log;
using namespace taiyen::log::test;
using taiyen::test::number_at;
using taiyen::test::read_golden;

BOOST_AUTO_TEST_SUITE(ring_golden)

namespace {

const std::filesystem::path golden = std::filesystem::path(TAIYEN_TESTS_DIR) / "log/golden/ring-v1.bin";

// 16 KiB; in its second lap, at the last block; an earlier life has filled it before.
const RingIdentity identity{uuid_of(0x10), uuid_of(0x80), 16_KiB, false};
const RingStart start{Epoch{0x0123'4567'89ab'cdef}, 28_KiB, 5, 0xfedc'ba98'7654'3210};

std::vector<std::byte> counting(std::size_t size) {
    std::vector<std::byte> bytes(size);
    for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i % 251);
    return bytes;
}

void append(Ring& ring, std::uint32_t kind, std::uint64_t number, const std::vector<std::byte>& payload) {
    const std::span<const std::byte> piece(payload);
    ring.append(kind, number, {&piece, 1});
}

std::vector<std::byte> written_anew() {
    const auto file = std::make_shared<MemoryFile>();
    RingIdentity fresh = identity;
    fresh.is_new = true;
    Ring::format(*file, fresh);
    Ring::write_identity(*file, identity);
    Ring earlier(file, identity, {Epoch{77}, 16_KiB, 1, 88}, 16_KiB);
    for (std::uint64_t number = 1; number <= 4; ++number) append(earlier, 1, number, counting(10));
    Ring ring(file, identity, start, start.position);
    append(ring, 2, 42, counting(5'000));  // wraps
    append(ring, 3, 43, {});
    file->cut_power(0, [](std::uint64_t sector) { return sector < 3; });
    BOOST_CHECK_THROW(append(ring, 4, 44, counting(3'000)), PowerCut);
    return file->bytes;
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_golden_ring_holds_its_records_and_a_torn_one) {
    MemoryFile file;
    file.bytes = read_golden(golden);
    BOOST_TEST((Ring::read_identity(file) == identity));
    const Scanned scanned = scan_all(file, identity, start);
    BOOST_TEST(scanned.result.how == ScanEnd::torn);
    BOOST_REQUIRE_EQUAL(scanned.records.size(), 2U);
    BOOST_TEST(same(scanned.records[0], Record{2, 42, 5, 28_KiB, counting(5'000)}));
    BOOST_TEST(same(scanned.records[1], Record{3, 43, 6, 36_KiB, {}}));
    BOOST_TEST(scanned.result.next.position == 40_KiB);
    BOOST_TEST(scanned.result.next.sequence == 7U);
}

BOOST_AUTO_TEST_CASE(the_writer_makes_the_golden_bytes) {
    const std::vector<std::byte> anew = written_anew();
    if (const char* const directory = std::getenv("TAIYEN_WRITE_GOLDEN")) {
        std::ofstream(std::filesystem::path(directory) / golden.filename(), std::ios::binary)
            .write(reinterpret_cast<const char*>(anew.data()), static_cast<std::streamsize>(anew.size()));
        return;
    }
    const std::vector<std::byte> before = read_golden(golden);
    BOOST_REQUIRE_EQUAL(before.size(), anew.size());
    for (std::size_t at = 0; at < before.size(); ++at) BOOST_REQUIRE_MESSAGE(before[at] == anew[at], "byte " << at << " differs");
}

BOOST_AUTO_TEST_CASE(the_identity_of_the_golden_ring_lies_where_the_format_says) {
    const std::vector<std::byte> bytes = read_golden(golden);
    BOOST_REQUIRE_EQUAL(bytes.size(), 8192U + 16384U);
    for (const std::size_t slot : {0U, 4096U}) {
        BOOST_TEST(std::memcmp(bytes.data() + slot, "taiyenR\n", 8) == 0);
        BOOST_TEST(number_at(bytes, slot + 8, 4) == 0x01020304U);
        BOOST_TEST(number_at(bytes, slot + 12, 4) == 1U);                     // version
        BOOST_TEST(number_at(bytes, slot + 16, 8) == 0U);                     // features
        BOOST_TEST(number_at(bytes, slot + 24, 8) == (slot == 0 ? 3U : 2U));  // sequence: the first slot was written last
        BOOST_TEST(number_at(bytes, slot + 32, 1) == 0x10U);                  // ring uuid
        BOOST_TEST(number_at(bytes, slot + 47, 1) == 0x1fU);
        BOOST_TEST(number_at(bytes, slot + 48, 1) == 0x80U);                  // heap uuid
        BOOST_TEST(number_at(bytes, slot + 64, 8) == 16384U);                 // capacity
        BOOST_TEST(number_at(bytes, slot + 72, 4) == (slot == 0 ? 0U : 1U));  // flags: new
        BOOST_TEST(is_zero({bytes.data() + slot + 76, 4088 - 76}));
        BOOST_TEST(number_at(bytes, slot + 4088, 8) == checksum({bytes.data() + slot, 4088}, slot / 4096));
    }
}

BOOST_AUTO_TEST_CASE(the_records_of_the_golden_ring_lie_where_the_format_says) {
    std::vector<std::byte> bytes = read_golden(golden);
    const std::size_t area = 8192;
    const std::size_t first = area + 12 * 1024;  // position 28 KiB of a 16 KiB ring

    // Stamps: epoch tag, lap, place, check, all from the ring's uuid.
    const std::uint64_t key = mix(number_at(bytes, 32, 8), number_at(bytes, 40, 8));
    const auto fold = [](std::uint64_t value) { return (value ^ value >> 32U) & 0xffff'ffffU; };
    const std::uint64_t tag = fold(mix(start.epoch.value, key));
    const auto check_stamp = [&](std::size_t offset, std::uint64_t lap, std::uint64_t place) {
        BOOST_TEST(number_at(bytes, offset, 4) == tag);
        BOOST_TEST(number_at(bytes, offset + 4, 4) == lap);
        BOOST_TEST(number_at(bytes, offset + 8, 4) == place);
        BOOST_TEST(number_at(bytes, offset + 12, 4) == fold(mix(mix(key, tag | lap << 32U), place)));
    };
    check_stamp(first, 1, 24U | 1U << 31U);
    check_stamp(first + 512, 1, 25);
    check_stamp(area, 2, 0);
    check_stamp(area + 4096, 2, 8U | 1U << 31U);

    // The first record's header.
    const std::size_t header = first + 16;
    BOOST_TEST(std::memcmp(bytes.data() + header, "tyRC", 4) == 0);
    BOOST_TEST(number_at(bytes, header + 4, 4) == 2U);  // kind
    BOOST_TEST(number_at(bytes, header + 8, 8) == start.epoch.value);
    BOOST_TEST(number_at(bytes, header + 16, 8) == 5U);      // sequence
    BOOST_TEST(number_at(bytes, header + 24, 8) == 42U);     // number
    BOOST_TEST(number_at(bytes, header + 32, 8) == 28_KiB);  // position
    BOOST_TEST(number_at(bytes, header + 40, 8) == 5'000U);  // payload
    BOOST_TEST(number_at(bytes, header + 48, 8) == 4U);      // durable up to
    BOOST_TEST(number_at(bytes, header + 56, 1) == 0x80U);   // heap uuid
    BOOST_TEST(number_at(bytes, header + 72, 8) == 0U);      // flags
    BOOST_TEST(number_at(bytes, header + 80, 8) == checksum({bytes.data() + header, 80}, key));

    // Its payload: behind the header, then behind each stamp.
    BOOST_TEST(number_at(bytes, first + 112, 1) == 0U);
    BOOST_TEST(number_at(bytes, first + 511, 1) == 399U % 251);
    BOOST_TEST(number_at(bytes, first + 512 + 16, 1) == 400U % 251);
    BOOST_TEST(number_at(bytes, area + 16, 1) == (400U + 7 * 496) % 251);

    // Its checksum: the whole record with the checksum itself as zero, seeded with the predecessor's; and so is the next one's.
    std::vector<std::byte> record(bytes.begin() + static_cast<std::ptrdiff_t>(first), bytes.end());
    record.insert(record.end(), bytes.begin() + area, bytes.begin() + area + 4096);
    std::memset(record.data() + 16 + 88, 0, 8);
    const std::uint64_t sum = checksum(record, start.chain_seed);
    BOOST_TEST(number_at(bytes, header + 88, 8) == sum);
    const std::size_t second = area + 4096;
    const std::uint64_t second_sum = number_at(bytes, second + 16 + 88, 8);
    std::memset(bytes.data() + second + 16 + 88, 0, 8);
    BOOST_TEST(second_sum == checksum({bytes.data() + second, 4096}, sum));
}

BOOST_AUTO_TEST_SUITE_END()
