#pragma once
/// A short look at what a machine and a disk give: not a benchmark to be published, but figures that tell whether something is wrong with a disk, and what to expect of a heap on it.
/// Thread rule: values.

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include <taiyen/base/detail/export.hpp>
#include <taiyen/inspect/report.hpp>

namespace taiyen {

/// How long measure() takes, how much it saves, and whom it tells how far it is.
struct MeasureOptions {
    std::chrono::milliseconds time{10'000};  ///< about as long in all
    std::size_t snapshot_bytes =
        std::size_t{64} << 20U;  ///< that one snapshot saves; a multiple of 4 KiB. Twice as much is needed on the disk, and 16 MiB
    Progress progress;           ///< may be empty
};

/// One figure, beside what the machine gives without a heap.
struct Measurement {
    std::string name;  ///< "durable_commit"
    std::string what;  ///< "a durable commit, median"
    double value = 0;
    std::string unit;      ///< "ns", "us", "ms", "MiB/s", "per s"
    std::string beside;    ///< what it is compared with; empty: nothing
    double reference = 0;  ///< in the same unit
    /// How many times as good as what it is compared with: above 1 it is faster, whatever the unit. 0: not compared.
    double ratio = 0;
};

/// Measures in new files in that folder, and removes them, also when it throws.
/// Throws: Error{not_found | permission | no_space | io_error | …}, HeapFull.
TAIYEN_EXPORT std::vector<Measurement> measure(const std::filesystem::path& folder, const MeasureOptions& options = {});

}  // namespace taiyen
