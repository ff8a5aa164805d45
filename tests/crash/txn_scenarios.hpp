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
};

std::vector<TxnScenario> txn_scenarios();

/// Lives what went before, unrecorded, and leaves the disk as the recorded piece finds it.
TxnHistory live_before(const TxnScenario& scenario, io::SimulatedStorage& disk);

}  // namespace taiyen::crash
