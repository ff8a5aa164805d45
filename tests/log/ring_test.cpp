#include "log/ring.hpp"

#include <boost/test/unit_test.hpp>

#include <numeric>
#include <set>

#include <taiyen/base/error.hpp>

#include "log/ring_layout.hpp"
#include "ring_fixture.hpp"

using namespace taiyen;
using namespace taiyen::log;
using namespace taiyen::log::test;

BOOST_AUTO_TEST_SUITE(ring)

BOOST_AUTO_TEST_CASE(a_fresh_ring_holds_no_records) {
    const RingFixture fixture;
    fixture.require(ScanEnd::end);
    BOOST_TEST((fixture.scan().result.next == fixture.start));
    BOOST_TEST(fixture.file->bytes.size() == Ring::header_bytes + 64_KiB);
}

BOOST_AUTO_TEST_CASE(formatting_writes_every_byte_and_syncs_before_the_identity_appears) {
    MemoryFile file;
    file.cut_power(0, [](std::uint64_t) { return false; });
    BOOST_CHECK_THROW(Ring::format(file, {uuid_of(1), uuid_of(2), 64_KiB, true}), PowerCut);
    BOOST_TEST(file.syncs == 1U);
    BOOST_TEST(file.bytes.size() == Ring::header_bytes + 64_KiB);
    file.restore_power();
    BOOST_CHECK_EXCEPTION(Ring::read_identity(file), Error, [](const Error& error) { return error.code() == errc::not_a_heap; });
}

BOOST_AUTO_TEST_CASE(records_of_all_sizes_come_back_in_order) {
    RingFixture fixture(1_MiB);
    for (const std::size_t size : {0U, 1U, 399U, 400U, 401U, 896U, 3967U, 3872U, 3873U, 4096U, 24'576U, 100'000U}) fixture.append(size);
    fixture.require(ScanEnd::end);
    BOOST_TEST((fixture.scan().result.next == fixture.ring->next()));
}

BOOST_AUTO_TEST_CASE(every_size_around_a_block_comes_back) {
    for (std::size_t size = 3'800; size < 4'000; ++size) {
        RingFixture fixture(16_KiB);
        fixture.append(size);
        fixture.require(ScanEnd::end);
    }
}

BOOST_AUTO_TEST_CASE(a_record_takes_whole_blocks_and_as_few_as_possible) {
    // 8 sectors of 496 bytes, less the record's own 96.
    BOOST_TEST(Ring::record_bytes(0) == 4096U);
    BOOST_TEST(Ring::record_bytes(8 * 496 - 96) == 4096U);
    BOOST_TEST(Ring::record_bytes(8 * 496 - 96 + 1) == 8192U);
    BOOST_TEST(Ring::record_bytes(24'576) == 7U * 4096U);
    BOOST_TEST(Ring::record_bytes(SIZE_MAX) > SIZE_MAX - 4096U);
}

BOOST_AUTO_TEST_CASE(a_record_is_made_of_all_its_pieces_in_order) {
    RingFixture fixture;
    std::vector<std::vector<std::byte>> pieces;
    std::vector<std::byte> whole;
    for (const std::size_t size : {0U, 1U, 495U, 496U, 497U, 0U, 4096U, 17U, 1000U, 3U}) {
        pieces.push_back(payload_of(size, size));
        whole.insert(whole.end(), pieces.back().begin(), pieces.back().end());
    }
    const std::vector<std::span<const std::byte>> spans(pieces.begin(), pieces.end());
    fixture.ring->append(3, 4, spans);
    const Scanned scanned = fixture.scan();
    BOOST_REQUIRE_EQUAL(scanned.records.size(), 1U);
    BOOST_TEST((scanned.records[0].payload == whole));
}

BOOST_AUTO_TEST_CASE(appending_costs_one_durable_write_and_two_at_the_wrap) {
    RingFixture fixture(16_KiB);
    const std::uint64_t before = fixture.file->durable_writes;
    const std::uint64_t buffered = fixture.file->buffered_writes;
    fixture.append(7'000);  // 8 KiB
    BOOST_TEST(fixture.file->durable_writes == before + 1);
    fixture.append(100);
    fixture.ring->release(fixture.records[1].position);
    fixture.append(7'000);
    BOOST_TEST(fixture.file->durable_writes == before + 4);
    BOOST_TEST(fixture.file->buffered_writes == buffered);
}

BOOST_AUTO_TEST_CASE(space_is_what_lies_between_the_next_record_and_the_tail) {
    RingFixture fixture(16_KiB);
    BOOST_TEST(fixture.ring->capacity() == 16_KiB);
    BOOST_TEST(fixture.ring->free_bytes() == 16_KiB);
    fixture.append(5'000);
    BOOST_TEST(fixture.ring->free_bytes() == 8_KiB);
    BOOST_TEST(fixture.ring->fits(8_KiB - 8 * 32 - 96));
    fixture.append(8_KiB - 16 * 16 - 96);
    BOOST_TEST(fixture.ring->free_bytes() == 0U);
    BOOST_TEST(!fixture.ring->fits(0));
    fixture.require(ScanEnd::end);  // exactly full

    fixture.ring->release(8_KiB);
    BOOST_TEST(fixture.ring->tail() == 8_KiB);
    BOOST_TEST(fixture.ring->free_bytes() == 8_KiB);
    fixture.ring->release(4_KiB);  // an older tail changes nothing
    BOOST_TEST(fixture.ring->free_bytes() == 8_KiB);
}

BOOST_AUTO_TEST_CASE(a_record_as_large_as_the_ring_comes_back_from_any_position) {
    for (std::uint64_t position = 0; position < 32_KiB; position += 4_KiB) {
        RingFixture fixture(16_KiB, position);
        fixture.append(32 * 496 - 96);
        BOOST_TEST(fixture.ring->free_bytes() == 0U);
        fixture.require(ScanEnd::end);
    }
}

BOOST_AUTO_TEST_CASE(a_record_knows_where_it_lies_in_the_file_whatever_the_lap) {
    RingFixture fixture(16_KiB, 40_KiB);  // in the third lap
    for (int i = 0; i < 3; ++i) fixture.append(100);
    const Scanned scanned = fixture.scan();
    BOOST_TEST_REQUIRE(scanned.records.size() == 3U);
    BOOST_TEST(scanned.records[0].file_offset == Ring::header_bytes + 8_KiB);
    BOOST_TEST(scanned.records[1].file_offset == Ring::header_bytes + 12_KiB);
    BOOST_TEST(scanned.records[2].file_offset == Ring::header_bytes);
}

BOOST_AUTO_TEST_CASE(records_wrap_at_every_place_of_the_ring) {
    for (std::uint64_t position = 0; position < 64_KiB; position += 4_KiB) {
        for (const std::size_t size : {100U, 5'000U, 20'000U, 40'000U}) {
            RingFixture fixture(32_KiB, position);
            if (!fixture.ring->fits(size)) continue;
            fixture.append(size);
            while (fixture.ring->fits(1'000)) fixture.append(1'000);
            fixture.require(ScanEnd::end);
        }
    }
}

BOOST_AUTO_TEST_CASE(a_scan_may_stop_early_and_says_where_it_stands) {
    RingFixture fixture;
    fixture.append(100);
    fixture.append(200);
    fixture.append(300);
    std::size_t seen = 0;
    const ScanResult result = Ring::scan(*fixture.file, fixture.identity, fixture.start, [&](const Record&) { return ++seen < 2; });
    BOOST_TEST(result.records == 2U);
    BOOST_TEST(result.next.position == fixture.records[2].position);
    BOOST_TEST(result.next.sequence == 3U);
    // From there the rest is found.
    const Scanned rest = scan_all(*fixture.file, fixture.identity, result.next);
    BOOST_REQUIRE_EQUAL(rest.records.size(), 1U);
    BOOST_TEST(same(rest.records[0], fixture.records[2]));
}

BOOST_AUTO_TEST_CASE(appending_goes_on_where_a_scan_ended) {
    RingFixture fixture;
    fixture.append(100);
    fixture.append(9'000);
    const RingStart next = fixture.scan().result.next;
    fixture.ring = std::make_unique<Ring>(fixture.file, fixture.identity, next, fixture.start.position);
    fixture.append(300);
    fixture.require(ScanEnd::end);
}

BOOST_AUTO_TEST_CASE(a_failed_write_poisons_the_ring) {
    RingFixture fixture;
    fixture.append(100);
    fixture.file->cut_power(0, [](std::uint64_t) { return false; });
    BOOST_CHECK_THROW(fixture.append(100), PowerCut);
    fixture.file->restore_power();
    BOOST_CHECK_EXCEPTION(fixture.append(100), Error, [](const Error& error) { return error.code() == errc::poisoned; });
    fixture.require(ScanEnd::end);
}

BOOST_AUTO_TEST_CASE(a_huge_record_does_not_keep_its_buffer_from_working_for_small_ones) {
    RingFixture fixture(16_MiB);
    fixture.append(6'000'000);
    fixture.append(10);
    fixture.append(5'000'000);
    fixture.require(ScanEnd::end);
}

BOOST_AUTO_TEST_CASE(every_sector_is_stamped_with_its_place_and_the_padding_is_zero) {
    RingFixture fixture(32_KiB, 28_KiB);
    fixture.append(4'000);  // wraps after its first block
    std::set<std::uint32_t> places;
    for (std::uint64_t at = 0; at < 8_KiB; at += layout::sector_bytes) {
        layout::SectorStamp stamp;
        std::memcpy(&stamp, fixture.at(28_KiB + at), sizeof stamp);
        BOOST_TEST(((stamp.place & layout::place_begins) != 0) == (at == 0));
        BOOST_TEST(stamp.lap == (at < 4_KiB ? 0U : 1U));
        places.insert(stamp.place & ~layout::place_begins);
    }
    BOOST_TEST((places == std::set<std::uint32_t>{0, 1, 2, 3, 4, 5, 6, 7, 56, 57, 58, 59, 60, 61, 62, 63}));
    const std::byte* const last = fixture.at(28_KiB + 8_KiB - layout::sector_bytes);
    BOOST_TEST(std::all_of(last + sizeof(layout::SectorStamp), last + layout::sector_bytes, [](std::byte byte) { return byte == std::byte{0}; }));
}

BOOST_AUTO_TEST_CASE(an_impossible_ring_or_beginning_is_an_error_and_nothing_is_read) {
    const RingFixture fixture;
    const std::uint64_t reads = fixture.file->reads;
    const auto refused = [&](ByteCount capacity, std::uint64_t position) {
        RingIdentity identity = fixture.identity;
        identity.capacity_bytes = capacity;
        RingStart start = fixture.start;
        start.position = position;
        BOOST_CHECK_EXCEPTION(scan_all(*fixture.file, identity, start), Error, [](const Error& error) { return error.code() == errc::corrupt; });
    };
    refused(0, 0);
    refused(4_KiB, 0);
    refused(64_KiB + 512, 0);
    refused(SIZE_MAX & ~std::size_t{4095}, 0);
    refused(64_KiB, 512);
    refused(64_KiB, UINT64_MAX - 4095);
    BOOST_TEST(fixture.file->reads == reads);
}

BOOST_AUTO_TEST_CASE(a_ring_that_became_shorter_is_a_truncated_error) {
    RingFixture fixture;
    fixture.append(100);
    fixture.file->bytes.resize(Ring::header_bytes + 2_KiB);
    BOOST_CHECK_EXCEPTION(fixture.scan(), Error,
                          [](const Error& error) { return error.code() == errc::truncated && error.offset() == Ring::header_bytes + 2_KiB; });
}

BOOST_AUTO_TEST_SUITE_END()
