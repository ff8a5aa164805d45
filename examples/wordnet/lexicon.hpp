#pragma once
/// A lexicon as a graph: plain structs, standard containers and raw pointers, without a word about storage.
///
/// Words point at the synsets (sets of synonyms, one meaning each) they can mean, synsets at their words and at related synsets: pointers to nodes of the lexicon's own
/// maps, good as long as the node lives, in the next process too, because a heap reopens at its address.
///
/// (L1) every pointer leads to a node of the lexicon's own maps; (L2) a synset is among the senses of each of its words, and each sense of a word lists the word;
/// (L3) a word's senses stand by part of speech; (L4) a hypernym has the hyponym that it is a hypernym of, and the other way round; (L5) no synset lies above itself;
/// (L6) `senses` and `relations` are the numbers of what is there.
/// Thread rule: as any container.

#include <compare>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <taiyen/taiyen.hpp>

#include "relation_kind.hpp"

namespace wordnet {

/// What a synset is called for good: its part of speech and, for those that were loaded, where they began in WordNet's file. Written "n00001740".
struct SynsetId {
    PartOfSpeech part = PartOfSpeech::noun;
    std::uint32_t number = 0;
    auto operator<=>(const SynsetId&) const = default;
};
std::string text_of(SynsetId id);
std::optional<SynsetId> synset_id_in(std::string_view text);

struct Synset;
struct Word;
using NamedSynset = std::pair<const SynsetId, Synset>;
using NamedWord = std::pair<const taiyen::string, Word>;

struct Word {
    taiyen::vector<NamedSynset*> senses;  ///< by part of speech, the most frequent first
};

struct Member {
    NamedWord* word = nullptr;
    taiyen::string spelling;  ///< empty if it is spelt as the word's key
};

/// Counts members from 1; 0 is the synset as a whole.
using MemberNumber = std::uint8_t;

struct Relation {
    RelationKind kind = RelationKind::hypernym;
    MemberNumber from = 0;
    MemberNumber to = 0;
    NamedSynset* target = nullptr;
};

struct Synset {
    taiyen::vector<Member> members;
    taiyen::vector<Relation> relations;
    taiyen::string gloss;
};

struct Lexicon {
    taiyen::map<taiyen::string, Word> words;  ///< by `normalised` spelling
    taiyen::map<SynsetId, Synset> synsets;
    std::uint64_t senses = 0;
    std::uint64_t relations = 0;
    bool complete = false;  ///< false while it is being loaded by several transactions
};

/// An edit that would break the lexicon, or something asked for that isn't there; the text says what to do.
class LexiconError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// Lower case, underscores for blanks: how words are keyed.
std::string normalised(std::string_view spelling);
/// For people: blanks for underscores.
std::string spelt(std::string_view spelling);
std::string spelt(const Member& member);

const NamedWord* find_word(const Lexicon& lexicon, std::string_view spelling);
NamedWord* find_word(Lexicon& lexicon, std::string_view spelling);
const NamedSynset* find_synset(const Lexicon& lexicon, SynsetId id);
NamedSynset* find_synset(Lexicon& lexicon, SynsetId id);

/// The next free id of a part of speech.
SynsetId free_id(const Lexicon& lexicon, PartOfSpeech part);
/// Throws: LexiconError if the id is taken.
NamedSynset& add_synset(Lexicon& lexicon, SynsetId id, std::string_view gloss);
/// The word, made if it isn't there.
NamedWord& add_word(Lexicon& lexicon, std::string_view spelling);
/// Lists the word among the synset's, without the way back.
void add_member(NamedSynset& synset, NamedWord& word, std::string_view spelling);
/// Lists the synset as the word's last sense of its part of speech, without the way back.
void add_sense(Lexicon& lexicon, NamedWord& word, NamedSynset& synset);
/// A relation one way.
void add_relation(Lexicon& lexicon, NamedSynset& from, const Relation& relation);

/// Gives a synset one more word. Throws: LexiconError if it has it already.
void express(Lexicon& lexicon, NamedSynset& synset, std::string_view spelling);
/// Relates two synsets, both ways where the kind has an inverse. Throws: LexiconError if they are so related already, or one would lie above itself.
void relate(Lexicon& lexicon, NamedSynset& from, RelationKind kind, NamedSynset& to);

/// Whether (L1)–(L6) hold; the text says what is wrong first, empty if nothing is.
std::string broken_invariant(const Lexicon& lexicon);

}  // namespace wordnet
