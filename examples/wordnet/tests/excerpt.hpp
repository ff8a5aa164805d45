#pragma once
/// A dozen synsets made up in the form of WordNet's files, in a folder that goes away; and what a lexicon says, as text.

#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>
#include <string>

#include "database.hpp"
#include "lexicon.hpp"
#include "loading.hpp"

namespace wordnet::test {

namespace fs = std::filesystem;

class TemporaryFolder {
public:
    TemporaryFolder() {
        std::string name = (fs::temp_directory_path() / "taiyen_wordnet_XXXXXX").string();
        BOOST_REQUIRE(mkdtemp(name.data()) != nullptr);
        path_ = name;
    }
    ~TemporaryFolder() {
        std::error_code ignored;
        fs::remove_all(path_, ignored);
    }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    const fs::path& path() const { return path_; }

private:
    fs::path path_;
};

inline void write_file(const fs::path& path, const std::string& text) { std::ofstream(path) << text; }

/// thing → being → beast → {tame beast →} hound → Rex; beast → mouser; two verbs, three adjectives, an adverb.
inline void write_excerpt(const fs::path& folder) {
    const std::string licence = "  1 Indented lines in front are no data\n  2 and are skipped.\n";
    write_file(
        folder / "data.noun",
        licence +
            "00000100 03 n 01 thing 0 001 ~ 00000200 n 0000 | whatever there is  \n"
            "00000200 03 n 02 being 0 living_thing 0 003 @ 00000100 n 0000 ~ 00000300 n 0000 + 00000900 v 0101 | a thing that lives  \n"
            "00000300 05 n 02 beast 0 Creature 1 004 @ 00000200 n 0000 ~ 00000400 n 0000 ~ 00000500 n 0000 ~ 00000600 n 0000 | moves about  \n"
            "00000400 05 n 01 tame_beast 0 002 @ 00000300 n 0000 ~ 00000500 n 0000 | lives with people  \n"
            "00000500 05 n 02 hound 0 Canis_minor 0 004 @ 00000300 n 0000 @ 00000400 n 0000 ~i 00000700 n 0000 #m 00000800 n 0000 | says \"woof\"  \n"
            "00000600 05 n 01 mouser 0 001 @ 00000300 n 0000 | hunts mice  \n"
            "00000700 18 n 01 Rex 0 001 @i 00000500 n 0000 | next door's  \n"
            "00000800 14 n 01 pack 0 001 %m 00000500 n 0000 | many hounds  \n");
    write_file(folder / "data.verb", licence +
                                         "00000900 42 v 01 be 0 001 + 00000200 n 0101 02 + 01 00 + 02 00 | not to be nothing  \n"
                                         "00001000 39 v 02 hound 0 pack 3 001 * 00000900 v 0000 01 + 02 00 | go after  \n");
    write_file(folder / "data.adj", licence +
                                        "00001100 00 a 01 tame 0 002 ! 00001200 a 0101 & 00001300 a 0000 | used to people  \n"
                                        "00001200 00 a 01 wild 0 001 ! 00001100 a 0101 | not used to people  \n"
                                        "00001300 00 s 02 housebroken 0 at_home(p) 0 001 & 00001100 a 0000 | tame enough for carpets  \n");
    write_file(folder / "data.adv", licence + "00001400 02 r 01 tamely 0 001 \\ 00001100 a 0101 | in a tame way  \n");
    write_file(folder / "index.noun",
               licence +
                   "beast n 1 2 @ ~ 1 0 00000300  \nbeing n 1 3 @ ~ + 1 0 00000200  \ncanis_minor n 1 1 @ 1 0 00000500  \n"
                   "creature n 1 2 @ ~ 1 0 00000300  \nhound n 1 3 @ ~i #m 1 1 00000500  \nliving_thing n 1 2 @ ~ 1 0 00000200  \n"
                   "mouser n 1 1 @ 1 0 00000600  \npack n 1 1 %m 1 0 00000800  \nrex n 1 1 @i 1 0 00000700  \ntame_beast n 1 2 @ ~ 1 0 00000400  \n"
                   "thing n 1 1 ~ 1 1 00000100  \n");
    write_file(folder / "index.verb", licence + "be v 1 1 + 1 1 00000900  \nhound v 1 1 * 1 0 00001000  \npack v 1 1 * 1 0 00001000  \n");
    write_file(
        folder / "index.adj",
        licence + "at_home a 1 1 & 1 0 00001300  \nhousebroken a 1 1 & 1 0 00001300  \ntame a 1 2 ! & 1 1 00001100  \nwild a 1 1 ! 1 0 00001200  \n");
    write_file(folder / "index.adv", licence + "tamely r 1 1 \\ 1 0 00001400  \n");
}

/// Everything that a lexicon says, pointers followed to what they lead to.
inline std::string told(const Lexicon& lexicon) {
    std::string text;
    for (const auto& [key, word] : lexicon.words) {
        text += std::string(key) + ':';
        for (const NamedSynset* const sense : word.senses) text += ' ' + text_of(sense->first);
        text += '\n';
    }
    for (const auto& [id, synset] : lexicon.synsets) {
        text += text_of(id) + " (" + std::string(synset.gloss) + ')';
        for (const Member& member : synset.members) text += ' ' + std::string(member.word->first) + '/' + spelt(member);
        for (const Relation& relation : synset.relations) {
            text += ' ' + std::string(name_of(relation.kind)) + ' ' + std::to_string(relation.from) + ' ' + std::to_string(relation.to) + ' ' +
                    text_of(relation.target->first);
        }
        text += '\n';
    }
    return text;
}

/// A log no larger than what these tests need.
inline taiyen::PersistentOptions small_log() {
    taiyen::PersistentOptions options;
    options.log_capacity = std::size_t{1} << 20U;
    return options;
}

/// The excerpt in a heap.
struct ExcerptInHeap {
    TemporaryFolder folder;
    fs::path file = folder.path() / "excerpt.tyn";
    Database database;
    taiyen::TransactionalHeap heap{taiyen::create_only, file, small_log()};

    ExcerptInHeap() {
        write_excerpt(folder.path());
        database = read_database(folder.path());
        load(heap, database);
    }
    Lexicon& lexicon() { return lexicon_of(heap); }
    NamedSynset& synset(PartOfSpeech part, std::uint32_t number) {
        NamedSynset* const found = find_synset(lexicon(), {part, number});
        BOOST_REQUIRE(found != nullptr);
        return *found;
    }
};

/// Precondition of cases that read WordNet itself.
inline boost::test_tools::assertion_result wordnet_is_installed(boost::unit_test::test_unit_id) {
    boost::test_tools::assertion_result result(fs::exists(fs::path(database_folder) / "data.noun"));
    result.message() << "wordnet-base is not installed";
    return result;
}

}  // namespace wordnet::test
