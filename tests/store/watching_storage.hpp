#pragma once
/// A storage over another one that notes which bytes of files are read.

#include <map>
#include <memory>
#include <mutex>
#include <set>

#include "io/storage.hpp"
#include "log/forwarding_file.hpp"

namespace taiyen::store::test {

/// Files that `open` gives are watched; new ones aren't. Thread rule: as the storage below.
class WatchingStorage final : public io::Storage {
public:
    explicit WatchingStorage(io::Storage& inner) : inner_(inner) {}

    void forget() {
        const std::lock_guard lock(notes_->mutex);
        notes_->bytes = 0;
        notes_->pages.clear();
    }
    ByteCount bytes_read() const { return notes_->bytes; }
    /// Pages of a file, by number, that any read since `forget` has touched.
    std::set<std::uint64_t> pages_read(const std::filesystem::path& file) const {
        const std::lock_guard lock(notes_->mutex);
        return notes_->pages[file];
    }

    std::vector<std::string> list(const std::filesystem::path& directory) override { return inner_.list(directory); }
    std::optional<io::FileInfo> find(const std::filesystem::path& path) override { return inner_.find(path); }
    std::unique_ptr<io::File> open(const std::filesystem::path& path, io::Access access) override {
        return std::make_unique<WatchedFile>(inner_.open(path, access), notes_);
    }
    std::unique_ptr<io::File> create(const std::filesystem::path& path) override { return inner_.create(path); }
    std::unique_ptr<io::File> create_unnamed(const std::filesystem::path& directory) override { return inner_.create_unnamed(directory); }
    void publish(io::File& file, const std::filesystem::path& path) override { inner_.publish(file, path); }
    void rename(const std::filesystem::path& from, const std::filesystem::path& to, io::Existing existing) override {
        inner_.rename(from, to, existing);
    }
    bool remove(const std::filesystem::path& path) override { return inner_.remove(path); }
    void sync_directory(const std::filesystem::path& directory) override { inner_.sync_directory(directory); }

private:
    struct Notes {
        std::mutex mutex;
        ByteCount bytes = 0;
        std::map<std::filesystem::path, std::set<std::uint64_t>> pages;
    };
    class WatchedFile final : public log::test::ForwardingFile {
    public:
        WatchedFile(std::shared_ptr<io::File> inner, std::shared_ptr<Notes> notes) : ForwardingFile(std::move(inner)), notes_(std::move(notes)) {}
        ByteCount read(std::span<std::byte> bytes, std::uint64_t offset) const override {
            note(bytes.size(), offset);
            return ForwardingFile::read(bytes, offset);
        }
        ByteCount read_direct(std::span<std::byte> bytes, std::uint64_t offset) const override {
            note(bytes.size(), offset);
            return ForwardingFile::read_direct(bytes, offset);
        }

    private:
        void note(ByteCount bytes, std::uint64_t offset) const {
            const std::lock_guard lock(notes_->mutex);
            notes_->bytes += bytes;
            for (std::uint64_t page = offset / page_bytes; page * page_bytes < offset + bytes; ++page) notes_->pages[path()].insert(page);
        }
        std::shared_ptr<Notes> notes_;
    };

    io::Storage& inner_;
    std::shared_ptr<Notes> notes_ = std::make_shared<Notes>();
};

}  // namespace taiyen::store::test
