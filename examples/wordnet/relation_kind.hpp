#pragma once
/// What a word sense or a whole synset can be to another: WordNet's pointer symbols, with the names people use for them.
///
/// Thread rule: values.

#include <cstdint>
#include <optional>
#include <string_view>

namespace wordnet {

enum class PartOfSpeech : std::uint8_t { noun, verb, adjective, adverb };
inline constexpr int parts_of_speech = 4;

std::string_view name_of(PartOfSpeech part);
/// As in WordNet's files and in synset ids: n, v, a, r.
char letter_of(PartOfSpeech part);
/// 's', an adjective that clusters around another, is an adjective here.
std::optional<PartOfSpeech> part_from_letter(char letter);

enum class RelationKind : std::uint8_t {
    hypernym,           ///< A dog is an animal: the target is the more general.
    instance_hypernym,  ///< The Nile is a river.
    hyponym,
    instance_hyponym,
    member_holonym,  ///< A dog is a member of a pack.
    part_holonym,
    substance_holonym,
    member_meronym,
    part_meronym,
    substance_meronym,
    antonym,
    similar,
    also_see,
    attribute,
    derivation,  ///< Related by form: to drive, driver.
    pertainym,   ///< What an adjective pertains to; what an adverb is derived from.
    participle,
    cause,
    entailment,
    verb_group,
    topic,  ///< The field that the source belongs to.
    region,
    usage,
    topic_member,
    region_member,
    usage_member,
};

/// One word or two joined by a hyphen: "part-holonym".
std::string_view name_of(RelationKind kind);
std::optional<RelationKind> relation_kind_named(std::string_view name);
/// From WordNet's symbol: "@", "~i", "%p", …
std::optional<RelationKind> relation_kind_of(std::string_view symbol);
/// What the target is to the source in return; nothing for kinds that lead one way only.
std::optional<RelationKind> inverse_of(RelationKind kind);

/// Whether the kind leads from something to what it is a kind or an instance of.
constexpr bool leads_up(RelationKind kind) { return kind == RelationKind::hypernym || kind == RelationKind::instance_hypernym; }
constexpr bool leads_down(RelationKind kind) { return kind == RelationKind::hyponym || kind == RelationKind::instance_hyponym; }

}  // namespace wordnet
