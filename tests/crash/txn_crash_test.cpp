// Transactional heaps through every crash state of their lives; and planted bugs, to prove that the states see.

#include <algorithm>
#include <cstdio>

#include <sys/resource.h>

#include <boost/test/unit_test.hpp>

#include "base/checksum.hpp"
#include "base/planted.hpp"
#include "crash/budget.hpp"
#include "crash/heap_scenarios.hpp"
#include "crash/txn_scenarios.hpp"
#include "store/recovery.hpp"

namespace taiyen::crash {
namespace {

class Planted {
public:
    explicit Planted(Bug bug) { planted_bug = bug; }
    Planted(const Planted&) = delete;
    Planted& operator=(const Planted&) = delete;
    ~Planted() { planted_bug = Bug::none; }
};

struct Outcome {
    Tally tally;
    std::optional<Failure> failure;
    std::size_t operations = 0;
};

/// What went before the recorded piece happens without the planted bug.
Outcome run(const TxnScenario& scenario, const Effort& effort, const std::string& only = {}, Bug bug = Bug::none) {
    const SilentReports silent;
    repeatable_random = mix(effort.seed, checksum(std::as_bytes(std::span(std::string_view(scenario.name))), 0)) | 1U;
    Outcome outcome;
    io::SimulatedStorage disk;
    disk.add_directory("/disk");
    TxnHistory history{TxnState{}};
    io::Trace trace;
    Image base;
    std::uint64_t acknowledged = 0;
    std::optional<Planted> switched;
    note_current_state(std::string(scenario.name) + ":live");
    try {
        if (scenario.before) {
            history = live_before(scenario, disk);
            acknowledged = history.size() - 1;
        }
        base = image_of(disk);
        switched.emplace(bug);
        io::RecordingStorage recorder(disk);
        TxnLife life(recorder, &recorder, scenario.setup, history);
        scenario.life(life);
        history = life.history();
        trace = recorder.take_trace();
        disk.disconnect();
        life.abandon();
    } catch (const std::exception& error) {
        outcome.failure = Failure{std::string(scenario.name) + ":live", error.what()};
        return outcome;
    }
    outcome.operations = trace.size();
    TxnSubject subject(scenario.setup, history);
    Explorer explorer(scenario.name, effort);
    outcome.failure = only.empty() ? explorer.explore(base, trace, subject, acknowledged) : explorer.replay(only, base, trace, subject, acknowledged);
    outcome.tally = explorer.tally();
    return outcome;
}

/// Processor time of this process: the machine may be busy with other things.
double cpu_seconds() {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    const auto seconds = [](const timeval& time) { return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6; };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

BOOST_AUTO_TEST_SUITE(a_transactional_heap)

BOOST_AUTO_TEST_CASE(keeps_every_transaction_that_was_told_durable_through_every_crash_state) {
    watch_for_crashes();
    const std::uint64_t seed = seed_of_this_run();
    const char* const only = std::getenv("TAIYEN_CRASH_STATE");
    Tally total;
    const double start = cpu_seconds();
    std::printf("%-20s %10s %10s %10s %10s %10s %8s\n", "scenario", "operations", "cuts", "states", "distinct", "nested", "cpu s");
    for (const TxnScenario& scenario : txn_scenarios()) {
        if (only != nullptr && !std::string_view(only).starts_with(std::string(scenario.name) + ":")) continue;
        const double begin = cpu_seconds();
        Effort effort;
        effort.seed = seed;
        effort.states_per_cut = static_cast<std::uint64_t>(32 * budget()) + 2;
        effort.nested_one_in = 80;
        const Outcome outcome = run(scenario, effort, only != nullptr ? only : "");
        std::printf("%-20s %10zu %10llu %10llu %10llu %10llu %8.1f\n", scenario.name, outcome.operations, static_cast<unsigned long long>(outcome.tally.cuts),
                    static_cast<unsigned long long>(outcome.tally.states), static_cast<unsigned long long>(outcome.tally.distinct),
                    static_cast<unsigned long long>(outcome.tally.nested_distinct), cpu_seconds() - begin);
        std::fflush(stdout);
        total.add(outcome.tally);
        if (outcome.failure) BOOST_ERROR(outcome.failure->id << ": " << outcome.failure->what);
    }
    const double seconds = cpu_seconds() - start;
    std::printf("total: %llu states, %llu distinct, nested %llu, %llu distinct; %.1f s of processor time, %.0f states recovered per second\n",
                static_cast<unsigned long long>(total.states), static_cast<unsigned long long>(total.distinct),
                static_cast<unsigned long long>(total.nested_states), static_cast<unsigned long long>(total.nested_distinct), seconds,
                static_cast<double>(total.distinct + total.nested_distinct) / seconds);
    BOOST_TEST(total.states > 0U);
    for (const store::Row row : {store::Row::log_replayed, store::Row::stage_installed, store::Row::data_to_backing, store::Row::torn_record_cut, store::Row::clean}) {
        BOOST_CHECK_MESSAGE(only != nullptr || store::rows_taken(row) > 0, "no state reached row " << static_cast<int>(row) << " of recovery");
    }
}

/// A safeguard that is switched off, and the scenarios that should see its absence.
struct PlantedBug {
    Bug bug;
    const char* name;
    std::vector<const char*> scenarios;
};

/// Left out: a log that is replayed twice (transactions are consecutive, and a procedure proves the bytes that it begins with).
std::vector<PlantedBug> planted_bugs() {
    return {
        {Bug::commit_before_durable, "commit_before_durable", {"txn-commit"}},
        {Bug::group_before_write, "group_before_write", {"txn-commit"}},
        {Bug::acknowledge_before_write, "acknowledge_before_write", {"txn-commit"}},
        {Bug::append_one_late, "append_one_late", {"txn-commit"}},
        {Bug::skip_stamp_check, "skip_stamp_check", {"txn-commit"}},
        {Bug::torn_group_accepted, "torn_group_accepted", {"txn-commit", "txn-shared"}},
        {Bug::large_before_save, "large_before_save", {"txn-large", "txn-large-data"}},
        {Bug::snapshot_claims_next, "snapshot_claims_next", {"txn-full"}},
        {Bug::release_before_snapshot, "release_before_snapshot", {"txn-full", "txn-full-data"}},
        {Bug::stale_log_start, "stale_log_start", {"txn-full"}},
        {Bug::replay_skips_first_group, "replay_skips_first_group", {"txn-commit"}},
        {Bug::same_epoch_after_replay, "same_epoch_after_replay", {"txn-recover", "txn-recover-data"}},
        {Bug::stage_without_sync, "stage_without_sync", {"txn-snapshot"}},
        {Bug::truncate_stage_early, "truncate_stage_early", {"txn-large"}},
        {Bug::install_before_staged_header, "install_before_staged_header", {"txn-snapshot"}},
        {Bug::skip_backing_sync, "skip_backing_sync", {"txn-snapshot"}},
        {Bug::whole_before_data_sync, "whole_before_data_sync", {"txn-snapshot-data"}},
        {Bug::backing_before_data_commit, "backing_before_data_commit", {"txn-snapshot-data"}},
        {Bug::trust_filling_data, "trust_filling_data", {"txn-snapshot-data"}},
        {Bug::log_named_before_complete, "log_named_before_complete", {"txn-attach-archive"}},
        {Bug::skip_directory_sync, "skip_directory_sync", {"txn-create"}},
        {Bug::publish_backing_first, "publish_backing_first", {"txn-create"}},
    };
}

BOOST_AUTO_TEST_CASE(with_a_safeguard_missing_is_caught_by_a_state) {
    watch_for_crashes();
    const std::uint64_t seed = seed_of_this_run();
    const char* const only = std::getenv("TAIYEN_CRASH_BUG");
    std::size_t caught = 0;
    std::size_t tried = 0;
    const auto scenarios = txn_scenarios();
    std::printf("%-28s %10s  %s\n", "planted bug", "states", "caught by");
    for (const PlantedBug& bug : planted_bugs()) {
        if (only != nullptr && std::string_view(only) != bug.name) continue;
        ++tried;
        std::optional<Failure> failure;
        std::uint64_t states = 0;
        for (const char* name : bug.scenarios) {
            const auto scenario = std::ranges::find_if(scenarios, [&](const TxnScenario& one) { return std::string_view(one.name) == name; });
            BOOST_REQUIRE_MESSAGE(scenario != scenarios.end(), name);
            const Effort effort{.states_per_cut = 40, .nested_one_in = 50, .nested_states_per_cut = 20, .seed = seed};
            const Outcome outcome = run(*scenario, effort, "", bug.bug);
            states += outcome.tally.distinct + outcome.tally.nested_distinct;
            if (outcome.failure) {
                failure = outcome.failure;
                const Outcome again = run(*scenario, effort, failure->id, bug.bug);  // the id alone builds the state again
                BOOST_CHECK_MESSAGE(again.failure && again.failure->id == failure->id, failure->id << " does not replay: " << (again.failure ? again.failure->id : "no failure"));
                break;
            }
        }
        std::printf("%-28s %10llu  %s\n", bug.name, static_cast<unsigned long long>(states), failure ? (failure->id + ": " + failure->what).c_str() : "NOT CAUGHT");
        std::fflush(stdout);
        caught += failure.has_value() ? 1 : 0;
        BOOST_CHECK_MESSAGE(failure.has_value(), bug.name << " was not caught");
        BOOST_CHECK_MESSAGE(!failure || failure->id.find(":live") == std::string::npos, bug.name << " was caught before any crash: " << failure->what);
    }
    std::printf("%zu of %zu planted bugs caught\n", caught, tried);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace taiyen::crash
