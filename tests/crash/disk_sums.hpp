#pragma once
/// Sums over what a simulated disk holds: whether something was changed that must not be.

#include <cstdint>
#include <filesystem>
#include <map>

#include "io/disks/simulated_storage.hpp"

namespace taiyen::crash {

/// Of the pages in the heap's files, without headers, journals and logs: what recovering again must not change. Pages of zeros count for nothing, wherever they lie.
std::map<std::filesystem::path, std::uint64_t> page_sums(const io::SimulatedStorage& disk);

/// Of every byte of every file.
std::uint64_t disk_sum(const io::SimulatedStorage& disk);

}  // namespace taiyen::crash
