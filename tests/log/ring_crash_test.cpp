#include "log/ring.hpp"

#include <boost/test/unit_test.hpp>

#include <random>

#include "ring_fixture.hpp"
#include "seed.hpp"

using namespace taiyen;
using namespace taiyen::log;
using namespace taiyen::log::test;

namespace {

/// Tears the durable write number `write` of the next append so that exactly the sectors `keep` says are stored, and requires that the record
/// is not accepted (unless it is there wholly) and that nobody calls it corrupt.
void tear(RingFixture fixture, std::size_t size, std::uint64_t write, const std::function<bool(std::uint64_t)>& keep, bool whole) {
    fixture.file->cut_power(write, keep);
    BOOST_CHECK_THROW(fixture.append(size), PowerCut);
    fixture.file->restore_power();
    const Scanned scanned = fixture.scan();
    BOOST_REQUIRE_NE(scanned.result.how, ScanEnd::corrupt);
    if (whole) {
        fixture.records.push_back(fixture.attempted);
        BOOST_REQUIRE_EQUAL(scanned.result.how, ScanEnd::end);
    }
    fixture.require_records(scanned, fixture.records.size());
}

/// A ring in its third lap whose earlier laps are full of records, with the next record at `position`.
RingFixture worn_ring(ByteCount capacity, std::uint64_t position) {
    RingFixture fixture(capacity);
    while (fixture.ring->next().position < position) {
        const bool last_block = fixture.ring->next().position + 4_KiB == position;
        fixture.append(last_block || fixture.records.size() % 2 != 0 ? 3'000 : 5'000);
        fixture.ring->release(fixture.ring->next().position);
        fixture.start = fixture.ring->next();
    }
    fixture.records.clear();
    return fixture;
}

RingFixture copy_of(const RingFixture& other) {
    RingFixture copy(other.identity.capacity_bytes);
    copy.file->bytes = other.file->bytes;
    copy.start = other.start;
    copy.records = other.records;
    copy.ring = std::make_unique<Ring>(copy.file, copy.identity, other.ring->next(), other.ring->tail());
    return copy;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(ring_crash)

BOOST_AUTO_TEST_CASE(any_subset_of_the_sectors_of_a_small_record_is_rejected) {
    for (const std::uint64_t position : {0_KiB, 36_KiB, 44_KiB}) {
        const RingFixture fixture = worn_ring(16_KiB, position);
        for (unsigned subset = 0; subset < 256; ++subset)
            tear(copy_of(fixture), 3'000, 0, [=](std::uint64_t sector) { return (subset >> sector & 1U) != 0; }, subset == 255);
    }
}

BOOST_AUTO_TEST_CASE(any_subset_of_either_half_of_a_wrapping_record_is_rejected) {
    const RingFixture fixture = worn_ring(16_KiB, 44_KiB);
    for (const std::uint64_t write : {0U, 1U})
        for (unsigned subset = 0; subset < 256; ++subset)
            tear(copy_of(fixture), 7'000, write, [=](std::uint64_t sector) { return (subset >> sector & 1U) != 0; }, write == 1 && subset == 255);
}

BOOST_AUTO_TEST_CASE(a_long_record_torn_after_any_sector_or_before_any_sector_is_rejected) {
    const RingFixture fixture = worn_ring(64_KiB, 132_KiB);
    const std::size_t size = 30'000;
    const std::uint64_t sectors = Ring::record_bytes(size) / io::sector_bytes;
    for (std::uint64_t cut = 0; cut <= sectors; ++cut) {
        tear(copy_of(fixture), size, 0, [=](std::uint64_t sector) { return sector < cut; }, cut == sectors);
        tear(copy_of(fixture), size, 0, [=](std::uint64_t sector) { return sector >= cut; }, cut == 0);
        if (cut < sectors) {
            tear(copy_of(fixture), size, 0, [=](std::uint64_t sector) { return sector != cut; }, false);
            tear(copy_of(fixture), size, 0, [=](std::uint64_t sector) { return sector == cut; }, false);
        }
    }
}

BOOST_AUTO_TEST_CASE(sectors_that_a_torn_write_zeroed_are_torn_not_corrupt) {
    const RingFixture fixture = worn_ring(16_KiB, 36_KiB);
    for (unsigned subset = 0; subset < 255; ++subset) {
        RingFixture torn = copy_of(fixture);
        torn.append(3'000);
        for (std::uint64_t sector = 0; sector < 8; ++sector)
            if ((subset >> sector & 1U) == 0) std::memset(torn.at(36_KiB + sector * io::sector_bytes), 0, io::sector_bytes);
        torn.records.clear();
        torn.require(subset == 0 ? ScanEnd::end : ScanEnd::torn);
    }
}

BOOST_AUTO_TEST_CASE(records_behind_a_torn_one_of_the_life_before_stay_dead) {
    // Life one writes three records, but its header never learns of them; the first gets lost.
    RingFixture fixture;
    const std::vector<std::byte> before = fixture.file->bytes;
    fixture.append(3'000);
    fixture.append(3'000);
    fixture.append(3'000);
    std::memcpy(fixture.at(0), before.data() + Ring::header_bytes, 4_KiB);
    BOOST_TEST(fixture.scan().result.how == ScanEnd::corrupt);  // the later ones tell

    // Life two starts where the log ended, with a new epoch, and writes a record just as long.
    fixture.start = {Epoch{fixture.start.epoch.value + 1}, 0, 1, 12345};
    fixture.records.clear();
    fixture.open();
    fixture.require(ScanEnd::end);
    fixture.append(3'000);
    fixture.require(ScanEnd::end);
    BOOST_TEST(fixture.scan().result.next.position == 4_KiB);
}

BOOST_AUTO_TEST_CASE(a_whole_lap_of_stale_records_is_never_accepted) {
    // The ring is filled again and again with records of the same lengths, so that every place holds a well-formed record of the lap before.
    RingFixture fixture(16_KiB);
    for (int record = 0; record < 40; ++record) {
        fixture.append(3'000);
        fixture.ring->release(fixture.ring->next().position);
        fixture.start = fixture.ring->next();
        fixture.records.clear();
        fixture.require(ScanEnd::end);
        // Even a header that remembers the right place but counts one lap more finds nothing.
        RingStart later = fixture.start;
        later.position += 16_KiB;
        BOOST_TEST(scan_all(*fixture.file, fixture.identity, later).records.empty());
    }
}

BOOST_AUTO_TEST_CASE(random_lives_of_appends_releases_and_power_cuts_keep_exactly_what_was_acknowledged) {
    std::mt19937_64 random(taiyen::test::seed_of_run());
    int cuts = 0;
    for (int ring = 0; ring < 30; ++ring) {
        RingFixture fixture((4 + random() % 13) * 4_KiB, random() % 100 * 4_KiB);
        std::vector<RingStart> starts;  // of the records noted
        for (int step = 0; step < 200; ++step) {
            const std::size_t size = random() % 4 == 0 ? random() % 20'000 : random() % 5'000;
            if (random() % 3 == 0 || !fixture.ring->fits(size)) {
                // A checkpoint: some of the oldest records are not needed any more.
                const std::size_t count = fixture.records.empty() ? 0 : random() % fixture.records.size() + 1;
                fixture.start = count < starts.size() ? starts[count] : fixture.ring->next();
                fixture.ring->release(fixture.start.position);
                fixture.records.erase(fixture.records.begin(), fixture.records.begin() + static_cast<std::ptrdiff_t>(count));
                starts.erase(starts.begin(), starts.begin() + static_cast<std::ptrdiff_t>(count));
            }
            if (!fixture.ring->fits(size)) continue;
            const RingStart here = fixture.ring->next();
            if (random() % 4 != 0) {
                fixture.append(size);
                starts.push_back(here);
                continue;
            }
            const std::uint64_t style = random() % 4;
            const std::uint64_t cut = random() % 24;
            const std::uint64_t bits = random() | (style == 0 ? random() : 0);
            fixture.file->cut_power(random() % 2, [=](std::uint64_t sector) {
                return style == 1 ? sector < cut : style == 2 ? sector >= cut : (bits >> sector % 64 & 1U) != 0;
            });
            try {
                fixture.append(size);
                starts.push_back(here);
                fixture.file->restore_power();
                continue;  // it had no second write
            } catch (const PowerCut&) {
                ++cuts;
            }
            fixture.file->restore_power();
            const Scanned scanned = fixture.scan();
            BOOST_REQUIRE_NE(scanned.result.how, ScanEnd::corrupt);
            if (scanned.records.size() == fixture.records.size() + 1) {  // it had come through wholly, though not acknowledged
                fixture.records.push_back(fixture.attempted);
                starts.push_back(here);
            }
            fixture.require_records(scanned, fixture.records.size());
            // Recovery absorbs the records, and the header starts a new life behind them.
            fixture.start = {Epoch{random()}, scanned.result.next.position, scanned.result.next.sequence, random()};
            fixture.records.clear();
            starts.clear();
            fixture.open();
            fixture.require(ScanEnd::end);
        }
        fixture.require(ScanEnd::end);
    }
    BOOST_TEST_MESSAGE(cuts << " power cuts");
    BOOST_TEST(cuts > 300);
}

BOOST_AUTO_TEST_SUITE_END()
