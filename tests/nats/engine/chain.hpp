#pragma once
/// Chain: what was committed, so that a transaction that is missing, there twice, or in another place is seen.

#include <cstdint>
#include <random>
#include <stdexcept>

#include <taiyen/taiyen.hpp>

namespace chain {

struct Chain {
    std::uint64_t length;
    std::uint64_t check;  ///< of all that came before
    char rest[200'000];   ///< so that a frame may take several messages
};
inline std::uint64_t next_check(std::uint64_t check, std::uint64_t length) { return (check ^ length) * 0x9E37'79B9'7F4A'7C15ULL; }

/// In one transaction, not committed yet.
inline std::uint64_t lengthen(taiyen::TransactionalHeap& heap, std::mt19937_64& random) {
    auto& chain = heap.find_or_construct<Chain>("chain");
    chain.check = next_check(chain.check, ++chain.length);
    if (random() % 8 == 0)
        for (char& byte : chain.rest) byte = static_cast<char>(random());
    return chain.length;
}

/// Throws: it is no chain.
inline std::uint64_t length_of(const taiyen::TransactionalHeap& heap) {
    const taiyen::ReadLock lock(heap);
    const auto* const chain = heap.find<Chain>("chain");
    if (chain == nullptr) return 0;
    std::uint64_t check = 0;
    for (std::uint64_t length = 1; length <= chain->length; ++length) check = next_check(check, length);
    if (check != chain->check) throw std::runtime_error("transactions are missing");
    return chain->length;
}

}  // namespace chain
