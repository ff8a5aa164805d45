#pragma once
/// From WordNet's files into a heap, in one transaction or in several.
///
/// In one transaction the lexicon is there whole or not at all, whenever the program dies. In several it is marked as incomplete until the last one, and an incomplete one is
/// begun anew; each step needs less memory for what it could have to take back.
/// Thread rule: one thread.

#include <cstdint>
#include <functional>
#include <string_view>

#include "database.hpp"
#include "lexicon.hpp"

namespace wordnet {

inline constexpr std::string_view lexicon_name = "lexicon";

struct LoadingOptions {
    std::size_t per_transaction = 0;  ///< synsets or words that one transaction adds; 0: all in one
};
struct Loading {
    std::size_t transactions = 0;
    taiyen::Serial last;
};
/// `done` of `all` synsets and words have been added, `transactions` been committed.
using LoadProgress = std::function<void(std::size_t done, std::size_t all, std::size_t transactions)>;

/// Throws: LexiconError (the heap has a lexicon already), DatabaseError (the files contradict each other), taiyen::Error, taiyen::HeapFull.
/// Durability: the lexicon is durable on return.
Loading load(taiyen::TransactionalHeap& heap, const Database& database, const LoadingOptions& options = {}, const LoadProgress& progress = {});

/// The heap's lexicon. Throws: LexiconError if there is none, or an incomplete one.
const Lexicon& lexicon_of(const taiyen::TransactionalHeap& heap);
Lexicon& lexicon_of(taiyen::TransactionalHeap& heap);

}  // namespace wordnet
