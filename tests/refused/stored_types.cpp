// Not one of these may be stored, and each must say why:
// says: taiyen: the container's hash changes with the process, and the next one would find no key. use taiyen::hash, or specialise taiyen::is_stable_hash
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
}  // namespace lts_20250127
template <class T>
using Hash = hash_internal::Hash<T>;
}  // namespace absl

#if defined(TAIYEN_REFUSED)
using Hash = absl::Hash<int>;
#else
using Hash = taiyen::hash<int>;
#endif

struct Holder {
    int number;
    taiyen::unordered_map<int, int, Hash> table;
};

void put_in() {
    taiyen::vector<taiyen::unordered_map<int, int, Hash>>().emplace_back();
    taiyen::vector<Holder>().emplace_back();
}
