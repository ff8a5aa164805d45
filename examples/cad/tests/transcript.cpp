#include "transcript.hpp"

#include <sys/wait.h>

#include <boost/test/unit_test.hpp>
#include <cstdio>
#include <fstream>
#include <regex>

namespace cad::test {

std::vector<Run> runs_in(const std::filesystem::path& text) {
    constexpr std::string_view program = "$ taiyen_cad";
    static const std::regex prompt("^[^ \"]+> ?(.*)$");
    std::vector<Run> runs;
    bool inside = false;
    std::ifstream in(text);
    BOOST_REQUIRE_MESSAGE(in, text);
    for (std::string line; std::getline(in, line);) {
        std::smatch match;
        if (line.starts_with("```")) {
            inside = false;
        } else if (line.starts_with(program)) {
            inside = true;
            runs.push_back({line.substr(program.size()), {}, {}});
        } else if (inside && !line.empty()) {
            runs.back().expected += line + '\n';
            if (std::regex_match(line, match, prompt)) runs.back().commands += match[1].str() + '\n';
        }
    }
    return runs;
}

std::string outcome_of(const Run& run, const std::filesystem::path& folder) {
    const std::filesystem::path input = folder / "commands.cad";
    std::ofstream(input) << run.commands;
    const std::string command =
        "cd '" + folder.string() + "' && '" TAIYEN_CAD_COMMAND "' --echo --keep-going" + run.arguments + " <commands.cad 2>&1";
    FILE* const pipe = popen(command.c_str(), "r");
    BOOST_REQUIRE(pipe != nullptr);
    std::string output;
    char chunk[4096];
    for (std::size_t got = fread(chunk, 1, sizeof chunk, pipe); got != 0; got = fread(chunk, 1, sizeof chunk, pipe)) output.append(chunk, got);
    const int status = pclose(pipe);
    BOOST_REQUIRE(WIFEXITED(status));
    if (WEXITSTATUS(status) != 0) output += "[exit status " + std::to_string(WEXITSTATUS(status)) + "]\n";
    // Messages name files by their whole paths.
    const std::string prefix = folder.string() + "/";
    for (std::size_t at = output.find(prefix); at != std::string::npos; at = output.find(prefix, at)) output.erase(at, prefix.size());
    // Usage texts have blank lines; transcripts have none.
    return std::regex_replace(output, std::regex("\n\n+"), "\n");
}

}  // namespace cad::test
