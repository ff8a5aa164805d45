#include <taiyen/base/units.hpp>

#include <type_traits>

#include <boost/test/unit_test.hpp>

using namespace taiyen::literals;

BOOST_AUTO_TEST_SUITE(units)

BOOST_AUTO_TEST_CASE(quantities_do_not_convert_into_each_other_or_into_numbers) {
    static_assert(!std::is_convertible_v<taiyen::Serial, taiyen::Generation>);
    static_assert(!std::is_convertible_v<taiyen::Generation, taiyen::Epoch>);
    static_assert(!std::is_convertible_v<taiyen::PageNumber, taiyen::HeapOffset>);
    static_assert(!std::is_convertible_v<taiyen::PageNumber, std::uint64_t>);
    BOOST_TEST((taiyen::Serial{1} < taiyen::Serial{2}));
}

BOOST_AUTO_TEST_CASE(a_page_begins_where_its_number_says) {
    BOOST_TEST(taiyen::page_of({4095}).value == 0U);
    BOOST_TEST(taiyen::page_of({4096}).value == 1U);
    BOOST_TEST(taiyen::offset_of({3}).value == 12288U);
}

BOOST_AUTO_TEST_CASE(rounding_keeps_multiples) {
    BOOST_TEST(taiyen::round_up(0, 4096) == 0U);
    BOOST_TEST(taiyen::round_up(1, 4096) == 4096U);
    BOOST_TEST(taiyen::round_up(4096, 4096) == 4096U);
    BOOST_TEST(taiyen::round_down(8191, 4096) == 4096U);
}

BOOST_AUTO_TEST_CASE(literals_count_bytes) {
    BOOST_TEST(4_KiB == 4096U);
    BOOST_TEST(1_TiB == 1024 * 1024_MiB);
}

BOOST_AUTO_TEST_SUITE_END()
