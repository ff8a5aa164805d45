/// Into a heap whole or not at all; out of it again in another process, after a crash, after a rollback.

#include "excerpt.hpp"

namespace {

using namespace wordnet;
using namespace wordnet::test;
using enum PartOfSpeech;

struct Excerpt {
    TemporaryFolder folder;
    Database database;
    Excerpt() {
        write_excerpt(folder.path());
        database = read_database(folder.path());
    }
    fs::path file(const char* name) const { return folder.path() / name; }
};

/// A heap and whatever stands beside it, as a crash at this moment would leave them.
fs::path crash_copy(const fs::path& heap, const fs::path& folder) {
    fs::create_directory(folder);
    for (const fs::directory_entry& entry : fs::directory_iterator(heap.parent_path()))
        if (entry.path().filename().string().starts_with(heap.filename().string())) fs::copy_file(entry.path(), folder / entry.path().filename());
    return folder / heap.filename();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(loading)

BOOST_AUTO_TEST_CASE(what_is_loaded_says_what_the_files_say) {
    ExcerptInHeap excerpt;
    const Lexicon& lexicon = excerpt.lexicon();
    BOOST_TEST(broken_invariant(lexicon) == "");
    BOOST_TEST(lexicon.synsets.size() == 14U);
    BOOST_TEST(lexicon.words.size() == 17U);
    BOOST_TEST(lexicon.senses == 19U);
    const NamedWord& hound = *find_word(lexicon, "hound");
    BOOST_REQUIRE(hound.second.senses.size() == 2U);
    BOOST_TEST(text_of(hound.second.senses[0]->first) == "n00000500");
    BOOST_TEST(text_of(hound.second.senses[1]->first) == "v00001000");
    BOOST_TEST(spelt(excerpt.synset(noun, 500).second.members[1]) == "Canis minor");
    BOOST_TEST(std::string(excerpt.synset(noun, 500).second.gloss) == "says \"woof\"");
    const Relation& opposite = excerpt.synset(adjective, 1100).second.relations[0];
    BOOST_TEST((opposite.kind == RelationKind::antonym && opposite.target == &excerpt.synset(adjective, 1200)));
    BOOST_TEST(int{opposite.from} == 1);
}

BOOST_AUTO_TEST_CASE(one_transaction_and_many_give_the_same_lexicon) {
    const Excerpt excerpt;
    std::string first;
    for (const std::size_t per_transaction : {0U, 1U, 5U, 1000U}) {
        const fs::path file = excerpt.file(("by_" + std::to_string(per_transaction) + ".tyn").c_str());
        taiyen::TransactionalHeap heap(taiyen::create_only, file, small_log());
        const Loading loading = load(heap, excerpt.database, {per_transaction});
        BOOST_TEST(loading.transactions == (per_transaction == 1 ? 48U : per_transaction == 5 ? 10U : 1U));
        BOOST_TEST(broken_invariant(lexicon_of(heap)) == "");
        const std::string text = told(lexicon_of(heap));
        first = first.empty() ? text : first;
        BOOST_TEST(text == first);
    }
}

BOOST_AUTO_TEST_CASE(a_reopened_lexicon_is_the_same_graph) {
    const Excerpt excerpt;
    std::string before;
    {
        taiyen::TransactionalHeap heap(taiyen::create_only, excerpt.file("a.tyn"), small_log());
        load(heap, excerpt.database);
        before = told(lexicon_of(heap));
    }
    {
        const taiyen::TransactionalHeap heap(taiyen::open_read_only, excerpt.file("a.tyn"));
        BOOST_TEST(told(lexicon_of(heap)) == before);
        BOOST_TEST(broken_invariant(lexicon_of(heap)) == "");
    }
    // Any heap opens as any kind.
    const taiyen::ArchiveHeap heap(taiyen::open_read_only, excerpt.file("a.tyn"));
    BOOST_TEST(told(*heap.find<Lexicon>(lexicon_name)) == before);
}

BOOST_AUTO_TEST_CASE(a_heap_takes_one_lexicon) {
    ExcerptInHeap excerpt;
    BOOST_CHECK_THROW(load(excerpt.heap, excerpt.database), LexiconError);
    BOOST_TEST(broken_invariant(excerpt.lexicon()) == "");
}

BOOST_AUTO_TEST_CASE(an_interrupted_load_in_one_transaction_never_happened) {
    const Excerpt excerpt;
    Database contradictory = excerpt.database;
    contradictory.data.back().pointers.back().target.number = 4711;
    taiyen::TransactionalHeap heap(taiyen::create_only, excerpt.file("a.tyn"), small_log());
    BOOST_CHECK_THROW(load(heap, contradictory), DatabaseError);
    BOOST_TEST(heap.find<Lexicon>(lexicon_name) == nullptr);
    BOOST_TEST(heap.verify().ok());
    load(heap, excerpt.database);
    BOOST_TEST(broken_invariant(lexicon_of(heap)) == "");
}

BOOST_AUTO_TEST_CASE(an_interrupted_load_in_many_transactions_is_known_as_incomplete_and_begun_anew) {
    const Excerpt excerpt;
    Database contradictory = excerpt.database;
    contradictory.data.back().words.emplace_back("nowhere");
    {
        taiyen::TransactionalHeap heap(taiyen::create_only, excerpt.file("a.tyn"), small_log());
        BOOST_CHECK_THROW(load(heap, contradictory, {3}), DatabaseError);
        BOOST_REQUIRE(heap.find<Lexicon>(lexicon_name) != nullptr);
        BOOST_CHECK_THROW(lexicon_of(heap), LexiconError);
    }
    taiyen::TransactionalHeap heap(taiyen::open_only, excerpt.file("a.tyn"));
    BOOST_CHECK_THROW(lexicon_of(heap), LexiconError);
    load(heap, excerpt.database, {3});
    BOOST_TEST(broken_invariant(lexicon_of(heap)) == "");
}

BOOST_AUTO_TEST_CASE(a_rolled_back_edit_leaves_no_trace) {
    ExcerptInHeap excerpt;
    const std::string before = told(excerpt.lexicon());
    {
        taiyen::Transaction transaction(excerpt.heap);
        Lexicon& lexicon = excerpt.lexicon();
        for (int i = 0; i < 100; ++i) {
            NamedSynset& synset = add_synset(lexicon, free_id(lexicon, noun), std::string(200, 'x'));
            express(lexicon, synset, "a word as long as that " + std::to_string(i));
            relate(lexicon, synset, RelationKind::hypernym, excerpt.synset(noun, 100));
        }
        BOOST_TEST(broken_invariant(lexicon) == "");
        BOOST_TEST(told(lexicon) != before);
        transaction.rollback();
    }
    BOOST_TEST(told(excerpt.lexicon()) == before);
    BOOST_TEST(broken_invariant(excerpt.lexicon()) == "");
    BOOST_TEST(excerpt.heap.verify().ok());
    excerpt.heap.close();
    const taiyen::TransactionalHeap heap(taiyen::open_read_only, excerpt.file);
    BOOST_TEST(told(lexicon_of(heap)) == before);
}

BOOST_AUTO_TEST_CASE(a_crash_leaves_what_was_committed_and_nothing_of_what_was_not) {
    ExcerptInHeap excerpt;
    taiyen::transact(excerpt.heap, [&] { express(excerpt.lexicon(), excerpt.synset(noun, 500), "bow-wow"); });
    const std::string committed = told(excerpt.lexicon());
    fs::path copy;
    {
        const taiyen::Transaction transaction(excerpt.heap);
        express(excerpt.lexicon(), excerpt.synset(noun, 600), "puss");
        copy = crash_copy(excerpt.file, excerpt.folder.path() / "crash");
    }
    excerpt.heap.close();  // the copy wants its place
    {
        const taiyen::TransactionalHeap reader(taiyen::open_read_only, copy);
        BOOST_TEST(!reader.restoration().clean);
        BOOST_TEST(told(lexicon_of(reader)) == committed);
    }
    taiyen::TransactionalHeap heap(taiyen::open_only, copy);
    BOOST_TEST(told(lexicon_of(heap)) == committed);
    BOOST_TEST(broken_invariant(lexicon_of(heap)) == "");
    BOOST_TEST(heap.verify().ok());
}

BOOST_AUTO_TEST_SUITE_END()
