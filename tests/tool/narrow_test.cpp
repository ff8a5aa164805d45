// What a narrow terminal shows: no line is longer than it.

#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>

#include <taiyen/taiyen.hpp>

#include "tool/tool_fixture.hpp"

namespace {

using namespace tool_test;

/// Columns that a line takes: bytes of one character count once, and what sets a style doesn't.
std::size_t columns_of(const std::string& line) {
    std::size_t columns = 0;
    for (std::size_t i = 0; i < line.size(); ++i)
        if (line[i] == '\033')
            i = std::min(line.find('m', i), line.size());
        else if ((static_cast<unsigned char>(line[i]) & 0xc0U) != 0x80U && line[i] != '\r')
            ++columns;
    return columns;
}

/// The lines that `taiyen` prints on a terminal of that many columns.
std::vector<std::string> lines_on_terminal(const ScratchDirectory& dir, unsigned short columns, const std::vector<std::string>& words) {
    winsize size{};
    size.ws_col = columns;
    size.ws_row = 50;
    int master = -1;
    const pid_t child = ::forkpty(&master, nullptr, nullptr, &size);
    BOOST_REQUIRE(child >= 0);
    if (child == 0) {
        std::vector<char*> all{const_cast<char*>(TAIYEN_TOOL)};
        for (const std::string& word : words) all.push_back(const_cast<char*>(word.c_str()));
        all.push_back(nullptr);
        if (::chdir(dir.path().c_str()) == 0) ::execv(TAIYEN_TOOL, all.data());
        ::_exit(99);
    }
    std::string said;
    char buffer[4096];
    for (ssize_t got = 0; (got = ::read(master, buffer, sizeof buffer)) > 0;) said.append(buffer, static_cast<std::size_t>(got));
    ::close(master);
    int status = 0;
    ::waitpid(child, &status, 0);
    BOOST_TEST((WIFEXITED(status) && WEXITSTATUS(status) == 0), said);
    std::vector<std::string> lines;
    std::istringstream text(said);
    for (std::string line; std::getline(text, line);) lines.push_back(line);
    return lines;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(narrow)

BOOST_AUTO_TEST_CASE(a_table_that_is_wider_than_the_terminal_is_printed_cell_below_cell) {
    const ScratchDirectory dir;
    {
        taiyen::ArchiveHeap heap(taiyen::create_only, dir / "a.tyn", small());
        heap.construct<taiyen::vector<int>>("parts").resize(1000);
        heap.construct<taiyen::string>("title") = "a title that is long enough to need a block of its own";
        heap.snapshot();
    }
    const auto wide = lines_on_terminal(dir, 200, {"ls", "a.tyn"});
    const auto narrow = lines_on_terminal(dir, 40, {"ls", "a.tyn"});
    const auto titles = [](const std::vector<std::string>& lines) {
        return std::count_if(lines.begin(), lines.end(), [](const std::string& line) { return line.find("NAME") != std::string::npos; });
    };
    BOOST_TEST(titles(wide) == 1);
    BOOST_TEST(titles(narrow) == 2);  // once for each row
    BOOST_TEST(narrow.size() > wide.size());
    const auto leaks = lines_on_terminal(dir, 40, {"leaks", "a.tyn"});
    for (const std::string& line : leaks) BOOST_TEST(columns_of(line) <= 60U, line);
}

BOOST_AUTO_TEST_SUITE_END()
