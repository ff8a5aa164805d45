#include "stl/associative.hpp"

using namespace taiyen::stl::test;

BOOST_AUTO_TEST_SUITE(multimap_matrix)

namespace {

template <class W, class V>
using Suite = Associative<W, V, typename W::template multimap<typename W::string, V>>;
template <class W>
using ToStrings = Suite<W, typename W::string>;
template <class W>
using ToParts = Suite<W, Part<W>>;
template <class W>
using ToVectors = Suite<W, typename W::template vector<Part<W>>>;

}  // namespace

BOOST_AUTO_TEST_CASE(a_multimap_to_strings_keeps_every_block_at_home) { Matrix<ToStrings>::run(); }
BOOST_AUTO_TEST_CASE(a_multimap_to_plain_structs_keeps_every_block_at_home) { Matrix<ToParts>::run(); }
BOOST_AUTO_TEST_CASE(a_multimap_to_vectors_keeps_every_block_at_home) { Matrix<ToVectors>::run(); }

BOOST_AUTO_TEST_SUITE_END()
