/// Whole sessions of the command, as files of `sessions/` and the README tell them.

#include <sys/wait.h>

#include <fstream>
#include <sstream>

#include "cad_heap.hpp"
#include "transcript.hpp"

namespace {

using namespace cad::test;

/// The lines of both, for a report that names the first one that differs.
std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
}

void check_transcript(const fs::path& text) {
    const TemporaryFolder folder;
    const std::vector<Run> runs = runs_in(text);
    BOOST_TEST(!runs.empty());
    for (const Run& run : runs) {
        BOOST_TEST_CONTEXT(text.filename().string() << ": $ taiyen_cad" << run.arguments) {
            const std::string outcome = outcome_of(run, folder.path());
            BOOST_TEST(lines_of(outcome) == lines_of(run.expected), boost::test_tools::per_element());
            if (outcome != run.expected) BOOST_TEST_MESSAGE("the whole outcome:\n" << outcome);
        }
    }
}

const fs::path sessions = fs::path(TAIYEN_CAD_SOURCE) / "tests" / "sessions";

}  // namespace

BOOST_AUTO_TEST_SUITE(session)

BOOST_AUTO_TEST_CASE(drawings_are_made_shown_changed_and_found_again) { check_transcript(sessions / "drawing.txt"); }
BOOST_AUTO_TEST_CASE(every_mistake_is_answered_with_what_was_expected) { check_transcript(sessions / "errors.txt"); }
BOOST_AUTO_TEST_CASE(a_compressed_copy_is_packed_unpacked_and_goes_on) { check_transcript(sessions / "mail.txt"); }

BOOST_AUTO_TEST_CASE(the_session_of_the_readme_runs_as_it_is_told) { check_transcript(fs::path(TAIYEN_CAD_SOURCE) / "README.md"); }

BOOST_AUTO_TEST_CASE(a_script_stops_at_the_first_command_that_fails) {
    const TemporaryFolder folder;
    std::ofstream(folder.path() / "s.cad") << "create a.tyn\nfrobnicate\ndrawing new shed\n";
    const std::string command = "cd '" + folder.path().string() + "' && '" TAIYEN_CAD_COMMAND "' --script s.cad >out 2>&1";
    const int status = std::system(command.c_str());
    BOOST_TEST((WIFEXITED(status) && WEXITSTATUS(status) == 1));
    std::ifstream in(folder.path() / "out");
    const std::string output(std::istreambuf_iterator<char>(in), {});
    BOOST_TEST(output == "created a.tyn: 0 drawings\ns.cad:2: unknown command 'frobnicate'; 'help' lists all\n");
}

BOOST_AUTO_TEST_SUITE_END()
