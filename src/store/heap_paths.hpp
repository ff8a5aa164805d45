#pragma once
/// The names of a heap's files, and files that are opened by name and locked.
/// Thread rule: safe.

#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>

#include <taiyen/store/options.hpp>

#include "io/storage.hpp"

namespace taiyen::store {

struct HeapPaths {
    std::filesystem::path backing;
    std::filesystem::path data;
    std::filesystem::path journal;
    std::filesystem::path log;
    bool data_is_beside = true;  ///< the data file has the name that it has by default: then it can't be another heap's by mistake
};
/// Where a heap's files lie: where the options say, else beside it.
HeapPaths heap_paths(const std::filesystem::path& path, const PersistentOptions& options);

/// How long a lock may take to go after its owner was killed: his mappings hold the file, and whoever looks at a process when it dies (ps, a debugger) holds those a moment longer.
inline std::atomic<std::chrono::milliseconds> lock_goes_within{std::chrono::milliseconds(250)};
/// Whether the file has still this name: it may have been removed, or replaced, before it was locked.
bool is_still_at(io::Storage& storage, const io::File& file, const std::filesystem::path& path);
/// The file of the heap that has this name, opened and locked. Throws: Error{busy | …}.
std::shared_ptr<io::File> open_locked(io::Storage& storage, const std::filesystem::path& path, bool read_only);

}  // namespace taiyen::store
