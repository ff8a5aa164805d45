#include "stores_edits.hpp"

namespace edits {

void plain_insert(void* map, std::uint64_t key) { static_cast<Map*>(map)->emplace(key, key); }
void plain_update(void* item, std::uint64_t value) {
    for (std::uint64_t& word : static_cast<Item*>(item)->words) word = value++;
}

}  // namespace edits
