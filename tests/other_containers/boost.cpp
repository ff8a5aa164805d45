// Boost.Container and the containers with several views.
#include "table.hpp"

#include <boost/bimap.hpp>
#include <boost/circular_buffer.hpp>
#include <boost/container/deque.hpp>
#include <boost/container/flat_map.hpp>
#include <boost/container/map.hpp>
#include <boost/container/slist.hpp>
#include <boost/container/small_vector.hpp>
#include <boost/container/stable_vector.hpp>
#include <boost/container/static_vector.hpp>
#include <boost/container/vector.hpp>
#include <boost/geometry.hpp>
#include <boost/geometry/geometries/point.hpp>
#include <boost/geometry/index/rtree.hpp>
#include <boost/multi_index/hashed_index.hpp>
#include <boost/multi_index/identity.hpp>
#include <boost/multi_index/ordered_index.hpp>
#include <boost/multi_index_container.hpp>

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

using Views =
    bmi::multi_index_container<int,
                               bmi::indexed_by<bmi::ordered_unique<bmi::identity<int>>, bmi::hashed_unique<bmi::identity<int>, taiyen::hash<int>>>,
                               persistent_allocator<int>>;
struct InViews : ByKey<Views> {
    static bool has(const Views& c, int i) { return c.get<0>().find(i) != c.get<0>().end() && c.get<1>().find(i) != c.get<1>().end(); }
};

template <class C>
struct Ring : InSequence<C> {
    static C& make(taiyen::SnapshotHeap& heap) { return heap.construct<C>("container", 2000U); }
};

namespace bg = boost::geometry;
using Point = bg::model::point<double, 2, bg::cs::cartesian>;
using Points = bg::index::rtree<Point, bg::index::rstar<8>, bg::index::indexable<Point>, bg::index::equal_to<Point>, persistent_allocator<Point>>;
}  // namespace

/// A range may be anything to its constructors, also the tag that precedes an allocator: so it is given its allocator by hand.
struct Tree {
    using value_type = Point;
    using allocator_type = persistent_allocator<Point>;
    Points points;
    explicit Tree(const allocator_type& allocator) : points({}, {}, {}, allocator) {}
};

namespace {

struct InTree {
    static Point at(int i) { return {static_cast<double>(i % 17), static_cast<double>(i)}; }
    static Tree& make(taiyen::SnapshotHeap& heap) { return heap.construct<Tree>("container"); }
    static void put(Tree& c, int i) { c.points.insert(at(i)); }
    static void take(Tree& c, int i) { c.points.remove(at(i)); }
    static bool has(const Tree& c, int i) { return c.points.count(at(i)) != 0; }
    static std::size_t count(const Tree& c) { return static_cast<std::size_t>(std::distance(c.points.begin(), c.points.end())); }
    static void clear(Tree& c) { c.points.clear(); }
};

}  // namespace

void add_boost() {
    add_good<bc::vector<Text, persistent_allocator<Text>>, InSequence<bc::vector<Text, persistent_allocator<Text>>>>("boost::container::vector");
    add_refused<bc::small_vector<Text, 4, persistent_allocator<Text>>>("boost::container::small_vector");
    add_refused<bc::static_vector<Text, 500>>("boost::container::static_vector");
    add_good<bc::deque<Text, persistent_allocator<Text>>, InSequence<bc::deque<Text, persistent_allocator<Text>>>>("boost::container::deque");
    add_good<bc::stable_vector<Text, persistent_allocator<Text>>, InSequence<bc::stable_vector<Text, persistent_allocator<Text>>>>(
        "boost::container::stable_vector");
    using Flat = bc::flat_map<int, Text, std::less<int>, persistent_allocator<std::pair<int, Text>>>;
    add_good<Flat, ByKey<Flat>>("boost::container::flat_map");
    using Map = bc::map<int, Text, std::less<int>, persistent_allocator<Element>>;
    add_good<Map, ByKey<Map>>("boost::container::map");
    using List = bc::slist<Text, persistent_allocator<Text>>;
    add_good<List, Slist<List>>("boost::container::slist");
    add_good<Views, InViews>("boost::multi_index_container");
    using Buffer = boost::circular_buffer<Text, persistent_allocator<Text>>;
    add_good<Buffer, Ring<Buffer>>("boost::circular_buffer");
    add_good<Tree, InTree>("boost::geometry::index::rtree");
}

}  // namespace other_containers
