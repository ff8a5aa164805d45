#pragma once
/// The edits of the benchmark of instrumented code, compiled with hooks (inline here) and without (stores_plain.cpp).

#include <array>
#include <cstdint>

#include <taiyen/stl/containers.hpp>

namespace edits {

struct Item {
    std::array<std::uint64_t, 8> words{};
};
using Map = taiyen::map<std::uint64_t, std::uint64_t>;
using Array = taiyen::vector<Item>;
inline constexpr std::size_t array_length = std::size_t{1} << 16U;

[[gnu::noinline]] inline void insert(Map& map, std::uint64_t key) { map.emplace(key, key); }
[[gnu::noinline]] inline void update(Item& item, std::uint64_t value) {
    for (std::uint64_t& word : item.words) word = value++;
}

/// The same without hooks. Instrumented code has other names for the same types, so they pass as addresses.
void plain_insert(void* map, std::uint64_t key);
void plain_update(void* item, std::uint64_t value);

}  // namespace edits
