#include "stl/associative.hpp"

using namespace taiyen::stl::test;

BOOST_AUTO_TEST_SUITE(flat_hash_matrix)

namespace {

template <class W>
using MapToStrings = Associative<W, typename W::string, typename W::template flat_hash_map<typename W::string, typename W::string>, false>;
template <class W>
using Set = Associative<W, void, typename W::template flat_hash_set<typename W::string>, false>;

}  // namespace

BOOST_AUTO_TEST_CASE(a_flat_hash_map_to_strings_keeps_every_block_at_home) { Matrix<MapToStrings>::run(); }
BOOST_AUTO_TEST_CASE(a_flat_hash_set_keeps_every_block_at_home) { Matrix<Set>::run(); }

BOOST_AUTO_TEST_SUITE_END()
