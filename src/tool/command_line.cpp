#include "tool/command_line.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <limits>
#include <list>

#include "tool/console.hpp"
#include "tool/log_heap.hpp"

namespace taiyen::tool {
namespace {

constexpr const char* exit_codes =
    "Exit codes: 0 all is well; 1 what the command looks for was found (damage, leaks, differences); 2 it could not be done (a wrong command line, "
    "no such heap, in use …).\n"
    "'taiyen COMMAND --help' tells more about a command.";

/// One command as CLI11 knows it.
struct Parsed {
    const Command* command;
    CLI::App* app;
    std::list<std::string> files;
    std::string word;
    std::map<std::string, std::string, std::less<>> values;
    std::map<std::string, bool, std::less<>> flags;
};

void declare(Parsed& parsed, const Option& option) {
    const std::string name(option.name);
    if (option.value.empty())
        parsed.app->add_flag("--" + name, parsed.flags[name], std::string(option.help));
    else
        parsed.app->add_option("--" + name, parsed.values[name], std::string(option.help))->type_name(std::string(option.value));
}

/// The number that the text begins with, and what follows it.
std::pair<std::optional<std::size_t>, std::string_view> leading_number(std::string_view text) {
    std::size_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{}) return {std::nullopt, text};
    return {number, text.substr(static_cast<std::size_t>(end - text.data()))};
}

/// There is no such command; of one that means something else in the library, how it is called here.
std::string unknown_command(const std::string& word) {
    std::string what = "there is no command '" + word + "'";
    if (word == "snapshot") what += ": 'recover' brings the files of a heap up to date, 'copy' copies it";
    if (word == "compact") what += ": 'sparsify' gives the disk blocks of free pages back";
    return what;
}

bool is_old_address_option(std::string_view word) { return word == "--to" || word.starts_with("--to="); }

}  // namespace

std::string_view tool_description() {
    return "A heap is a file, drawing.tyn, and what lies beside it: drawing.tyn.data (its second copy), drawing.tyn.journal and drawing.tyn.log. "
           "Commands that only look open "
           "the heap for reading and write nothing at all.";
}

std::size_t Given::number(std::string_view option, std::size_t otherwise) const {
    const auto text = value(option);
    if (!text) return otherwise;
    const auto [number, unit] = leading_number(*text);
    if (!number || !unit.empty()) throw Error(errc::invalid_argument, "--" + std::string(option) + " takes a number, not '" + *text + "'");
    return *number;
}

std::size_t Given::bytes(std::string_view option, std::size_t otherwise) const {
    const auto text = value(option);
    if (!text) return otherwise;
    auto [number, unit] = leading_number(*text);
    constexpr std::string_view units = "KMGT";
    const std::size_t power = unit.empty() ? 0 : units.find(unit.front()) + 1;  // 0, too, where it is none of them
    if (power != 0) unit.remove_prefix(1);
    const bool is_unit = unit.empty() || (power != 0 && (unit == "iB" || unit == "B"));
    const unsigned shift = 10 * static_cast<unsigned>(power);
    if (!number || !is_unit || *number > std::numeric_limits<std::size_t>::max() >> shift)
        throw Error(errc::invalid_argument, "--" + std::string(option) + " takes bytes such as 4194304, 4096K, 4M or 4MiB, not '" + *text + "'");
    return *number << shift;
}

PersistentOptions Given::heap_options() const {
    PersistentOptions options;
    options.program_pointers = ProgramPointers::unsearched;  // the tool puts none there
    if (const auto path = value("data-file")) options.data_file = *path;
    if (const auto path = value("log-file")) options.log_file = *path;
    return options;
}

std::span<const Option> common_options() {
    static constexpr std::array<Option, 3> options{{
        {"json", "", "print one JSON object instead of text"},
        {"data-file", "PATH", "where the second copy lies, if it is not FILE.data"},
        {"log-file", "PATH", "where the transaction log lies, if it is not FILE.log"},
    }};
    return options;
}

Exit run_command_line(int count, char** words) {
    CLI::App app(wrapped("Looks into taiyen heaps.\n\n" + std::string(tool_description())), "taiyen");
    app.require_subcommand(1);
    app.set_version_flag("--version", "taiyen " TAIYEN_VERSION);
    app.footer("\n" + wrapped(exit_codes));
    app.get_formatter()->column_width(34);
    std::list<Parsed> all;
    for (const Command& command : commands()) {
        Parsed& parsed = all.emplace_back();
        parsed.command = &command;
        parsed.app = app.add_subcommand(std::string(command.name), std::string(command.summary));
        parsed.app->footer(
            "\n" + wrapped(std::string(command.description) + (command.found.empty() ? "" : "\n\nExit code 1: " + std::string(command.found) + ".")));
        if (!command.files.empty()) {
            for (const std::string_view file : command.files) {
                const bool optional = file.front() == '[';
                const std::string_view name = optional ? file.substr(1, file.size() - 2) : file;
                parsed.app
                    ->add_option(std::string(name), parsed.files.emplace_back(),
                                 name == "FILE"     ? command.takes
                                 : name == "A"      ? "the older heap"
                                 : name == "B"      ? "the newer heap"
                                 : name == "OUT"    ? "what is made"
                                 : name == "TARGET" ? "the frames: a directory, or nats://HOST:PORT/NAME"
                                                    : "")
                    ->required(!optional)
                    ->type_name("PATH");
            }
            for (const Option& option : common_options()) declare(parsed, option);
        }
        if (!command.word.empty()) {
            std::string choice;
            for (const std::string_view word : command.words) choice += (choice.empty() ? "" : ", ") + std::string(word);
            CLI::Option* const option = parsed.app->add_option(std::string(command.word), parsed.word, choice)->type_name("");
            if (!command.words.empty()) option->check(CLI::IsMember(std::vector<std::string>(command.words.begin(), command.words.end())));
        }
        for (const Option& option : command.options) declare(parsed, option);
    }
    try {
        app.parse(count, words);
    } catch (const CLI::Success& wanted) {  // --help, --version
        app.exit(wanted);
        return Exit::ok;
    } catch (const CLI::ParseError& error) {
        std::string asked;
        for (const Parsed& parsed : all)
            if (parsed.app->parsed()) asked = " " + std::string(parsed.command->name);
        std::string what = error.what();
        if (asked.empty() && count > 1 && words[1][0] != '-') what = unknown_command(words[1]);
        if (!asked.empty() && std::any_of(words + 2, words + count, is_old_address_option))
            what = "there is no option --to: --address says where a heap lies";
        if (asked.empty() && count < 2) what = "which command?";
        std::fprintf(stderr, "taiyen: %s; 'taiyen%s --help' tells more\n", visible(what).c_str(), asked.c_str());
        return Exit::failed;
    }
    for (const Parsed& parsed : all) {
        if (!parsed.app->parsed()) continue;
        Given given;
        given.files.assign(parsed.files.begin(), parsed.files.end());
        while (!given.files.empty() && given.files.back().empty()) given.files.pop_back();
        const auto& files = parsed.command->files;
        const auto needed =
            static_cast<std::size_t>(std::count_if(files.begin(), files.end(), [](std::string_view file) { return file.front() != '['; }));
        if (given.files.size() < needed) throw Error(errc::invalid_argument, "the name of a file must not be empty");
        given.word = parsed.word;
        for (const auto& [name, value] : parsed.values)
            if (parsed.app->count("--" + name) != 0) given.options[name] = value;
        for (const auto& [name, set] : parsed.flags)
            if (set) given.options[name] = "";
        try {
            return parsed.command->run(given);
        } catch (const Error& error) {
            if (error.code() != errc::not_a_heap || given.files.empty() || !is_of_log_heap(given)) throw;
            throw Error(errc::not_a_heap, given.files[0],
                        "this is a log heap: info, stats, verify and map look at it, and a program opens it as a LogHeap (doc/log_heap.md)");
        }
    }
    return Exit::failed;
}

}  // namespace taiyen::tool
