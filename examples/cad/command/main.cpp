/// taiyen_cad: drawings in a heap file, edited by typing. See --help.

#include <unistd.h>

#include <csignal>
#include <fstream>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "command/commands.hpp"
#include "command/prompt.hpp"

namespace {

using namespace cad::command;

constexpr std::string_view usage =
    "usage: taiyen_cad [options] [FILE]\n"
    "\n"
    "Edits drawings that are kept in a heap file. On a terminal there is a prompt with history (arrow keys) and completion (tab);\n"
    "'help' lists the commands. Otherwise commands are read from standard input, one a line.\n"
    "\n"
    "  --script FILE  reads the commands from FILE; - is standard input\n"
    "  --keep-going   goes on after a command of a script that failed\n"
    "  --echo         prints each command of a script behind its prompt, as a terminal would show it\n"
    "  --help         this text\n"
    "\n"
    "Nothing is saved but by 'save'. Exit status: 0, 1 if a command of a script or opening FILE failed, 2 for wrong options.\n"
    "Typed lines are remembered in ~/.taiyen_cad_history.\n";

struct Options {
    bool help = false;
    bool keep_going = false;
    bool echo = false;
    std::string script;
    std::string file;
};

/// Nothing if they make no sense.
std::optional<Options> parse(const std::vector<std::string>& words) {
    Options options;
    for (std::size_t i = 0; i < words.size(); ++i) {
        const std::string& word = words[i];
        if (word == "--help" || word == "-h")
            options.help = true;
        else if (word == "--keep-going")
            options.keep_going = true;
        else if (word == "--echo")
            options.echo = true;
        else if (word == "--script" && i + 1 < words.size())
            options.script = words[++i];
        else if (!word.starts_with('-') && options.file.empty())
            options.file = word;
        else
            return std::nullopt;
    }
    return options;
}

/// Carries out one line; false if it failed, after saying why.
bool carried_out(Workplace& place, const std::string& line, const std::string& where) {
    try {
        execute(place, line);
        place.out << std::flush;
        return true;
    } catch (const std::exception& error) {
        place.out << std::flush;
        std::cerr << where << error.what() << std::endl;
        return false;
    }
}

int run_script(Workplace& place, const Options& options, std::istream& in, const std::string& name) {
    bool fine = true;
    std::size_t number = 0;
    for (std::string line; !place.leaving && std::getline(in, line);) {
        ++number;
        if (options.echo) place.out << place.prompt() << line << std::endl;
        fine &= carried_out(place, line, name + ":" + std::to_string(number) + ": ");
        if (!fine && !options.keep_going) break;
    }
    if (!place.leaving) fine &= carried_out(place, "quit", name + ": ");
    return fine ? 0 : 1;
}

int run_terminal(Workplace& place) {
    // Ctrl-C must not drop what is not saved; Ctrl-D and 'quit' ask.
    std::signal(SIGINT, SIG_IGN);
    Prompt prompt(place);
    place.ask = [&](const std::string& question) { return prompt.ask(question).value_or("d"); };
    while (!place.leaving) {
        const std::optional<std::string> line = prompt.read(place.prompt());
        if (!line) place.out << '\n';
        carried_out(place, line.value_or("quit"), "");
    }
    return 0;
}

int run(const Options& options) {
    Workplace place(std::cout);
    if (!options.file.empty() && !carried_out(place, "open " + as_typed(options.file), "taiyen_cad: ")) return 1;
    if (options.script.empty() && isatty(STDIN_FILENO) == 1) return run_terminal(place);
    if (options.script.empty() || options.script == "-") return run_script(place, options, std::cin, "stdin");
    std::ifstream script(options.script);
    if (!script) {
        std::cerr << "taiyen_cad: " << options.script << ": cannot be read\n";
        return 1;
    }
    return run_script(place, options, script, options.script);
}

}  // namespace

int main(int count, char** words) {
    const std::optional<Options> options = parse({words + 1, words + count});
    if (!options) {
        std::cerr << usage;
        return 2;
    }
    if (options->help) {
        std::cout << usage;
        return 0;
    }
    try {
        return run(*options);
    } catch (const std::exception& error) {
        std::cout << std::flush;
        std::cerr << "taiyen_cad: " << error.what() << '\n';
        return 1;
    }
}
