/// The command as people call it: what it prints, how it ends.

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <memory>

#include "excerpt.hpp"

namespace {

using namespace wordnet::test;

struct Answer {
    int status = -1;
    std::string text;
    bool has(std::string_view wanted) const { return text.find(wanted) != std::string::npos; }
};

/// A shell calls the program with standard error among what it prints.
Answer call(const std::string& arguments) {
    const std::string line = std::string(TAIYEN_WORDNET_COMMAND) + ' ' + arguments + " 2>&1";
    FILE* const pipe = popen(line.c_str(), "r");
    BOOST_REQUIRE(pipe != nullptr);
    Answer answer;
    std::array<char, 4096> chunk{};
    for (std::size_t got = 0; (got = std::fread(chunk.data(), 1, chunk.size(), pipe)) > 0;) answer.text.append(chunk.data(), got);
    const int status = pclose(pipe);
    answer.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return answer;
}

struct Loaded {
    TemporaryFolder folder;
    std::string heap = (folder.path() / "a.tyn").string();
    Loaded() {
        write_excerpt(folder.path());
        const Answer answer = call("load " + heap + " --from " + folder.path().string());
        BOOST_TEST(answer.status == 0, answer.text);
        BOOST_TEST(answer.has("loaded 14 synsets, 17 words"), answer.text);
    }
    void prints(const std::string& command, const std::string& rest, std::string_view wanted, int status = 0) const {
        const Answer answer = call(command + ' ' + heap + ' ' + rest);
        BOOST_TEST(answer.status == status, answer.text);
        BOOST_TEST(answer.has(wanted), command << ' ' << rest << " printed " << answer.text);
    }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(command)

BOOST_AUTO_TEST_CASE(a_loaded_lexicon_answers) {
    const Loaded loaded;
    loaded.prints("word", "hound", "n00000500  hound, Canis minor");
    loaded.prints("word", "living thing", "a thing that lives");
    loaded.prints("hypernyms", "rex", "Rex → hound → beast → being → thing");
    loaded.prints("path", "rex mouser", "3 steps");
    loaded.prints("path", "thing wild", "no way leads", 1);
    loaded.prints("path", "tamely wild --everything", "2 steps");
    loaded.prints("stats", "", "pertainym");
    loaded.prints("check", "", "the lexicon: whole");
}

BOOST_AUTO_TEST_CASE(a_dry_run_changes_nothing_and_a_committed_edit_stays) {
    const Loaded loaded;
    loaded.prints("add word", "whelp n00000500 --dry-run", "rolled back");
    loaded.prints("word", "whelp", "not in the lexicon", 1);
    loaded.prints("add synset", "whelp 'young one' --gloss 'not grown up' --under n00000500", "committed");
    loaded.prints("hypernyms", "young one", "whelp → hound → beast");
    loaded.prints("add relation", "n00000801 member-holonym n00000800", "member-holonym     n00000800");
    loaded.prints("word", "pack", "member-meronym     n00000801");
    loaded.prints("check", "", "the lexicon: whole");
}

BOOST_AUTO_TEST_CASE(what_was_wrong_is_said_and_ends_with_1) {
    const Loaded loaded;
    loaded.prints("word", "huond", "there is hound", 1);
    loaded.prints("load", "--from " + loaded.folder.path().string(), "already", 1);
    loaded.prints("load", "--from /nonexistent", "wordnet-base", 1);
    loaded.prints("add word", "whelp n00004711", "no synset n00004711", 1);
    loaded.prints("add word", "whelp 4711", "no synset's id", 1);
    loaded.prints("add relation", "n00000100 owner n00000200", "part-meronym", 1);
    loaded.prints("add relation", "n00000100 hypernym n00000500", "above itself", 1);
    const Answer missing = call("word " + (loaded.folder.path() / "missing.tyn").string() + " hound");
    BOOST_TEST(missing.status == 1, missing.text);
    BOOST_TEST(missing.has("missing.tyn"), missing.text);
}

BOOST_AUTO_TEST_CASE(a_wrong_command_line_ends_with_2_and_help_with_0) {
    BOOST_TEST(call("--help").status == 0);
    BOOST_TEST(call("--help").has("hypernyms"));
    BOOST_TEST(call("path --help").status == 0);
    for (const char* const line : {"", "frob", "word", "path a.tyn one", "add a.tyn"}) BOOST_TEST(call(line).status == 2, line);
}

BOOST_AUTO_TEST_SUITE_END()
