// Abseil's containers.
#include "table.hpp"

#if defined(TAIYEN_TEST_ABSL)
#include <absl/container/btree_map.h>
#include <absl/container/flat_hash_map.h>
#include <absl/container/inlined_vector.h>
#include <absl/container/node_hash_map.h>
#endif

namespace other_containers {

void add_absl() {
#if defined(TAIYEN_TEST_ABSL)
    using taiyen::persistent_allocator;
    using Text = taiyen::string;
    using Allocator = persistent_allocator<std::pair<const int, Text>>;
    using Tree = absl::btree_map<int, Text, std::less<int>, Allocator>;
    add_refused<Tree>("absl::btree_map");
    using Flat = absl::flat_hash_map<int, Text, taiyen::hash<int>, std::equal_to<int>, Allocator>;
    add_refused<Flat>("absl::flat_hash_map");
    using Nodes = absl::node_hash_map<int, Text, taiyen::hash<int>, std::equal_to<int>, Allocator>;
    add_refused<Nodes>("absl::node_hash_map");
    using Inlined = absl::InlinedVector<Text, 4, persistent_allocator<Text>>;
    add_good<Inlined, InSequence<Inlined>>("absl::InlinedVector");
#endif
}

}  // namespace other_containers
