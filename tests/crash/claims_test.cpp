// The tables of README.md beside this file say which test shows what. Each test that they name is there, and each planted bug is named and caught.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "crash/fault_sweep.hpp"
#include "crash/planted_bugs.hpp"
#include "crash/scenario.hpp"

namespace taiyen::crash {
namespace {

namespace fs = std::filesystem;

const fs::path source_tree = TAIYEN_SOURCE_TREE;

/// Second lines of defence that no crash reaches behind the first (planted_bugs.cpp).
const std::set<std::string> never_reached{"skip_seed", "release_before_data_header"};

std::string content_of(const fs::path& path) {
    std::ifstream file(path);
    BOOST_REQUIRE_MESSAGE(file, path << " can't be read");
    return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> matches(const std::string& text, const std::regex& pattern) {
    std::vector<std::string> found;
    for (std::sregex_iterator match(text.begin(), text.end(), pattern), end; match != end; ++match) found.push_back((*match)[1]);
    return found;
}

using Row = std::vector<std::string>;  ///< cells

/// The rows of the table below a heading.
std::vector<Row> table_below(const std::string& text, const std::string& heading) {
    const std::size_t begin = text.find("## " + heading);
    BOOST_REQUIRE_MESSAGE(begin != std::string::npos, "README.md has no table of '" << heading << "'");
    std::istringstream lines(text.substr(begin, text.find("\n## ", begin) - begin));
    std::vector<Row> rows;
    for (std::string line; std::getline(lines, line);) {
        if (!line.starts_with("| ")) continue;
        Row row;
        std::istringstream cells(line.substr(1));
        for (std::string cell; std::getline(cells, cell, '|');) {
            const std::size_t first = cell.find_first_not_of(' ');
            row.push_back(first == std::string::npos ? "" : cell.substr(first, cell.find_last_not_of(' ') + 1 - first));
        }
        rows.push_back(row);
    }
    BOOST_REQUIRE(!rows.empty());
    rows.erase(rows.begin());
    return rows;
}

/// Everything that a table may name.
struct Tree {
    Tree() {
        const std::regex test_case(R"(TEST_CASE(?:_TEMPLATE)?\(\s*(\w+))");
        const std::regex bug_use(R"(Bug::(\w+))");
        for (const auto& entry : fs::recursive_directory_iterator(source_tree / "tests")) {
            if (entry.path().extension() != ".cpp") continue;
            const std::string text = content_of(entry.path());
            const std::string room = fs::relative(entry.path(), source_tree / "tests").begin()->string();
            for (const std::string& name : matches(text, test_case)) names.insert(room + ": " + name);
            if (entry.path().filename().string().ends_with("_test.cpp"))
                for (const std::string& bug : matches(text, bug_use)) caught.insert(bug);
            if (room == "fuzz" && entry.path().stem().string().ends_with("_fuzz"))
                names.insert("fuzz: " + entry.path().stem().string().substr(0, entry.path().stem().string().size() - 5));
        }
        for (const std::string& name :
             matches(content_of(source_tree / "tests/crash/outside/CMakeLists.txt"), std::regex(R"(taiyen_harness\((\w+))")))
            names.insert("outside: " + name);
        for (const FaultKind& kind : fault_kinds()) names.insert(std::string("sweep: ") + kind.name);
        for (const CrashScenario& scenario : all_scenarios()) names.insert("scenario: " + scenario.name);
        const std::string header = content_of(source_tree / "src/base/planted.hpp");
        const std::size_t list = header.find("enum class Bug {");
        for (const std::string& bug : matches(header.substr(list, header.find("};", list) - list), std::regex(R"(\n\s+(\w+),)"))) bugs.insert(bug);
        bugs.erase("none");
        for (const PlantedBug& bug : planted_bugs()) caught.insert(bug.name);
    }
    std::set<std::string> names;   ///< "room: case", "fuzz: target", "outside: harness", "sweep: fault", "scenario: name"
    std::set<std::string> bugs;    ///< of planted.hpp
    std::set<std::string> caught;  ///< bugs that something is to catch
};

std::vector<std::string> named_in(const std::string& cell) { return matches(cell, std::regex("`([^`]+)`")); }

BOOST_AUTO_TEST_SUITE(claims)

BOOST_AUTO_TEST_CASE(each_of_thirty_faults_names_tests_that_are_there) {
    const Tree tree;
    std::map<int, int> numbers;
    for (const Row& row : table_below(content_of(source_tree / "tests/crash/README.md"), "Faults and what each must give")) {
        BOOST_REQUIRE(row.size() == 4U);
        ++numbers[std::stoi(row[0])];
        const auto named = named_in(row[3]);
        BOOST_CHECK_MESSAGE(!named.empty() || row[2].starts_with("not there yet"), "nothing shows: " << row[1]);
        for (const std::string& name : named) BOOST_CHECK_MESSAGE(tree.names.contains(name), row[1] << ": there is no '" << name << "'");
    }
    for (int number = 1; number <= 30; ++number)
        BOOST_CHECK_MESSAGE(numbers[number] == 1, "fault " << number << " is told " << numbers[number] << " times");
}

BOOST_AUTO_TEST_CASE(each_rule_names_bugs_that_something_catches_or_tests_that_are_there) {
    const Tree tree;
    std::set<std::string> told;
    for (const Row& row : table_below(content_of(source_tree / "tests/crash/README.md"), "Rules of the protocol")) {
        BOOST_REQUIRE(row.size() == 2U);
        const auto named = named_in(row[1]);
        BOOST_CHECK_MESSAGE(!named.empty() || row[1].starts_with("moot"), "nothing shows: " << row[0]);
        for (const std::string& name : named) {
            told.insert(name);
            BOOST_CHECK_MESSAGE(tree.names.contains(name) || (tree.bugs.contains(name) && tree.caught.contains(name)),
                                row[0] << ": there is no '" << name << "', or nothing catches it");
        }
    }
    for (const std::string& bug : tree.bugs)
        BOOST_CHECK_MESSAGE(told.contains(bug) || never_reached.contains(bug), "no rule speaks of the bug " << bug);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace taiyen::crash
