// Hash tables of Boost and Tessil.
#include <taiyen/other_containers/boost_unordered.hpp>

#include "table.hpp"

#include <boost/unordered/unordered_flat_map.hpp>
#if __has_include(<tsl/robin_map.h>)
#include <tsl/robin_map.h>
#endif
#if __has_include(<tsl/hopscotch_map.h>)
#include <tsl/hopscotch_map.h>
#endif

namespace other_containers {

using taiyen::persistent_allocator;
using Text = taiyen::string;
using Element = std::pair<const int, Text>;
using Hash = taiyen::hash<int>;
using Equal = std::equal_to<int>;

void add_tables() {
    add_good<taiyen::boost_unordered_map<int, Text>, ByKey<taiyen::boost_unordered_map<int, Text>>>("boost::unordered_map");
    add_good<taiyen::boost_unordered_set<int>, ByKey<taiyen::boost_unordered_set<int>>>("boost::unordered_set");
    using Flat = boost::unordered_flat_map<int, Text, Hash, Equal, persistent_allocator<Element>>;
    add_refused<Flat>("boost::unordered_flat_map");
#if __has_include(<tsl/robin_map.h>)
    using Robin = tsl::robin_map<int, Text, Hash, Equal, persistent_allocator<std::pair<int, Text>>>;
    add_refused<Robin>("tsl::robin_map");
#endif
#if __has_include(<tsl/hopscotch_map.h>)
    using Hop = tsl::hopscotch_map<int, Text, Hash, Equal, persistent_allocator<std::pair<int, Text>>>;
    add_refused<Hop>("tsl::hopscotch_map");
#endif
}

}  // namespace other_containers
