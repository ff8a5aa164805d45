#include "change/change_set.hpp"

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "change/change_set_layout.hpp"
#include "seed.hpp"

BOOST_AUTO_TEST_SUITE(change_set)

namespace {

using namespace taiyen;
using namespace taiyen::change;

constexpr ByteCount capacity = 1_MiB;

std::vector<std::byte> bytes_of(std::string_view text) {
    const auto* const first = reinterpret_cast<const std::byte*>(text.data());
    return {first, first + text.size()};
}

/// One entry of each kind, zero sides too.
ChangeSet example() {
    ChangeSet set;
    set.add_bytes({16}, bytes_of("before"), bytes_of("after!"));
    set.add_bytes({4096}, std::vector<std::byte>(100), std::vector<std::byte>(100, std::byte{7}));
    set.add_bytes({8192}, std::vector<std::byte>(64, std::byte{9}), std::vector<std::byte>(64));
    set.add_zeroed_run({16384}, 8192);
    set.add_pages_moved({32768}, {65536}, std::vector<std::byte>(4096, std::byte{1}));
    set.add_pages_moved({32768}, {69632}, std::vector<std::byte>(4096));
    set.add_procedure("invert", bytes_of("3 4"), 42);
    return set;
}

std::string text(const Entry& entry) {
    const auto part = [](std::span<const std::byte> bytes) { return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()); };
    return std::to_string(static_cast<int>(entry.kind)) + '@' + std::to_string(entry.where.value) + '+' + std::to_string(entry.length) + '<' +
           part(entry.before) + '>' + part(entry.after) + '#' + std::to_string(entry.source.value) + std::string(entry.name) + part(entry.arguments) +
           std::to_string(entry.digest);
}

std::vector<std::string> texts(const ChangeSetView& set, Direction direction) {
    std::vector<std::string> found;
    set.for_each(direction, [&](const Entry& entry) { found.push_back(text(entry)); });
    return found;
}

}  // namespace

BOOST_AUTO_TEST_CASE(entries_come_back_as_they_were_added) {
    const ChangeSet set = example();
    std::vector<Entry> entries;
    set.for_each(Direction::forward, [&](const Entry& entry) { entries.push_back(entry); });
    BOOST_REQUIRE_EQUAL(entries.size(), 7U);
    BOOST_TEST(std::memcmp(entries[0].before.data(), "before", 6) == 0);
    BOOST_TEST(std::memcmp(entries[0].after.data(), "after!", 6) == 0);
    BOOST_TEST(entries[1].before.empty());
    BOOST_TEST(entries[1].after.size() == 100U);
    BOOST_TEST(entries[2].before.size() == 64U);
    BOOST_TEST(entries[2].after.empty());
    BOOST_TEST(entries[2].length == 64U);
    BOOST_TEST((entries[3].kind == EntryKind::zeroed_run && entries[3].length == 8192U));
    BOOST_TEST((entries[4].source == HeapOffset{32768} && entries[4].where == HeapOffset{65536} && entries[4].before.size() == 4096U));
    BOOST_TEST((entries[5].before.empty() && entries[5].length == 4096U));
    BOOST_TEST((entries[6].name == "invert" && entries[6].arguments.size() == 3U && entries[6].digest == 42U));
}

BOOST_AUTO_TEST_CASE(backward_is_the_reverse_of_forward) {
    auto forward = texts(example(), Direction::forward);
    std::reverse(forward.begin(), forward.end());
    BOOST_TEST(texts(example(), Direction::backward) == forward, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(what_is_empty_adds_nothing) {
    ChangeSet set;
    set.add_bytes({4096}, {}, {});
    set.add_zeroed_run({4096}, 0);
    set.add_pages_moved({4096}, {8192}, {});
    BOOST_TEST(set.empty());
    BOOST_TEST(set.size() == 0U);
}

BOOST_AUTO_TEST_CASE(what_is_zero_takes_no_room) {
    ChangeSet set;
    set.add_bytes({0}, std::vector<std::byte>(4096), std::vector<std::byte>(4096));
    BOOST_TEST(set.size() == 24U);
}

BOOST_AUTO_TEST_CASE(appended_sets_follow_in_order) {
    ChangeSet first;
    first.add_bytes({8}, bytes_of("a"), bytes_of("b"));
    ChangeSet second;
    second.add_bytes({8}, bytes_of("b"), bytes_of("c"));
    first.append(second);
    const auto both = texts(first, Direction::backward);
    BOOST_REQUIRE_EQUAL(both.size(), 2U);
    BOOST_TEST(both[0].find("<b>c") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(the_serialised_form_is_accepted_and_equal) {
    const ChangeSet set = example();
    const auto view = ChangeSetView::checked(set.view().bytes(), capacity);
    BOOST_REQUIRE(view.has_value());
    BOOST_TEST(texts(*view, Direction::forward) == texts(set, Direction::forward), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(an_entry_outside_the_heap_is_refused) {
    ChangeSet set;
    set.add_bytes({capacity - 4}, bytes_of("12345678"), bytes_of("abcdefgh"));
    BOOST_TEST(!ChangeSetView::checked(set.view().bytes(), capacity).has_value());
    BOOST_TEST(ChangeSetView::checked(set.view().bytes(), capacity + 4).has_value());
    ChangeSet moved;
    moved.add_pages_moved({capacity - 4}, {0}, std::vector<std::byte>(8));
    BOOST_TEST(!ChangeSetView::checked(moved.view().bytes(), capacity).has_value());
}

BOOST_AUTO_TEST_CASE(a_cut_set_is_refused) {
    const ChangeSet set = example();
    const auto whole = set.view().bytes();
    std::size_t accepted = 0;
    for (std::size_t length = 1; length < whole.size(); ++length) accepted += ChangeSetView::checked(whole.first(length), capacity) ? 1 : 0;
    BOOST_TEST(accepted == 6U);  // between entries
}

BOOST_AUTO_TEST_CASE(damaged_bytes_never_lead_outside) {
    const ChangeSet set = example();
    const auto whole = set.view().bytes();
    std::mt19937_64 random(taiyen::test::seed_of_run());
    for (int round = 0; round < 20'000; ++round) {
        std::vector<std::byte> damaged(whole.begin(), whole.end());  // exactly as long as the set: the address sanitizer sees each byte behind it
        for (std::uint64_t flips = 1 + random() % 3; flips > 0; --flips)
            damaged[random() % damaged.size()] ^= static_cast<std::byte>(1U << random() % 8);
        const auto view = ChangeSetView::checked(damaged, capacity);
        if (!view) continue;
        std::size_t sum = 0;
        const auto read = [&](const Entry& entry) {
            for (const std::byte b : entry.before) sum += static_cast<std::size_t>(b);
            for (const std::byte b : entry.after) sum += static_cast<std::size_t>(b);
            for (const std::byte b : entry.arguments) sum += static_cast<std::size_t>(b);
            sum += entry.name.size();
            BOOST_REQUIRE(entry.where.value + entry.length <= capacity);
        };
        view->for_each(Direction::forward, read);
        view->for_each(Direction::backward, read);
        BOOST_REQUIRE(sum != 1);
    }
}

BOOST_AUTO_TEST_SUITE_END()
