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
        if (c == '\\') {
            made += "\\e";
        } else if (c == '-') {
            made += "\\-";
        } else {
            made += c;
        }
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
    for (const Command& command : commands()) {
        if (!command.found.empty()) page += ".br\n\\fB" + troff(command.name) + "\\fR: " + troff(command.found) + "\n";
    }
    page +=
        ".TP\n2\nIt could not be done: a wrong command line, no such heap, a heap in use.\n.SH ENVIRONMENT\n.TP\nNO_COLOR\nSet and not empty: no "
        "colours.\n";
    return page;
}

std::string bash_completion() {
    std::string names;
    std::string cases;
    for (const Command& command : commands()) {
        names += (names.empty() ? "" : " ") + std::string(command.name);
        std::string options = "--help";
        const auto add = [&](const Option& option) { options += " --" + std::string(option.name); };
        for (const Option& option : command.options) add(option);
        if (!command.files.empty()) {
            for (const Option& option : common_options()) add(option);
        }
        cases += "        " + std::string(command.name) + ") options='" + options + "' ;;\n";
    }
    return "# Completion of taiyen for bash: source it, or put it where bash-completion looks for files.\n"
           "_taiyen() {\n"
           "    local current=${COMP_WORDS[COMP_CWORD]} options=\n"
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
           "    fi\n"
           "}\n"
           "complete -o default -F _taiyen taiyen\n";
}

namespace {

Exit print_manual(const Given&) {
    print(manual_page());
    return Exit::ok;
}

Exit print_completion(const Given&) {
    print(bash_completion());
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
    return {"completion",    "Prints a completion script for bash", "To be sourced: source <(taiyen completion). The build installs it.", {}, {}, "",
            print_completion};
}

}  // namespace taiyen::tool
