/// All of WordNet, against answers read straight from its files: there an offset is a place to seek to.

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <sstream>

#include "excerpt.hpp"
#include "queries.hpp"
#include "seed.hpp"

namespace {

using namespace wordnet;
using namespace wordnet::test;

/// Loaded once, by whichever case comes first.
struct WholeWordnet {
    TemporaryFolder folder;
    fs::path file = folder.path() / "wordnet.tyn";
    std::unique_ptr<taiyen::TransactionalHeap> heap;

    WholeWordnet() {
        {
            taiyen::TransactionalHeap writer(taiyen::create_only, file);
            load(writer, read_database(database_folder));
            writer.close();
        }
        heap = std::make_unique<taiyen::TransactionalHeap>(taiyen::open_read_only, file);
    }
    static const Lexicon& lexicon() {
        static const WholeWordnet whole;
        return lexicon_of(std::as_const(*whole.heap));
    }
};

/// Follows pointers by seeking in a data file.
class TextWalker {
public:
    explicit TextWalker(const char* file) : in_(fs::path(database_folder) / file) {}

    /// Ways up as first words with blanks between.
    std::multiset<std::string> ways_up(std::uint32_t offset) {
        std::multiset<std::string> ways;
        const auto [word, above] = read(offset);
        for (const std::uint32_t up : above)
            for (const std::string& way : ways_up(up)) ways.insert(std::string(word).append(1, ' ').append(way));
        return above.empty() ? std::multiset<std::string>{word} : ways;
    }

private:
    std::pair<std::string, std::vector<std::uint32_t>> read(std::uint32_t offset) {
        in_.clear();
        in_.seekg(offset);
        std::string line;
        std::getline(in_, line);
        std::istringstream fields(line);
        std::string word;
        std::string skipped;
        std::size_t words = 0;
        std::size_t pointers = 0;
        fields >> skipped >> skipped >> skipped >> std::hex >> words >> std::dec >> word;
        for (std::size_t i = 0; i < 2 * words - 1; ++i) fields >> skipped;
        fields >> pointers;
        std::vector<std::uint32_t> above;
        for (; pointers > 0; --pointers) {
            std::string symbol;
            std::uint32_t target = 0;
            fields >> symbol >> target >> skipped >> skipped;
            if (symbol == "@" || symbol == "@i") above.push_back(target);
        }
        return {word, above};
    }

    std::ifstream in_;
};

/// As stored, without blanks for underscores.
std::string first_word(const NamedSynset& synset) {
    const Member& member = synset.second.members.front();
    return std::string(member.spelling.empty() ? member.word->first : member.spelling);
}

std::multiset<std::string> ways_up_in_heap(const NamedSynset& synset) {
    std::multiset<std::string> ways;
    for (const HypernymPath& path : hypernym_paths(synset)) {
        std::string text;
        for (const NamedSynset* const step : path) text += first_word(*step) + ' ';
        text.pop_back();
        ways.insert(text);
    }
    return ways;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(whole_wordnet, *boost::unit_test::precondition(wordnet_is_installed))

BOOST_AUTO_TEST_CASE(every_line_of_the_files_is_there_and_the_graph_is_whole) {
    const Lexicon& lexicon = WholeWordnet::lexicon();
    std::size_t synsets = 0;
    std::size_t senses = 0;
    std::set<std::string> words;
    for (const char* const ending : {"noun", "verb", "adj", "adv"}) {
        std::ifstream data(fs::path(database_folder) / (std::string("data.") + ending));
        for (std::string line; std::getline(data, line);) synsets += line.starts_with(' ') ? 0U : 1U;
        std::ifstream index(fs::path(database_folder) / (std::string("index.") + ending));
        for (std::string line; std::getline(index, line);) {
            if (!line.starts_with(' ')) {
                words.insert(line.substr(0, line.find(' ')));
                std::istringstream fields(line);
                std::string skipped;
                std::size_t count = 0;
                fields >> skipped >> skipped >> count;
                senses += count;
            }
        }
    }
    BOOST_TEST(lexicon.synsets.size() == synsets);
    BOOST_TEST(lexicon.words.size() == words.size());
    BOOST_TEST(lexicon.senses == senses);
    BOOST_TEST(broken_invariant(lexicon) == "");
}

BOOST_AUTO_TEST_CASE(a_dog_is_an_entity_in_two_ways) {
    const NamedWord& dog = *find_word(WholeWordnet::lexicon(), "dog");
    const std::multiset<std::string> ways = ways_up_in_heap(*dog.second.senses.front());
    BOOST_TEST(ways.size() == 2U);
    BOOST_TEST(
        ways.contains("dog canine carnivore placental mammal vertebrate chordate animal organism living_thing whole object physical_entity entity"));
    BOOST_TEST(ways.contains("dog domestic_animal animal organism living_thing whole object physical_entity entity"));
    const auto path = shortest_path(dog.second, find_word(WholeWordnet::lexicon(), "cat")->second);
    BOOST_TEST(path.size() == 4U);
}

BOOST_AUTO_TEST_CASE(ways_up_are_those_that_the_files_tell) {
    const Lexicon& lexicon = WholeWordnet::lexicon();
    std::mt19937_64 random(taiyen::test::seed_of_run());
    TextWalker nouns("data.noun");
    TextWalker verbs("data.verb");
    constexpr int samples = 400;
    for (int i = 0; i < samples; ++i) {
        const PartOfSpeech part = i % 4 == 0 ? PartOfSpeech::verb : PartOfSpeech::noun;
        auto at = lexicon.synsets.lower_bound({part, static_cast<std::uint32_t>(random() % 15'000'000)});
        if (at == lexicon.synsets.end() || at->first.part != part) at = lexicon.synsets.lower_bound({part, 0});
        TextWalker& walker = part == PartOfSpeech::verb ? verbs : nouns;
        BOOST_TEST((ways_up_in_heap(*at) == walker.ways_up(at->first.number)), text_of(at->first));
    }
}

BOOST_AUTO_TEST_SUITE_END()
