#pragma once
/// Pieces of a transactional heap's life that the crash states and the injected faults are about.

#include <vector>

#include "crash/piece_of_life.hpp"
#include "crash/txn_life.hpp"
#include "crash/txn_subject.hpp"

namespace taiyen::crash {

using TxnScenario = PieceOfLife<TxnLife, TxnSetup, TxnHistory, TxnSubject>;

std::vector<TxnScenario> txn_scenarios();

}  // namespace taiyen::crash
