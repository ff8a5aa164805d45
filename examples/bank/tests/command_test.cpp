/// The command as people call it, and a short storm.

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <optional>

#include "bank_heap.hpp"

BOOST_AUTO_TEST_SUITE(command)

namespace {

using namespace bank::test;

struct Answer {
    int status = -1;
    std::string text;
    bool has(std::string_view wanted) const { return text.find(wanted) != std::string::npos; }
};

/// A shell calls the program with standard error among what it prints.
Answer call(const std::string& arguments) {
    const std::string line = std::string(TAIYEN_BANK_COMMAND) + ' ' + arguments + " 2>&1";
    FILE* const pipe = popen(line.c_str(), "r");
    BOOST_REQUIRE(pipe != nullptr);
    Answer answer;
    std::array<char, 4096> chunk{};
    for (std::size_t got = 0; (got = std::fread(chunk.data(), 1, chunk.size(), pipe)) > 0;) answer.text.append(chunk.data(), got);
    const int status = pclose(pipe);
    answer.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return answer;
}

void prints(const std::string& arguments, std::string_view wanted, int status = 0) {
    const Answer answer = call(arguments);
    BOOST_TEST(answer.status == status, answer.text);
    BOOST_TEST(answer.has(wanted), arguments << " printed " << answer.text);
}

/// What a short cluster prints; nothing, and that is told: this build has none, or there is no server for it. The one that bootstrap.sh has installed serves where no other is named.
std::optional<Answer> cluster(const TemporaryFolder& folder, const std::string& options) {
    const bool is_installed = std::getenv("TAIYEN_NATS_SERVER") == nullptr && fs::exists(TAIYEN_NATS_INSTALLED);
    Answer answer = call("cluster " + (folder.path() / "bank.tyn").string() + " --accounts 200 --log 1 --seed " +
                         std::to_string(taiyen::test::seed_of_run()) + (is_installed ? " --nats-server " TAIYEN_NATS_INSTALLED " " : " ") + options);
    if (call("--help").has("cluster") && !answer.has("there is no nats-server")) return answer;
    BOOST_TEST_MESSAGE("skipped: no libnats, or no nats-server of version 2.11 or newer; name one: TAIYEN_NATS_SERVER");
    return std::nullopt;
}

void shows(const Answer& answer, int status, std::initializer_list<std::string_view> wanted) {
    BOOST_TEST(answer.status == status, answer.text);
    for (const std::string_view text : wanted) BOOST_TEST(answer.has(text), answer.text);
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_bank_runs_and_goes_on_where_it_stopped) {
    const TemporaryFolder folder;
    const std::string file = (folder.path() / "bank.tyn").string();
    prints("run " + file + " --accounts 100 --seconds 0.3 --threads 3", "every invariant holds");
    prints("run " + file + " --accounts 100 --seconds 0.3 --threads 3 --async", "closed properly");
    prints("check " + file, "the heap: whole");
}

BOOST_AUTO_TEST_CASE(nothing_acknowledged_is_lost_in_a_storm) {
    const TemporaryFolder folder;
    const std::string file = (folder.path() / "bank.tyn").string();
    prints("storm " + file + " --accounts 200 --log 1 --kills 6 --threads 4 --longest-life 300 --seed " + std::to_string(taiyen::test::seed_of_run()),
           "6 kills: ");
}

BOOST_AUTO_TEST_CASE(nothing_acknowledged_is_lost_when_a_follower_takes_over) {
    const TemporaryFolder folder;
    const auto answer = cluster(folder, "--servers 1 --seconds 1");
    if (!answer) return;
    shows(*answer, 0, {"go on as it is back", "acknowledged, 0 lost", "comes back, and is refused", "every invariant holds", "the heap: whole"});
    // The bank goes on where the follower has taken over, also into other servers.
    prints("run " + (folder.path() / "bank.tyn").string() + " --seconds 0.1", "closed properly");
    shows(*cluster(folder, "--servers 1 --seconds 0.2"), 0, {"acknowledged, 0 lost"});
}

BOOST_AUTO_TEST_CASE(a_cluster_of_three_servers_goes_on_without_one_of_them) {
    const TemporaryFolder folder;
    if (const auto answer = cluster(folder, "--seconds 1")) shows(*answer, 0, {"and go on without it", "acknowledged, 0 lost"});
}

BOOST_AUTO_TEST_CASE(a_primary_that_promises_before_the_servers_have_it_is_convicted) {
    const TemporaryFolder folder;
    const auto honest = cluster(folder, "--servers 1 --seconds 0.2 --freeze");
    if (!honest) return;
    shows(*honest, 0, {"acknowledged, 0 lost"});
    shows(*cluster(folder, "--servers 1 --seconds 0.2 --freeze --local"), 1, {" was acknowledged (serial "});
}

BOOST_AUTO_TEST_CASE(a_wrong_command_line_ends_with_2_a_missing_bank_with_1_and_help_with_0) {
    const TemporaryFolder folder;
    BOOST_TEST(call("--help").status == 0);
    BOOST_TEST(call("--help").has("storm"));
    BOOST_TEST(!call("--help").has("live"));
    BOOST_TEST(!call("--help").has("primary"));
    BOOST_TEST(call("storm --help").has("--longest-life"));
    for (const char* const line : {"", "frob", "run --threads 0", "run --accounts 1", "run --seconds x", "cluster --servers 2"})
        BOOST_TEST(call(line).status == 2, line);
    prints("check " + (folder.path() / "missing.tyn").string(), "missing.tyn", 1);
}

BOOST_AUTO_TEST_SUITE_END()
