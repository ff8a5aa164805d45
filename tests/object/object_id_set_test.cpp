#include <taiyen/object/object_id_set.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <memory_resource>
#include <random>
#include <stdexcept>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <taiyen/base/error.hpp>

#include "containers/allocators.hpp"
#include "object/interval_model.hpp"
#include "seed.hpp"
#include "throws.hpp"

BOOST_AUTO_TEST_SUITE(object_id_set_alone)

namespace {

using namespace taiyen;
using namespace taiyen::object::test;
using taiyen::test::CountingAllocator;
using taiyen::test::Ledger;

using Set = object_id_set<std::allocator<Id>>;
static_assert(std::bidirectional_iterator<Set::iterator>);
static_assert(std::is_nothrow_move_constructible_v<Set> && std::is_nothrow_move_assignable_v<Set> && std::is_nothrow_swappable_v<Set>);

constexpr Id one = 1;
constexpr std::array edges{
    least, least + 1, -(one << 56U) - 1, -(one << 56U),    -(one << 32U) - 1, -(one << 32U),    Id{-65537}, Id{-65536},   Id{-1},  Id{0},
    Id{1}, Id{65535}, Id{65536},         (one << 32U) - 1, one << 32U,        (one << 56U) - 1, one << 56U, greatest - 1, greatest};

bool throws(errc code, const std::vector<std::byte>& bytes, Set& set) {
    return taiyen::test::throws(code, [&] { set.deserialise(bytes); });
}

/// Serialised bytes with a checksum that fits.
void seal(std::vector<std::byte>& bytes) {
    if (bytes.size() < 8) return;
    const std::uint64_t sum = object::ids_checksum(bytes.data(), bytes.size() - 8);
    std::memcpy(bytes.data() + bytes.size() - 8, &sum, 8);
}

/// A set with every kind of chunk.
Set motley() {
    Set set;
    set.insert(edges.begin(), edges.end());
    for (Id id = 0; id < 3000; ++id) set.insert(id * 21 + (one << 20U));                                         // values
    for (Id id = 0; id < 30'000; ++id) set.insert(id * 2 + (one << 21U));                                        // bitmaps
    for (Id id = 0; id < 500; ++id) set.insert_interval(id * 100 + (one << 22U), id * 100 + 60 + (one << 22U));  // runs
    set.insert_interval(-(one << 50U), -(one << 49U));                                                           // full
    return set;
}

BOOST_AUTO_TEST_CASE(every_edge_of_the_numbers_is_an_id_like_any_other) {
    Set set;
    for (const Id id : edges) {
        BOOST_TEST(!set.contains(id));
        BOOST_TEST(set.insert(id));
        BOOST_TEST(!set.insert(id));
        BOOST_TEST(set.contains(id));
    }
    BOOST_TEST(set.size() == edges.size());
    BOOST_TEST(std::equal(set.begin(), set.end(), edges.begin(), edges.end()));
    BOOST_TEST(std::equal(set.rbegin(), set.rend(), edges.rbegin(), edges.rend()));
    BOOST_TEST(set.first() == least);
    BOOST_TEST(set.last() == greatest);
    for (std::size_t i = 0; i < edges.size(); ++i) {
        BOOST_TEST(set.rank(edges[i]) == i);
        BOOST_TEST(set.select(i) == edges[i]);
        BOOST_TEST(*set.lower_bound(edges[i]) == edges[i]);
        BOOST_TEST((i + 1 == edges.size() ? set.upper_bound(edges[i]) == set.end() : *set.upper_bound(edges[i]) == edges[i + 1]));
    }
    for (const Id id : edges) BOOST_TEST(set.erase(id));
    BOOST_TEST(set.empty());
    BOOST_TEST((set.begin() == set.end()));
}

BOOST_AUTO_TEST_CASE(an_interval_of_two_to_the_forty_ids_takes_the_memory_of_one_entry) {
    Set set;
    BOOST_TEST(set.insert_interval(1, one << 40U) == std::uint64_t{1} << 40U);
    BOOST_TEST(set.size() == std::uint64_t{1} << 40U);
    BOOST_TEST(set.memory_bytes() <= 300U);
    BOOST_TEST(set.select((std::uint64_t{1} << 39U)) == (one << 39U) + 1);
    BOOST_TEST(set.erase(one << 33U));
    BOOST_TEST(!set.contains(one << 33U));
    BOOST_TEST(*set.lower_bound(one << 33U) == (one << 33U) + 1);
    BOOST_TEST(*std::prev(set.lower_bound(one << 33U)) == (one << 33U) - 1);
    BOOST_TEST(set.rank(one << 40U) == (std::uint64_t{1} << 40U) - 2);
    BOOST_TEST(set.erase_interval(2, greatest) == (std::uint64_t{1} << 40U) - 2);
    BOOST_TEST(set.size() == 1U);
    BOOST_TEST(set.is_sound());
}

BOOST_AUTO_TEST_CASE(all_ids_but_one_fit_and_the_last_one_is_refused) {
    Set set;
    BOOST_CHECK_THROW(set.insert_interval(least, greatest), std::length_error);
    BOOST_TEST(set.empty());
    set.insert_interval(least, greatest - 1);
    BOOST_TEST(set.size() == Set::max_size());
    BOOST_CHECK_THROW(set.insert(greatest), std::length_error);
    BOOST_CHECK_THROW(set.insert_interval(0, greatest), std::length_error);
    BOOST_TEST(!set.insert(0));
    BOOST_TEST(set.select(Set::max_size() - 1) == greatest - 1);
    const Set missing{greatest};
    BOOST_CHECK_THROW(set |= missing, std::length_error);
    BOOST_CHECK_THROW(set ^= missing, std::length_error);
    BOOST_TEST((set & missing).empty());
    BOOST_TEST(set.size() == Set::max_size());
    BOOST_TEST(set.erase(7));
    BOOST_TEST(set.insert(greatest));
    BOOST_TEST(set.is_sound());
    Set again;
    again.deserialise(set.serialise());
    BOOST_TEST((again == set));
}

BOOST_AUTO_TEST_CASE(each_kind_of_ids_takes_about_what_its_best_form_takes) {
    Set dense;
    for (Id id = 0; id < 1'000'000; ++id) dense.insert(id);
    BOOST_TEST(dense.memory_bytes() <= 300U);
    std::vector<Id> order(400'000);
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<Id>(i);
    std::shuffle(order.begin(), order.end(), std::mt19937_64(1));
    Set shuffled;
    for (const Id id : order) shuffled.insert(id);
    BOOST_TEST((shuffled.memory_bytes() <= 3000U));
    Set alternating;
    for (Id id = 0; id < 1'000'000; ++id) alternating.insert(id * 2);
    BOOST_TEST(alternating.memory_bytes() <= 2'000'000 / 8 * 1.1);
    Set clustered;
    for (Id id = 0; id < 10'000; ++id) clustered.insert_interval(id * 1000, id * 1000 + 499);
    BOOST_TEST(clustered.memory_bytes() <= 10'000 * 4 * 1.5);
    Set sparse;
    for (Id id = 0; id < 100'000; ++id) sparse.insert(id * 1'000'003);
    BOOST_TEST(sparse.memory_bytes() <= 100'000U * 22U);
}

BOOST_AUTO_TEST_CASE(copies_are_equal_and_independent) {
    const Set original = motley();
    Set copy = original;
    BOOST_TEST((copy == original));
    BOOST_TEST(copy.is_sound());
    BOOST_TEST(copy.erase(edges[3]));
    BOOST_TEST(original.contains(edges[3]));
    BOOST_TEST(!(copy == original));
    BOOST_TEST(copy.is_subset_of(original));
    BOOST_TEST(!original.is_subset_of(copy));
    copy = original;
    BOOST_TEST((copy == original));
    Set moved = std::move(copy);
    BOOST_TEST((moved == original));
    BOOST_TEST(copy.empty());  // NOLINT(bugprone-use-after-move): promised
    copy.insert(5);
    swap(copy, moved);
    BOOST_TEST((copy == original));
    BOOST_TEST(moved.size() == 1U);
    moved = {1, 2, 3};
    BOOST_TEST(moved.size() == 3U);
}

BOOST_AUTO_TEST_CASE(moving_between_unequal_allocators_copies_and_empties_the_source) {
    Ledger here;
    Ledger there;
    {
        using Counted = object_id_set<CountingAllocator<Id>>;
        Counted a{CountingAllocator<Id>(here)};
        Counted b{CountingAllocator<Id>(there)};
        for (Id id = 0; id < 100'000; id += 3) a.insert(id);
        const std::uint64_t size = a.size();
        b = std::move(a);
        BOOST_TEST(b.size() == size);
        BOOST_TEST(a.empty());  // NOLINT(bugprone-use-after-move): promised
        BOOST_TEST(here.blocks == 0U);
        BOOST_TEST(there.bytes == b.memory_bytes());
        Counted c(std::move(b), CountingAllocator<Id>(here));
        BOOST_TEST(c.size() == size);
        BOOST_TEST(there.blocks == 0U);
        Counted d(c, CountingAllocator<Id>(there));
        BOOST_TEST((c == d));
    }
    BOOST_TEST(here.blocks + there.blocks == 0U);
}

BOOST_AUTO_TEST_CASE(a_set_with_a_memory_resource_takes_its_memory_from_there) {
    std::array<std::byte, 20'000> room{};
    std::pmr::monotonic_buffer_resource memory(room.data(), room.size(), std::pmr::null_memory_resource());
    object_id_set<std::pmr::polymorphic_allocator<Id>> set{std::pmr::polymorphic_allocator<Id>(&memory)};
    for (Id id = 0; id < 1000; ++id) set.insert(id * 3);
    BOOST_TEST(set.size() == 1000U);
}

BOOST_AUTO_TEST_CASE(a_number_that_is_not_there_is_refused) {
    const Set set{1, 2, 3};
    BOOST_TEST(set.select(2) == 3);
    BOOST_CHECK_THROW(set.select(3), std::out_of_range);
}

BOOST_AUTO_TEST_CASE(serialised_bytes_are_these) {
    Set set{-1, 0, 1, 2, 70'000, 70'001, 70'002, 70'003, 70'004, 70'010};
    set.insert_interval(one << 20U, (one << 20U) + 131'071);
    const std::vector<std::byte> bytes = set.serialise();
    BOOST_TEST(bytes.size() == set.serialised_bytes());
    const auto expected = std::to_array<unsigned>({
        'T',  'Y',  'N',  'I',  'D',  'S',  'E',  'T',                                                         // what it is
        1,    0,    0,    0,    0,    0,    0,    0,                                                           // version
        4,    0,    0,    0,    0,    0,    0,    0,                                                           // entries
        10,   0,    2,    0,    0,    0,    0,    0,                                                           // ids
        0,    0,    0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0, 0, 0xff, 0xff,                                      // -1: a value
        2,    0,    0,    0,    0,    0,    0,    0x80, 0, 0, 0,    0,    1,    0,    2,    0,                 // 0, 1, 2: values
        5,    0,    1,    0,    0,    0,    0,    0x80, 9, 0, 0x70, 0x11, 0x74, 0x11, 0x7a, 0x11, 0x7a, 0x11,  // runs
        0xff, 0xff, 16,   0,    0,    0,    0,    0x80, 3, 0, 2,    0,    0,    0,    0,    0,    0,    0,     // full
    });
    BOOST_REQUIRE_EQUAL(bytes.size(), expected.size() + 8);
    for (std::size_t i = 0; i < expected.size(); ++i) BOOST_CHECK_MESSAGE(std::to_integer<unsigned>(bytes[i]) == expected[i], "byte " << i);
}

BOOST_AUTO_TEST_CASE(a_serialised_set_replaces_what_is_there) {
    const Set original = motley();
    const std::vector<std::byte> bytes = original.serialise();
    BOOST_TEST(bytes.size() == original.serialised_bytes());
    Set set{5, 6, 7};
    set.deserialise(bytes);
    BOOST_TEST((set == original));
    BOOST_TEST(set.is_sound());
    BOOST_TEST((set.serialise() == bytes));
    set.deserialise(Set{}.serialise());
    BOOST_TEST(set.empty());
}

BOOST_AUTO_TEST_CASE(a_walk_by_intervals_joins_what_touches_and_stops_when_it_is_told_to) {
    object_id_set<std::allocator<Id>> set;
    set.for_each_interval([](Id, Id) { BOOST_ERROR("there is none"); });
    // Over full chunks, runs, values and bitmaps, each beside the next.
    set.insert_interval(-70'000, 200'000);
    for (Id id = 300'000; id < 340'000; id += 2) set.insert(id);
    set.insert(std::numeric_limits<Id>::max());
    std::vector<std::pair<Id, Id>> found;
    set.for_each_interval([&](Id first, Id last) { found.emplace_back(first, last); });
    BOOST_TEST(found.size() == 20'002U);
    BOOST_TEST((found[0] == std::pair<Id, Id>(-70'000, 200'000)));
    BOOST_TEST((found[20'000] == std::pair<Id, Id>(339'998, 339'998)));
    BOOST_TEST((found.back() == std::pair(std::numeric_limits<Id>::max(), std::numeric_limits<Id>::max())));
    int visited = 0;
    set.for_each_interval([&](Id, Id) { return ++visited < 3; });
    BOOST_TEST(visited == 3);
}

BOOST_AUTO_TEST_CASE(every_truncation_and_every_extension_is_refused_and_changes_nothing) {
    Set set{5, 6, 7};
    std::vector<std::byte> bytes = Set{-1, 0, 1, 2, 70'000, 70'010, 70'011, 70'012, 70'013, 70'014, 70'015, 200'000, 300'000}.serialise();
    for (std::size_t length = 0; length < bytes.size(); ++length) {
        std::vector<std::byte> cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length));
        BOOST_TEST((throws(errc::truncated, cut, set) || throws(errc::corrupt, cut, set)));
        seal(cut);
        BOOST_TEST((throws(errc::truncated, cut, set) || throws(errc::corrupt, cut, set)));
    }
    std::vector<std::byte> longer = bytes;
    longer.push_back(std::byte{0});
    BOOST_TEST(throws(errc::corrupt, longer, set));
    seal(longer);
    BOOST_TEST(throws(errc::corrupt, longer, set));
    BOOST_TEST((set == Set{5, 6, 7}));
}

BOOST_AUTO_TEST_CASE(another_version_and_another_byte_order_are_named) {
    Set set;
    std::vector<std::byte> bytes = Set{1}.serialise();
    bytes[8] = std::byte{2};
    seal(bytes);
    BOOST_TEST(throws(errc::unsupported_version, bytes, set));
    bytes = Set{1}.serialise();
    std::reverse(bytes.begin(), bytes.begin() + 8);
    BOOST_TEST(throws(errc::foreign_byte_order, bytes, set));
    bytes[0] = std::byte{'X'};
    BOOST_TEST(throws(errc::corrupt, bytes, set));
}

BOOST_AUTO_TEST_CASE(a_hundred_thousand_damaged_sets_are_refused_or_are_sets) {
    const std::uint64_t seed = taiyen::test::seed_of_run();
    std::mt19937_64 random(seed);
    Set small{-1, 0, 1, 2, 70'000, 70'010, 70'011, 70'012, 70'013, 70'014, 70'015};
    small.insert_interval(1'000'000, 1'400'000);
    Set medium;
    for (Id id = 0; id < 200; ++id) medium.insert(id * 7);
    for (Id id = 0; id < 40; ++id) medium.insert_interval(100'000 + id * 50, 100'020 + id * 50);
    Set large;
    for (Id id = 0; id < 6000; ++id) large.insert(id * 3);
    const std::array originals{small.serialise(), small.serialise(), medium.serialise(), large.serialise()};
    Ledger ledger;
    int accepted = 0;
    for (int i = 0; i < 100'000; ++i) {
        std::vector<std::byte> bytes = originals[i % 64 == 0 ? 3 : random() % 3];
        const std::size_t changes = 1 + random() % 3;
        for (std::size_t k = 0; k < changes; ++k) {
            std::byte& byte = bytes[random() % 4 == 0 ? random() % std::min<std::size_t>(bytes.size(), 60) : random() % bytes.size()];
            byte = random() % 2 == 0 ? byte ^ static_cast<std::byte>(1U << random() % 8) : static_cast<std::byte>(random());
        }
        if (random() % 8 == 0) bytes.resize(random() % bytes.size());
        if (random() % 8 != 0) seal(bytes);
        object_id_set<CountingAllocator<Id>> set{CountingAllocator<Id>(ledger)};
        try {
            set.deserialise(bytes);
            ++accepted;
            BOOST_REQUIRE(set.is_sound());
            BOOST_REQUIRE_LE(set.memory_bytes(), bytes.size() * 8 + 4096);
            std::uint64_t seen = 0;
            for (auto at = set.begin(); at != set.end() && seen < 100; ++at) ++seen;
            BOOST_REQUIRE_EQUAL(seen, std::min<std::uint64_t>(100, set.size()));
        } catch (const Error&) {
            BOOST_REQUIRE(set.empty());
        }
    }
    BOOST_TEST(ledger.blocks == 0U);
    BOOST_TEST(accepted > 100);  // the damage goes past the checksum, else this shows nothing
}

}  // namespace

BOOST_AUTO_TEST_SUITE_END()
