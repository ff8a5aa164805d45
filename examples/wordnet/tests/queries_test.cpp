/// Ways up and ways across, in a graph small enough to see.

#include "queries.hpp"

#include <algorithm>

#include "excerpt.hpp"

namespace {

using namespace wordnet;
using namespace wordnet::test;
using enum PartOfSpeech;

std::string told_path(const std::vector<const NamedSynset*>& path) {
    std::string text;
    for (const NamedSynset* const synset : path) text += std::string(synset->second.members.front().word->first) + ' ';
    return text.substr(0, text.size() - std::min<std::size_t>(text.size(), 1));
}

std::string told_path(const std::vector<PathStep>& path) {
    std::vector<const NamedSynset*> synsets;
    for (const PathStep& step : path) synsets.push_back(step.synset);
    return told_path(synsets);
}

const Word& word(ExcerptInHeap& excerpt, const char* spelling) { return find_word(excerpt.lexicon(), spelling)->second; }

}  // namespace

BOOST_AUTO_TEST_SUITE(queries)

BOOST_AUTO_TEST_CASE(every_way_up_is_found_once) {
    ExcerptInHeap excerpt;
    const auto paths = hypernym_paths(excerpt.synset(noun, 700));
    BOOST_REQUIRE(paths.size() == 2U);
    BOOST_TEST(told_path(paths[0]) == "rex hound beast being thing");
    BOOST_TEST(told_path(paths[1]) == "rex hound tame_beast beast being thing");
    BOOST_TEST(told_path(hypernym_paths(excerpt.synset(noun, 100)).at(0)) == "thing");
}

BOOST_AUTO_TEST_CASE(the_shortest_way_goes_over_the_nearest_common_hypernym) {
    ExcerptInHeap excerpt;
    const auto path = shortest_path(word(excerpt, "rex"), word(excerpt, "mouser"));
    BOOST_TEST(told_path(path) == "rex hound beast mouser");
    BOOST_REQUIRE(path.size() == 4U);
    BOOST_TEST(!path[0].by);
    BOOST_TEST((path[1].by == RelationKind::instance_hypernym));
    BOOST_TEST((path[3].by == RelationKind::hyponym));
}

BOOST_AUTO_TEST_CASE(a_word_is_no_step_away_from_its_synonym) {
    ExcerptInHeap excerpt;
    BOOST_TEST(shortest_path(word(excerpt, "beast"), word(excerpt, "creature")).size() == 1U);
}

BOOST_AUTO_TEST_CASE(other_relations_are_followed_on_request_only) {
    ExcerptInHeap excerpt;
    BOOST_TEST(shortest_path(word(excerpt, "tamely"), word(excerpt, "wild")).empty());
    BOOST_TEST(told_path(shortest_path(word(excerpt, "tamely"), word(excerpt, "wild"), Follow::everything)) == "tamely tame wild");
    BOOST_TEST(shortest_path(word(excerpt, "thing"), word(excerpt, "wild"), Follow::everything).empty());
}

BOOST_AUTO_TEST_CASE(a_typing_error_finds_the_word_that_was_meant) {
    ExcerptInHeap excerpt;
    for (const char* const typed : {"huond", "houd", "hounds", "hpund", "Hound "}) {
        const auto similar = similar_words(excerpt.lexicon(), typed);
        BOOST_REQUIRE(!similar.empty());
        BOOST_TEST(std::string(similar[0]->first) == "hound", typed);
    }
    BOOST_TEST(similar_words(excerpt.lexicon(), "xyzzy").empty());
    BOOST_TEST(similar_words(excerpt.lexicon(), "").empty());
}

BOOST_AUTO_TEST_CASE(counts_are_those_of_the_graph) {
    ExcerptInHeap excerpt;
    const Statistics numbers = statistics(excerpt.lexicon());
    BOOST_TEST(numbers.words == 17U);
    BOOST_TEST(numbers.synsets_of[static_cast<int>(noun)] == 8U);
    BOOST_TEST(numbers.synsets_of[static_cast<int>(adjective)] == 3U);
    BOOST_TEST(told_path(numbers.deepest) == "rex hound tame_beast beast being thing");
    BOOST_TEST(numbers.most_senses->second.senses.size() == 2U);
    std::size_t relations = 0;
    for (const auto& [kind, count] : numbers.relations_of) relations += count;
    BOOST_TEST(relations == numbers.relations);
}

BOOST_AUTO_TEST_SUITE_END()
