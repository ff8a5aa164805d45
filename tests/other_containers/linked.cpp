// Boost's containers of nodes that several orders or the program itself link: Bimap, Intrusive, Graph.
#include <taiyen/other_containers/boost_bimap.hpp>

#include "table.hpp"

#include <memory>
#include <string_view>

#include <boost/graph/adjacency_list.hpp>
#include <boost/intrusive/list.hpp>
#include <boost/intrusive/set.hpp>

namespace other_containers {

namespace bi = boost::intrusive;
using taiyen::persistent_allocator;
using Text = taiyen::string;

namespace {

using Names = taiyen::boost_bimap<int, Text>;
struct InNames : ByKey<Names> {
    static void put(Names& c, int i) { c.insert(Names::value_type(i, text(i))); }
    static void take(Names& c, int i) { c.left.erase(i); }
    static bool has(const Names& c, int i) {
        const auto at = c.left.find(i);
        return at != c.left.end() && at->second == text(i) && c.right.find(text(i)) != c.right.end();
    }
};

}  // namespace

struct Item : bi::list_base_hook<>, bi::set_base_hook<> {
    int number;
    Text name;
    explicit Item(int i) : number(i), name(std::string_view(text(i))) {}  // a copy: text outside has scratch memory
    friend bool operator<(const Item& a, const Item& b) { return a.number < b.number; }
};
/// Its elements are the program's, from the heap.
template <class Links>
struct Linked {
    persistent_allocator<Item> memory;
    Links items;
};

namespace {

struct IsBefore {
    bool operator()(const Item& item, int i) const { return item.number < i; }
    bool operator()(int i, const Item& item) const { return i < item.number; }
};
template <class Links>
struct InLinked {
    using C = Linked<Links>;
    static constexpr bool is_list = requires(Links& links, Item& item) { links.push_back(item); };
    static C& make(taiyen::SnapshotHeap& heap) { return heap.construct<C>("container"); }
    static void put(C& c, int i) {
        Item* const item = std::construct_at(c.memory.allocate(1), i);
        if constexpr (is_list)
            c.items.push_back(*item);
        else
            c.items.insert(*item);
    }
    static void take(C& c, int i) { remove(c, find(c, i)); }
    static bool has(const C& c, int i) {
        const auto at = find(c, i);
        return at != c.items.end() && at->name == text(i);
    }
    static std::size_t count(const C& c) { return c.items.size(); }
    static void clear(C& c) {
        while (!c.items.empty()) remove(c, c.items.begin());
    }

private:
    static auto find(auto& c, int i) {
        if constexpr (is_list) {
            auto at = c.items.begin();
            while (at != c.items.end() && at->number != i) ++at;
            return at;
        } else {
            return c.items.find(i, IsBefore());
        }
    }
    static void remove(C& c, typename Links::iterator at) {
        Item& item = *at;
        c.items.erase(at);
        std::destroy_at(&item);
        c.memory.deallocate(&item, 1);
    }
};

using Graph = boost::adjacency_list<>;
struct InGraph {
    static Graph& make(taiyen::SnapshotHeap& heap) { return heap.construct<Graph>("container"); }
    static void put(Graph& c, int /*i*/) { add_vertex(c); }
    static void take(Graph& c, int /*i*/) { remove_vertex(num_vertices(c) - 1, c); }
    static bool has(const Graph& c, int i) { return static_cast<std::size_t>(i) < num_vertices(c); }
    static std::size_t count(const Graph& c) { return num_vertices(c); }
    static void clear(Graph& c) { c.clear(); }
};

}  // namespace

void add_linked() {
    add_good<Names, InNames>("boost::bimap");
    using List = bi::list<Item>;
    add_good<Linked<List>, InLinked<List>>("boost::intrusive::list");
    using Set = bi::set<Item>;
    add_good<Linked<Set>, InLinked<Set>>("boost::intrusive::set");
    add<Graph, InGraph>("boost::adjacency_list", "foreign_pointer", "foreign_pointer", "foreign_pointer", "foreign_pointer");
}

}  // namespace other_containers
