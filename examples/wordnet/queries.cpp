#include "queries.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <unordered_map>

namespace wordnet {
namespace {

void extend(HypernymPath& path, std::vector<HypernymPath>& found) {
    bool at_top = true;
    for (const Relation& relation : path.back()->second.relations) {
        if (leads_up(relation.kind)) {
            at_top = false;
            path.push_back(relation.target);
            extend(path, found);
            path.pop_back();
        }
    }
    if (at_top) found.push_back(path);
}

/// Letters to change, add, leave out or swap with the next; anything above `most` if it takes more.
std::size_t distance(std::string_view a, std::string_view b, std::size_t most) {
    if (a.size() > b.size() + most || b.size() > a.size() + most) return most + 1;
    std::vector<std::size_t> before(b.size() + 1);  // the rows for one letter of `a` fewer, and two
    std::vector<std::size_t> before_that(b.size() + 1);
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(before.begin(), before.end(), 0U);
    for (std::size_t i = 1; i <= a.size(); ++i) {
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            row[j] = std::min({before[j - 1] + (a[i - 1] == b[j - 1] ? 0U : 1U), row[j - 1] + 1, before[j] + 1});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before_that[j - 2] + 1);
        }
        before_that.swap(before);
        before.swap(row);
    }
    return before.back();
}

/// How many synsets the longest way up has, for every synset that was asked about.
class Heights {
public:
    std::size_t operator()(const NamedSynset& synset) {
        if (const auto known = heights_.find(&synset); known != heights_.end()) return known->second;
        std::size_t above = 0;
        for (const Relation& relation : synset.second.relations) above = leads_up(relation.kind) ? std::max(above, (*this)(*relation.target)) : above;
        return heights_[&synset] = above + 1;
    }

private:
    std::unordered_map<const NamedSynset*, std::size_t> heights_;
};

}  // namespace

std::vector<HypernymPath> hypernym_paths(const NamedSynset& start) {
    std::vector<HypernymPath> found;
    HypernymPath path{&start};
    extend(path, found);
    return found;
}

std::vector<PathStep> shortest_path(const Word& from, const Word& to, Follow follow) {
    struct Arrival {
        const NamedSynset* before;
        std::optional<RelationKind> by;
    };
    std::unordered_map<const NamedSynset*, Arrival> arrivals;
    std::vector<const NamedSynset*> front;
    for (const NamedSynset* const sense : from.senses) {
        arrivals.emplace(sense, Arrival{nullptr, std::nullopt});
        front.push_back(sense);
    }
    // The first round that meets a sense of the goal is as short as any.
    for (std::vector<const NamedSynset*> next; !front.empty(); front.swap(next), next.clear()) {
        for (const NamedSynset* at : front) {
            if (std::ranges::find(to.senses, at) != to.senses.end()) {
                std::vector<PathStep> path;
                while (at != nullptr) {
                    const Arrival& arrival = arrivals.at(at);
                    path.push_back({arrival.by, at});
                    at = arrival.before;
                }
                std::ranges::reverse(path);
                return path;
            }
            for (const Relation& relation : at->second.relations) {
                const bool wanted = follow == Follow::everything || leads_up(relation.kind) || leads_down(relation.kind);
                if (wanted && arrivals.emplace(relation.target, Arrival{at, relation.kind}).second) next.push_back(relation.target);
            }
        }
    }
    return {};
}

std::vector<const NamedWord*> similar_words(const Lexicon& lexicon, std::string_view spelling, std::size_t most) {
    constexpr std::size_t errors = 2;
    const std::string wanted = normalised(spelling);
    std::multimap<std::size_t, const NamedWord*> near;
    for (const NamedWord& word : lexicon.words)
        if (const std::size_t far = distance(wanted, word.first, std::min(errors, wanted.size() / 2)); far <= errors && far < wanted.size())
            near.emplace(far, &word);
    std::vector<const NamedWord*> result;
    for (const auto& [far, word] : near) {
        if (result.size() == most) break;
        result.push_back(word);
    }
    return result;
}

Statistics statistics(const Lexicon& lexicon) {
    Statistics result;
    result.words = lexicon.words.size();
    result.synsets = lexicon.synsets.size();
    result.senses = lexicon.senses;
    result.relations = lexicon.relations;
    for (const NamedWord& word : lexicon.words)
        if (result.most_senses == nullptr || word.second.senses.size() > result.most_senses->second.senses.size()) result.most_senses = &word;
    std::map<RelationKind, std::size_t> kinds;
    Heights height;
    const NamedSynset* lowest = nullptr;
    for (const NamedSynset& synset : lexicon.synsets) {
        ++result.synsets_of[static_cast<std::size_t>(synset.first.part)];
        for (const Relation& relation : synset.second.relations) ++kinds[relation.kind];
        if (lowest == nullptr || height(synset) > height(*lowest)) lowest = &synset;
    }
    while (lowest != nullptr) {
        result.deepest.push_back(lowest);
        const NamedSynset* above = nullptr;
        for (const Relation& relation : lowest->second.relations)
            if (leads_up(relation.kind) && (above == nullptr || height(*relation.target) > height(*above))) above = relation.target;
        lowest = above;
    }
    result.relations_of.assign(kinds.begin(), kinds.end());
    std::ranges::sort(result.relations_of, [](const auto& a, const auto& b) { return std::pair(b.second, a.first) < std::pair(a.second, b.first); });
    return result;
}

}  // namespace wordnet
