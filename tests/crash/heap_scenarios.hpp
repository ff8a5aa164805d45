#pragma once
/// Pieces of a heap's life that the crash states and the injected faults are about.

#include <functional>
#include <optional>
#include <vector>

#include <taiyen/base/report.hpp>

#include "crash/heap_life.hpp"

namespace taiyen::crash {

/// A piece of a heap's life: what went before, and what is recorded.
struct Scenario {
    const char* name;
    HeapSetup setup;
    std::function<void(HeapLife&)> before;  ///< empty: nothing, there is no heap yet
    std::function<void(HeapLife&)> life;
    bool crashed_before = false;  ///< `before` ends without closing
    bool damage_headers = false;  ///< both header slots of the backing file are lost in between
    std::optional<HeapKind> kind_before = std::nullopt;
    bool lose_data = false;  ///< the data file is lost in between
};

std::vector<Scenario> scenarios();

/// What went before: the saves, and the data file if it was lost.
struct Past {
    History history;
    std::optional<LostFile> lost;
};

/// Lives what went before, unrecorded, and leaves the disk as the recorded piece finds it. Requires: `scenario.before`.
Past live_before(const Scenario& scenario, io::SimulatedStorage& disk);

/// While it lives, nobody hears the complaints of handles that die with their disk: that is meant there.
class SilentReports {
public:
    SilentReports();
    SilentReports(const SilentReports&) = delete;
    SilentReports& operator=(const SilentReports&) = delete;
    ~SilentReports() { set_report_handler(before_); }

private:
    ReportHandler before_;
};

}  // namespace taiyen::crash
