#include "stl/associative.hpp"

using namespace taiyen::stl::test;

BOOST_AUTO_TEST_SUITE(set_matrix)

namespace {

template <class W>
using OfStrings = Associative<W, void, typename W::template set<typename W::string>>;

}  // namespace

BOOST_AUTO_TEST_CASE(a_set_of_strings_keeps_every_block_at_home) { Matrix<OfStrings>::run(); }

BOOST_AUTO_TEST_SUITE_END()
