/// Lines, words and completion, without a process around them.

#include <sstream>

#include "cad_heap.hpp"
#include "command/commands.hpp"

namespace {

using namespace cad;
using namespace cad::command;
using namespace cad::test;

using Words = std::vector<std::string>;

struct PlaceInFolder {
    TemporaryFolder folder;
    std::ostringstream out;
    Workplace place{out};

    PlaceInFolder() {
        does("create \"" + (folder.path() / "a.tyn").string() + "\"");
        does("drawing new shed");
    }
    void does(const std::string& line) { execute(place, line); }
    bool refuses(const std::string& line) {
        try {
            execute(place, line);
        } catch (const CommandError&) {
            return true;
        }
        return false;
    }
    Words words_for(const std::string& line) { return complete(place, line).words; }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(command)

BOOST_AUTO_TEST_CASE(words_are_separated_by_blanks_and_kept_together_by_quotes) {
    BOOST_TEST((words_of("  add  line\t0,0 1,1 ") == Words{"add", "line", "0,0", "1,1"}));
    BOOST_TEST((words_of(R"(use "a b" "" c"d e"f)") == Words{"use", "a b", "", "cd ef"}));
    BOOST_TEST((words_of(R"("say \"hi\" \\")") == Words{R"(say "hi" \)"}));
    BOOST_TEST((words_of("a # b") == Words{"a"}));
    BOOST_TEST((words_of("a#b") == Words{"a#b"}));
    BOOST_TEST(words_of("").empty());
    BOOST_CHECK_THROW(words_of("use \"a"), CommandError);
}

BOOST_AUTO_TEST_CASE(a_word_as_it_is_typed_is_read_as_that_word) {
    for (const std::string word : {"plain", "", "two words", "quote\"d", "back\\slash", "a \\\" b", "#7", "x\ty"})
        BOOST_TEST((words_of(as_typed(word)) == Words{word}));
}

BOOST_AUTO_TEST_CASE(numbers_points_and_ids_are_read_whole_or_not_at_all) {
    BOOST_TEST(number_in("-2.5e3", "x") == -2500);
    BOOST_TEST(number_in("+7", "x") == 7);
    for (const char* word : {"", "1x", "x", "nan", "inf", "1e999", "0x10", "1,5"}) BOOST_CHECK_THROW(number_in(word, "x"), CommandError);
    BOOST_TEST((point_in("1,-2.5", "x") == Point2{1, -2.5}));
    for (const char* word : {"", "1", "1,", ",1", "1,2,3", "1;2", "nan,1"}) BOOST_CHECK_THROW(point_in(word, "x"), CommandError);
    std::vector<EntityId> ids;
    append_ids("7", ids);
    append_ids("3-5", ids);
    BOOST_TEST((ids == std::vector<EntityId>{7, 3, 4, 5}));
    for (const char* word : {"", "0", "-1", "5-3", "1-", "a", "1-2-3", "99999999999", "1-4000000000"})
        BOOST_CHECK_THROW(append_ids(word, ids), CommandError);
}

BOOST_AUTO_TEST_CASE(the_nearest_word_is_close_or_none) {
    const Words all{"line", "circle", "layer", "list"};
    BOOST_TEST(nearest("lien", all) == "line");
    BOOST_TEST(nearest("crcle", all) == "circle");
    BOOST_TEST(nearest("lits", all) == "list");
    BOOST_TEST(nearest("frobnicate", all) == "");
}

BOOST_AUTO_TEST_CASE(a_refused_command_changes_nothing) {
    PlaceInFolder here;
    here.does("add line 0,0 1,1");
    const Document& document = here.place.open_file().document();
    const std::uint64_t revision = document.revision;
    for (const char* line :
         {"add line 0,0 1,1 on walls", "move 1 2 1,1", "delete 1 7", "layer rename 0 0", "layer assign 0 9", "rotate 9 1", "drawing new shed"}) {
        BOOST_TEST(here.refuses(line), line);
    }
    BOOST_TEST(document.revision == revision);
    BOOST_TEST(here.place.drawing().layers.size() == 1U);
}

BOOST_AUTO_TEST_CASE(ids_stay_and_are_never_given_twice) {
    PlaceInFolder here;
    here.does("add line 0,0 1,1");
    here.does("add line 0,0 2,2");
    here.does("add line 0,0 3,3");
    here.does("delete 3 1");
    here.does("add line 0,0 4,4");
    const Drawing& drawing = here.place.drawing();
    BOOST_TEST(drawing.entities.size() == 2U);
    BOOST_TEST(number_of(drawing, 2).value() == 0U);
    BOOST_TEST(number_of(drawing, 4).value() == 1U);
    BOOST_TEST(!number_of(drawing, 3).has_value());
    BOOST_TEST(broken_invariant(here.place.open_file().document()) == "");
}

BOOST_AUTO_TEST_CASE(a_tab_offers_what_may_stand_there) {
    PlaceInFolder here;
    here.does("drawing new \"garden shed\"");
    here.does("layer new walls");
    here.does("layer new water");
    BOOST_TEST((here.words_for("s") == Words{"save", "show"}));
    BOOST_TEST((here.words_for("us") == Words{"use"}));
    BOOST_TEST((here.words_for("use ") == Words{"\"garden shed\"", "shed"}));
    BOOST_TEST((here.words_for("use g") == Words{"\"garden shed\""}));
    BOOST_TEST((here.words_for("use \"garden s") == Words{"\"garden shed\""}));
    BOOST_TEST((here.words_for("drawing delete s") == Words{"shed"}));
    BOOST_TEST((here.words_for("layer rename wa") == Words{"walls", "water"}));
    BOOST_TEST((here.words_for("add line 0,0 1,1 on wal") == Words{"walls"}));
    BOOST_TEST((here.words_for("add ci") == Words{"circle"}));
    BOOST_TEST(here.words_for("frobnicate ").empty());
    BOOST_TEST(here.words_for("layer new wa").empty());
    BOOST_TEST((here.words_for("open " + here.folder.path().string() + "/a.tyn.d") == Words{here.folder.path().string() + "/a.tyn.data"}));
    BOOST_TEST(complete(here.place, "use \"garden s").typed == "\"garden s");
}

BOOST_AUTO_TEST_CASE(what_was_exported_is_imported_again_and_pictures_are_written) {
    PlaceInFolder here;
    here.does("layer new walls 3");
    here.does("add line 0,0 10,5 on walls");
    here.does("add text 1,1 2 \"a shed\"");
    const auto in_folder = [&](const char* name) { return as_typed((here.folder.path() / name).string()); };
    here.does("export " + in_folder("shed.dxf"));
    here.does("import " + in_folder("shed.dxf") + " \"shed again\"");
    BOOST_TEST(here.place.drawing_in_use == "shed again");
    BOOST_TEST(here.place.drawing().entities.size() == 2U);
    BOOST_TEST(here.place.drawing().layers.contains("walls"));
    BOOST_TEST(here.refuses("import " + in_folder("shed.dxf") + " shed"));
    here.does("undo");
    BOOST_TEST(here.place.drawing_if_any() == nullptr);
    here.does("use shed");
    here.does("export " + in_folder("shed.svg"));
    here.does("export " + in_folder("shed.png"));
    BOOST_TEST(fs::file_size(here.folder.path() / "shed.svg") > 0U);
    BOOST_TEST(fs::file_size(here.folder.path() / "shed.png") > 0U);
}

BOOST_AUTO_TEST_CASE(info_tells_of_drawings_history_and_what_is_not_saved) {
    PlaceInFolder here;
    here.does("add line 0,0 1,1");
    here.does("undo");
    here.out.str({});
    here.does("info");
    const std::string told = here.out.str();
    for (const char* part : {"a.tyn, with unsaved changes", "1 drawing, 0 entities", "2 steps, 1 of them undone"})
        BOOST_TEST(told.find(part) != std::string::npos, part << " in:\n" << told);
    here.does("save");
    here.out.str({});
    here.does("info");
    BOOST_TEST(here.out.str().find("unsaved changes") == std::string::npos);
    BOOST_TEST(here.out.str().find("unsaved    0 bytes") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_turned_entity_lies_where_its_points_were_turned_to) {
    PlaceInFolder here;
    here.does("add line 10,0 20,0");
    here.does("add arc 5,5 2 0 90");
    here.does("rotate 1-2 90 about 0,0");
    const Drawing& drawing = here.place.drawing();
    const Line& line = std::get<Line>(drawing.entities[0].shape);
    BOOST_TEST(length(line.from - Point2{0, 10}) < 1e-9);
    BOOST_TEST(length(line.to - Point2{0, 20}) < 1e-9);
    const Arc& arc = std::get<Arc>(drawing.entities[1].shape);
    BOOST_TEST(length(arc.centre - Point2{-5, 5}) < 1e-9);
    BOOST_TEST(std::abs(arc.start - radians(90)) < 1e-9);
    BOOST_TEST(broken_invariant(here.place.open_file().document()) == "");
}

BOOST_AUTO_TEST_SUITE_END()
