#pragma once
/// A command of the tool as data: what it is called, what it takes, what it does. The command line, the help, the manual pages and the shell completion are all made
/// from these tables, so they say the same.

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <taiyen/store/options.hpp>

namespace taiyen::tool {

/// What the process returns. Part of the interface: scripts rely on it.
enum class Exit {
    ok = 0,
    found = 1,   ///< what the command looks for is there: damage, leaks, differences
    failed = 2,  ///< it could not be done: a wrong command line, a heap that can't be opened
};

struct Option {
    std::string_view name;   ///< "json"
    std::string_view value;  ///< "OUT", what the help calls its value; empty: a flag
    std::string_view help;
};

/// What stands on the command line.
struct Given {
    std::vector<std::string> files;
    std::string word;                                         ///< empty: not given
    std::map<std::string, std::string, std::less<>> options;  ///< a flag has an empty value

    bool has(std::string_view option) const { return options.contains(option); }
    std::optional<std::string> value(std::string_view option) const {
        const auto found = options.find(option);
        return found == options.end() ? std::nullopt : std::optional(found->second);
    }
    /// Requires: an option with a value. Throws: Error{invalid_argument}.
    std::size_t number(std::string_view option, std::size_t otherwise) const;
    /// The same of bytes: "4194304", "4096K", "4M", "4MiB"; units are powers of 1024.
    std::size_t bytes(std::string_view option, std::size_t otherwise) const;
    /// The heap's companions where they don't lie beside it.
    PersistentOptions heap_options() const;
};

struct Command {
    std::string_view name;
    std::string_view summary;             ///< one line without a full stop
    std::string_view description;         ///< paragraphs
    std::vector<std::string_view> files;  ///< "[OUT]": may be left out
    std::vector<Option> options;          ///< besides those that every command has
    std::string_view found;               ///< what exit code 1 means for it; empty: it never gives that
    Exit (*run)(const Given& given);
    const char* takes = "the heap";            ///< what FILE is
    std::string_view word = {};                ///< one word that may follow and is no file: what the help calls it; empty: none
    std::vector<std::string_view> words = {};  ///< what it may be; none: anything
};

/// All of them, in the order of the help.
std::span<const Command> commands();
/// What the tool is about, a paragraph.
std::string_view tool_description();
/// Those that every command on a heap takes.
std::span<const Option> common_options();

Command info_command();
Command verify_command();
Command stats_command();
Command ls_command();
Command show_command();
Command leaks_command();
Command map_command();
Command log_command();
Command history_command();
Command diff_command();
Command compress_command();
Command expand_command();
Command convert_command();
Command migrate_command();
Command recover_command();
Command copy_command();
Command scrub_command();
Command repair_command();
Command rebase_command();
Command resize_command();
Command sparsify_command();
Command replicate_command();
Command restore_command();
Command replicas_command();
Command follow_command();
Command promote_command();
Command bench_command();
Command man_command();
Command completion_command();

}  // namespace taiyen::tool
