#pragma once
/// The files of a DirectoryTarget, over any storage.
/// Thread rule: external lock.

#include <mutex>

#include <taiyen/replicate/directory_target.hpp>

#include "io/storage.hpp"

namespace taiyen {

class DirectoryTarget::Files {
public:
    static constexpr const char* first_name = "first";

    Files(io::Storage& the_storage, std::filesystem::path the_directory) : storage(the_storage), directory(std::move(the_directory)) {}

    std::filesystem::path path_of(std::uint64_t number) const;
    bool is_there(std::uint64_t number);
    /// Throws: Error{corrupt}.
    std::uint64_t first();
    /// Of all frames that are there, in no order.
    std::vector<std::uint64_t> numbers();
    /// One before the first: none is there.
    std::uint64_t find_last();
    std::vector<std::byte> read(std::uint64_t number);

    io::Storage& storage;
    const std::filesystem::path directory;
    std::mutex mutex;
    std::uint64_t last = 0;  ///< of the newest frame that is known; 0: none is
};

/// Targets over other storages, for tests.
struct ReplicationAccess {
    static std::unique_ptr<DirectoryTarget> directory(io::Storage& storage, const std::filesystem::path& path) {
        return std::unique_ptr<DirectoryTarget>(new DirectoryTarget(std::make_unique<DirectoryTarget::Files>(storage, path)));
    }
};

}  // namespace taiyen
