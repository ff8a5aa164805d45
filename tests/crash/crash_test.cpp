// What the crash harness does in each run of the tests: a sample of the states, every planted bug, and faults. Each leaves its report beside the program.

#include <filesystem>
#include <fstream>

#include <boost/test/unit_test.hpp>

#include "crash/budget.hpp"
#include "crash/runner.hpp"
#include "crash/state_note.hpp"

namespace taiyen::crash {
namespace {

constexpr double fault_share = 2.25;  ///< of the faults a run takes so many times the share that it takes of the states, which take longer

RunOptions options_of_this_run() {
    watch_for_crashes();
    RunOptions options;
    options.budget = budget();
    options.seed = seed_of_this_run();
    BOOST_TEST_MESSAGE("TAIYEN_SEED=" << options.seed);
    return options;
}

template <class Report>
void leave(const Report& report, const char* name) {
    std::ofstream file(std::filesystem::path(TAIYEN_CRASH_REPORTS) / name);
    write(file, report);
    BOOST_TEST(file.good());
}

BOOST_AUTO_TEST_SUITE(everything_durable)

BOOST_AUTO_TEST_CASE(keeps_what_was_acknowledged_through_every_crash_state) {
    const RunOptions options = options_of_this_run();
    if (const char* const only = std::getenv("TAIYEN_CRASH_STATE")) {
        const ReplayResult result = replay_state(only, options, Bug::none, true);
        BOOST_CHECK_MESSAGE(!result.failure, result.failure->id << ": " << result.failure->what
                                                                << (result.shrunk ? "\n" + result.shrunk->id + ": " + result.shrunk->words : ""));
        return;
    }
    const StatesReport report = explore_all(options);
    leave(report, "crash_states.md");
    for (const ScenarioResult& scenario : report.scenarios) {
        BOOST_CHECK_MESSAGE(!scenario.failure, scenario.failure->id << ": " << scenario.failure->what);
        BOOST_CHECK_MESSAGE(scenario.failure || scenario.tally.distinct != 0 || is_thin(options), scenario.name << " has no states");
    }
    if (is_thin(options)) return;
    BOOST_CHECK_MESSAGE(report.failures() != 0 || report.uncovered() == 0, report.uncovered()
                                                                               << " operations have no crash right before or right behind them");
    const Rows rows = report.rows();
    for (std::size_t row = 0; row < rows.size(); ++row)
        BOOST_CHECK_MESSAGE(rows[row] != 0, "no state reached the row of recovery: " << name_of(static_cast<store::Row>(row)));
}

BOOST_AUTO_TEST_CASE(shows_every_planted_bug_in_a_state_that_replays) {
    RunOptions options = options_of_this_run();
    if (const char* const only = std::getenv("TAIYEN_CRASH_BUG")) options.only = only;
    if (is_thin(options) && options.only.empty()) {
        BOOST_TEST_MESSAGE("left to a whole run: a small sample owes no planted bug");
        return;
    }
    const BugsReport report = plant_all(options);
    leave(report, "crash_bugs.md");
    for (const BugResult& one : report.bugs) {
        BOOST_CHECK_MESSAGE(one.failure.has_value(), one.bug->name << " was not caught in " << one.bug->scenarios.front());
        if (!one.failure) continue;
        if (one.bug->seen_alive) continue;
        BOOST_CHECK_MESSAGE(!one.failure->id.ends_with(":live"), one.bug->name << " was caught before any crash: " << one.failure->what);
        BOOST_CHECK_MESSAGE(one.replays, one.bug->name << ": " << one.failure->id << " does not replay");
    }
    BOOST_CHECK(!options.only.empty() || report.distinct_bugs() >= 24);
}

BOOST_AUTO_TEST_CASE(loses_nothing_acknowledged_whatever_fails) {
    RunOptions options = options_of_this_run();
    if (!is_thin(options)) options.budget *= fault_share;
    const FaultsReport report = sweep_all(options);
    leave(report, "crash_faults.md");
    for (const FaultResult& one : report.results)
        for (const std::string& what : one.what) BOOST_ERROR(what);
    BOOST_TEST(report.wrong() == 0U);
    BOOST_TEST(report.faults() > 0U);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace taiyen::crash
