// Not one of these may be stored, and each must say why:
// says: taiyen: the container's hash changes with the process, and the next one would find no key. use taiyen::hash, or specialise taiyen::is_stable_hash
// says: taiyen: the container points to a constant of the program while it is empty, and the next process finds it elsewhere. use taiyen::flat_hash_map or taiyen::btree_map
// says: taiyen: a member of the type can't be stored in a heap

#include <taiyen/stl/containers.hpp>

namespace absl {
inline namespace lts_20250127 {
namespace hash_internal {
template <class T>
struct Hash {
    std::size_t operator()(const T&) const { return 0; }
};
}  // namespace hash_internal
template <class K, class V, class Allocator>
struct flat_hash_map {
    using value_type = std::pair<const K, V>;
    using allocator_type = Allocator;
    const void* constant = nullptr;
};
}  // namespace lts_20250127
template <class T>
using Hash = hash_internal::Hash<T>;
}  // namespace absl

#if defined(TAIYEN_REFUSED)
using Hash = absl::Hash<int>;
using Table = absl::flat_hash_map<int, int, taiyen::persistent_allocator<std::pair<const int, int>>>;
#else
using Hash = taiyen::hash<int>;
using Table = taiyen::unordered_map<int, int>;
#endif

struct Holder {
    int number;
    taiyen::unordered_map<int, int, Hash> table;
};

void put_in() {
    taiyen::vector<taiyen::unordered_map<int, int, Hash>>().emplace_back();
    taiyen::vector<Holder>().emplace_back();
    taiyen::vector<Table>().emplace_back();
}
