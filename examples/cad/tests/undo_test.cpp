/// Undo, redo and the history, command by command, against checksums kept beside.

#include <sstream>

#include "cad_heap.hpp"
#include "checksum.hpp"
#include "command/commands.hpp"
#include "command/random_commands.hpp"

namespace {

using namespace cad;
using namespace cad::command;
using namespace cad::test;

/// A session, and what it must look like: the checksum after each step, and how many steps are done.
class CheckedSession {
public:
    CheckedSession() {
        execute(place_, "create " + as_typed(path().string()));
        sums_ = {sum()};
        saved_ = {sums_, done_};
    }

    void edit(const std::string& line) {
        execute(place_, line);
        sums_.resize(done_ + 1);
        sums_.push_back(sum());
        ++done_;
        check(line);
    }
    void refused(const std::string& line) {
        BOOST_CHECK_THROW(execute(place_, line), std::exception);
        check(line);
    }
    void undo(std::size_t count) {
        execute(place_, "undo " + std::to_string(count));
        done_ -= std::min(done_, count);
        check("undo");
    }
    void redo(std::size_t count) {
        execute(place_, "redo " + std::to_string(count));
        done_ = std::min(sums_.size() - 1, done_ + count);
        check("redo");
    }
    void save() {
        execute(place_, "save");
        saved_ = {sums_, done_};
        check("save");
    }
    /// What was not saved is gone, the saved history is there.
    void reopen() {
        execute(place_, "open " + as_typed(path().string()));
        std::tie(sums_, done_) = saved_;
        check("reopen");
        const std::vector<taiyen::UndoStep> steps = place_.file->heap().undo_steps();
        BOOST_REQUIRE_EQUAL(steps.size(), sums_.size() - 1);
        BOOST_REQUIRE_EQUAL(std::count_if(steps.begin(), steps.end(), [](const auto& step) { return !step.undone; }),
                            static_cast<std::ptrdiff_t>(done_));
    }
    void check_all() {
        BOOST_REQUIRE(place_.file->heap().verify().ok());
        BOOST_REQUIRE_EQUAL(broken_invariant(place_.file->document()), "");
    }
    Workplace& place() { return place_; }
    std::size_t done() const { return done_; }
    std::size_t redoable() const { return sums_.size() - 1 - done_; }

private:
    fs::path path() const { return folder_.path() / "a.tyn"; }
    std::uint64_t sum() { return checksum(place_.open_file().document()); }
    void check(const std::string& after) { BOOST_REQUIRE_MESSAGE(sum() == sums_[done_], "another content than the model after: " << after); }

    TemporaryFolder folder_;
    std::ostringstream out_;
    Workplace place_{out_};
    std::vector<std::uint64_t> sums_;
    std::size_t done_ = 0;
    std::pair<std::vector<std::uint64_t>, std::size_t> saved_;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(undo)

BOOST_AUTO_TEST_CASE(every_command_that_changes_something_is_undone_and_redone) {
    CheckedSession session;
    session.edit("drawing new shed");
    for (const char* line :
         {"add line 0,0 40,0", "add circle 20,15 8", "add arc 20,15 12 0 90", "add text 2,2 3 \"a text that is longer than a small string\"",
          "move 1 5,0", "move 1-4 5,5", "rotate 2-3 30 about 1,1", "layer new \"a layer with a long name\" 3",
          "layer assign \"a layer with a long name\" 1 4", "layer rename \"a layer with a long name\" short", "delete 2", "delete 1 3",
          "drawing new fence", "drawing delete shed"}) {
        session.edit(line);
        session.undo(1);
        session.redo(1);
    }
    const std::size_t all = session.done();
    session.undo(all);
    session.check_all();
    session.redo(all);
    session.check_all();
}

BOOST_AUTO_TEST_CASE(an_edit_after_undo_drops_what_could_be_redone) {
    CheckedSession session;
    session.edit("drawing new shed");
    session.edit("add line 0,0 1,1");
    session.edit("add line 0,0 2,2");
    session.undo(2);
    session.edit("add circle 0,0 5");
    BOOST_TEST(!session.place().file->heap().redo());
    session.undo(5);
    session.redo(5);
}

BOOST_AUTO_TEST_CASE(a_command_that_fails_leaves_no_step_and_keeps_what_can_be_redone) {
    CheckedSession session;
    session.edit("drawing new shed");
    session.edit("add line 0,0 1,1");
    session.edit("move 1 1,1");
    session.undo(1);
    session.refused("move 7 1,1");
    session.refused("import nowhere.dxf");  // fails within the step
    session.redo(1);
    session.undo(3);
}

BOOST_AUTO_TEST_CASE(a_random_session_of_edits_undo_redo_and_reopening_agrees_with_the_model) {
    CheckedSession session;
    Dice dice(taiyen::test::seed_of_run());
    session.edit("drawing new sheet");
    constexpr int rounds = 600;
    for (int round = 0; round < rounds; ++round) {
        const std::uint64_t what = dice.below(100);
        session.place().drawing_in_use = "sheet";
        if (session.place().drawing_if_any() == nullptr)
            session.redoable() > 0 ? session.redo(1) : session.edit("drawing new sheet");
        else if (what < 60)
            session.edit(random_edit(session.place().drawing(), {}, dice));
        else if (what < 75)
            session.undo(1 + dice.below(12));
        else if (what < 88)
            session.redo(1 + dice.below(12));
        else if (what < 96)
            session.save();
        else if (what < 99)
            session.reopen();
        else
            session.check_all();
    }
    session.save();
    session.reopen();
    // The last steps of the random ones may have taken everything back.
    if (session.done() != 0) session.undo(session.done());
    session.check_all();
    if (session.redoable() != 0) session.redo(session.redoable());
    session.check_all();
}

BOOST_AUTO_TEST_SUITE_END()
