#pragma once
/// Questions that follow pointers: what is above a word, how two words hang together, what else was meant.
///
/// What they return points into the lexicon. Thread rule: as reading any container.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lexicon.hpp"

namespace wordnet {

/// From a synset upwards, the synset itself first, a root last.
using HypernymPath = std::vector<const NamedSynset*>;

/// All ways up, in the order of the relations. Complexity: linear in their total length.
std::vector<HypernymPath> hypernym_paths(const NamedSynset& start);

struct PathStep {
    std::optional<RelationKind> by;  ///< what it is to the step before; nothing for the first
    const NamedSynset* synset = nullptr;
};
enum class Follow { hierarchy /** up and down only */, everything };

/// The fewest steps from any sense of one word to any of the other; empty: there is no way. Complexity: linear in synsets and relations.
std::vector<PathStep> shortest_path(const Word& from, const Word& to, Follow follow = Follow::hierarchy);

/// At most `most` words that a typing error or two would turn into this one, the nearest first. Complexity: linear in the words.
std::vector<const NamedWord*> similar_words(const Lexicon& lexicon, std::string_view spelling, std::size_t most = 5);

struct Statistics {
    std::size_t words = 0;
    std::size_t synsets = 0;
    std::size_t senses = 0;
    std::size_t relations = 0;
    std::size_t synsets_of[parts_of_speech] = {};
    std::vector<std::pair<RelationKind, std::size_t>> relations_of;  ///< the most frequent first
    const NamedWord* most_senses = nullptr;
    std::vector<const NamedSynset*> deepest;  ///< the longest way up in the whole lexicon
};
Statistics statistics(const Lexicon& lexicon);

}  // namespace wordnet
