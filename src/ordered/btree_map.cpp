#include <taiyen/ordered/btree_map.hpp>

#include <stdexcept>

namespace taiyen::ordered {

void throw_no_such_key() { throw std::out_of_range("taiyen: the map has no such key"); }

}  // namespace taiyen::ordered
