#pragma once
/// Something fails under a heap: the k-th call on the storage seam, the k-th allocation, or the disk is full k pages on; k = 1, 2, 3 … until nothing fails any more, once and for good.
/// Then the process dies, power fails, or power fails and part of the cache survives. Whatever happens ends in a typed error or in success, and what was acknowledged is there.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/planted.hpp"
#include "io/disks/faulty_storage.hpp"

namespace taiyen::crash {

/// What fails.
struct FaultKind {
    enum class What { call, memory, space };
    const char* name;
    What what = What::call;
    int error = 0;
    ByteCount short_bytes = 0;
    io::Call calls = io::Call::any;
};
const std::vector<FaultKind>& fault_kinds();

/// The k-th one, and what the world does after.
struct Misfortune {
    const FaultKind* kind = nullptr;
    std::uint64_t k = 1;
    bool sticky = false;
    std::uint64_t variant = 0;  ///< of the aftermath, and of whether the heap is closed before
};

struct FaultScenario {
    std::string name;
    unsigned variants = 1;   ///< how many of each k
    double calls_apart = 8;  ///< at budget 1 each n-th call fails
    double allocations_apart = 32;
    /// What went before, once; then lives with one misfortune each, which return whether it struck. Throw std::exception: something is wrong.
    std::function<std::function<bool(const Misfortune&, Bug)>(std::uint64_t seed)> prepare;
};
/// Of heaps of every kind.
std::vector<FaultScenario> all_fault_scenarios();
std::vector<FaultScenario> log_heap_fault_scenarios();

struct SweepResult {
    std::uint64_t faults = 0;
    std::uint64_t wrong = 0;
    std::vector<std::string> what;  ///< the first few
};
/// All k of one kind, once and sticky. `step` > 1 looks at every n-th only. Ends at the first wrong one if a bug is planted.
SweepResult sweep(const FaultScenario& scenario, const FaultKind& kind, std::uint64_t step, std::uint64_t seed, Bug bug = Bug::none);

/// Two faults of the kind, one that strikes once and one for good: which call or allocation fails, and what the world does after, is drawn from the seed and the names.
SweepResult sample(const FaultScenario& scenario, const FaultKind& kind, std::uint64_t seed);

/// While it lives, the thread's misfortune with memory is in force (kind `memory`).
class ScarceMemoryHere {
public:
    explicit ScarceMemoryHere(const Misfortune& misfortune);
    ScarceMemoryHere(const ScarceMemoryHere&) = delete;
    ScarceMemoryHere& operator=(const ScarceMemoryHere&) = delete;
    ~ScarceMemoryHere();
    /// How many allocations failed.
    static std::uint64_t failed();
};

}  // namespace taiyen::crash
