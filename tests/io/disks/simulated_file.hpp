#pragma once
/// An open file of the simulated disk: a handle with a lock of its own, dead after a power cut, rollback or disconnection.
///
/// Thread rule: as `File`; calls that change something take the disk's lock.

#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "io/disks/simulated_node.hpp"
#include "io/disks/unsynced.hpp"

namespace taiyen::io {

class SimulatedFile final : public File, public LosesUnsynced {
public:
    SimulatedFile(SimulatedStorage& storage, std::shared_ptr<SimulatedStorage::Node> node, std::filesystem::path path, Access access);
    SimulatedFile(const SimulatedFile&) = delete;
    SimulatedFile& operator=(const SimulatedFile&) = delete;
    ~SimulatedFile() override;

    const std::filesystem::path& path() const override { return path_; }
    FileInfo info() const override;
    ByteCount read(std::span<std::byte> bytes, std::uint64_t offset) const override;
    ByteCount read_direct(std::span<std::byte> bytes, std::uint64_t offset) const override;
    void write(std::span<const std::byte> bytes, std::uint64_t offset) override;
    void write_durable(std::span<const std::byte> bytes, std::uint64_t offset) override;
    void sync() override;
    void lose_unsynced() override;
    void allocate(std::uint64_t offset, ByteCount length) override;
    void punch(std::uint64_t offset, ByteCount length) override;
    std::vector<Extent> data_extents(std::uint64_t offset, ByteCount length) const override;
    void resize(ByteCount size_bytes) override;
    bool try_lock(Lock kind) override;
    void map_private(void* address, ByteCount length, std::uint64_t offset, Protection protection) const override;

    void set_path(std::filesystem::path&& path) noexcept { path_ = std::move(path); }
    const std::shared_ptr<SimulatedStorage::Node>& node() const { return node_; }

private:
    /// Throws: Error{io_error} if the disk lost this handle.
    SimulatedStorage::Node& alive() const;
    void change(const char* attempt, std::uint64_t offset, const std::function<void(SimulatedStorage::Node&)>& change);
    void unlock();

    SimulatedStorage& storage_;
    std::shared_ptr<SimulatedStorage::Node> node_;
    std::filesystem::path path_;
    Access access_;
    std::uint64_t life_;
};

}  // namespace taiyen::io
