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

using test::CapturedCore;
using Ranges = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

Ranges all(WrittenRanges& ranges) {
    Ranges found;
    ranges.for_each([&](HeapOffset where, ByteCount length) { found.emplace_back(where.value, where.value + length); });
    return found;
}

bool holds(WrittenRanges& ranges, HeapOffset where) {
    bool found = false;
    ranges.for_each([&](HeapOffset from, ByteCount length) { found = found || where.value - from.value < length; });
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

BOOST_AUTO_TEST_CASE(a_word_that_was_stored_again_is_no_change_but_was_written) {
    for (const Capture capture : {Capture::pages, Capture::declared}) {
        BOOST_TEST_CONTEXT("capture " << static_cast<int>(capture)) {
            CapturedCore core;
            auto* const words = static_cast<std::uint64_t*>(core.engine().allocate(8 * page_bytes));
            words[0] = 7;
            Recorder& recorder = core.capture(capture);
            const auto store_again = [&] {
                recorder.touch(core.offset_of(words), sizeof *words);
                *static_cast<volatile std::uint64_t*>(words) = 7;
            };
            ChangeSet changes;
            store_again();
            recorder.cut(changes);
            BOOST_TEST(!holds(recorder.written(), core.offset_of(words)));  // nobody has asked

            core.want_written(true);
            store_again();
            recorder.cut(changes);
            BOOST_TEST(changes.empty());
            BOOST_TEST(holds(recorder.written(), core.offset_of(words)));
            BOOST_TEST(!holds(recorder.written(), core.offset_of(words + 4 * page_bytes / sizeof *words)));
            // It stays so with later cuts, until it is forgotten or nobody wants it any more.
            recorder.cut(changes);
            BOOST_TEST(holds(recorder.written(), core.offset_of(words)));
            core.want_written(false);
            recorder.cut(changes);
            BOOST_TEST(!holds(recorder.written(), core.offset_of(words)));
        }
    }
}

BOOST_AUTO_TEST_CASE(pages_that_a_cut_closes_have_been_written) {
    CapturedCore core;
    constexpr ByteCount pages = 1100;  // more than a scope may use for the first time and keep open
    auto* const bytes = static_cast<volatile std::byte*>(core.engine().allocate(pages * page_bytes));
    for (ByteCount page = 0; page < pages; ++page) bytes[page * page_bytes] = std::byte{1};
    Recorder& recorder = core.capture(Capture::pages);
    core.want_written(true);
    recorder.begin_scope();
    for (ByteCount page = 0; page < pages; ++page) bytes[page * page_bytes] = std::byte{1};
    bytes[1] = std::byte{1};
    ChangeSet changes;
    recorder.cut(changes);
    recorder.cut(changes);
    for (ByteCount page = 0; page < pages; ++page) {
        BOOST_REQUIRE(holds(recorder.written(), core.offset_of(const_cast<const std::byte*>(bytes) + page * page_bytes)));
    }
    recorder.end_scope();
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace taiyen::change
