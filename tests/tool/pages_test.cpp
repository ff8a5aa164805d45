// The manual page and the completion know every command and option that the help knows.

#include <boost/test/unit_test.hpp>

#include "tool/tool_fixture.hpp"

namespace {
using namespace tool_test;
constexpr const char* commands[] = {"info",    "ls",   "stats", "verify", "leaks",  "map", "log",
                                    "history", "diff", "scrub", "repair", "rebase", "man", "completion"};
}  // namespace

BOOST_AUTO_TEST_SUITE(pages)

BOOST_AUTO_TEST_CASE(the_manual_page_tells_of_each_command) {
    const ScratchDirectory dir;
    const Ran ran = run_tool(dir, "man");
    BOOST_TEST(ran.exit == 0);
    for (const std::string command : commands) BOOST_TEST(ran.out.find(".SS " + command + "\n") != std::string::npos, command);
    for (const char* option : {"json", "svg", "list", "threads", "serial"})
        BOOST_TEST(ran.out.find("\\-\\-" + std::string(option)) != std::string::npos, option);
    if (std::system("command -v groff >/dev/null") == 0) {
        std::ofstream(dir / "taiyen.1") << ran.out;
        const std::string line = "groff -man -Tutf8 -ww '" + (dir / "taiyen.1").string() + "' >/dev/null 2>'" + (dir / "warnings").string() + "'";
        BOOST_TEST(std::system(line.c_str()) == 0);
        BOOST_TEST(text_of(dir / "warnings") == "");
    }
}

BOOST_AUTO_TEST_CASE(bash_completes_commands_and_options) {
    const ScratchDirectory dir;
    std::ofstream(dir / "taiyen.bash") << run_tool(dir, "completion").out;
    const auto complete = [&](const std::string& words, int current) {
        std::ofstream(dir / "ask.bash") << "source '" << (dir / "taiyen.bash").string() << "'\nCOMP_WORDS=(" << words << ")\nCOMP_CWORD=" << current
                                        << "\n_taiyen\necho \"${COMPREPLY[@]}\"\n";
        const std::string line = "bash '" + (dir / "ask.bash").string() + "' >'" + (dir / "said").string() + "'";
        BOOST_TEST(std::system(line.c_str()) == 0);
        return text_of(dir / "said");
    };
    BOOST_TEST(complete("taiyen ver", 1) == "verify\n");
    BOOST_TEST(complete("taiyen s", 1) == "stats scrub\n");
    BOOST_TEST(complete("taiyen map --s", 2) == "--svg\n");
    BOOST_TEST(complete("taiyen verify --", 2) == "--help --threads --json --data-file --log-file\n");
}

BOOST_AUTO_TEST_SUITE_END()
