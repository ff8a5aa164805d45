#pragma once
/// Two heaps of one address side by side: copies of one, or one as it is and as it was.

#include <functional>
#include <string>
#include <vector>

#include <taiyen/inspect/view_diff.hpp>

#include "store/heap_access.hpp"

namespace taiyen::inspect {

/// For reading only, where it disturbs nobody.
store::Tuning elsewhere();
ArchiveHeap open_elsewhere(const std::filesystem::path& path, const PersistentOptions& options, const store::Tuning& tuning = elsewhere());
/// As `taiyen::for_each_difference` of two files.
std::vector<std::string> for_each_difference(const ArchiveHeap& before, const ArchiveHeap& after,
                                             const std::function<bool(const ViewDifference&)>& take);

}  // namespace taiyen::inspect
