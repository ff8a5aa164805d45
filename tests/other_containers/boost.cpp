// Boost.Container, and the containers with several views.
#include <taiyen/other_containers/boost_container.hpp>

#include <taiyen/other_containers/boost_circular_buffer.hpp>
#include <taiyen/other_containers/boost_multi_index.hpp>
#include <taiyen/other_containers/boost_rtree.hpp>

#include "table.hpp"

#include <boost/container/map.hpp>
#include <boost/container/small_vector.hpp>
#include <boost/container/static_vector.hpp>
#include <boost/geometry/geometries/point.hpp>
#include <boost/multi_index/hashed_index.hpp>
#include <boost/multi_index/identity.hpp>
#include <boost/multi_index/ordered_index.hpp>

namespace other_containers {

namespace bc = boost::container;
namespace bmi = boost::multi_index;
using taiyen::persistent_allocator;
using Text = taiyen::string;
using Element = std::pair<const int, Text>;

namespace {

template <class C>
struct Slist : InSequence<C> {
    static void put(C& c, int i) { c.push_front(text(i)); }
    static void take(C& c, int) { c.pop_front(); }
};

using Views = taiyen::boost_multi_index_container<
    int, bmi::indexed_by<bmi::ordered_unique<bmi::identity<int>>, bmi::hashed_unique<bmi::identity<int>, taiyen::hash<int>>>>;
struct InViews : ByKey<Views> {
    static bool has(const Views& c, int i) { return c.get<0>().find(i) != c.get<0>().end() && c.get<1>().find(i) != c.get<1>().end(); }
};

template <class C>
struct Ring : InSequence<C> {
    static C& make(taiyen::SnapshotHeap& heap) { return heap.construct<C>("container", 2000U); }
};

namespace bg = boost::geometry;
using Point = bg::model::point<double, 2, bg::cs::cartesian>;
using Tree = taiyen::boost_rtree<Point, bg::index::rstar<8>>;
struct InTree {
    static Point at(int i) { return {static_cast<double>(i % 17), static_cast<double>(i)}; }
    static Tree& make(taiyen::SnapshotHeap& heap) { return heap.construct<Tree>("container"); }
    static void put(Tree& c, int i) { c.insert(at(i)); }
    static void take(Tree& c, int i) { c.remove(at(i)); }
    static bool has(const Tree& c, int i) { return c.count(at(i)) != 0; }
    static std::size_t count(const Tree& c) { return static_cast<std::size_t>(std::distance(c.begin(), c.end())); }
    static void clear(Tree& c) { c.clear(); }
};

}  // namespace

void add_boost() {
    add_good<taiyen::boost_vector<Text>, InSequence<taiyen::boost_vector<Text>>>("boost::container::vector");
    add_refused<bc::small_vector<Text, 4, persistent_allocator<Text>>>("boost::container::small_vector");
    add_refused<bc::static_vector<Text, 500>>("boost::container::static_vector");
    add_good<taiyen::boost_deque<Text>, InSequence<taiyen::boost_deque<Text>>>("boost::container::deque");
    add_good<taiyen::boost_stable_vector<Text>, InSequence<taiyen::boost_stable_vector<Text>>>("boost::container::stable_vector");
    add_good<taiyen::boost_flat_map<int, Text>, ByKey<taiyen::boost_flat_map<int, Text>>>("boost::container::flat_map");
    add_good<taiyen::boost_flat_set<int>, ByKey<taiyen::boost_flat_set<int>>>("boost::container::flat_set");
    using Map = bc::map<int, Text, std::less<int>, persistent_allocator<Element>>;
    add_good<Map, ByKey<Map>>("boost::container::map");
    add_good<taiyen::boost_slist<Text>, Slist<taiyen::boost_slist<Text>>>("boost::container::slist");
    add_good<Views, InViews>("boost::multi_index_container");
    add_good<taiyen::boost_circular_buffer<Text>, Ring<taiyen::boost_circular_buffer<Text>>>("boost::circular_buffer");
    add_good<Tree, InTree>("boost::geometry::index::rtree");
}

}  // namespace other_containers
