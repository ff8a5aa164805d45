#include "tool/pages.hpp"

#include "tool/console.hpp"

namespace taiyen::tool {
namespace {

/// Text in which troff sees nothing of its own.
std::string troff(std::string_view text) {
    std::string made;
    bool line_begins = true;
    for (const char c : text) {
        if (line_begins && (c == '.' || c == '\'')) made += "\\&";
        if (c == '\\')
            made += "\\e";
        else if (c == '-')
            made += "\\-";
        else
            made += c;
        line_begins = c == '\n';
    }
    return made;
}

void add_option(std::string& page, const Option& option) {
    page += ".TP\n\\fB\\-\\-" + troff(option.name) + "\\fR" + (option.value.empty() ? "" : " \\fI" + troff(option.value) + "\\fR") + "\n" +
            troff(option.help) + "\n";
}

}  // namespace

std::string manual_page() {
    std::string page =
        ".TH TAIYEN 1 \"\" \"taiyen " TAIYEN_VERSION "\" \"User Commands\"\n.SH NAME\ntaiyen \\- looks into heaps that are files\n.SH SYNOPSIS\n";
    for (const Command& command : commands()) {
        page += ".B taiyen " + troff(command.name) + "\n[\\fIoptions\\fR]";
        for (const std::string_view file : command.files) page += " \\fI" + troff(file) + "\\fR";
        if (!command.word.empty()) page += " [\\fI" + troff(command.word) + "\\fR]";
        page += "\n.br\n";
    }
    page += ".SH DESCRIPTION\n" + troff(tool_description()) + "\n.SH COMMANDS\n";
    for (const Command& command : commands()) {
        page += ".SS " + troff(command.name) + "\n" + troff(command.summary) + ".\n.PP\n" + troff(command.description) + "\n";
        for (const Option& option : command.options) add_option(page, option);
    }
    page += ".SH OPTIONS OF ALL COMMANDS ON A HEAP\n";
    for (const Option& option : common_options()) add_option(page, option);
    page += ".SH EXIT STATUS\n.TP\n0\nAll is well.\n.TP\n1\nWhat the command looks for was found:\n";
    for (const Command& command : commands())
        if (!command.found.empty()) page += ".br\n\\fB" + troff(command.name) + "\\fR: " + troff(command.found) + "\n";
    page +=
        ".TP\n2\nIt could not be done: a wrong command line, no such heap, a heap in use.\n.SH ENVIRONMENT\n.TP\nNO_COLOR\nSet and not empty: no "
        "colours.\n";
    return page;
}

namespace {

/// All options of a command, --help too.
std::vector<Option> options_of(const Command& command) {
    std::vector<Option> options{{"help", "", "print this help and exit"}};
    options.insert(options.end(), command.options.begin(), command.options.end());
    if (!command.files.empty()) options.insert(options.end(), common_options().begin(), common_options().end());
    return options;
}

std::string joined(const std::vector<std::string_view>& words) {
    std::string text;
    for (const std::string_view word : words) text += (text.empty() ? "" : " ") + std::string(word);
    return text;
}

/// Whether the option's value is the name of a file or a folder.
bool takes_path(const Option& option) { return option.value == "PATH" || option.value == "OUT" || option.value == "DIR"; }

/// The text with a backslash in front of each of these characters.
std::string escaped(std::string_view text, std::string_view characters) {
    std::string made;
    for (const char c : text) {
        if (characters.find(c) != std::string_view::npos) made += '\\';
        made += c;
    }
    return made;
}

/// For a shell in which a quoted text ends at the next quote, whatever stands before it.
std::string in_quotes(std::string_view text) {
    std::string made = "'";
    for (const char c : text) made += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return made + "'";
}

}  // namespace

std::string bash_completion() {
    std::string names;
    std::string cases;
    for (const Command& command : commands()) {
        names += (names.empty() ? "" : " ") + std::string(command.name);
        std::string options;
        for (const Option& option : options_of(command)) options += (options.empty() ? "--" : " --") + std::string(option.name);
        cases += "        " + std::string(command.name) + ") options='" + options + "'" +
                 (command.words.empty() ? "" : " words='" + joined(command.words) + "'") + " ;;\n";
    }
    return "# Completion of taiyen for bash: source it, or put it where bash-completion looks for files.\n"
           "_taiyen() {\n"
           "    local current=${COMP_WORDS[COMP_CWORD]} options= words=\n"
           "    COMPREPLY=()\n"
           "    if [ \"$COMP_CWORD\" = 1 ]; then\n"
           "        mapfile -t COMPREPLY < <(compgen -W '" +
           names +
           " --help --version' -- \"$current\")\n"
           "        return\n"
           "    fi\n"
           "    case ${COMP_WORDS[1]} in\n" +
           cases +
           "    esac\n"
           "    if [ \"${current:0:1}\" = - ]; then\n"
           "        mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$current\")\n"
           "    elif [ -n \"$words\" ]; then\n"
           "        mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$current\")\n"
           "    fi\n"
           "}\n"
           "complete -o default -F _taiyen taiyen\n";
}

std::string zsh_completion() {
    std::string names;
    std::string cases;
    for (const Command& command : commands()) {
        names += "        " + in_quotes(escaped(command.name, ":\\") + ":" + std::string(command.summary)) + "\n";
        cases += "        " + std::string(command.name) + ")\n            _arguments";
        for (const Option& option : options_of(command)) {
            std::string about = "--" + std::string(option.name) + (option.value.empty() ? "" : "=") + "[" + escaped(option.help, "[]:\\") + "]";
            if (!option.value.empty()) about += ":" + escaped(option.value, ":\\") + ":" + (takes_path(option) ? "_files" : " ");
            cases += " \\\n                " + in_quotes(about);
        }
        for (const std::string_view file : command.files) cases += " \\\n                " + in_quotes(":" + std::string(file) + ":_files");
        if (!command.word.empty()) cases += " \\\n                " + in_quotes(":" + std::string(command.word) + ":(" + joined(command.words) + ")");
        cases += "\n            ;;\n";
    }
    return "#compdef taiyen\n"
           "# Completion of taiyen for zsh: source it, or put it as _taiyen into a folder of $fpath.\n"
           "_taiyen() {\n"
           "    local -a commands\n"
           "    commands=(\n" +
           names +
           "    )\n"
           "    if (( CURRENT == 2 )); then\n"
           "        _describe command commands\n"
           "        return\n"
           "    fi\n"
           "    shift words\n"
           "    (( CURRENT-- ))\n"
           "    case ${words[1]} in\n" +
           cases +
           "    esac\n"
           "}\n"
           "if [ \"${funcstack[1]}\" = _taiyen ]; then\n"
           "    _taiyen \"$@\"\n"
           "else\n"
           "    compdef _taiyen taiyen\n"
           "fi\n";
}

std::string fish_completion() {
    // In fish a backslash protects within single quotes.
    const auto text = [](std::string_view words) { return "'" + escaped(words, "'\\") + "'"; };
    std::string made =
        "# Completion of taiyen for fish: source it, or put it as taiyen.fish where fish looks for completions.\n"
        "complete -c taiyen -n __fish_use_subcommand -l help -d 'print this help and exit'\n"
        "complete -c taiyen -n __fish_use_subcommand -l version -d 'print the version and exit'\n";
    for (const Command& command : commands())
        made += "complete -c taiyen -f -n __fish_use_subcommand -a " + std::string(command.name) + " -d " + text(command.summary) + "\n";
    for (const Command& command : commands()) {
        const std::string here = "complete -c taiyen -n '__fish_seen_subcommand_from " + std::string(command.name) + "'";
        for (const Option& option : options_of(command)) {
            const char* const takes = option.value.empty() ? "" : takes_path(option) ? " -r -F" : " -x";
            made += here + " -l " + std::string(option.name) + takes + " -d " + text(option.help) + "\n";
        }
        if (command.files.empty()) made += here + " -f\n";
        if (!command.words.empty()) made += here + " -f -a '" + joined(command.words) + "'\n";
    }
    return made;
}

namespace {

Exit print_manual(const Given&) {
    print(manual_page());
    return Exit::ok;
}

Exit print_completion(const Given& given) {
    print(given.word == "zsh" ? zsh_completion() : given.word == "fish" ? fish_completion() : bash_completion());
    return Exit::ok;
}

}  // namespace

Command man_command() {
    return {"man",
            "Prints the manual page",
            "The page taiyen(1), to be read with 'taiyen man | man -l -' or installed; the build installs it.",
            {},
            {},
            "",
            print_manual};
}

Command completion_command() {
    return {"completion",
            "Prints a completion script for a shell",
            "To be sourced: 'source <(taiyen completion bash)', the same with zsh, 'taiyen completion fish | source'. The build installs all three. "
            "Without a shell: bash.",
            {},
            {},
            "",
            print_completion,
            "",  // it takes no file
            "SHELL",
            {"bash", "zsh", "fish"}};
}

}  // namespace taiyen::tool
