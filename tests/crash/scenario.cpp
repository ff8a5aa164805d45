#include "crash/scenario.hpp"

namespace taiyen::crash {

std::vector<CrashScenario> all_scenarios() {
    std::vector<CrashScenario> all;
    for (const auto list :
         {heap_crash_scenarios, txn_crash_scenarios, undo_crash_scenarios, copy_crash_scenarios, last_resort_crash_scenarios, ring_crash_scenarios,
          group_log_crash_scenarios, transfer_crash_scenarios, compact_crash_scenarios, shape_crash_scenarios, migrate_crash_scenarios,
          replicate_crash_scenarios, follow_crash_scenarios, group_cut_crash_scenarios, log_heap_crash_scenarios}) {
        for (CrashScenario& scenario : list()) all.push_back(std::move(scenario));
    }
    return all;
}

}  // namespace taiyen::crash
