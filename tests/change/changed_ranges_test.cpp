// What differs becomes entries: no byte is missed, none is added, and pieces give what the whole page gives.
#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "change/changed_ranges.hpp"
#include "heap/test_span.hpp"

namespace taiyen::change {
namespace {

using Page = std::array<std::byte, page_bytes>;

struct Range {
    std::uint64_t where;
    std::uint64_t length;
    bool operator==(const Range&) const = default;
};

std::vector<Range> ranges(const ChangeSet& set) {
    std::vector<Range> all;
    set.for_each(Direction::forward, [&](const Entry& entry) { all.push_back({entry.where.value, entry.length}); });
    return all;
}

/// The rule, byte by byte.
std::vector<Range> expected(const Page& before, const Page& after) {
    std::vector<Range> all;
    for (std::uint64_t i = 0; i < page_bytes; ++i) {
        if (before[i] == after[i]) continue;
        if (!all.empty() && i - (all.back().where + all.back().length) < merge_gap)
            all.back().length = i + 1 - all.back().where;
        else
            all.push_back({i, 1});
    }
    return all;
}

Page random_page(std::mt19937_64& random) {
    Page page;
    for (std::byte& byte : page) byte = static_cast<std::byte>(random());
    return page;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(changed_ranges)

BOOST_AUTO_TEST_CASE(equal_pages_give_no_entry) {
    std::mt19937_64 random(taiyen::test::seed_of_run());
    const Page page = random_page(random);
    const Page same = page;
    ChangeSet set;
    add_changed_ranges(set, {0}, page.data(), same.data(), page_bytes);
    BOOST_TEST(set.empty());
}

BOOST_AUTO_TEST_CASE(each_single_byte_of_a_page_is_found) {
    std::mt19937_64 random(taiyen::test::seed_of_run());
    const Page before = random_page(random);
    for (std::uint64_t i = 0; i < page_bytes; ++i) {
        Page after = before;
        after[i] ^= std::byte{0x80};
        ChangeSet set;
        add_changed_ranges(set, {page_bytes * 3}, before.data(), after.data(), page_bytes);
        BOOST_REQUIRE((ranges(set) == std::vector<Range>{{page_bytes * 3 + i, 1}}));
    }
}

BOOST_AUTO_TEST_CASE(ranges_closer_than_the_gap_are_one_entry_and_others_are_two) {
    for (std::uint64_t equal = 0; equal < 3 * merge_gap; ++equal) {
        for (std::uint64_t at = 100; at < 140; ++at) {
            const Page before{};
            Page after{};
            after[at] = after[at + 1 + equal] = std::byte{1};
            ChangeSet set;
            add_changed_ranges(set, {0}, before.data(), after.data(), page_bytes);
            BOOST_REQUIRE(ranges(set).size() == (equal < merge_gap ? 1U : 2U));
            BOOST_REQUIRE((ranges(set) == expected(before, after)));
        }
    }
}

BOOST_AUTO_TEST_CASE(random_pages_give_what_the_rule_says_whole_and_in_pieces) {
    std::mt19937_64 random(taiyen::test::seed_of_run());
    for (int round = 0; round < 3000; ++round) {
        const Page before = random_page(random);
        Page after = before;
        for (std::uint64_t writes = random() % 40; writes > 0; --writes) {
            const std::uint64_t at = random() % page_bytes;
            const std::uint64_t length = std::min(page_bytes - at, random() % 3 == 0 ? random() % 500 : random() % 9);
            for (std::uint64_t i = 0; i < length; ++i) after[at + i] = static_cast<std::byte>(random());
        }
        ChangeSet whole;
        add_changed_ranges(whole, {0}, before.data(), after.data(), page_bytes);
        BOOST_REQUIRE((ranges(whole) == expected(before, after)));

        // Pieces end where a whole line is equal.
        ChangeSet pieces;
        for (std::uint64_t line = 0; line < page_bytes;) {
            std::uint64_t end = line;
            while (end < page_bytes && std::memcmp(before.data() + end, after.data() + end, line_bytes) != 0) end += line_bytes;
            if (end != line) add_changed_ranges(pieces, {line}, before.data() + line, after.data() + line, end - line);
            line = end + line_bytes;
        }
        BOOST_REQUIRE(std::ranges::equal(whole.view().bytes(), pieces.view().bytes()));

        Page redone = before;
        Page undone = after;
        whole.for_each(Direction::forward, [&](const Entry& entry) {
            entry.after.empty() ? std::memset(redone.data() + entry.where.value, 0, entry.length)
                                : std::memcpy(redone.data() + entry.where.value, entry.after.data(), entry.length);
            entry.before.empty() ? std::memset(undone.data() + entry.where.value, 0, entry.length)
                                 : std::memcpy(undone.data() + entry.where.value, entry.before.data(), entry.length);
        });
        BOOST_REQUIRE(redone == after);
        BOOST_REQUIRE(undone == before);
    }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace taiyen::change
