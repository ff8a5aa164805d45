#include "stl/associative.hpp"

using namespace taiyen::stl::test;

BOOST_AUTO_TEST_SUITE(unordered_map_matrix)

namespace {

template <class W, class V>
using Suite = Associative<W, V, typename W::template unordered_map<typename W::string, V>>;
template <class W>
using ToStrings = Suite<W, typename W::string>;
template <class W>
using ToParts = Suite<W, Part<W>>;
template <class W>
using ToRich = Suite<W, Rich<W>>;

}  // namespace

BOOST_AUTO_TEST_CASE(a_unordered_map_to_strings_keeps_every_block_at_home) { Matrix<ToStrings>::run(); }
BOOST_AUTO_TEST_CASE(a_unordered_map_to_plain_structs_keeps_every_block_at_home) { Matrix<ToParts>::run(); }
BOOST_AUTO_TEST_CASE(a_unordered_map_to_structs_with_optionals_variants_and_maps_keeps_every_block_at_home) { Matrix<ToRich>::run(); }

BOOST_AUTO_TEST_SUITE_END()
