#include "log/ring.hpp"

#include <boost/test/unit_test.hpp>

#include <limits>

#include <taiyen/base/error.hpp>

#include "log/ring_layout.hpp"
#include "ring_fixture.hpp"
#include "ring_forgery.hpp"
#include "seed.hpp"

using namespace taiyen;
using namespace taiyen::log;
using namespace taiyen::log::test;

namespace {

layout::RecordHeader header_at(const RingFixture& fixture, std::uint64_t position) {
    layout::RecordHeader header;
    std::memcpy(&header, fixture.at(position) + sizeof(layout::SectorStamp), sizeof header);
    return header;
}

/// Three records of one, two and one block.
RingFixture three_records() {
    RingFixture fixture(32_KiB);
    fixture.append(3'000);
    fixture.append(6'000);
    fixture.append(1'000);
    return fixture;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(ring_damage)

BOOST_AUTO_TEST_CASE(one_flipped_bit_anywhere_in_a_record_is_corrupt_and_the_records_before_it_stand) {
    RingFixture fixture = three_records();
    for (std::uint64_t position = 0; position < 16_KiB; ++position) {
        const std::size_t bad = position < 4_KiB ? 0 : position < 12_KiB ? 1 : 2;
        std::byte* const at = fixture.at(position);
        const std::byte bit{static_cast<unsigned char>(1U << position % 8)};
        *at ^= bit;
        const Scanned scanned = fixture.scan();
        *at ^= bit;
        BOOST_REQUIRE_EQUAL(scanned.result.how, ScanEnd::corrupt);
        BOOST_REQUIRE_EQUAL(scanned.result.next.position, fixture.records[bad].position);
        fixture.require_records(scanned, bad);
    }
    fixture.require(ScanEnd::end);
}

BOOST_AUTO_TEST_CASE(one_flipped_bit_behind_the_last_record_is_harmless) {
    RingFixture fixture = three_records();
    for (std::uint64_t position = 16_KiB; position < 32_KiB; ++position) {
        std::byte* const at = fixture.at(position);
        *at ^= std::byte{0x20};
        const Scanned scanned = fixture.scan();
        *at ^= std::byte{0x20};
        BOOST_REQUIRE_EQUAL(scanned.result.how, ScanEnd::end);
        fixture.require_records(scanned, 3);
    }
}

BOOST_AUTO_TEST_CASE(a_sector_that_was_lost_from_an_acknowledged_record_is_corrupt) {
    for (std::uint64_t position = 0; position < 12_KiB; position += layout::sector_bytes) {
        RingFixture fixture = three_records();
        std::memset(fixture.at(position), 0, layout::sector_bytes);
        const Scanned scanned = fixture.scan();
        BOOST_TEST(scanned.result.how == ScanEnd::corrupt);
        fixture.require_records(scanned, position < 4_KiB ? 0 : 1);
    }
}

BOOST_AUTO_TEST_CASE(a_whole_record_that_was_lost_is_corrupt_while_a_later_one_is_there) {
    RingFixture fixture = three_records();
    std::memset(fixture.at(4_KiB), 0, 8_KiB);
    const Scanned scanned = fixture.scan();
    BOOST_TEST(scanned.result.how == ScanEnd::corrupt);
    fixture.require_records(scanned, 1);
}

BOOST_AUTO_TEST_CASE(a_sector_written_to_the_wrong_place_is_corrupt) {
    RingFixture fixture = three_records();
    std::memcpy(fixture.at(12_KiB), fixture.at(4_KiB), layout::sector_bytes);
    BOOST_TEST(fixture.scan().result.how == ScanEnd::corrupt);
    RingFixture swapped = three_records();
    std::swap_ranges(swapped.at(4_KiB + 512), swapped.at(4_KiB + 1024), swapped.at(4_KiB + 1024));
    BOOST_TEST(swapped.scan().result.how == ScanEnd::corrupt);
}

BOOST_AUTO_TEST_CASE(records_that_were_overwritten_while_still_needed_are_corrupt) {
    RingFixture fixture(16_KiB);
    const RingStart old = fixture.start;
    for (int record = 0; record < 11; ++record) {
        fixture.append(3'000);
        fixture.ring->release(fixture.ring->next().position);
        if (record >= 4) {
            const Scanned scanned = scan_all(*fixture.file, fixture.identity, old);
            BOOST_TEST(scanned.result.how == ScanEnd::corrupt);
            BOOST_TEST(scanned.records.empty());
        }
    }
}

BOOST_AUTO_TEST_CASE(records_of_another_epoch_are_not_there) {
    const RingFixture fixture = three_records();
    RingStart start = fixture.start;
    start.epoch.value ^= 1U << 20U;
    const Scanned scanned = scan_all(*fixture.file, fixture.identity, start);
    BOOST_TEST(scanned.result.how == ScanEnd::end);
    BOOST_TEST(scanned.records.empty());
}

BOOST_AUTO_TEST_CASE(records_of_another_ring_or_heap_are_corrupt) {
    const RingFixture fixture = three_records();
    RingIdentity identity = fixture.identity;
    identity.ring.bytes[5] ^= 1U;
    BOOST_TEST(scan_all(*fixture.file, identity, fixture.start).result.how == ScanEnd::corrupt);
    identity = fixture.identity;
    identity.heap.bytes[15] ^= 0x80U;
    const Scanned scanned = scan_all(*fixture.file, identity, fixture.start);
    BOOST_TEST(scanned.result.how == ScanEnd::corrupt);
    BOOST_TEST(scanned.records.empty());
}

BOOST_AUTO_TEST_CASE(a_record_must_continue_its_predecessors_checksum_and_sequence) {
    const RingFixture fixture = three_records();
    RingStart start = fixture.start;
    start.chain_seed ^= 1U;
    BOOST_TEST(scan_all(*fixture.file, fixture.identity, start).result.how == ScanEnd::corrupt);
    start = fixture.start;
    start.sequence = 2;
    BOOST_TEST(scan_all(*fixture.file, fixture.identity, start).result.how == ScanEnd::corrupt);
    // A second record that is right in itself, but follows another first one.
    RingFixture other(32_KiB);
    other.append(2'999);
    other.append(6'000);
    RingFixture mixed = three_records();
    std::memcpy(mixed.at(4_KiB), other.at(4_KiB), 8_KiB);
    const Scanned scanned = mixed.scan();
    BOOST_TEST(scanned.result.how == ScanEnd::corrupt);
    mixed.require_records(scanned, 1);
}

BOOST_AUTO_TEST_CASE(a_beginning_inside_a_record_is_corrupt) {
    RingFixture fixture(32_KiB);
    fixture.append(3'000);
    fixture.append(6'000);
    RingStart start = fixture.start;
    start.position = 8_KiB;  // the second block of the second record
    const Scanned scanned = scan_all(*fixture.file, fixture.identity, start);
    BOOST_TEST(scanned.result.how == ScanEnd::corrupt);
    BOOST_TEST(scanned.records.empty());
}

BOOST_AUTO_TEST_CASE(hostile_lengths_with_right_checksums_are_refused_without_reading_outside) {
    for (const std::uint64_t length :
         {std::uint64_t{32_KiB}, std::uint64_t{1} << 32U, std::uint64_t{1} << 62U, std::uint64_t{1} << 63U, std::numeric_limits<std::uint64_t>::max(),
          std::numeric_limits<std::uint64_t>::max() - 95, std::uint64_t{64 * 496 - 96 + 1}}) {
        for (const std::size_t record : {1U, 2U}) {
            RingFixture fixture = three_records();
            const std::uint64_t position = fixture.records[record].position;
            layout::RecordHeader header = header_at(fixture, position);
            header.payload_bytes = length;
            forge_header(fixture.at(position), fixture.identity, header);
            const Scanned scanned = fixture.scan();
            BOOST_TEST(scanned.result.how == ScanEnd::corrupt);
            fixture.require_records(scanned, record);
        }
    }
}

BOOST_AUTO_TEST_CASE(a_forged_record_with_all_checksums_right_shows_that_the_forging_tests_would_notice) {
    RingFixture fixture = three_records();
    layout::RecordHeader header = header_at(fixture, 12_KiB);
    const std::uint64_t seed = header_at(fixture, 4_KiB).record_checksum;
    header.kind = 99;
    forge_header(fixture.at(12_KiB), fixture.identity, header);
    forge_record({fixture.at(12_KiB), 4_KiB}, seed);
    const Scanned scanned = fixture.scan();
    BOOST_TEST(scanned.result.how == ScanEnd::end);
    BOOST_REQUIRE_EQUAL(scanned.records.size(), 3U);
    BOOST_TEST(scanned.records[2].kind == 99U);
}

BOOST_AUTO_TEST_CASE(forged_places_sequences_heaps_and_epochs_are_refused) {
    const auto forged = [](auto change) {
        RingFixture fixture = three_records();
        layout::RecordHeader header = header_at(fixture, 12_KiB);
        change(header);
        forge_header(fixture.at(12_KiB), fixture.identity, header);
        forge_record({fixture.at(12_KiB), 4_KiB}, header_at(fixture, 4_KiB).record_checksum);
        const Scanned scanned = fixture.scan();
        fixture.require_records(scanned, 2);
        return scanned.result.how;
    };
    BOOST_TEST(forged([](layout::RecordHeader& header) { header.magic ^= 1U; }) == ScanEnd::corrupt);
    BOOST_TEST(forged([](layout::RecordHeader& header) { header.position += 32_KiB; }) == ScanEnd::corrupt);
    BOOST_TEST(forged([](layout::RecordHeader& header) { header.sequence += 1; }) == ScanEnd::corrupt);
    BOOST_TEST(forged([](layout::RecordHeader& header) { header.heap[0] ^= 1U; }) == ScanEnd::corrupt);
    BOOST_TEST(forged([](layout::RecordHeader& header) { header.flags = 1; }) == ScanEnd::corrupt);
    BOOST_TEST(forged([](layout::RecordHeader& header) { header.epoch += 1; }) == ScanEnd::end);
}

BOOST_AUTO_TEST_CASE(random_bytes_instead_of_records_are_never_accepted) {
    RingFixture fixture = three_records();
    const std::vector<std::byte> garbage = payload_of(32_KiB, taiyen::test::seed_of_run());
    std::copy(garbage.begin(), garbage.end(), fixture.at(0));
    BOOST_TEST(fixture.scan().records.empty());
    RingFixture behind = three_records();
    std::copy(garbage.begin(), garbage.begin() + 16'384, behind.at(16_KiB));
    const Scanned scanned = behind.scan();
    BOOST_TEST(scanned.result.how == ScanEnd::corrupt);  // no torn write leaves that
    behind.require_records(scanned, 3);
}

BOOST_AUTO_TEST_SUITE_END()
