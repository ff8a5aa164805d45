#include "base/uuid.hpp"

#include <set>

#include <boost/test/unit_test.hpp>

BOOST_AUTO_TEST_SUITE(uuids)

BOOST_AUTO_TEST_CASE(fresh_ones_differ_and_are_not_nil) {
    std::set<std::string> seen;
    for (int round = 0; round < 1000; ++round) {
        const auto uuid = taiyen::random_uuid();
        BOOST_TEST(!uuid.is_nil());
        BOOST_TEST(seen.insert(uuid.text()).second);
        BOOST_TEST(taiyen::random_u64() != 0U);
    }
}

BOOST_AUTO_TEST_CASE(the_text_shows_each_byte_in_order) {
    taiyen::Uuid uuid;
    BOOST_TEST(uuid.is_nil());
    for (std::size_t index = 0; index < uuid.bytes.size(); ++index) uuid.bytes[index] = static_cast<std::uint8_t>(index * 16 + index);
    BOOST_TEST(uuid.text() == "00112233-4455-6677-8899-aabbccddeeff");
}

BOOST_AUTO_TEST_SUITE_END()
