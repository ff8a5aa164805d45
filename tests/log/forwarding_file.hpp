#pragma once
/// A file that passes everything on, for tests that step in between.

#include <memory>

#include "io/storage.hpp"

namespace taiyen::log::test {

class ForwardingFile : public io::File {
public:
    explicit ForwardingFile(std::shared_ptr<io::File> inner) : inner_(std::move(inner)) {}

    const std::filesystem::path& path() const override { return inner_->path(); }
    io::FileInfo info() const override { return inner_->info(); }
    ByteCount read(std::span<std::byte> bytes, std::uint64_t offset) const override { return inner_->read(bytes, offset); }
    ByteCount read_direct(std::span<std::byte> bytes, std::uint64_t offset) const override { return inner_->read_direct(bytes, offset); }
    void write(std::span<const std::byte> bytes, std::uint64_t offset) override { inner_->write(bytes, offset); }
    void write_durable(std::span<const std::byte> bytes, std::uint64_t offset) override { inner_->write_durable(bytes, offset); }
    void sync() override { inner_->sync(); }
    void allocate(std::uint64_t offset, ByteCount length) override { inner_->allocate(offset, length); }
    void punch(std::uint64_t offset, ByteCount length) override { inner_->punch(offset, length); }
    std::vector<Extent> data_extents(std::uint64_t offset, ByteCount length) const override { return inner_->data_extents(offset, length); }
    void resize(ByteCount size) override { inner_->resize(size); }
    bool try_lock(io::Lock lock) override { return inner_->try_lock(lock); }
    void map_private(void* address, ByteCount length, std::uint64_t offset, io::Protection protection) const override {
        inner_->map_private(address, length, offset, protection);
    }

private:
    std::shared_ptr<io::File> inner_;
};

}  // namespace taiyen::log::test
