/// Edits keep what must hold; what doesn't hold is found.

#include <functional>

#include "excerpt.hpp"

namespace {

using namespace wordnet;
using namespace wordnet::test;
using enum PartOfSpeech;

/// Breaks something within a transaction, and takes it back.
std::string fault_after(ExcerptInHeap& excerpt, const std::function<void(Lexicon&)>& change) {
    const taiyen::Transaction transaction(excerpt.heap);
    change(excerpt.lexicon());
    return broken_invariant(excerpt.lexicon());
}

}  // namespace

BOOST_AUTO_TEST_SUITE(lexicon)

BOOST_AUTO_TEST_CASE(ids_are_written_and_read_the_same) {
    BOOST_TEST(text_of({verb, 1740}) == "v00001740");
    BOOST_TEST((synset_id_in("v00001740") == SynsetId{verb, 1740}));
    BOOST_TEST((synset_id_in("s12") == SynsetId{adjective, 12}));
    for (const char* const text : {"", "n", "x1", "n1x", "n-1", "n99999999999", "1740"}) BOOST_TEST(!synset_id_in(text));
}

BOOST_AUTO_TEST_CASE(words_are_found_however_they_are_written) {
    ExcerptInHeap excerpt;
    const NamedWord* const word = find_word(excerpt.lexicon(), "living_thing");
    BOOST_TEST(word != nullptr);
    BOOST_TEST(find_word(excerpt.lexicon(), "Living Thing") == word);
    BOOST_TEST(find_word(excerpt.lexicon(), "living") == nullptr);
}

BOOST_AUTO_TEST_CASE(a_new_synset_gets_the_next_id_of_its_part_of_speech) {
    ExcerptInHeap excerpt;
    BOOST_TEST((free_id(excerpt.lexicon(), noun) == SynsetId{noun, 801}));
    BOOST_TEST((free_id(excerpt.lexicon(), adverb) == SynsetId{adverb, 1401}));
    taiyen::transact(excerpt.heap, [&] {
        auto& empty = excerpt.heap.construct<Lexicon>("empty");
        BOOST_TEST((free_id(empty, verb) == SynsetId{verb, 1}));
    });
}

BOOST_AUTO_TEST_CASE(what_is_added_hangs_together_with_what_is_there) {
    ExcerptInHeap excerpt;
    taiyen::transact(excerpt.heap, [&] {
        Lexicon& lexicon = excerpt.lexicon();
        NamedSynset& whelp =
            add_synset(lexicon, free_id(lexicon, noun), "a hound that has not grown up, and that has a gloss longer than a short string");
        express(lexicon, whelp, "whelp");
        express(lexicon, whelp, "Little Hound of a name longer than short strings are");
        express(lexicon, whelp, "pack");
        relate(lexicon, whelp, RelationKind::hypernym, excerpt.synset(noun, 500));
    });
    BOOST_TEST(broken_invariant(excerpt.lexicon()) == "");
    const NamedSynset& whelp = excerpt.synset(noun, 801);
    BOOST_TEST(spelt(whelp.second.members[1]) == "Little Hound of a name longer than short strings are");
    // Nouns before the verb that was there.
    const auto& senses = find_word(excerpt.lexicon(), "pack")->second.senses;
    BOOST_REQUIRE(senses.size() == 3U);
    BOOST_TEST(senses[1] == &whelp);
    BOOST_TEST((excerpt.synset(noun, 500).second.relations.back().target == &whelp));
}

BOOST_AUTO_TEST_CASE(edits_that_would_break_it_are_refused_and_leave_no_trace) {
    ExcerptInHeap excerpt;
    const std::string before = told(excerpt.lexicon());
    const auto refused = [&](const std::function<void(Lexicon&)>& change) {
        BOOST_CHECK_THROW(taiyen::transact(excerpt.heap, [&] { change(excerpt.lexicon()); }), LexiconError);
        BOOST_TEST(told(excerpt.lexicon()) == before);
        BOOST_TEST(broken_invariant(excerpt.lexicon()) == "");
    };
    refused([&](Lexicon& lexicon) { add_synset(lexicon, {noun, 500}, "taken"); });
    refused([&](Lexicon& lexicon) { express(lexicon, excerpt.synset(noun, 500), "Hound"); });
    refused([&](Lexicon& lexicon) { express(lexicon, excerpt.synset(noun, 500), ""); });
    refused([&](Lexicon& lexicon) { relate(lexicon, excerpt.synset(noun, 500), RelationKind::hypernym, excerpt.synset(noun, 300)); });
    refused([&](Lexicon& lexicon) { relate(lexicon, excerpt.synset(noun, 500), RelationKind::similar, excerpt.synset(noun, 500)); });
    refused([&](Lexicon& lexicon) { relate(lexicon, excerpt.synset(noun, 100), RelationKind::hypernym, excerpt.synset(noun, 700)); });
    refused([&](Lexicon& lexicon) { relate(lexicon, excerpt.synset(noun, 700), RelationKind::hyponym, excerpt.synset(noun, 100)); });
    refused([&](Lexicon& lexicon) {
        express(lexicon, add_synset(lexicon, free_id(lexicon, noun), "half of an edit"), "whelp");
        express(lexicon, excerpt.synset(noun, 500), "hound");
    });
}

BOOST_AUTO_TEST_CASE(each_broken_invariant_is_found) {
    ExcerptInHeap excerpt;
    BOOST_TEST(broken_invariant(excerpt.lexicon()) == "");
    const auto breaks = [&](std::string_view fault, const std::function<void(Lexicon&)>& change) {
        const std::string found = fault_after(excerpt, change);
        BOOST_TEST(found.find(fault) != std::string::npos, "\"" << found << "\" should say " << fault);
    };
    breaks("is not a synset of the lexicon", [](Lexicon& l) { find_word(l, "hound")->second.senses[0] = nullptr; });
    breaks("is not one of the lexicon", [&](Lexicon&) { excerpt.synset(noun, 300).second.members.emplace_back(); });
    breaks("does not lead to a synset", [&](Lexicon&) { excerpt.synset(verb, 1000).second.relations[0].target = nullptr; });
    breaks("does not list its word", [&](Lexicon&) { excerpt.synset(noun, 300).second.members.clear(); });
    breaks("does not have the sense", [](Lexicon& l) { find_word(l, "mouser")->second.senses.clear(); });
    breaks("as another word", [&](Lexicon&) { excerpt.synset(noun, 300).second.members[1].spelling = "beast"; });
    breaks("by part of speech", [](Lexicon& l) {
        auto& senses = find_word(l, "hound")->second.senses;
        std::swap(senses.front(), senses.back());
    });
    breaks("not the other way round", [&](Lexicon& l) {
        excerpt.synset(noun, 100).second.relations.clear();
        --l.relations;
    });
    breaks("names a word that is not there", [&](Lexicon&) { excerpt.synset(noun, 100).second.relations[0].to = 3; });
    breaks("the numbers", [](Lexicon& l) { ++l.senses; });
    breaks("lies above itself", [&](Lexicon& l) {
        add_relation(l, excerpt.synset(noun, 100), {RelationKind::hypernym, 0, 0, &excerpt.synset(noun, 600)});
        add_relation(l, excerpt.synset(noun, 600), {RelationKind::hyponym, 0, 0, &excerpt.synset(noun, 100)});
    });
    BOOST_TEST(broken_invariant(excerpt.lexicon()) == "");
}

BOOST_AUTO_TEST_SUITE_END()
