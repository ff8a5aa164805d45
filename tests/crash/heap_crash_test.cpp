// Archive and snapshot heaps through every crash state of their lives; and planted bugs, to prove that the states see.

#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>

#include <sys/resource.h>

#include <boost/test/unit_test.hpp>

#include <taiyen/base/report.hpp>

#include "base/checksum.hpp"
#include "base/planted.hpp"
#include "crash/budget.hpp"
#include "crash/heap_life.hpp"
#include "store/recovery.hpp"

namespace taiyen::crash {
namespace {

/// A piece of a heap's life: what went before, and what is recorded.
struct Scenario {
    const char* name;
    HeapSetup setup;
    std::function<void(HeapLife&)> before;  ///< empty: nothing
    std::function<void(HeapLife&)> life;
    bool crashed_before = false;            ///< `before` ends without closing
    bool damage_headers = false;            ///< both header slots of the backing file are lost in between
};

void small_saves(HeapLife& life, int count, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    for (int i = 0; i < count; ++i) {
        change_something(life, random);
        life.save();
    }
}

void create_and_save(HeapLife& life) {
    life.create();
    small_saves(life, 2, 1);
    life.close();
}

void open_save_close(HeapLife& life) {
    life.open();
    small_saves(life, 12, 2);
    life.close();
}

void large_saves(HeapLife& life) {
    life.open();
    small_saves(life, 1, 3);
    life.put("large", 60'000, 4);
    life.save();
    small_saves(life, 1, 5);
    life.touch("large", 6);
    life.put("large", 50'000, 7);
    life.save();
    life.close();
}

void give_space_back(HeapLife& life) {
    life.open();
    life.remove("big");
    life.save();
    life.close();
    life.open();
    life.put("again", 120'000, 8);
    life.save();
    life.close();
}

void with_big_object(HeapLife& life) {
    life.create();
    life.put("big", 200'000, 9);
    life.put("small", 100, 10);
    life.save();
    life.close();
}

/// Many pages, and saves that change a few far apart: their checksums lie in different sectors of a table page.
void with_wide_object(HeapLife& life) {
    life.create();
    life.put("wide", 800'000, 15);
    life.save();
    life.close();
}

void change_far_apart(HeapLife& life) {
    life.open();
    std::mt19937_64 random(16);
    for (int i = 0; i < 6; ++i) {
        life.touch("wide", random());
        life.touch("wide", random());
        life.save();
    }
    life.close();
}

std::vector<Scenario> scenarios() {
    const HeapSetup archive{.kind = HeapKind::archive};
    const HeapSetup snapshot{.kind = HeapKind::snapshot};
    const auto create = [](HeapLife& life) {
        life.create();
        small_saves(life, 1, 1);
        life.close();
    };
    const auto unclosed = [](HeapLife& life) {
        life.create();
        small_saves(life, 3, 11);
    };
    const auto recover = [](HeapLife& life) {
        life.open();
        small_saves(life, 2, 12);
        life.close();
    };
    return {
        {.name = "create-archive", .setup = archive, .before = {}, .life = create},
        {.name = "create-snapshot", .setup = snapshot, .before = {}, .life = create},
        {.name = "small-archive", .setup = archive, .before = create_and_save, .life = open_save_close},
        {.name = "small-snapshot", .setup = snapshot, .before = create_and_save, .life = open_save_close},
        {.name = "large-archive", .setup = archive, .before = create_and_save, .life = large_saves},
        {.name = "large-snapshot", .setup = snapshot, .before = create_and_save, .life = large_saves},
        {.name = "release-archive", .setup = archive, .before = with_big_object, .life = give_space_back},
        {.name = "release-snapshot", .setup = snapshot, .before = with_big_object, .life = give_space_back},
        {.name = "wide-archive", .setup = archive, .before = with_wide_object, .life = change_far_apart},
        {.name = "wide-snapshot", .setup = snapshot, .before = with_wide_object, .life = change_far_apart},
        {.name = "attach", .setup = snapshot,
         .before =
             [](HeapLife& life) {
                 life.create();
                 small_saves(life, 2, 13);
                 life.close();
             },
         .life =
             [](HeapLife& life) {
                 life.open(HeapKind::snapshot);
                 small_saves(life, 2, 14);
                 life.close();
             }},
        {.name = "recover-archive", .setup = archive, .before = unclosed, .life = recover, .crashed_before = true},
        {.name = "recover-snapshot", .setup = snapshot, .before = unclosed, .life = recover, .crashed_before = true},
        {.name = "rebuild", .setup = snapshot, .before = unclosed, .life = recover, .crashed_before = true, .damage_headers = true},
    };
}

void stay_silent(const Incident&) noexcept {}

/// Handles that die with their disk complain; that is meant here.
class SilentReports {
public:
    SilentReports() : before_(set_report_handler(stay_silent)) {}
    SilentReports(const SilentReports&) = delete;
    SilentReports& operator=(const SilentReports&) = delete;
    ~SilentReports() { set_report_handler(before_); }

private:
    ReportHandler before_;
};

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
    try {
        if (scenario.before) {
            HeapSetup setup = scenario.setup;
            if (std::string_view(scenario.name) == "attach") {
                setup.kind = HeapKind::archive;
            }
            HeapLife life(disk, nullptr, setup);
            scenario.before(life);
            history = life.history();
            if (scenario.crashed_before) {
                disk.disconnect();
                life.abandon();
            }
            acknowledged = history.size() - 1;
        }
        if (scenario.damage_headers) {
            for (const std::uint64_t slot : {std::uint64_t{0}, std::uint64_t{page_bytes}}) {
                disk.node(heap_path)->write(std::vector<std::byte>(512, std::byte{0x5a}), slot + 512);
            }
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
    HeapSubject subject(scenario.setup, history);
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

constexpr std::array<std::pair<store::Row, const char*>, 11> rows{{
    {store::Row::slot_repaired, "a header slot repaired"},
    {store::Row::backing_rebuilt, "the backing file rebuilt from the data file"},
    {store::Row::clean, "clean"},
    {store::Row::data_refilled, "the data file refilled"},
    {store::Row::data_to_backing, "a newer data file copied to the backing file"},
    {store::Row::backing_to_data, "a newer backing file copied to the data file"},
    {store::Row::records_installed, "records installed"},
    {store::Row::stage_installed, "a stage installed"},
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
    std::printf("%-18s %10s %10s %10s %10s %10s %8s\n", "scenario", "operations", "cuts", "states", "distinct", "nested", "cpu s");
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
        std::printf("%-18s %10zu %10llu %10llu %10llu %10llu %8.1f\n", scenario.name, outcome.operations, static_cast<unsigned long long>(outcome.tally.cuts),
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
        {Bug::replay_first_record_only, "replay_first_record_only", {"small-archive"}},
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
        std::vector<Scenario> order = scenarios();
        std::stable_partition(order.begin(), order.end(), [&](const Scenario& scenario) {
            return std::any_of(planted.first.begin(), planted.first.end(), [&](const char* name) { return std::string_view(name) == scenario.name; });
        });
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
