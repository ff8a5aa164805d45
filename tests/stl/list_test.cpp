#include "stl/sequences.hpp"

using namespace taiyen::stl::test;

BOOST_AUTO_TEST_SUITE(list_matrix)

namespace {

template <class W, class V>
using Suite = Sequence<W, V, W::template list>;
template <class W>
using OfStrings = Suite<W, typename W::string>;
template <class W>
using OfParts = Suite<W, Part<W>>;
template <class W>
using OfRich = Suite<W, Rich<W>>;

}  // namespace

BOOST_AUTO_TEST_CASE(a_list_of_strings_keeps_every_block_at_home) { Matrix<OfStrings>::run(); }
BOOST_AUTO_TEST_CASE(a_list_of_plain_structs_keeps_every_block_at_home) { Matrix<OfParts>::run(); }
BOOST_AUTO_TEST_CASE(a_list_of_structs_with_optionals_variants_and_maps_keeps_every_block_at_home) { Matrix<OfRich>::run(); }

BOOST_AUTO_TEST_SUITE_END()
