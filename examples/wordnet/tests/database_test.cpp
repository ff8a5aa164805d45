/// Lines and files as wndb(5WN) describes them, and as they should not be.

#include "excerpt.hpp"

BOOST_AUTO_TEST_SUITE(database)

namespace {

using namespace wordnet;
using namespace wordnet::test;

const std::string verb = "00001000 39 v 02 hound 0 pack 3 002 * 00000900 v 0000 + 00000800 n 0201 01 + 02 00 | go after; \"a | b\"  ";

bool says(const std::exception& error, std::string_view text) { return std::string_view(error.what()).find(text) != std::string_view::npos; }

}  // namespace

BOOST_AUTO_TEST_CASE(a_line_of_data_is_read_with_its_words_pointers_and_gloss) {
    const DataLine line = parse_data_line(verb);
    BOOST_TEST((line.id == SynsetId{PartOfSpeech::verb, 1000}));
    BOOST_TEST((line.words == std::vector<std::string>{"hound", "pack"}));
    BOOST_TEST(line.gloss == "go after; \"a | b\"");
    BOOST_REQUIRE(line.pointers.size() == 2U);
    BOOST_TEST((line.pointers[0].kind == RelationKind::entailment));
    BOOST_TEST((line.pointers[0].target == SynsetId{PartOfSpeech::verb, 900}));
    BOOST_TEST(int{line.pointers[1].from} == 2);
    BOOST_TEST(int{line.pointers[1].to} == 1);
}

BOOST_AUTO_TEST_CASE(numbers_of_words_are_hexadecimal) {
    std::string line = "00000001 03 n 0b";
    for (char c = 'a'; c < 'a' + 11; ++c) line += std::string(" ") + c + " 0";
    BOOST_TEST(parse_data_line(line + " 000 | eleven").words.size() == 11U);
}

BOOST_AUTO_TEST_CASE(a_satellite_is_an_adjective_and_loses_the_mark_of_its_position) {
    const DataLine line = parse_data_line("00001300 00 s 02 housebroken 0 at_home(p) 0 000 | tame enough");
    BOOST_TEST((line.id.part == PartOfSpeech::adjective));
    BOOST_TEST(line.words[1] == "at_home");
}

BOOST_AUTO_TEST_CASE(a_line_cut_anywhere_is_read_or_refused) {
    for (std::size_t length = 0; length < verb.size(); ++length) {
        try {
            parse_data_line(verb.substr(0, length));
            BOOST_TEST(length > verb.find(" | "));
        } catch (const DatabaseError&) {
            BOOST_TEST(length < verb.find(" | ") + 3);
        }
    }
}

BOOST_AUTO_TEST_CASE(what_is_wrong_with_a_line_is_named) {
    const auto refused = [](std::string_view line, std::string_view why) {
        BOOST_CHECK_EXCEPTION(parse_data_line(line), DatabaseError, [&](const DatabaseError& error) { return says(error, why); });
    };
    refused("0000100x 39 v 00 000 | x", "0000100x");
    refused("00001000 39 q 00 000 | x", "part of speech: q");
    refused("00001000 39 v 01 a 0 001 ? 00000900 v 0000 | x", "symbol: ?");
    refused("00001000 39 v 01 a 0 001 * 00000900 v 00000 | x", "four digits");
    refused("00001000 39 v 01 a 0 001 * 00000900 v 0200 | x", "not there");
    refused("00001000 39 v 01 a 0 002 * 00000900 v 0000 | x", "ends before");
    refused("00001000 39 v 00 000", "gloss");
}

BOOST_AUTO_TEST_CASE(a_line_of_the_index_lists_senses_in_order) {
    const IndexLine line = parse_index_line("hound n 3 2 @ ~ 3 1 00000500 00000100 00000900  ");
    BOOST_TEST(line.lemma == "hound");
    BOOST_REQUIRE(line.senses.size() == 3U);
    BOOST_TEST(line.senses[0].number == 500U);
    BOOST_TEST(line.senses[1].number == 100U);
    BOOST_CHECK_THROW(parse_index_line("hound n 3 2 @ ~ 3 1 00000500"), DatabaseError);
}

BOOST_AUTO_TEST_CASE(eight_files_are_read_without_the_licence_in_front) {
    const TemporaryFolder folder;
    write_excerpt(folder.path());
    std::uint64_t last = 0;
    std::uint64_t all = 0;
    const Database database = read_database(folder.path(), [&](std::uint64_t done, std::uint64_t of, const std::string&) {
        BOOST_TEST(done >= last);
        last = done;
        all = of;
    });
    BOOST_TEST(database.data.size() == 14U);
    BOOST_TEST(database.index.size() == 19U);
    BOOST_TEST(last == all);
}

BOOST_AUTO_TEST_CASE(a_wrong_line_is_told_with_file_and_number) {
    const TemporaryFolder folder;
    write_excerpt(folder.path());
    std::ofstream(folder.path() / "data.adv", std::ios::app) << "nonsense\n";
    BOOST_CHECK_EXCEPTION(read_database(folder.path()), DatabaseError, [](const DatabaseError& error) { return says(error, "data.adv, line 4: "); });
}

BOOST_AUTO_TEST_CASE(where_nothing_is_the_package_is_named) {
    const TemporaryFolder folder;
    BOOST_CHECK_EXCEPTION(read_database(folder.path()), DatabaseError,
                          [](const DatabaseError& error) { return says(error, "index.noun") && says(error, "wordnet-base"); });
}

BOOST_AUTO_TEST_SUITE_END()
