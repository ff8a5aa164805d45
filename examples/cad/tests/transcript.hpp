#pragma once
/// Sessions as text: what is typed and what is answered, compared with what the program does.

#include <filesystem>
#include <string>
#include <vector>

namespace cad::test {

/// One run of the program: "$ taiyen_cad ARGUMENTS", then prompts with commands, answers, and at the end "[exit status N]" unless it is 0.
struct Run {
    std::string arguments;
    std::string commands;  ///< what stands behind the prompts, one a line
    std::string expected;  ///< everything below the first line
};

/// The runs that a text tells; blank lines between them are left out. Only what lies between lines of ``` is read, if there are such.
std::vector<Run> runs_in(const std::filesystem::path& text);
/// What the program prints, standard output and error together, when its standard input is `run.commands`.
std::string outcome_of(const Run& run, const std::filesystem::path& folder);

}  // namespace cad::test
