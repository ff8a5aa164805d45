#pragma once
/// A file whose durable writes can be held back and made to fail, to see what others do meanwhile.

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>

#include <taiyen/base/error.hpp>

#include "memory_file.hpp"

namespace taiyen::log::test {

class GatedFile final : public io::File {
public:
    explicit GatedFile(std::shared_ptr<MemoryFile> inner) : inner_(std::move(inner)) {}

    /// Writes that come from now on wait for `let_go`.
    void hold() {
        const std::lock_guard lock(mutex_);
        held_ = true;
    }
    void let_go() {
        const std::lock_guard lock(mutex_);
        held_ = false;
        changed_.notify_all();
    }
    /// Returns when a write waits.
    void wait_for_a_write() {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return waiting_ > 0; });
    }
    /// Writes fail from now on.
    void fail() {
        const std::lock_guard lock(mutex_);
        failing_ = true;
    }
    std::uint64_t writes() const {
        const std::lock_guard lock(mutex_);
        return writes_;
    }

    const std::filesystem::path& path() const override { return inner_->path(); }
    io::FileInfo info() const override { return inner_->info(); }
    ByteCount read(std::span<std::byte> bytes, std::uint64_t offset) const override { return inner_->read(bytes, offset); }
    ByteCount read_direct(std::span<std::byte> bytes, std::uint64_t offset) const override { return inner_->read_direct(bytes, offset); }
    void write(std::span<const std::byte> bytes, std::uint64_t offset) override { inner_->write(bytes, offset); }
    void write_durable(std::span<const std::byte> bytes, std::uint64_t offset) override {
        std::unique_lock lock(mutex_);
        TAIYEN_CHECK(waiting_ == 0);  // one write in flight
        ++writes_;
        ++waiting_;
        changed_.notify_all();
        changed_.wait(lock, [this] { return !held_; });
        --waiting_;
        if (failing_) throw Error(errc::io_error, path(), offset, "made to fail");
        inner_->write_durable(bytes, offset);
    }
    void sync() override { inner_->sync(); }
    void allocate(std::uint64_t offset, ByteCount length) override { inner_->allocate(offset, length); }
    void punch(std::uint64_t offset, ByteCount length) override { inner_->punch(offset, length); }
    std::vector<Extent> data_extents(std::uint64_t offset, ByteCount length) const override { return inner_->data_extents(offset, length); }
    void resize(ByteCount size) override { inner_->resize(size); }
    bool try_lock(io::Lock lock) override { return inner_->try_lock(lock); }
    void map_private(void* address, ByteCount length, std::uint64_t offset, io::Protection protection) const override { inner_->map_private(address, length, offset, protection); }

private:
    std::shared_ptr<MemoryFile> inner_;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    bool held_ = false;
    bool failing_ = false;
    unsigned waiting_ = 0;
    std::uint64_t writes_ = 0;
};

}  // namespace taiyen::log::test
