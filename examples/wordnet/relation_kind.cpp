#include "relation_kind.hpp"

#include <algorithm>
#include <array>

namespace wordnet {
namespace {

struct Known {
    RelationKind kind;
    std::string_view symbol;
    std::string_view name;
    std::optional<RelationKind> inverse;
};

using enum RelationKind;
constexpr std::array known{
    Known{hypernym, "@", "hypernym", hyponym},
    Known{instance_hypernym, "@i", "instance-hypernym", instance_hyponym},
    Known{hyponym, "~", "hyponym", hypernym},
    Known{instance_hyponym, "~i", "instance-hyponym", instance_hypernym},
    Known{member_holonym, "#m", "member-holonym", member_meronym},
    Known{part_holonym, "#p", "part-holonym", part_meronym},
    Known{substance_holonym, "#s", "substance-holonym", substance_meronym},
    Known{member_meronym, "%m", "member-meronym", member_holonym},
    Known{part_meronym, "%p", "part-meronym", part_holonym},
    Known{substance_meronym, "%s", "substance-meronym", substance_holonym},
    Known{antonym, "!", "antonym", antonym},
    Known{similar, "&", "similar", similar},
    Known{also_see, "^", "also-see", std::nullopt},
    Known{attribute, "=", "attribute", attribute},
    Known{derivation, "+", "derivation", derivation},
    Known{pertainym, "\\", "pertainym", std::nullopt},
    Known{participle, "<", "participle", std::nullopt},
    Known{cause, ">", "cause", std::nullopt},
    Known{entailment, "*", "entailment", std::nullopt},
    Known{verb_group, "$", "verb-group", verb_group},
    Known{topic, ";c", "topic", topic_member},
    Known{region, ";r", "region", region_member},
    Known{usage, ";u", "usage", usage_member},
    Known{topic_member, "-c", "topic-member", topic},
    Known{region_member, "-r", "region-member", region},
    Known{usage_member, "-u", "usage-member", usage},
};
static_assert(std::ranges::is_sorted(known, {}, &Known::kind), "the table is looked up by number");

template <class Value>
std::optional<RelationKind> kind_where(std::string_view Known::* member, Value value) {
    const auto at = std::ranges::find(known, value, member);
    return at == known.end() ? std::nullopt : std::optional(at->kind);
}

constexpr std::array<std::string_view, parts_of_speech> part_names{"noun", "verb", "adjective", "adverb"};
constexpr std::string_view part_letters = "nvar";

}  // namespace

std::string_view name_of(PartOfSpeech part) { return part_names.at(static_cast<std::size_t>(part)); }

char letter_of(PartOfSpeech part) { return part_letters.at(static_cast<std::size_t>(part)); }

std::optional<PartOfSpeech> part_from_letter(char letter) {
    const std::size_t at = part_letters.find(letter == 's' ? 'a' : letter);
    return at == std::string_view::npos ? std::nullopt : std::optional(static_cast<PartOfSpeech>(at));
}

std::string_view name_of(RelationKind kind) { return known.at(static_cast<std::size_t>(kind)).name; }

std::optional<RelationKind> relation_kind_named(std::string_view name) { return kind_where(&Known::name, name); }

std::optional<RelationKind> relation_kind_of(std::string_view symbol) { return kind_where(&Known::symbol, symbol); }

std::optional<RelationKind> inverse_of(RelationKind kind) { return known.at(static_cast<std::size_t>(kind)).inverse; }

}  // namespace wordnet
