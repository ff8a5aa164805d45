// murmur_hash_64a gives what the published MurmurHash64A gives.
#include <taiyen/ordered/murmur_hash.hpp>

#include <cstdint>
#include <cstring>
#include <string>

#include <boost/test/unit_test.hpp>

namespace {

using taiyen::murmur_hash_64a;

BOOST_AUTO_TEST_SUITE(murmur_hash)

// SMHasher's main.cpp lists 0x1F0D3804 for MurmurHash64A: the low half of the hash of the hashes of {}, {0}, {0, 1} and so on up to 255 bytes, with the seeds 256, 255 and so on.
BOOST_AUTO_TEST_CASE(the_authors_verification_value_comes_out) {
    std::string key;
    std::string hashes;
    for (std::uint64_t i = 0; i != 256; ++i) {
        const std::uint64_t hash = murmur_hash_64a(key, 256 - i);
        hashes.append(reinterpret_cast<const char*>(&hash), sizeof hash);
        key.push_back(static_cast<char>(i));
    }
    BOOST_TEST(static_cast<std::uint32_t>(murmur_hash_64a(hashes)) == 0x1F0D3804U);
}

BOOST_AUTO_TEST_CASE(nothing_hashes_to_nothing) {
    BOOST_TEST(murmur_hash_64a({}) == 0U);
    BOOST_TEST(murmur_hash_64a("a") != murmur_hash_64a("a", 1));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
