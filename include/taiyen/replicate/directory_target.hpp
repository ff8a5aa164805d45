#pragma once
/// DirectoryTarget: replicates into a directory, of another disk or a mounted share: a file for each frame. Nothing else is needed.
///
///   auto target = std::make_shared<taiyen::DirectoryTarget>("/backup/bank");
///   taiyen::Replication replication(heap, target);
///
/// A frame is durable when `append` returns. Whoever may write there may forge a heap: give the directory to the program's user alone, or seal the frames (SealedTarget).

#include <filesystem>
#include <memory>

#include <taiyen/replicate/replication_target.hpp>

namespace taiyen {

class TAIYEN_EXPORT DirectoryTarget final : public ReplicationTarget {
public:
    /// The directory is there already. Throws: Error{not_found | permission | …}.
    explicit DirectoryTarget(const std::filesystem::path& directory);
    ~DirectoryTarget() override;

    std::string name() const override;
    /// A second: a frame costs a file, and three times the disk's attention.
    std::chrono::milliseconds linger() const override;
    /// Complexity: lists the directory the first time; then it looks at the names of the frames that are new.
    Range range() override;
    /// Throws: Error{no_space | io_error | permission | …}.
    bool append(std::uint64_t number, std::span<const std::byte> frame) override;
    std::vector<std::byte> read(std::uint64_t number) override;
    void trim(std::uint64_t first) override;

private:
    friend struct ReplicationAccess;
    class Files;
    explicit DirectoryTarget(std::unique_ptr<Files> files);
    std::unique_ptr<Files> files_;
};

}  // namespace taiyen
