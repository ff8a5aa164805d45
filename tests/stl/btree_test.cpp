#include "stl/associative.hpp"

using namespace taiyen::stl::test;

BOOST_AUTO_TEST_SUITE(btree_matrix)

namespace {

template <class W>
using MapToStrings = Associative<W, typename W::string, typename W::template btree_map<typename W::string, typename W::string>, false>;
template <class W>
using MapToRich = Associative<W, Rich<W>, typename W::template btree_map<typename W::string, Rich<W>>, false>;
template <class W>
using Multimap = Associative<W, Part<W>, typename W::template btree_multimap<typename W::string, Part<W>>, false>;
template <class W>
using Set = Associative<W, void, typename W::template btree_set<typename W::string>, false>;
template <class W>
using Multiset = Associative<W, void, typename W::template btree_multiset<typename W::string>, false>;
template <class W>
using OrderedMap = Associative<W, Part<W>, typename W::template ordered_map<typename W::string, Part<W>>>;
template <class W>
using OrderedMultiset = Associative<W, void, typename W::template ordered_multiset<typename W::string>>;

// Types that nobody names: the allocator is the heaps'.
static_assert(std::is_same_v<decltype(taiyen::ordered_map{std::pair(1, 2.5)}), taiyen::ordered_map<int, double>>);
static_assert(std::is_same_v<decltype(taiyen::btree_multiset{1, 2}), taiyen::btree_multiset<int>>);
static_assert(std::is_same_v<decltype(taiyen::ordered_set(std::declval<int*>(), std::declval<int*>(), std::greater<>())),
                             taiyen::ordered_set<int, std::greater<>>>);

}  // namespace

BOOST_AUTO_TEST_CASE(a_btree_map_to_strings_keeps_every_block_at_home) { Matrix<MapToStrings>::run(); }
BOOST_AUTO_TEST_CASE(a_btree_map_to_structs_with_optionals_variants_and_maps_keeps_every_block_at_home) { Matrix<MapToRich>::run(); }
BOOST_AUTO_TEST_CASE(a_btree_multimap_keeps_every_block_at_home) { Matrix<Multimap>::run(); }
BOOST_AUTO_TEST_CASE(a_btree_set_keeps_every_block_at_home) { Matrix<Set>::run(); }
BOOST_AUTO_TEST_CASE(a_btree_multiset_keeps_every_block_at_home) { Matrix<Multiset>::run(); }
BOOST_AUTO_TEST_CASE(an_ordered_map_keeps_every_block_at_home) { Matrix<OrderedMap>::run(); }
BOOST_AUTO_TEST_CASE(an_ordered_multiset_keeps_every_block_at_home) { Matrix<OrderedMultiset>::run(); }

BOOST_AUTO_TEST_SUITE_END()
