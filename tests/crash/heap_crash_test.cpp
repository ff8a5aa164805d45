// Archive and snapshot heaps through every crash state of their lives; and planted bugs, to prove that the states see.

#include <algorithm>
#include <array>
#include <cstdio>

#include <sys/resource.h>

#include <boost/test/unit_test.hpp>

#include "base/checksum.hpp"
#include "base/planted.hpp"
#include "crash/budget.hpp"
#include "crash/heap_life.hpp"
#include "crash/heap_scenarios.hpp"
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

Outcome run(const Scenario& scenario, const Effort& effort, const std::string& only = {}) {
    const SilentReports silent;
    repeatable_random = mix(effort.seed, checksum(std::as_bytes(std::span(std::string_view(scenario.name))), 0)) | 1U;
    Outcome outcome;
    io::SimulatedStorage disk;
    disk.add_directory("/disk");
    History history{Model{}};
    io::Trace trace;
    Image base;
    std::uint64_t acknowledged = 0;
    std::optional<LostData> lost;
    try {
        if (scenario.before) {
            Past past = live_before(scenario, disk);
            history = std::move(past.history);
            lost = std::move(past.lost);
            acknowledged = history.size() - 1;
        }
        base = image_of(disk);
        io::RecordingStorage recorder(disk);
        HeapLife life(recorder, &recorder, scenario.setup, history);
        scenario.life(life);
        history = life.history();
        trace = recorder.take_trace();
    } catch (const std::exception& error) {
        outcome.failure = Failure{std::string(scenario.name) + ":live", error.what()};
        return outcome;
    }
    outcome.operations = trace.size();
    HeapSubject subject(scenario.setup, history, std::move(lost));
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

constexpr std::array<std::pair<store::Row, const char*>, 12> rows{{
    {store::Row::slot_repaired, "a header slot repaired"},
    {store::Row::backing_rebuilt, "the backing file rebuilt from the data file"},
    {store::Row::clean, "clean"},
    {store::Row::data_refilled, "the data file refilled"},
    {store::Row::data_to_backing, "a newer data file copied to the backing file"},
    {store::Row::backing_to_data, "a newer backing file copied to the data file"},
    {store::Row::records_installed, "records installed"},
    {store::Row::stage_installed, "a stage installed"},
    {store::Row::log_replayed, "a transaction log replayed"},
    {store::Row::torn_record_cut, "a torn record cut"},
    {store::Row::table_page_rebuilt, "a table page rebuilt"},
    {store::Row::orphan_removed, "an orphan of a killed creation removed"},
}};
static_assert(rows.size() == static_cast<std::size_t>(store::Row::count_));

BOOST_AUTO_TEST_SUITE(a_heap)

BOOST_AUTO_TEST_CASE(keeps_every_acknowledged_save_through_every_crash_state) {
    watch_for_crashes();
    const std::uint64_t seed = seed_of_this_run();
    const char* const only = std::getenv("TAIYEN_CRASH_STATE");
    Tally total;
    const double start = cpu_seconds();
    std::printf("%-20s %10s %10s %10s %10s %10s %8s\n", "scenario", "operations", "cuts", "states", "distinct", "nested", "cpu s");
    for (const Scenario& scenario : scenarios()) {
        if (only != nullptr && !std::string_view(only).starts_with(std::string(scenario.name) + ":")) {
            continue;
        }
        const double begin = cpu_seconds();
        Effort effort;
        effort.seed = seed;
        effort.states_per_cut = static_cast<std::uint64_t>(400 * budget()) + 4;
        effort.nested_one_in = 200;
        const Outcome outcome = run(scenario, effort, only != nullptr ? only : "");
        std::printf("%-20s %10zu %10llu %10llu %10llu %10llu %8.1f\n", scenario.name, outcome.operations, static_cast<unsigned long long>(outcome.tally.cuts),
                    static_cast<unsigned long long>(outcome.tally.states), static_cast<unsigned long long>(outcome.tally.distinct),
                    static_cast<unsigned long long>(outcome.tally.nested_distinct), cpu_seconds() - begin);
        std::fflush(stdout);
        total.add(outcome.tally);
        if (outcome.failure) {
            BOOST_ERROR(outcome.failure->id << ": " << outcome.failure->what);
        }
    }
    const double seconds = cpu_seconds() - start;
    std::printf("total: %llu states, %llu distinct, nested %llu, %llu distinct; %.1f s of processor time, %.0f states recovered per second\n",
                static_cast<unsigned long long>(total.states), static_cast<unsigned long long>(total.distinct),
                static_cast<unsigned long long>(total.nested_states), static_cast<unsigned long long>(total.nested_distinct), seconds,
                static_cast<double>(total.distinct + total.nested_distinct) / seconds);
    for (const auto& [row, name] : rows) {
        std::printf("%10llu  %s\n", static_cast<unsigned long long>(store::rows_taken(row)), name);
        BOOST_CHECK_MESSAGE(only != nullptr || store::rows_taken(row) > 0, "no state reached the row of recovery: " << name);
    }
    BOOST_TEST(total.states > 0U);
}

/// A safeguard that is switched off, and where its absence should be seen first.
struct PlantedBug {
    Bug bug;
    const char* name;
    std::vector<const char*> first;
};

/// Left out: two second lines of defence, which no crash alone gets past the first to reach. `skip_seed`: records of an earlier epoch or lap are told apart already;
/// `release_before_data_header`: no record is written between the two headers.
std::vector<PlantedBug> planted_bugs() {
    return {
        {Bug::skip_backing_sync, "skip_backing_sync", {"small-archive"}},
        {Bug::skip_data_sync, "skip_data_sync", {"small-snapshot", "large-snapshot"}},
        {Bug::header_before_sync, "header_before_sync", {"small-archive"}},
        {Bug::files_before_record, "files_before_record", {"small-archive"}},
        {Bug::acknowledge_before_write, "acknowledge_before_write", {"small-archive"}},
        {Bug::same_epoch_after_recovery, "same_epoch_after_recovery", {"recover-archive"}},
        {Bug::ring_restarts_in_old_epoch, "ring_restarts_in_old_epoch", {"recover-archive"}},
        {Bug::skip_stamp_check, "skip_stamp_check", {"small-archive"}},
        {Bug::trust_filling_data, "trust_filling_data", {"large-snapshot"}},
        {Bug::whole_before_data_sync, "whole_before_data_sync", {"large-snapshot"}},
        {Bug::backing_before_data_commit, "backing_before_data_commit", {"large-snapshot"}},
        {Bug::copy_by_entries, "copy_by_entries", {"large-snapshot"}},
        {Bug::stage_without_sync, "stage_without_sync", {"large-archive"}},
        {Bug::truncate_stage_early, "truncate_stage_early", {"large-archive"}},
        {Bug::skip_directory_sync, "skip_directory_sync", {"create-archive", "create-snapshot"}},
        {Bug::publish_backing_first, "publish_backing_first", {"create-snapshot"}},
        {Bug::punch_before_checkpoint, "punch_before_checkpoint", {"release-archive", "release-snapshot"}},
        {Bug::clean_before_checkpoint, "clean_before_checkpoint", {"small-archive"}},
        {Bug::remove_ring_before_clean, "remove_ring_before_clean", {"small-archive"}},
        {Bug::skip_table_write, "skip_table_write", {"create-archive"}},
        {Bug::same_epoch_after_replay, "same_epoch_after_replay", {"recover-log", "small-log"}},
        {Bug::install_before_staged_header, "install_before_staged_header", {"small-log"}},
        {Bug::log_named_before_complete, "log_named_before_complete", {"attach-log"}},
        {Bug::clean_despite_log, "clean_despite_log", {"log-unsaved"}},
        {Bug::replay_first_record_only, "replay_first_record_only", {"small-archive"}},
        {Bug::annex_without_table, "annex_without_table", {"annex-archive"}},
        {Bug::annex_after_data_sync, "annex_after_data_sync", {"annex-snapshot"}},
        {Bug::annex_guessed_place, "annex_guessed_place", {"annex-archive"}},
        {Bug::annex_ends_before_record, "annex_ends_before_record", {"annex-ends-archive"}},
        {Bug::annex_ends_after_record, "annex_ends_after_record", {"annex-ends-archive"}},
        {Bug::refill_keeps_tail, "refill_keeps_tail", {"annex-large-snapshot"}},
        {Bug::detach_in_memory_only, "detach_in_memory_only", {"detach"}},
    };
}

BOOST_AUTO_TEST_CASE(with_a_safeguard_missing_is_caught_by_a_state) {
    watch_for_crashes();
    const std::uint64_t seed = seed_of_this_run();
    const char* const only = std::getenv("TAIYEN_CRASH_BUG");
    std::size_t caught = 0;
    std::size_t tried = 0;
    std::printf("%-28s %10s  %s\n", "planted bug", "states", "caught by");
    for (const PlantedBug& planted : planted_bugs()) {
        if (only != nullptr && std::string_view(only) != planted.name) {
            continue;
        }
        ++tried;
        std::vector<Scenario> order;
        for (const bool first : {true, false}) {
            for (const Scenario& scenario : scenarios()) {
                const bool named = std::any_of(planted.first.begin(), planted.first.end(), [&](const char* name) { return std::string_view(name) == scenario.name; });
                if (named == first) {
                    order.push_back(scenario);
                }
            }
        }
        std::optional<Failure> failure;
        std::uint64_t states = 0;
        const Planted switched(planted.bug);
        for (const Scenario& scenario : order) {
            const Effort effort{.states_per_cut = 40, .nested_one_in = 50, .nested_states_per_cut = 20, .seed = seed};
            const Outcome outcome = run(scenario, effort);
            states += outcome.tally.distinct + outcome.tally.nested_distinct;
            if (outcome.failure) {
                failure = outcome.failure;
                // The id alone builds the state again.
                const Outcome again = run(scenario, effort, failure->id);
                BOOST_CHECK_MESSAGE(again.failure && again.failure->id == failure->id && again.failure->what == failure->what,
                                    failure->id << " does not replay: " << (again.failure ? again.failure->id + ": " + again.failure->what : "no failure"));
                break;
            }
        }
        std::printf("%-28s %10llu  %s\n", planted.name, static_cast<unsigned long long>(states),
                    failure ? (failure->id + ": " + failure->what).c_str() : "NOT CAUGHT");
        std::fflush(stdout);
        caught += failure.has_value() ? 1 : 0;
        BOOST_CHECK_MESSAGE(failure.has_value(), planted.name << " was not caught");
        BOOST_CHECK_MESSAGE(!failure || failure->id.find(":live") == std::string::npos, planted.name << " was caught before any crash: " << failure->what);
    }
    std::printf("%zu of %zu planted bugs caught\n", caught, tried);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace taiyen::crash
