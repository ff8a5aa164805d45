#include "crash/runner.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ostream>
#include <set>
#include <stdexcept>

#include <sys/resource.h>
#include <unistd.h>

#include "base/checksum.hpp"
#include "crash/fault_sweep.hpp"
#include "crash/heap_scenarios.hpp"
#include "crash/state_note.hpp"
#include "crash/workers.hpp"

namespace taiyen::crash {
namespace {

constexpr std::size_t wide_jobs = 4;  ///< with fewer jobs for each worker, scenarios are shared out

/// Processor time of this process: the machine may be busy with other things.
double cpu_seconds() {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    const auto seconds = [](const timeval& time) { return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6; };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

class WallClock {
public:
    double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

private:
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

unsigned workers_of(const RunOptions& options) { return options.workers != 0 ? options.workers : processors(); }

bool wanted(const RunOptions& options, const std::string& name) { return options.only.empty() || name.find(options.only) != std::string::npos; }

const CrashScenario& scenario_of(const std::vector<CrashScenario>& all, const std::string& name) {
    const auto found = std::ranges::find_if(all, [&](const CrashScenario& one) { return one.name == name; });
    if (found == all.end()) throw std::invalid_argument("no scenario has the name '" + name + "'");
    return *found;
}

Recording record(const CrashScenario& scenario, std::uint64_t seed, Bug bug) {
    note_current_state(scenario.name + ":live");
    ::alarm(hang_seconds);
    repeatable_random = mix(seed, checksum(std::as_bytes(std::span(scenario.name)), 0)) | 1U;
    Recording recording = scenario.record(seed, bug);
    planted_bug = bug;
    ::alarm(0);
    return recording;
}

/// Of a thin run's disks each so-manieth is looked at, and each so-manieth cut of a recovery: what each cut gets whatever the budget says is more than a hundredth.
constexpr std::uint64_t thin_share = 16;
constexpr std::uint64_t thin_nested_cuts = 2;
/// Between the seeds of a scenario's lives in one round; rounds count from the first of them.
constexpr std::uint64_t seeds_apart = 1'000'000;
/// A thin run lets each scenario meet one in so many kinds of faults, and each kind one in so many scenarios.
constexpr std::size_t thin_fault_share = 3;

Effort effort_of(const CrashScenario& scenario, const RunOptions& options, std::uint64_t seed) {
    return {.states_per_cut = static_cast<std::uint64_t>(static_cast<double>(scenario.states_per_cut) * options.budget) + 4,
            .nested_one_in = scenario.nested_one_in,
            .nested_states_per_cut = scenario.nested_states_per_cut,
            .nested_cut_one_in = is_thin(options) ? thin_nested_cuts : 1,
            .seed = seed};
}

Effort effort_for_bugs(std::uint64_t seed) { return {.states_per_cut = 40, .nested_one_in = 50, .nested_states_per_cut = 20, .seed = seed}; }

// ---- what workers tell

void put(Packet& packet, const std::optional<Failure>& failure) {
    packet.put(failure.has_value() ? 1U : 0U);
    if (failure) {
        packet.put(failure->id);
        packet.put(failure->what);
    }
}

std::optional<Failure> failure_from(Packet& packet) {
    if (packet.number() == 0) return std::nullopt;
    Failure failure;
    failure.id = packet.text();
    failure.what = packet.text();
    return failure;
}

void put(Packet& packet, const std::optional<Shrunk>& shrunk) {
    packet.put(shrunk.has_value() ? 1U : 0U);
    if (shrunk) {
        packet.put(shrunk->id);
        packet.put(shrunk->what);
        packet.put(shrunk->words);
    }
}

std::optional<Shrunk> shrunk_from(Packet& packet) {
    if (packet.number() == 0) return std::nullopt;
    Shrunk shrunk;
    shrunk.id = packet.text();
    shrunk.what = packet.text();
    shrunk.words = packet.text();
    return shrunk;
}

void put(Packet& packet, const Tally& tally) {
    for (const std::uint64_t number : {tally.states, tally.distinct, tally.nested_states, tally.nested_distinct, tally.cuts}) packet.put(number);
    packet.put(tally.by_selection.size());
    for (const auto& [select, count] : tally.by_selection) {
        packet.put(static_cast<std::uint64_t>(select));
        packet.put(count);
    }
}

Tally tally_from(Packet& packet) {
    Tally tally;
    for (std::uint64_t* const number : {&tally.states, &tally.distinct, &tally.nested_states, &tally.nested_distinct, &tally.cuts})
        *number = packet.number();
    for (std::uint64_t more = packet.number(); more-- > 0;) {
        const auto select = static_cast<Select>(packet.number());
        tally.by_selection[select] = packet.number();
    }
    return tally;
}

void put(Packet& packet, const std::vector<Coverage>& coverage) {
    packet.put(coverage.size());
    for (const Coverage& one : coverage) {
        packet.put(static_cast<std::uint64_t>(one.kind));
        packet.put((one.changes ? 1U : 0U) | (one.before ? 2U : 0U) | (one.inside ? 4U : 0U) | (one.behind ? 8U : 0U));
        packet.put(one.units);
    }
}

std::vector<Coverage> coverage_from(Packet& packet) {
    std::vector<Coverage> coverage(packet.number());
    for (Coverage& one : coverage) {
        one.kind = static_cast<io::Operation::Kind>(packet.number());
        const std::uint64_t bits = packet.number();
        one.changes = (bits & 1U) != 0;
        one.before = (bits & 2U) != 0;
        one.inside = (bits & 4U) != 0;
        one.behind = (bits & 8U) != 0;
        one.units = packet.number();
    }
    return coverage;
}

void add(std::vector<Coverage>& sum, const std::vector<Coverage>& more) {
    if (sum.size() < more.size()) sum.resize(more.size());
    for (std::size_t i = 0; i < more.size(); ++i) {
        sum[i].kind = more[i].kind;
        sum[i].changes = more[i].changes;
        sum[i].before = sum[i].before || more[i].before;
        sum[i].inside = sum[i].inside || more[i].inside;
        sum[i].behind = sum[i].behind || more[i].behind;
        sum[i].units = std::max(sum[i].units, more[i].units);
    }
}

/// Explores one scenario, here.
std::string explored(const CrashScenario& scenario, const Effort& effort, Bug bug) {
    const SilentReports silent;
    const double begin = cpu_seconds();
    std::optional<Failure> failure;
    Tally tally;
    std::vector<Coverage> coverage;
    try {
        const Recording recording = record(scenario, effort.seed, bug);
        Explorer explorer(scenario.name, effort);
        failure = explorer.explore(recording.base, recording.trace, *recording.subject, recording.acknowledged);
        tally = explorer.tally();
        coverage = explorer.coverage();
    } catch (const std::exception& error) {
        failure = Failure{scenario.name + ":live", error.what()};
    }
    planted_bug = Bug::none;
    Packet packet;
    put(packet, failure);
    put(packet, tally);
    put(packet, coverage);
    for (std::size_t row = 0; row < static_cast<std::size_t>(store::Row::count_); ++row) packet.put(store::rows_taken(static_cast<store::Row>(row)));
    packet.put(static_cast<std::uint64_t>((cpu_seconds() - begin) * 1e6));
    return packet.bytes();
}

/// Builds one state, and shrinks it if that is wanted.
std::string again(const CrashScenario& scenario, const std::string& id, std::uint64_t seed, Bug bug, bool shrink) {
    const SilentReports silent;
    Packet packet;
    std::optional<Failure> failure;
    std::optional<Shrunk> shrunk;
    try {
        const Effort effort = effort_for_bugs(seed);
        const Recording recording = record(scenario, seed, bug);
        Explorer explorer(scenario.name, effort);
        if (shrink)
            shrunk = explorer.shrink(id, recording.base, recording.trace, *recording.subject, recording.acknowledged);
        else
            failure = explorer.replay(id, recording.base, recording.trace, *recording.subject, recording.acknowledged);
    } catch (const std::exception& error) {
        failure = Failure{scenario.name + ":live", error.what()};
    }
    planted_bug = Bug::none;
    put(packet, failure);
    put(packet, shrunk);
    return packet.bytes();
}

/// One job by itself, in a child.
JobEnd in_a_child(const std::function<std::string()>& job) {
    JobEnd result;
    run_jobs(1, 1, [&](std::size_t) { return job(); }, [&](std::size_t, const JobEnd& end) { result = end; });
    return result;
}

Failure failure_of(const JobEnd& end) { return {end.state, end.died}; }

ReplayResult replay_here(const CrashScenario& scenario, const std::string& id, std::uint64_t seed, Bug bug, bool shrink) {
    ReplayResult result;
    const JobEnd end = in_a_child([&] { return again(scenario, id, seed, bug, false); });
    if (!end.died.empty()) {
        result.failure = failure_of(end);
        return result;  // what kills can't be shrunk
    }
    Packet packet(end.answer);
    result.failure = failure_from(packet);
    if (result.failure && shrink) {
        const JobEnd shrinking = in_a_child([&] { return again(scenario, id, seed, bug, true); });
        if (shrinking.died.empty()) {
            Packet shrunk(shrinking.answer);
            (void)failure_from(shrunk);
            result.shrunk = shrunk_from(shrunk);
        }
    }
    return result;
}

std::string scenario_name(const std::string& id) { return id.substr(0, id.find(':')); }

}  // namespace

const char* name_of(store::Row row) {
    switch (row) {
        case store::Row::slot_repaired: return "one header slot repaired";
        case store::Row::backing_rebuilt: return "backing file rebuilt from the data file";
        case store::Row::clean: return "clean";
        case store::Row::data_refilled: return "data file refilled from the backing file";
        case store::Row::data_to_backing: return "newer data file copied to the backing file";
        case store::Row::backing_to_data: return "newer backing file copied to the data file";
        case store::Row::records_installed: return "records installed";
        case store::Row::stage_installed: return "stage installed";
        case store::Row::log_replayed: return "transaction log replayed";
        case store::Row::torn_record_cut: return "a torn record cut";
        case store::Row::table_page_rebuilt: return "a table page rebuilt";
        case store::Row::orphan_removed: return "an orphan of a killed creation removed";
        case store::Row::count_: break;
    }
    return "?";
}

// ---------------------------------------------------------------------------------------------- states

Tally StatesReport::total() const {
    Tally total;
    for (const ScenarioResult& scenario : scenarios) total.add(scenario.tally);
    return total;
}

Rows StatesReport::rows() const {
    Rows sum{};
    for (const ScenarioResult& scenario : scenarios)
        for (std::size_t row = 0; row < sum.size(); ++row) sum[row] += scenario.rows[row];
    return sum;
}

double StatesReport::seconds() const {
    double sum = 0;
    for (const ScenarioResult& scenario : scenarios) sum += scenario.seconds;
    return sum;
}

std::uint64_t StatesReport::failures() const {
    return static_cast<std::uint64_t>(std::ranges::count_if(scenarios, [](const ScenarioResult& scenario) { return scenario.failure.has_value(); }));
}

std::uint64_t StatesReport::operations() const {
    std::uint64_t sum = 0;
    for (const ScenarioResult& scenario : scenarios)
        sum += static_cast<std::uint64_t>(std::ranges::count_if(scenario.coverage, [](const Coverage& one) { return one.changes; }));
    return sum;
}

std::uint64_t StatesReport::uncovered() const {
    std::uint64_t sum = 0;
    for (const ScenarioResult& scenario : scenarios) {
        sum += static_cast<std::uint64_t>(
            std::ranges::count_if(scenario.coverage, [](const Coverage& one) { return one.changes && !(one.before && one.behind); }));
    }
    return sum;
}

bool is_thin(const RunOptions& options) { return options.budget < 0.1; }

StatesReport explore_all(const RunOptions& options) {
    const WallClock clock;
    StatesReport report;
    report.workers = workers_of(options);
    report.first_seed = options.seed;
    const std::vector<CrashScenario> all = all_scenarios();
    std::vector<const CrashScenario*> chosen;
    for (const CrashScenario& scenario : all) {
        if (!wanted(options, scenario.name)) continue;
        chosen.push_back(&scenario);
        report.scenarios.push_back({.name = scenario.name, .about = scenario.about});
    }
    struct Job {
        std::size_t scenario;
        Effort effort;
    };
    const auto stop = [&] { return options.minutes != 0 && clock.seconds() > options.minutes * 60; };
    for (std::uint64_t round = 0; round == 0 || (options.minutes != 0 && !stop() && report.failures() == 0); ++round) {
        std::vector<Job> jobs;
        const bool thin = is_thin(options);
        const std::uint64_t shards = thin ? thin_share : chosen.size() >= wide_jobs * report.workers ? 1 : report.workers;
        for (std::size_t i = 0; i < chosen.size(); ++i) {
            const std::uint64_t first = thin ? (options.seed + round + i) % shards : 0;
            const std::uint64_t end = thin ? first + 1 : shards;
            for (std::uint64_t shard = first; shard < end; ++shard) {
                for (std::uint64_t life = 0; life < (thin ? 1 : chosen[i]->seeds); ++life) {
                    Effort effort = effort_of(*chosen[i], options, options.seed + round + life * seeds_apart);
                    effort.shard = shard;
                    effort.shards = shards;
                    effort.counts_cuts = shard == first && life == 0;
                    jobs.push_back({i, effort});
                }
            }
        }
        run_jobs(
            jobs.size(), report.workers, [&](std::size_t job) { return explored(*chosen[jobs[job].scenario], jobs[job].effort, Bug::none); },
            [&](std::size_t job, const JobEnd& end) {
                ScenarioResult& result = report.scenarios[jobs[job].scenario];
                std::optional<Failure> failure;
                double seconds = 0;
                Tally tally;
                if (!end.died.empty()) {
                    failure = failure_of(end);
                } else {
                    Packet packet(end.answer);
                    failure = failure_from(packet);
                    if (failure) failure->what += " (TAIYEN_SEED=" + std::to_string(jobs[job].effort.seed) + ")";
                    tally = tally_from(packet);
                    add(result.coverage, coverage_from(packet));
                    for (std::uint64_t& row : result.rows) row += packet.number();
                    seconds = static_cast<double>(packet.number()) * 1e-6;
                }
                result.tally.add(tally);
                result.seconds += seconds;
                ++result.rounds;
                if (options.prints) {
                    std::printf("%-22s seed %-8llu %6llu cuts %9llu states %9llu distinct %8llu nested %7.1f s\n", result.name.c_str(),
                                static_cast<unsigned long long>(jobs[job].effort.seed), static_cast<unsigned long long>(tally.cuts),
                                static_cast<unsigned long long>(tally.states), static_cast<unsigned long long>(tally.distinct),
                                static_cast<unsigned long long>(tally.nested_distinct), seconds);
                    if (failure) std::printf("%s: %s\n", failure->id.c_str(), failure->what.c_str());
                    std::fflush(stdout);
                }
                if (failure && !result.failure) {
                    result.failure = failure;
                    if (scenario_name(failure->id) == result.name && !failure->id.ends_with(":live")) {
                        result.shrunk = replay_here(*chosen[jobs[job].scenario], failure->id, jobs[job].effort.seed, Bug::none, true).shrunk;
                        if (result.shrunk && options.prints)
                            std::printf("%s: %s; %s\n", result.shrunk->id.c_str(), result.shrunk->what.c_str(), result.shrunk->words.c_str());
                    }
                }
            },
            stop);
        ++report.rounds;
    }
    report.wall_seconds = clock.seconds();
    return report;
}

ReplayResult replay_state(const std::string& id, const RunOptions& options, Bug bug, bool shrink) {
    const std::vector<CrashScenario> all = all_scenarios();
    return replay_here(scenario_of(all, scenario_name(id)), id, options.seed, bug, shrink);
}

// ---------------------------------------------------------------------------------------------- planted bugs

std::size_t BugsReport::caught() const {
    return static_cast<std::size_t>(std::ranges::count_if(bugs, [](const BugResult& one) { return one.failure.has_value(); }));
}

std::size_t BugsReport::distinct_bugs() const {
    std::set<Bug> distinct;
    for (const BugResult& one : bugs) distinct.insert(one.bug->bug);
    return distinct.size();
}

BugsReport plant_all(const RunOptions& options) {
    const std::vector<CrashScenario> all = all_scenarios();
    const std::vector<FaultScenario> fault_scenarios = all_fault_scenarios();
    BugsReport report;
    for (const PlantedBug& bug : planted_bugs())
        if (wanted(options, bug.name)) report.bugs.push_back({.bug = &bug});
    const auto by_fault = [&](const PlantedBug& bug) {
        Packet packet;
        for (const FaultScenario& scenario : fault_scenarios) {
            for (const FaultKind& kind : fault_kinds()) {
                if (scenario.name != bug.scenarios.front() || std::string_view(kind.name) != bug.fault) continue;
                const SweepResult found = sweep(scenario, kind, 1, options.seed, bug.bug);
                packet.put(found.faults);
                put(packet, found.wrong == 0 ? std::nullopt
                                             : std::optional(Failure{found.what.front().substr(0, found.what.front().find(": ")),
                                                                     found.what.front().substr(found.what.front().find(": ") + 2)}));
                return packet.bytes();
            }
        }
        throw std::invalid_argument(std::string(bug.name) + ": no such scenario or fault");
    };
    const auto by_states = [&](const PlantedBug& bug) {
        std::uint64_t states = 0;
        std::optional<Failure> failure;
        for (const char* const name : bug.scenarios) {
            const std::string answer = explored(scenario_of(all, name), effort_for_bugs(options.seed), bug.bug);
            Packet packet(answer);
            failure = failure_from(packet);
            const Tally tally = tally_from(packet);
            states += tally.distinct + tally.nested_distinct;
            if (failure) break;
        }
        Packet packet;
        packet.put(states);
        put(packet, failure);
        return packet.bytes();
    };
    run_jobs(
        report.bugs.size(), workers_of(options),
        [&](std::size_t job) {
            const PlantedBug& bug = *report.bugs[job].bug;
            return bug.fault != nullptr ? by_fault(bug) : by_states(bug);
        },
        [&](std::size_t job, const JobEnd& end) {
            BugResult& result = report.bugs[job];
            const PlantedBug& bug = *result.bug;
            if (end.died.empty()) {
                Packet packet(end.answer);
                result.states = packet.number();
                result.failure = failure_from(packet);
            } else {
                result.failure = failure_of(end);  // that is seen, too
            }
            if (bug.fault != nullptr) {
                result.replays = true;
            } else if (result.failure && !result.failure->id.ends_with(":live")) {
                const ReplayResult replayed = replay_state(result.failure->id, options, bug.bug, true);
                result.replays = replayed.failure && replayed.failure->id == result.failure->id;
                result.shrunk = replayed.shrunk;
            }
            if (options.prints) {
                std::printf("%-28s %8llu  %s\n", bug.name, static_cast<unsigned long long>(result.states),
                            result.failure ? (result.failure->id + ": " + result.failure->what).c_str() : "NOT CAUGHT");
                if (result.shrunk) std::printf("%38s  %s: %s\n", "shrunken", result.shrunk->id.c_str(), result.shrunk->words.c_str());
                std::fflush(stdout);
            }
        });
    return report;
}

// ---------------------------------------------------------------------------------------------- faults

std::uint64_t FaultsReport::faults() const {
    std::uint64_t sum = 0;
    for (const FaultResult& one : results) sum += one.faults;
    return sum;
}

std::uint64_t FaultsReport::wrong() const {
    std::uint64_t sum = 0;
    for (const FaultResult& one : results) sum += one.wrong;
    return sum;
}

FaultsReport sweep_all(const RunOptions& options) {
    const WallClock clock;
    FaultsReport report;
    struct Job {
        const FaultScenario* scenario;
        const FaultKind* kind;
        std::uint64_t step;
    };
    std::vector<Job> jobs;
    const std::vector<FaultScenario> scenarios = all_fault_scenarios();
    const bool thin = is_thin(options);
    std::size_t turn = options.seed;
    for (const FaultScenario& scenario : scenarios) {
        ++turn;
        if (!wanted(options, scenario.name)) continue;
        for (std::size_t i = 0; i < fault_kinds().size(); ++i) {
            if (thin && (turn + i) % thin_fault_share != 0) continue;
            const FaultKind& kind = fault_kinds()[i];
            const double step = (kind.what == FaultKind::What::memory ? scenario.allocations_apart : scenario.calls_apart) / options.budget;
            jobs.push_back({&scenario, &kind, static_cast<std::uint64_t>(std::max(1.0, step))});
            report.results.push_back({.scenario = scenario.name, .kind = kind.name});
        }
    }
    run_jobs(
        jobs.size(), workers_of(options),
        [&](std::size_t job) {
            const SweepResult found = thin ? sample(*jobs[job].scenario, *jobs[job].kind, options.seed)
                                           : sweep(*jobs[job].scenario, *jobs[job].kind, jobs[job].step, options.seed);
            Packet packet;
            packet.put(found.faults);
            packet.put(found.wrong);
            packet.put(found.what.size());
            for (const std::string& what : found.what) packet.put(what);
            return packet.bytes();
        },
        [&](std::size_t job, const JobEnd& end) {
            FaultResult& result = report.results[job];
            if (end.died.empty()) {
                Packet packet(end.answer);
                result.faults = packet.number();
                result.wrong = packet.number();
                for (std::uint64_t more = packet.number(); more-- > 0;) result.what.push_back(packet.text());
            } else {
                result.wrong = 1;
                result.what.push_back(end.state + ": " + end.died);
            }
            if (options.prints) {
                if (result.wrong != 0 || end.answer.empty())
                    for (const std::string& what : result.what) std::printf("%s\n", what.c_str());
                const std::string which = thin ? "a sample" : "every " + std::to_string(jobs[job].step);
                std::printf("%-22s %-12s %s: %8llu faults\n", result.scenario.c_str(), result.kind.c_str(), which.c_str(),
                            static_cast<unsigned long long>(result.faults));
                std::fflush(stdout);
            }
        });
    report.wall_seconds = clock.seconds();
    return report;
}

}  // namespace taiyen::crash
