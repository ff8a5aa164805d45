#include "base/checksum.hpp"

#include <array>
#include <cstddef>
#include <vector>

#include <boost/test/unit_test.hpp>

using taiyen::checksum;

BOOST_AUTO_TEST_SUITE(checksums)

// Stored checksums outlive the library that computed them; `printf abc | xxhsum -H3` prints the second value.
BOOST_AUTO_TEST_CASE(the_algorithm_is_the_one_that_the_files_were_written_with) {
    BOOST_TEST(checksum({}, 0) == 0x2d06'8005'38d3'94c2ULL);
    const std::array letters{std::byte{'a'}, std::byte{'b'}, std::byte{'c'}};
    BOOST_TEST(checksum(letters, 0) == 0x78af'5f94'892f'3950ULL);
}

BOOST_AUTO_TEST_CASE(every_single_bit_and_the_seed_matter) {
    std::vector<std::byte> page(4096, std::byte{0x5a});
    const auto before = checksum(page, 1);
    BOOST_TEST(checksum(page, 2) != before);
    for (std::size_t bit = 0; bit < page.size() * 8; bit += 37) {
        page[bit / 8] ^= std::byte{1} << (bit % 8);
        BOOST_TEST(checksum(page, 1) != before);
        page[bit / 8] ^= std::byte{1} << (bit % 8);
    }
    BOOST_TEST(checksum(page, 1) == before);
}

BOOST_AUTO_TEST_CASE(a_seed_mixed_from_a_place_depends_on_both_words_and_their_order) {
    BOOST_TEST(taiyen::mix(1, 2) != taiyen::mix(2, 1));
    BOOST_TEST(taiyen::mix(1, 2) != taiyen::mix(1, 3));
    BOOST_TEST(taiyen::mix(1, 2) != taiyen::mix(0, 2));
}

BOOST_AUTO_TEST_CASE(bytes_are_zero_only_if_each_of_them_is) {
    std::vector<std::byte> bytes(4096);
    BOOST_TEST(taiyen::is_zero({}));
    BOOST_TEST(taiyen::is_zero(bytes));
    for (const std::size_t place : {std::size_t{0}, std::size_t{1}, std::size_t{2047}, std::size_t{4095}}) {
        bytes[place] = std::byte{1};
        BOOST_TEST(!taiyen::is_zero(bytes));
        bytes[place] = std::byte{0};
    }
}

BOOST_AUTO_TEST_SUITE_END()
