// What nodes compare in the place of keys: counts, whatever the number of numbers, their place and their extremes; heads that sort as their text does.
#include <taiyen/ordered/detail/key_search.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "seed.hpp"

namespace {

using namespace taiyen::ordered;

static_assert(digests_of<int, std::less<>>() == Digests::keys && digests_of<double, std::less<double>>() == Digests::keys);
static_assert(digests_of<int, std::greater<>>() == Digests::none && digests_of<bool, std::less<>>() == Digests::none);
static_assert(digests_of<std::string, std::less<>>() == Digests::heads && digests_of<std::u8string, std::less<>>() == Digests::heads);
static_assert(digests_of<std::wstring, std::less<>>() == Digests::none && digests_of<std::vector<char>, std::less<>>() == Digests::none);
static_assert(digests_of<long double, std::less<>>() == Digests::none && digests_of<const char*, std::less<>>() == Digests::none);
struct Named : std::string {
    bool operator<(const Named& other) const { return size() < other.size(); }
};
static_assert(digests_of<Named, std::less<>>() == Digests::none && digests_of<std::string_view, std::less<>>() == Digests::heads);
static_assert(!DigestOf<std::string, Digests::heads>::takes<Named> && DigestOf<std::string, Digests::heads>::takes<char[4]>);
static_assert(DigestOf<std::string, Digests::heads>::takes<const char*> && DigestOf<std::string, Digests::heads>::takes<std::string_view>);
// What doesn't compare as two keys do is compared by itself.
static_assert(DigestOf<std::int64_t, Digests::keys>::takes<int> && !DigestOf<std::int64_t, Digests::keys>::takes<double>);
static_assert(!DigestOf<std::int32_t, Digests::keys>::takes<std::uint32_t> && !DigestOf<std::int8_t, Digests::keys>::takes<int>);

template <class T>
void counts() {
    std::mt19937_64 random(taiyen::test::seed_of_run());
    std::vector<T> edges{std::numeric_limits<T>::lowest(), std::numeric_limits<T>::max(), T(0), T(1), static_cast<T>(-1)};
    if (std::numeric_limits<T>::has_infinity)
        edges.insert(edges.end(), {std::numeric_limits<T>::infinity(), -std::numeric_limits<T>::infinity(), static_cast<T>(-0.0)});
    const auto number = [&]() -> T {
        const std::uint64_t any = random();
        if (any % 3 == 0) return edges[any / 3 % edges.size()];
        return any % 3 == 1 ? static_cast<T>(static_cast<std::int64_t>(any / 3 % 40)) : static_cast<T>(static_cast<std::int64_t>(any));
    };
    std::vector<T> numbers(304);
    for (T& one : numbers) one = number();
    for (std::uint32_t count = 0; count <= 300; ++count) {
        for (std::size_t from = 0; from < 4; ++from) {
            const T* const first = numbers.data() + from;
            const T than = count != 0 && random() % 2 == 0 ? first[random() % count] : number();
            BOOST_REQUIRE(count_below<false>(first, count, than) == std::count_if(first, first + count, [&](T one) { return one < than; }));
            BOOST_REQUIRE(count_below<true>(first, count, than) == std::count_if(first, first + count, [&](T one) { return one <= than; }));
        }
    }
}

BOOST_AUTO_TEST_SUITE(key_search)

BOOST_AUTO_TEST_CASE(numbers_are_counted) {
    counts<std::int8_t>();
    counts<std::uint16_t>();
    counts<std::int32_t>();
    counts<std::uint32_t>();
    counts<std::int64_t>();
    counts<std::uint64_t>();
    counts<long long>();
    counts<unsigned long>();
    counts<float>();
    counts<double>();
}

BOOST_AUTO_TEST_CASE(heads_sort_as_their_text_does_as_far_as_they_reach) {
    std::mt19937_64 random(taiyen::test::seed_of_run());
    const auto text = [&] {
        std::string made;
        for (std::uint64_t i = random() % 12; i != 0; --i) made += "\0\1a\x7f\x80\xff"[random() % 6];
        return made;
    };
    for (int i = 0; i < 20'000; ++i) {
        const std::string a = text();
        const std::string b = random() % 4 == 0 ? a.substr(0, random() % (a.size() + 1)) : text();
        const std::uint64_t head_a = head_of(a.data(), a.size());
        const std::uint64_t head_b = head_of(b.data(), b.size());
        if (head_a < head_b) BOOST_REQUIRE(a < b);
        if (a < b) BOOST_REQUIRE(head_a <= head_b);
    }
    BOOST_TEST(head_of(nullptr, 0) == 0U);
    BOOST_TEST(head_of("abcdefghi", 9) == head_of("abcdefgh", 8));
    BOOST_TEST(head_of("b", 1) == std::uint64_t{'b'} << 56U);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
