#pragma once
/// Pieces of a transactional heap's life that the crash states and the injected faults are about.

#include <functional>
#include <optional>
#include <vector>

#include "crash/txn_life.hpp"

namespace taiyen::crash {

struct TxnScenario {
    const char* name;
    TxnSetup setup;
    std::function<void(TxnLife&)> before;  ///< empty: nothing, there is no heap yet
    std::function<void(TxnLife&)> life;
    bool crashed_before = false;  ///< `before` ends without closing
    std::optional<HeapKind> kind_before = std::nullopt;
    bool damage_headers = false;  ///< both header slots of the heap's own file are lost in between
    bool lose_data = false;       ///< the data file is lost in between
};

std::vector<TxnScenario> txn_scenarios();

/// What went before: the states, and the data file if it was lost.
struct TxnPast {
    TxnHistory history{TxnState{}};
    std::optional<LostFile> lost = std::nullopt;
};

/// Lives what went before, unrecorded, and leaves the disk as the recorded piece finds it.
TxnPast live_before(const TxnScenario& scenario, io::SimulatedStorage& disk);

}  // namespace taiyen::crash
