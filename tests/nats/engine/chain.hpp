#pragma once
/// Chain: what was committed, so that a transaction that is missing, there twice, or in another place is seen.

#include <algorithm>
#include <cstdint>
#include <random>
#include <stdexcept>

#include <taiyen/taiyen.hpp>

namespace chain {

struct Chain {
    static constexpr std::uint64_t kept = 65'536;
    std::uint64_t length;
    std::uint64_t
        newest[kept];       ///< checks of the newest transactions, each in the place of its number: one that was left out leaves an older one there
    std::uint64_t rest_of;  ///< the transaction that wrote what follows
    std::uint64_t rest[25'000];  ///< so that a frame may take several messages
};
inline std::uint64_t check_of(std::uint64_t length) { return (length ^ 0x5bd1'e995) * 0x9E37'79B9'7F4A'7C15ULL; }

/// In one transaction, not committed yet. One in so many is large.
inline std::uint64_t lengthen(taiyen::TransactionalHeap& heap, std::mt19937_64& random, unsigned large_one_in = 8) {
    auto& chain = heap.find_or_construct<Chain>("chain");
    const std::uint64_t length = ++chain.length;
    chain.newest[length % Chain::kept] = check_of(length);
    if (random() % large_one_in == 0) {
        chain.rest_of = length;
        for (std::uint64_t i = 0; std::uint64_t& word : chain.rest) word = check_of(length + i++);
    }
    return length;
}

/// Throws: it is no chain.
inline std::uint64_t length_of(const taiyen::TransactionalHeap& heap) {
    const taiyen::ReadLock lock(heap);
    const auto* const chain = heap.find<Chain>("chain");
    if (chain == nullptr) return 0;
    const std::uint64_t first = chain->length - std::min(chain->length, Chain::kept - 1);
    for (std::uint64_t length = first + 1; length <= chain->length; ++length)
        if (chain->newest[length % Chain::kept] != check_of(length)) throw std::runtime_error("a transaction is missing");
    if (chain->rest_of > chain->length) throw std::runtime_error("a transaction is missing at the end");
    for (std::uint64_t i = 0; const std::uint64_t word : chain->rest)
        if (word != (chain->rest_of == 0 ? 0 : check_of(chain->rest_of + i++))) throw std::runtime_error("a large transaction has other bytes");
    return chain->length;
}

}  // namespace chain
