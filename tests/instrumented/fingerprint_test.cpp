// Instrumented and other programs read each other's heaps: the allocator's tag is no part of what is stored.
#include <string>

#include <boost/test/unit_test.hpp>

#include <taiyen/stl/containers.hpp>
#include <taiyen/stl/detail/fingerprint.hpp>

BOOST_AUTO_TEST_SUITE(fingerprints)

BOOST_AUTO_TEST_CASE(the_name_of_a_stored_type_is_that_of_other_programs) {
    using Nested = taiyen::map<int, taiyen::vector<taiyen::string>>;
    const std::string expected =
        "St3mapIiSt6vectorINSt7__cxx1112basic_stringIcSt11char_traitsIcEN6taiyen20persistent_allocatorIcEEEENS6_IS8_EEESt4lessIvENS6_ISt4pairIKiSA_"
        "EEEE 56 bytes aligned to 8, cxx11, inside c58056794920c932";
    BOOST_TEST(taiyen::stl::fingerprint<Nested>() == expected);
    BOOST_TEST(std::string(typeid(Nested).name()).find("taiyen_stores") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
