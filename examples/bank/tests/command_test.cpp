/// The command as people call it, and a short storm.

#include <sys/wait.h>

#include <array>
#include <cstdio>

#include "bank_heap.hpp"

BOOST_AUTO_TEST_SUITE(command)

namespace {

using namespace bank::test;

struct Answer {
    int status = -1;
    std::string text;
    bool has(std::string_view wanted) const { return text.find(wanted) != std::string::npos; }
};

/// A shell calls the program with standard error among what it prints.
Answer call(const std::string& arguments) {
    const std::string line = std::string(TAIYEN_BANK_COMMAND) + ' ' + arguments + " 2>&1";
    FILE* const pipe = popen(line.c_str(), "r");
    BOOST_REQUIRE(pipe != nullptr);
    Answer answer;
    std::array<char, 4096> chunk{};
    for (std::size_t got = 0; (got = std::fread(chunk.data(), 1, chunk.size(), pipe)) > 0;) answer.text.append(chunk.data(), got);
    const int status = pclose(pipe);
    answer.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return answer;
}

void prints(const std::string& arguments, std::string_view wanted, int status = 0) {
    const Answer answer = call(arguments);
    BOOST_TEST(answer.status == status, answer.text);
    BOOST_TEST(answer.has(wanted), arguments << " printed " << answer.text);
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_bank_runs_and_goes_on_where_it_stopped) {
    const TemporaryFolder folder;
    const std::string file = (folder.path() / "bank.tyn").string();
    prints("run " + file + " --accounts 100 --seconds 0.3 --threads 3", "every invariant holds");
    prints("run " + file + " --accounts 100 --seconds 0.3 --threads 3 --async", "closed properly");
    prints("check " + file, "the heap: whole");
}

BOOST_AUTO_TEST_CASE(nothing_acknowledged_is_lost_in_a_storm) {
    const TemporaryFolder folder;
    const std::string file = (folder.path() / "bank.tyn").string();
    prints("storm " + file + " --accounts 200 --log 1 --kills 6 --threads 4 --longest-life 300 --seed " + std::to_string(taiyen::test::seed_of_run()),
           "6 kills: ");
}

BOOST_AUTO_TEST_CASE(a_wrong_command_line_ends_with_2_a_missing_bank_with_1_and_help_with_0) {
    const TemporaryFolder folder;
    BOOST_TEST(call("--help").status == 0);
    BOOST_TEST(call("--help").has("storm"));
    BOOST_TEST(!call("--help").has("live"));
    BOOST_TEST(call("storm --help").has("--longest-life"));
    for (const char* const line : {"", "frob", "run --threads 0", "run --accounts 1", "run --seconds x"}) BOOST_TEST(call(line).status == 2, line);
    prints("check " + (folder.path() / "missing.tyn").string(), "missing.tyn", 1);
}

BOOST_AUTO_TEST_SUITE_END()
