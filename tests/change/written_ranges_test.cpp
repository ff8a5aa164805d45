// Where something was written, changed or not.
#include <random>
#include <set>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "change/captured_core.hpp"
#include "change/written_ranges.hpp"
#include "heap/test_span.hpp"

namespace taiyen::change {
namespace {

using Ranges = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

Ranges all(WrittenRanges& ranges) {
    Ranges found;
    ranges.for_each([&](HeapOffset where, ByteCount length) { found.emplace_back(where.value, where.value + length); });
    return found;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(written_ranges)

BOOST_AUTO_TEST_CASE(ranges_that_touch_or_overlap_are_one) {
    WrittenRanges ranges;
    BOOST_TEST(all(ranges).empty());
    ranges.add({100}, 50);
    ranges.add({150}, 50);
    ranges.add({0}, 64);
    ranges.add({120}, 200);
    ranges.add({64}, 1);
    BOOST_TEST((all(ranges) == Ranges{{0, 65}, {100, 320}}));
    ranges.clear();
    BOOST_TEST(all(ranges).empty());
}

BOOST_AUTO_TEST_CASE(they_hold_what_was_added_and_nothing_else) {
    std::mt19937_64 random(taiyen::test::seed_of_run());
    WrittenRanges ranges;
    std::set<std::uint64_t> expected;
    for (int i = 0; i < 5000; ++i) {
        const std::uint64_t where = random() % 20'000;
        const ByteCount length = 1 + random() % 3;
        ranges.add({where}, length);
        for (ByteCount at = 0; at < length; ++at) expected.insert(where + at);
    }
    std::uint64_t bytes = 0;
    std::uint64_t behind = 0;
    for (const auto& [from, to] : all(ranges)) {
        BOOST_REQUIRE((bytes == 0 || from > behind));
        for (std::uint64_t at = from; at < to; ++at) BOOST_REQUIRE(expected.contains(at));
        bytes += to - from;
        behind = to;
    }
    BOOST_TEST(bytes == expected.size());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace taiyen::change
