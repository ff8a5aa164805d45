#pragma once
/// Pieces of a heap's life that the crash states and the injected faults are about.

#include <vector>

#include <taiyen/base/report.hpp>

#include "crash/heap_life.hpp"
#include "crash/piece_of_life.hpp"

namespace taiyen::crash {

using Scenario = PieceOfLife<HeapLife, HeapSetup, History, HeapSubject>;

std::vector<Scenario> scenarios();

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
