// The walk over words: each whole one of a range, once, in order; and the first that counts, wherever it stands in its eight.
#include "heap/word_walk.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <utility>
#include <vector>

#include "heap/links.hpp"

BOOST_AUTO_TEST_SUITE(word_walk)

using namespace taiyen;
using namespace taiyen::heap;
using Met = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

BOOST_AUTO_TEST_CASE(each_whole_word_of_a_range_is_visited_in_order) {
    std::vector<std::uint64_t> bytes(40);
    for (std::uint64_t i = 0; i < bytes.size(); ++i) bytes[i] = 100 + i;
    const WordsFrom words{reinterpret_cast<const std::byte*>(bytes.data())};
    for (std::uint64_t from = 0; from <= 24; from += 8) {
        for (std::uint64_t to = 0; to <= 320; ++to) {
            Met expected;
            for (std::uint64_t place = from; place + 8 <= to; place += 8) expected.emplace_back(place, 100 + place / 8);
            Met met;
            for_each_word(words, from, to, [&](std::uint64_t place, std::uint64_t word) { met.emplace_back(place, word); });
            BOOST_REQUIRE(met == expected);
            met.clear();
            const auto all = [](std::uint64_t) { return true; };
            const bool found = find_word(words, from, to, all, [&](std::uint64_t place, std::uint64_t word) {
                met.emplace_back(place, word);
                return false;
            });
            BOOST_REQUIRE((!found && met == expected));
        }
    }
}

BOOST_AUTO_TEST_CASE(the_first_word_that_counts_is_found_and_no_later_one_is_asked_about) {
    for (std::uint64_t first = 0; first < 21; ++first) {
        for (std::uint64_t second = first + 1; second < 21; ++second) {
            std::vector<std::uint64_t> bytes(20);
            for (const std::uint64_t i : {first, second})
                if (i < bytes.size()) bytes[i] = i + 1;
            Met met;
            const bool found = find_word(
                WordsFrom{reinterpret_cast<const std::byte*>(bytes.data())}, 0, 160, [](std::uint64_t word) { return word != 0; },
                [&](std::uint64_t place, std::uint64_t word) {
                    met.emplace_back(place, word);
                    return true;
                });
            BOOST_REQUIRE(found == (first < 20));
            BOOST_REQUIRE(met == (found ? Met{{first * 8, first + 1}} : Met{}));
        }
    }
}

BOOST_AUTO_TEST_CASE(words_lead_to_offsets_by_addresses_and_by_distances) {
    BOOST_TEST(target_of(Links::addresses, 0x1000, 8, 0x1010) == 0x10U);
    BOOST_TEST(target_of(Links::addresses, 0x1000, 8, 0) > 0x100000U);
    BOOST_TEST(target_of(Links::distances, 0x1000, 8, 0x10) == 0x18U);
    BOOST_TEST(target_of(Links::distances, 0x1000, 8, 0x10 | 6) == 0x18U);
    for (const std::uint64_t nowhere : {0U, 1U, 17U}) BOOST_TEST(target_of(Links::distances, 0x1000, 8, nowhere) == ~std::uint64_t{0});
}

BOOST_AUTO_TEST_SUITE_END()
