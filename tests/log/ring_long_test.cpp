// Logs of many windows: the scan reads ahead of itself, and nobody notices.

#include <boost/test/unit_test.hpp>

#include <taiyen/base/error.hpp>

#include "forwarding_file.hpp"
#include "ring_fixture.hpp"

using namespace taiyen;
using namespace taiyen::log;
using namespace taiyen::log::test;
using boost::unit_test::label;

namespace {

/// Reads at or behind an offset fail.
class FailingFile final : public ForwardingFile {
public:
    FailingFile(std::shared_ptr<io::File> inner, std::uint64_t from) : ForwardingFile(std::move(inner)), from_(from) {}
    ByteCount read_direct(std::span<std::byte> bytes, std::uint64_t offset) const override {
        if (offset + bytes.size() > from_) throw Error(errc::io_error, path(), offset, "made to fail");
        return ForwardingFile::read_direct(bytes, offset);
    }

private:
    std::uint64_t from_;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(ring_long)

BOOST_AUTO_TEST_CASE(a_log_of_many_windows_is_read_to_its_end, *label("threads")) {
    // From the middle of the ring, so that a window runs over its end.
    RingFixture fixture(16_MiB, 10_MiB);
    while (fixture.ring->fits(100'000)) fixture.append(fixture.records.size() % 7 * 15'000);
    BOOST_TEST(fixture.ring->free_bytes() < 200'000U);
    fixture.require(ScanEnd::end);

    // And to where it is torn.
    const std::size_t torn = fixture.records.size() * 3 / 4;
    std::memset(fixture.at(fixture.records[torn].position), 0, io::sector_bytes);
    const Scanned scanned = fixture.scan();
    BOOST_TEST(scanned.result.how == ScanEnd::corrupt);  // later records are there
    fixture.require_records(scanned, torn);
}

BOOST_AUTO_TEST_CASE(a_scan_that_stops_early_leaves_nothing_behind, *label("threads")) {
    RingFixture fixture(16_MiB);
    while (fixture.ring->fits(100'000)) fixture.append(50'000);
    for (std::size_t stop = 1; stop < fixture.records.size(); stop += 17) {
        std::size_t seen = 0;
        const auto result = Ring::scan(*fixture.file, fixture.identity, fixture.start, [&](const Record& record) {
            BOOST_REQUIRE(same(record, fixture.records[seen]));
            return ++seen < stop;
        });
        BOOST_TEST(result.records == stop);
    }
}

BOOST_AUTO_TEST_CASE(what_goes_wrong_ahead_matters_only_if_its_bytes_do, *label("threads")) {
    RingFixture fixture(16_MiB);
    while (fixture.ring->next().position < 4_MiB) fixture.append(50'000);
    // The look behind the end, for later records, reads one more MiB.
    const FailingFile far(fixture.file, Ring::header_bytes + 8_MiB);
    std::size_t found = 0;
    try {
        Ring::scan(far, fixture.identity, fixture.start, [&](const Record&) { return ++found < fixture.records.size(); });
    } catch (const Error&) {
        BOOST_ERROR("nothing that failed was needed");
    }
    BOOST_TEST(found == fixture.records.size());
    const FailingFile near(fixture.file, Ring::header_bytes + 2_MiB);
    BOOST_CHECK_EXCEPTION(Ring::scan(near, fixture.identity, fixture.start, [](const Record&) { return true; }), Error,
                          [](const Error& error) { return error.code() == errc::io_error; });
}

BOOST_AUTO_TEST_SUITE_END()
