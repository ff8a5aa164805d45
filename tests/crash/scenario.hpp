#pragma once
/// A piece of something durable's life, whatever it is: how to record it, and who judges what a crash left of it.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/planted.hpp"
#include "crash/explorer.hpp"

namespace taiyen::crash {

/// What a scenario gives to look at.
struct Recording {
    Image base;                          ///< the disk before
    io::Trace trace;                     ///< what was done
    std::unique_ptr<Subject> subject;    ///< recovers, and holds it against the model
    std::uint64_t acknowledged = 0;      ///< what the base is known to hold
    std::shared_ptr<void> surroundings;  ///< kept while states are looked at
};

struct CrashScenario {
    std::string name;
    const char* about;                   ///< which durable thing: heading of the report
    std::uint64_t states_per_cut = 400;  ///< at budget 1
    std::uint64_t nested_one_in = 200;
    std::uint64_t nested_states_per_cut = 8;
    std::uint64_t seeds = 1;  ///< so many lives in each round, where they are cheap
    /// Lives it. `bug` is switched on from the recorded piece on, and stays on. Throws std::exception: wrong before any crash. Repeatable by `repeatable_random` and the seed.
    std::function<Recording(std::uint64_t seed, Bug bug)> record;
};

/// All of them: heaps of every kind, histories, the record log and group commit.
std::vector<CrashScenario> all_scenarios();

// By what they are about; each beside its life and model.
std::vector<CrashScenario> heap_crash_scenarios();
std::vector<CrashScenario> txn_crash_scenarios();
std::vector<CrashScenario> undo_crash_scenarios();
std::vector<CrashScenario> ring_crash_scenarios();
std::vector<CrashScenario> copy_crash_scenarios();
std::vector<CrashScenario> last_resort_crash_scenarios();
std::vector<CrashScenario> group_log_crash_scenarios();
std::vector<CrashScenario> transfer_crash_scenarios();
std::vector<CrashScenario> compact_crash_scenarios();
std::vector<CrashScenario> shape_crash_scenarios();
std::vector<CrashScenario> migrate_crash_scenarios();
std::vector<CrashScenario> replicate_crash_scenarios();
std::vector<CrashScenario> follow_crash_scenarios();
std::vector<CrashScenario> group_cut_crash_scenarios();
std::vector<CrashScenario> log_heap_crash_scenarios();

}  // namespace taiyen::crash
