#pragma once
/// Making a measurement cold: files leave the kernel's page cache, and we look whether they did.

#include <cstdint>
#include <filesystem>
#include <vector>

namespace cad::demo {

struct Residency {
    std::uint64_t pages = 0;     ///< of all files
    std::uint64_t resident = 0;  ///< of them still in memory
    bool told = true;            ///< the kernel tells the owner of a file, and who may write it, only
};

/// How much of the files lies in memory.
Residency residency(const std::vector<std::filesystem::path>& files);
/// Writes the files back and asks the kernel to forget their pages (posix_fadvise). Returns what is left.
Residency drop_from_cache(const std::vector<std::filesystem::path>& files);

}  // namespace cad::demo
