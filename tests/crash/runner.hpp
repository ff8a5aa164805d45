#pragma once
/// Runs scenarios through their crash states, planted bugs against them, and faults, over all processors, and writes what came out.

#include <array>
#include <cstdint>
#include <iosfwd>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "crash/explorer.hpp"
#include "crash/planted_bugs.hpp"
#include "crash/scenario.hpp"
#include "store/recovery_table.hpp"

namespace taiyen::crash {

struct RunOptions {
    double budget = 1;  ///< of states and faults
    std::uint64_t seed = 1;
    unsigned workers = 0;  ///< 0: as many as processors
    std::string only;      ///< names that contain it; empty: all
    double minutes = 0;    ///< explore: as many rounds with new seeds as begin in this time; 0: one
    bool prints = true;    ///< a line for each scenario, bug … as it ends
};

using Rows = std::array<std::uint64_t, static_cast<std::size_t>(store::Row::count_)>;

struct ScenarioResult {
    std::string name;
    std::string about;
    Tally tally{};
    std::vector<Coverage> coverage{};  ///< by operation of the trace
    Rows rows{};                       ///< of recovery
    double seconds = 0;                ///< of processor time
    std::uint64_t rounds = 0;
    std::optional<Failure> failure{};
    std::optional<Shrunk> shrunk{};
};

struct StatesReport {
    std::vector<ScenarioResult> scenarios;
    double wall_seconds = 0;
    unsigned workers = 0;
    std::uint64_t first_seed = 0;
    std::uint64_t rounds = 0;

    Tally total() const;
    Rows rows() const;
    double seconds() const;
    std::uint64_t failures() const;
    /// Operations that change something, and of them those without a crash right before or right behind.
    std::uint64_t operations() const;
    std::uint64_t uncovered() const;
};
StatesReport explore_all(const RunOptions& options);
/// A small sample, of the kind that sanitizers and the count of branches want: it need not see each cut point from both sides, nor take each row of recovery.
bool is_thin(const RunOptions& options);

struct BugResult {
    const PlantedBug* bug = nullptr;
    std::uint64_t states = 0;
    std::optional<Failure> failure{};  ///< the state that caught it
    std::optional<Shrunk> shrunk{};
    bool replays = false;  ///< the id alone builds the failing state again
};
struct BugsReport {
    std::vector<BugResult> bugs;
    std::size_t caught() const;
    std::size_t distinct_bugs() const;
};
BugsReport plant_all(const RunOptions& options);

/// One state again; with the words of its shrunken form if it fails and `shrink`.
struct ReplayResult {
    std::optional<Failure> failure;
    std::optional<Shrunk> shrunk;
};
/// Throws std::invalid_argument: no such scenario.
ReplayResult replay_state(const std::string& id, const RunOptions& options, Bug bug, bool shrink);

struct FaultResult {
    std::string scenario;
    std::string kind;  ///< which fault
    std::uint64_t faults = 0;
    std::uint64_t wrong = 0;
    std::vector<std::string> what{};  ///< the first few
};
struct FaultsReport {
    std::vector<FaultResult> results;
    double wall_seconds = 0;
    std::uint64_t faults() const;
    std::uint64_t wrong() const;
};
FaultsReport sweep_all(const RunOptions& options);

void write(std::ostream& out, const StatesReport& report);
void write(std::ostream& out, const BugsReport& report);
void write(std::ostream& out, const FaultsReport& report);

const char* name_of(store::Row row);

}  // namespace taiyen::crash
