#include "lexicon.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <limits>
#include <unordered_map>
#include <unordered_set>

namespace wordnet {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool lists(const Word& word, const NamedSynset& synset) { return std::ranges::find(word.senses, &synset) != word.senses.end(); }

bool lists(const Synset& synset, const NamedWord& word) { return std::ranges::find(synset.members, &word, &Member::word) != synset.members.end(); }

bool related(const Synset& from, RelationKind kind, const NamedSynset& to) {
    return std::ranges::any_of(from.relations, [&](const Relation& relation) { return relation.kind == kind && relation.target == &to; });
}

/// Whether going up from `start` leads to `wanted`.
bool lies_above(const NamedSynset& wanted, const NamedSynset& start) {
    std::vector<const NamedSynset*> open{&start};
    std::unordered_set<const NamedSynset*> seen;
    while (!open.empty()) {
        const NamedSynset* const at = open.back();
        open.pop_back();
        if (at == &wanted) return true;
        if (!seen.insert(at).second) continue;
        for (const Relation& relation : at->second.relations)
            if (leads_up(relation.kind)) open.push_back(relation.target);
    }
    return false;
}

std::string in_quotes(std::string_view text) { return '"' + std::string(text) + '"'; }

/// Everything that is in a lexicon's maps, by address.
struct Nodes {
    std::unordered_set<const NamedWord*> words;
    std::unordered_set<const NamedSynset*> synsets;

    explicit Nodes(const Lexicon& lexicon) {
        words.reserve(lexicon.words.size());
        synsets.reserve(lexicon.synsets.size());
        for (const NamedWord& word : lexicon.words) words.insert(&word);
        for (const NamedSynset& synset : lexicon.synsets) synsets.insert(&synset);
    }
};

std::string broken_word(const NamedWord& word, const Nodes& nodes) {
    const auto& senses = word.second.senses;
    for (const NamedSynset* const sense : senses) {
        if (!nodes.synsets.contains(sense)) return "a sense of " + in_quotes(word.first) + " is not a synset of the lexicon";
        if (!lists(sense->second, word)) return text_of(sense->first) + " does not list its word " + in_quotes(word.first);
    }
    if (!std::ranges::is_sorted(senses, {}, [](const NamedSynset* sense) { return sense->first.part; }))
        return "the senses of " + in_quotes(word.first) + " do not stand by part of speech";
    return {};
}

std::string broken_members(const NamedSynset& synset, const Nodes& nodes) {
    for (const Member& member : synset.second.members) {
        if (!nodes.words.contains(member.word)) return "a word of " + text_of(synset.first) + " is not one of the lexicon";
        if (!lists(member.word->second, synset)) return in_quotes(member.word->first) + " does not have the sense " + text_of(synset.first);
        if (!member.spelling.empty() && normalised(member.spelling) != std::string_view(member.word->first))
            return text_of(synset.first) + " spells " + in_quotes(member.word->first) + " as another word";
    }
    return {};
}

std::string broken_relations(const NamedSynset& synset, const Nodes& nodes) {
    for (const Relation& relation : synset.second.relations) {
        if (!nodes.synsets.contains(relation.target)) return "a relation of " + text_of(synset.first) + " does not lead to a synset of the lexicon";
        if (relation.from > synset.second.members.size() || relation.to > relation.target->second.members.size())
            return "a relation of " + text_of(synset.first) + " names a word that is not there";
        if ((leads_up(relation.kind) || leads_down(relation.kind)) && !related(relation.target->second, *inverse_of(relation.kind), synset)) {
            return text_of(synset.first) + " has the " + std::string(name_of(relation.kind)) + ' ' + text_of(relation.target->first) +
                   " but not the other way round";
        }
    }
    return {};
}

/// (L5) by taking away, again and again, what has nothing above it: what is left lies above itself.
std::string broken_order(const Lexicon& lexicon) {
    std::unordered_map<const NamedSynset*, std::size_t> above;
    std::vector<const NamedSynset*> roots;
    for (const NamedSynset& synset : lexicon.synsets) {
        const auto ups = std::ranges::count_if(synset.second.relations, leads_up, &Relation::kind);
        if (ups == 0)
            roots.push_back(&synset);
        else
            above.emplace(&synset, static_cast<std::size_t>(ups));
    }
    while (!roots.empty()) {
        const NamedSynset* const root = roots.back();
        roots.pop_back();
        for (const Relation& relation : root->second.relations) {
            const auto at = leads_down(relation.kind) ? above.find(relation.target) : above.end();
            if (at != above.end() && --at->second == 0) {
                roots.push_back(at->first);
                above.erase(at);
            }
        }
    }
    return above.empty() ? std::string() : text_of(above.begin()->first->first) + " lies above itself";
}

}  // namespace

std::string text_of(SynsetId id) {
    std::array<char, 16> text{};
    std::snprintf(text.data(), text.size(), "%c%08u", letter_of(id.part), id.number);
    return text.data();
}

std::optional<SynsetId> synset_id_in(std::string_view text) {
    const auto part = text.empty() ? std::nullopt : part_from_letter(text.front());
    SynsetId id;
    const auto [end, error] = std::from_chars(text.data() + (text.empty() ? 0 : 1), text.data() + text.size(), id.number);
    if (!part || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    id.part = *part;
    return id;
}

std::string normalised(std::string_view spelling) {
    std::string key(spelling);
    std::ranges::transform(key, key.begin(), [](char c) { return c == ' ' ? '_' : lower(c); });
    return key;
}

std::string spelt(std::string_view spelling) {
    std::string text(spelling);
    std::ranges::replace(text, '_', ' ');
    return text;
}

std::string spelt(const Member& member) { return spelt(member.spelling.empty() ? member.word->first : member.spelling); }

const NamedWord* find_word(const Lexicon& lexicon, std::string_view spelling) {
    const auto at = lexicon.words.find(normalised(spelling));
    return at == lexicon.words.end() ? nullptr : &*at;
}

NamedWord* find_word(Lexicon& lexicon, std::string_view spelling) {
    const auto at = lexicon.words.find(normalised(spelling));
    return at == lexicon.words.end() ? nullptr : &*at;
}

const NamedSynset* find_synset(const Lexicon& lexicon, SynsetId id) {
    const auto at = lexicon.synsets.find(id);
    return at == lexicon.synsets.end() ? nullptr : &*at;
}

NamedSynset* find_synset(Lexicon& lexicon, SynsetId id) {
    const auto at = lexicon.synsets.find(id);
    return at == lexicon.synsets.end() ? nullptr : &*at;
}

SynsetId free_id(const Lexicon& lexicon, PartOfSpeech part) {
    const auto behind = lexicon.synsets.upper_bound({part, std::numeric_limits<std::uint32_t>::max()});
    const bool first = behind == lexicon.synsets.begin() || std::prev(behind)->first.part != part;
    return {part, first ? 1 : std::prev(behind)->first.number + 1};
}

NamedSynset& add_synset(Lexicon& lexicon, SynsetId id, std::string_view gloss) {
    const auto [at, added] = lexicon.synsets.try_emplace(id);
    if (!added) throw LexiconError("there is a synset " + text_of(id) + " already");
    at->second.gloss = gloss;
    return *at;
}

NamedWord& add_word(Lexicon& lexicon, std::string_view spelling) {
    const std::string key = normalised(spelling);
    const auto at = lexicon.words.lower_bound(key);
    return at != lexicon.words.end() && at->first == key ? *at : *lexicon.words.try_emplace(at, key.c_str());
}

void add_member(NamedSynset& synset, NamedWord& word, std::string_view spelling) {
    Member& member = synset.second.members.emplace_back();
    member.word = &word;
    if (spelling != std::string_view(word.first)) member.spelling = spelling;
}

void add_sense(Lexicon& lexicon, NamedWord& word, NamedSynset& synset) {
    auto& senses = word.second.senses;
    const auto behind = std::ranges::upper_bound(senses, synset.first.part, {}, [](const NamedSynset* sense) { return sense->first.part; });
    senses.insert(behind, &synset);
    ++lexicon.senses;
}

void add_relation(Lexicon& lexicon, NamedSynset& from, const Relation& relation) {
    from.second.relations.push_back(relation);
    ++lexicon.relations;
}

void express(Lexicon& lexicon, NamedSynset& synset, std::string_view spelling) {
    if (normalised(spelling).empty()) throw LexiconError("a word needs at least one letter");
    NamedWord& word = add_word(lexicon, spelling);
    if (lists(synset.second, word)) throw LexiconError(text_of(synset.first) + " has the word " + in_quotes(spelling) + " already");
    std::string written(spelling);
    std::ranges::replace(written, ' ', '_');
    add_member(synset, word, written);
    add_sense(lexicon, word, synset);
}

void relate(Lexicon& lexicon, NamedSynset& from, RelationKind kind, NamedSynset& to) {
    const std::string fault = text_of(from.first) + " can't have " + text_of(to.first) + " as " + std::string(name_of(kind)) + ": ";
    if (&from == &to) throw LexiconError(fault + "they are the same");
    if (related(from.second, kind, to)) throw LexiconError(fault + "it has it already");
    if ((leads_up(kind) && lies_above(from, to)) || (leads_down(kind) && lies_above(to, from)))
        throw LexiconError(fault + "it would lie above itself");
    add_relation(lexicon, from, {kind, 0, 0, &to});
    if (const auto back = inverse_of(kind); back && !related(to.second, *back, from)) add_relation(lexicon, to, {*back, 0, 0, &from});
}

std::string broken_invariant(const Lexicon& lexicon) {
    const Nodes nodes(lexicon);
    std::uint64_t senses = 0;
    std::uint64_t relations = 0;
    for (const NamedWord& word : lexicon.words) {
        if (std::string broken = broken_word(word, nodes); !broken.empty()) return broken;
        senses += word.second.senses.size();
    }
    for (const NamedSynset& synset : lexicon.synsets) {
        for (const auto& check : {broken_members, broken_relations})
            if (std::string broken = check(synset, nodes); !broken.empty()) return broken;
        relations += synset.second.relations.size();
    }
    if (senses != lexicon.senses || relations != lexicon.relations) return "the numbers of senses and relations are not those of what is there";
    return broken_order(lexicon);
}

}  // namespace wordnet
