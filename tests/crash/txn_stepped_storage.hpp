#pragma once
/// Stops before every change that passes to another storage, so that a test does something there: look at what the library claims at that moment, run a transaction in the middle of
/// a background save. What threads do in parallel becomes an order that the test chooses.
/// Thread rule: as `Storage`; the action is called by whoever makes the change, without locks of ours.

#include <functional>
#include <utility>

#include "io/storage.hpp"

namespace taiyen::crash {

class SteppedStorage final : public io::Storage {
public:
    enum class Change { written, durably_written, other };
    /// Before a change of the file or directory of that path.
    using Action = std::function<void(Change change, const std::filesystem::path& path)>;

    explicit SteppedStorage(io::Storage& inner) : inner_(inner) {}

    Action before_change;  ///< empty: nothing; set while nothing is open

    std::vector<std::string> list(const std::filesystem::path& directory) override { return inner_.list(directory); }
    std::optional<io::FileInfo> find(const std::filesystem::path& path) override { return inner_.find(path); }
    std::unique_ptr<io::File> open(const std::filesystem::path& path, io::Access access) override {
        return std::make_unique<SteppedFile>(*this, inner_.open(path, access));
    }
    std::unique_ptr<io::File> create(const std::filesystem::path& path) override {
        step(Change::other, path);
        return std::make_unique<SteppedFile>(*this, inner_.create(path));
    }
    std::unique_ptr<io::File> create_unnamed(const std::filesystem::path& directory) override {
        step(Change::other, directory);
        return std::make_unique<SteppedFile>(*this, inner_.create_unnamed(directory));
    }
    void publish(io::File& file, const std::filesystem::path& path) override {
        step(Change::other, path);
        inner_.publish(static_cast<SteppedFile&>(file).inner(), path);
    }
    void rename(const std::filesystem::path& from, const std::filesystem::path& to, io::Existing existing) override {
        step(Change::other, from);
        inner_.rename(from, to, existing);
    }
    bool remove(const std::filesystem::path& path) override {
        step(Change::other, path);
        return inner_.remove(path);
    }
    void sync_directory(const std::filesystem::path& directory) override {
        step(Change::other, directory);
        inner_.sync_directory(directory);
    }

private:
    class SteppedFile final : public io::File {
    public:
        SteppedFile(SteppedStorage& storage, std::unique_ptr<io::File> inner) : storage_(storage), inner_(std::move(inner)) {}
        io::File& inner() { return *inner_; }

        const std::filesystem::path& path() const override { return inner_->path(); }
        io::FileInfo info() const override { return inner_->info(); }
        ByteCount read(std::span<std::byte> bytes, std::uint64_t offset) const override { return inner_->read(bytes, offset); }
        ByteCount read_direct(std::span<std::byte> bytes, std::uint64_t offset) const override { return inner_->read_direct(bytes, offset); }
        std::vector<Extent> data_extents(std::uint64_t offset, ByteCount length) const override { return inner_->data_extents(offset, length); }
        bool try_lock(io::Lock lock) override { return inner_->try_lock(lock); }
        void map_private(void* address, ByteCount length, std::uint64_t offset, io::Protection protection) const override {
            inner_->map_private(address, length, offset, protection);
        }
        void write(std::span<const std::byte> bytes, std::uint64_t offset) override {
            storage_.step(Change::written, path());
            inner_->write(bytes, offset);
        }
        void write_direct(std::span<const std::byte> bytes, std::uint64_t offset) override {
            storage_.step(Change::written, path());
            inner_->write_direct(bytes, offset);
        }
        void write_durable(std::span<const std::byte> bytes, std::uint64_t offset) override {
            storage_.step(Change::durably_written, path());
            inner_->write_durable(bytes, offset);
        }
        void sync() override {
            storage_.step(Change::other, path());
            inner_->sync();
        }
        void allocate(std::uint64_t offset, ByteCount length) override {
            storage_.step(Change::other, path());
            inner_->allocate(offset, length);
        }
        void punch(std::uint64_t offset, ByteCount length) override {
            storage_.step(Change::other, path());
            inner_->punch(offset, length);
        }
        void resize(ByteCount size_bytes) override {
            storage_.step(Change::other, path());
            inner_->resize(size_bytes);
        }

    private:
        SteppedStorage& storage_;
        std::unique_ptr<io::File> inner_;
    };

    void step(Change change, const std::filesystem::path& path) {
        if (before_change) before_change(change, path);
    }

    io::Storage& inner_;
};

}  // namespace taiyen::crash
