// The manual page and the completion know every command and option that the help knows.

#include <boost/test/unit_test.hpp>

#include "tool/tool_fixture.hpp"

namespace {
using namespace tool_test;
constexpr const char* commands[] = {"info",    "ls",       "show",   "stats",   "verify", "leaks",  "map",       "log",      "history",
                                    "diff",    "recover",  "copy",   "scrub",   "repair", "rebase", "resize",    "sparsify", "replicate",
                                    "restore", "replicas", "follow", "promote", "bench",  "man",    "completion"};
}  // namespace

BOOST_AUTO_TEST_SUITE(pages)

BOOST_AUTO_TEST_CASE(the_manual_page_tells_of_each_command) {
    const ScratchDirectory dir;
    const Ran ran = run_tool(dir, "man");
    BOOST_TEST(ran.exit == 0);
    for (const std::string command : commands) BOOST_TEST(ran.out.find(".SS " + command + "\n") != std::string::npos, command);
    for (const char* option : {"json", "svg", "list", "threads", "serial", "key\\-file", "old\\-key\\-file"})
        BOOST_TEST(ran.out.find("\\-\\-" + std::string(option)) != std::string::npos, option);
    if (std::system("command -v groff >/dev/null") == 0) {
        std::ofstream(dir / "taiyen.1") << ran.out;
        const std::string line = "groff -man -Tutf8 -ww '" + (dir / "taiyen.1").string() + "' >/dev/null 2>'" + (dir / "warnings").string() + "'";
        BOOST_TEST(std::system(line.c_str()) == 0);
        BOOST_TEST(file_bytes(dir / "warnings") == "");
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
        return file_bytes(dir / "said");
    };
    BOOST_TEST(complete("taiyen ver", 1) == "verify\n");
    BOOST_TEST(complete("taiyen s", 1) == "show stats scrub sparsify\n");
    BOOST_TEST(complete("taiyen map --s", 2) == "--svg\n");
    BOOST_TEST(complete("taiyen completion ''", 2) == "bash zsh fish\n");
    BOOST_TEST(complete("taiyen completion z", 2) == "zsh\n");
    BOOST_TEST(complete("taiyen verify --", 2) == "--help --level --sample --seed --threads --json --data-file --log-file\n");
}

/// Whether the shell is there to be asked.
bool has_shell(const std::string& shell) {
    const bool is_there = std::system(("command -v " + shell + " >/dev/null").c_str()) == 0;
    BOOST_TEST_MESSAGE((is_there ? "" : "skipped: " + shell + " is not installed"));
    return is_there;
}

BOOST_AUTO_TEST_CASE(fish_completes_commands_options_and_files) {
    if (!has_shell("fish")) return;
    const ScratchDirectory dir;
    std::ofstream(dir / "taiyen.fish") << run_tool(dir, "completion fish").out;
    std::ofstream(dir / "drawing.tyn");
    const auto complete = [&](const std::string& line) {
        std::ofstream(dir / "ask.fish") << "source taiyen.fish\ncomplete -C '" << line << "'\n";
        const std::string command =
            "cd '" + dir.path().string() + "' && HOME=. XDG_CONFIG_HOME=. XDG_DATA_HOME=. fish --no-config ask.fish >said 2>&1";
        BOOST_TEST(std::system(command.c_str()) == 0);
        std::istringstream lines(file_bytes(dir / "said"));
        std::vector<std::string> words;  // without their descriptions
        for (std::string said; std::getline(lines, said);) words.push_back(said.substr(0, said.find('\t')));
        return words;
    };
    using Words = std::vector<std::string>;
    BOOST_TEST(complete("taiyen ver") == Words{"verify"}, boost::test_tools::per_element());
    BOOST_TEST(complete("taiyen s") == (Words{"scrub", "show", "sparsify", "stats"}), boost::test_tools::per_element());
    BOOST_TEST(complete("taiyen map --s") == Words{"--svg"}, boost::test_tools::per_element());
    BOOST_TEST(complete("taiyen verify --") == (Words{"--data-file", "--help", "--json", "--level", "--log-file", "--sample", "--seed", "--threads"}),
               boost::test_tools::per_element());
    BOOST_TEST(complete("taiyen completion ") == (Words{"bash", "fish", "zsh"}), boost::test_tools::per_element());
    BOOST_TEST(complete("taiyen verify dra") == Words{"drawing.tyn"}, boost::test_tools::per_element());
    BOOST_TEST(complete("taiyen man dra").empty());
}

BOOST_AUTO_TEST_CASE(zsh_completes_commands_options_and_files) {
    if (!has_shell("zsh")) return;
    const ScratchDirectory dir;
    std::ofstream(dir / "_taiyen") << run_tool(dir, "completion zsh").out;
    std::ofstream(dir / "drawing.tyn");
    // A zsh on a terminal of its own; a widget writes down what the line has become after the tabulator.
    std::ofstream(dir / "setup.zsh") << "PS1= RPS1= PS2=\nautoload -U compinit && compinit -u -D\neval \"$LOADED\"\n"
                                        "show() { print -r -- \"[$BUFFER]\" >>said; BUFFER= }\nzle -N show\nbindkey '^T' show\nprint ready >>said\n";
    std::ofstream(dir / "ask.zsh") << R"(zmodload zsh/zpty
wait_for() { for i in {1..600}; do [[ -e said && $(wc -l <said) -ge $1 ]] && return; sleep 0.05; done; print "said nothing in time"; exit 1 }
zpty -b asked "LOADED='$1' zsh -f -i"
zpty -w asked 'source setup.zsh'
wait_for 1
n=1
for line in "${@:2}"; do
    zpty -w -n asked "$line"$'	'
    (( ++n ))
    wait_for $n
done
zpty -d asked
)";
    const auto complete = [&](const std::string& loaded, const std::vector<std::string>& lines) {
        std::filesystem::remove(dir / "said");
        std::string command = "cd '" + dir.path().string() + "' && LC_ALL=C TERM=vt100 HOME=. zsh -f ask.zsh '" + loaded + "'";
        for (const std::string& line : lines) command += " '" + line + "'";
        BOOST_TEST(std::system((command + " >/dev/null").c_str()) == 0);
        return file_bytes(dir / "said");
    };
    const std::vector<std::string> lines{"taiyen ver",         "taiyen map --sv",   "taiyen completion z",
                                         "taiyen verify --th", "taiyen verify dra", "taiyen diff drawing.tyn dra"};
    const std::string expected =
        "ready\n[taiyen verify ]\n[taiyen map --svg=]\n[taiyen completion zsh ]\n[taiyen verify --threads=]\n[taiyen verify drawing.tyn ]\n"
        "[taiyen diff drawing.tyn drawing.tyn ]\n";
    BOOST_TEST(complete("source ./_taiyen", lines) == expected);
    BOOST_TEST(complete("fpath=($PWD $fpath); compinit -u -D", lines) == expected);  // as it is installed
}

BOOST_AUTO_TEST_CASE(zsh_and_fish_know_every_command_and_option_and_their_scripts_are_well_formed) {
    const ScratchDirectory dir;
    for (const std::string shell : {"zsh", "fish"}) {
        const Ran ran = run_tool(dir, "completion " + shell);
        BOOST_TEST(ran.exit == 0);
        std::ofstream(dir / "script") << ran.out;
        for (const std::string command : commands) {
            const std::string named = shell == "zsh" ? "        " + command + ")\n" : " -a " + command + " -d '";
            BOOST_TEST(ran.out.find(named) != std::string::npos, shell << " does not know " << command);
        }
        for (const char* option : {"json", "svg", "list", "threads", "serial", "pages", "address", "data-file"}) {
            const std::string named = shell == "zsh" ? "'--" + std::string(option) : " -l " + std::string(option) + " ";
            BOOST_TEST(ran.out.find(named) != std::string::npos, shell << " does not know --" << option);
        }
        // A shell that is installed reads it; any quotes must be balanced all the same.
        if (std::system(("command -v " + shell + " >/dev/null").c_str()) == 0)
            BOOST_TEST(std::system((shell + " -n '" + (dir / "script").string() + "'").c_str()) == 0);
        std::istringstream lines(ran.out);
        for (std::string line; std::getline(lines, line);) {
            for (std::size_t at = 0; (at = line.find("\\'")) != std::string::npos;) line.erase(at, 2);  // an apostrophe
            if (!line.starts_with("#")) BOOST_TEST(std::count(line.begin(), line.end(), '\'') % 2 == 0, line);
        }
    }
    BOOST_TEST(run_tool(dir, "completion zsh").out.starts_with("#compdef taiyen\n"));
    BOOST_TEST(run_tool(dir, "completion").out == run_tool(dir, "completion bash").out);
    const Ran wrong = run_tool(dir, "completion tcsh");
    BOOST_TEST(wrong.exit == 2);
    BOOST_TEST(wrong.err.find("tcsh") != std::string::npos, wrong.err);
}

BOOST_AUTO_TEST_SUITE_END()
