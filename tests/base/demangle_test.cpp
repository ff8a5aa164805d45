#include "base/demangle.hpp"

#include <typeinfo>
#include <vector>

#include <boost/test/unit_test.hpp>

using taiyen::demangled;

BOOST_AUTO_TEST_SUITE(demangle)

BOOST_AUTO_TEST_CASE(types_and_functions_get_the_names_that_people_write) {
    BOOST_TEST(demangled("i").value() == "int");
    BOOST_TEST(demangled("_ZN6taiyen4tellEv").value() == "taiyen::tell()");
    BOOST_TEST(demangled(typeid(std::vector<int>).name()).value().starts_with("std::vector<int"));
}

BOOST_AUTO_TEST_CASE(what_the_compiler_did_not_write_has_none) {
    BOOST_TEST(!demangled(""));
    BOOST_TEST(!demangled("no such name"));
    BOOST_TEST(!demangled("_ZN6taiyen4tell"));
}

BOOST_AUTO_TEST_SUITE_END()
