// Hash values are stored with every unordered container: these numbers were computed by a second implementation of the description in hash.hpp and must never change.
#include <taiyen/stl/hash.hpp>

#include <unordered_set>

#include <boost/test/unit_test.hpp>

#include <taiyen/stl/containers.hpp>
#include <taiyen/stl/named.hpp>

#include "heap/memory_core.hpp"

using taiyen::hash;

namespace {

enum class Colour : unsigned char { red = 1 };

struct Point {
    int x, y;
};

}  // namespace

template <>
struct std::hash<Point> {
    std::size_t operator()(const Point& p) const { return static_cast<std::size_t>(p.x * 31 + p.y); }
};

BOOST_AUTO_TEST_SUITE(stable_hash)

BOOST_AUTO_TEST_CASE(text_hashes_to_its_numbers) {
    const hash<taiyen::string> text;
    BOOST_TEST(text("") == 0xd1d6daf1cec46875U);
    BOOST_TEST(text("a") == 0x62c88d62311baee0U);
    BOOST_TEST(text("bolt") == 0x8d0da83c856f5ebfU);
    BOOST_TEST(text("12345678") == 0x68013517553e9c11U);
    BOOST_TEST(text("123456789") == 0x908c9816192a5a07U);
    BOOST_TEST(text("1234567890123456") == 0x094d0d2d60681e31U);
    BOOST_TEST(text("12345678901234567") == 0x2c997d81afd52350U);
    BOOST_TEST(text("The quick brown fox jumps over the lazy dog") == 0xe0bfd1ffce632537U);
    std::string all;
    for (int c = 0; c < 200; ++c) all.push_back(static_cast<char>(c));
    BOOST_TEST(text(all) == 0x4acaa20bb70b05c8U);
}

BOOST_AUTO_TEST_CASE(numbers_hash_to_their_numbers) {
    BOOST_TEST(hash<int>()(0) == 0xfeaa99072018f922U);
    BOOST_TEST(hash<int>()(1) == 0xe631908cbab7abefU);
    BOOST_TEST(hash<int>()(-1) == 0xfc2c9e863092e5bcU);
    BOOST_TEST(hash<unsigned char>()(42) == 0x433a9de03ce6d34aU);
    BOOST_TEST(hash<long>()(1L << 40U) == 0x29591c24a92ea29bU);
    BOOST_TEST(hash<bool>()(true) == 0xe631908cbab7abefU);
    BOOST_TEST(hash<Colour>()(Colour::red) == 0xe631908cbab7abefU);
    BOOST_TEST(hash<double>()(1.5) == 0x3df52feb41368be3U);
    BOOST_TEST(hash<float>()(1.5F) == 0x3df52feb41368be3U);
    BOOST_TEST(hash<double>()(-0.0) == hash<double>()(0.0));
    BOOST_TEST((hash<std::pair<int, int>>()({1, 2}) == 0x76172e03037c705cU));
    BOOST_TEST((hash<std::pair<int, int>>()({1, 2}) != hash<std::pair<int, int>>()({2, 1})));
    BOOST_TEST((hash<std::tuple<int, int>>()({1, 2}) != hash<std::tuple<int, int>>()({2, 1})));
    BOOST_TEST((hash<std::array<int, 2>>()({1, 2}) != hash<std::array<int, 2>>()({2, 1})));
    BOOST_TEST(hash<std::optional<int>>()(std::nullopt) != hash<std::optional<int>>()(0));
    BOOST_TEST(hash<Point>()({1, 2}) == hash<int>()(33));  // a program's own std::hash, mixed
}

BOOST_AUTO_TEST_CASE(all_kinds_of_text_hash_alike) {
    taiyen::heap::test::MemoryCore core;
    const taiyen::string ours("bolt", core);
    const hash<taiyen::string> text;
    BOOST_TEST(text(ours) == text("bolt"));
    BOOST_TEST(text(std::string_view("bolt")) == text("bolt"));
    BOOST_TEST(text(std::string("bolt")) == text("bolt"));
    BOOST_TEST(hash<std::string_view>()("bolt") == text("bolt"));
}

BOOST_AUTO_TEST_CASE(neighbours_spread_over_high_and_low_bits) {
    constexpr unsigned buckets = 1024;
    std::vector<int> low(buckets);
    std::vector<int> high(buckets);
    for (int n = 0; n < 100 * static_cast<int>(buckets); ++n) {
        const std::uint64_t h = hash<int>()(n);
        ++low[h % buckets];
        ++high[h >> 54U];
    }
    for (unsigned bucket = 0; bucket < buckets; ++bucket) {  // mean 100, deviation 10
        BOOST_TEST((low[bucket] > 40 && low[bucket] < 180));
        BOOST_TEST((high[bucket] > 40 && high[bucket] < 180));
    }
    std::unordered_set<std::uint64_t> seen;
    for (int n = 0; n < 100'000; ++n) seen.insert(hash<std::string>()("entity number " + std::to_string(n)));
    BOOST_TEST(seen.size() == 100'000U);
}

BOOST_AUTO_TEST_CASE(lookups_of_text_build_no_temporary) {
    taiyen::heap::test::MemoryCore core;
    auto* const map = taiyen::stl::make<taiyen::unordered_map<taiyen::string, int>>(core);
    auto* const ordered = taiyen::stl::make<taiyen::map<taiyen::string, int>>(core);
    const char* const key = "a key that is much too long to be kept inside of a string object, so that a temporary would need a heap";
    {
        map->emplace(key, 1);
        ordered->emplace(key, 1);
    }
    // No heap is current now: a temporary would throw.
    BOOST_TEST(map->count(key) == 1U);
    BOOST_TEST(ordered->count(key) == 1U);
    BOOST_TEST(map->find(std::string_view(key))->second == 1);
    BOOST_TEST(ordered->find(std::string_view(key))->second == 1);
    const std::string of_the_standard(key);
    BOOST_TEST(map->find(of_the_standard)->second == 1);
    BOOST_TEST(ordered->find(of_the_standard)->second == 1);
    BOOST_TEST(
        (ordered->begin()->first == of_the_standard && !(of_the_standard < ordered->begin()->first) && ordered->begin()->first <= of_the_standard));
    BOOST_TEST(!map->contains(std::string_view(key).substr(1)));
    taiyen::stl::destroy_object(core, map);
    taiyen::stl::destroy_object(core, ordered);
}

BOOST_AUTO_TEST_SUITE_END()
