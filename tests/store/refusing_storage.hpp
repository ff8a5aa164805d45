#pragma once
/// A storage over another one, with pages of files that can't be read: bad sectors of a device, which take new bytes or don't.

#include <algorithm>
#include <memory>
#include <vector>

#include <taiyen/base/error.hpp>

#include "io/storage.hpp"
#include "log/forwarding_file.hpp"

namespace taiyen::store::test {

/// A page of a file whose reads fail.
struct RefusedPage {
    std::filesystem::path file;
    std::uint64_t offset;
    bool until_written = true;
    errc code = errc::io_error;
};

/// Files that `open` gives refuse; new ones don't. Thread rule: as the storage below; `refuse` and `forgive` need an external lock.
class RefusingStorage final : public io::Storage {
public:
    explicit RefusingStorage(io::Storage& inner) : inner_(inner) {}

    void refuse(RefusedPage page) { refused_->push_back(std::move(page)); }
    void forgive() { refused_->clear(); }
    /// How many pages still can't be read.
    std::size_t refused() const { return refused_->size(); }

    std::vector<std::string> list(const std::filesystem::path& directory) override { return inner_.list(directory); }
    std::optional<io::FileInfo> find(const std::filesystem::path& path) override { return inner_.find(path); }
    std::unique_ptr<io::File> open(const std::filesystem::path& path, io::Access access) override {
        return std::make_unique<RefusingFile>(inner_.open(path, access), refused_);
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
    using Refused = std::vector<RefusedPage>;

    class RefusingFile final : public log::test::ForwardingFile {
    public:
        RefusingFile(std::shared_ptr<io::File> inner, std::shared_ptr<Refused> refused)
            : ForwardingFile(std::move(inner)), refused_(std::move(refused)) {}

        ByteCount read(std::span<std::byte> bytes, std::uint64_t offset) const override {
            may_refuse(bytes.size(), offset);
            return ForwardingFile::read(bytes, offset);
        }
        ByteCount read_direct(std::span<std::byte> bytes, std::uint64_t offset) const override {
            may_refuse(bytes.size(), offset);
            return ForwardingFile::read_direct(bytes, offset);
        }
        void write(std::span<const std::byte> bytes, std::uint64_t offset) override {
            ForwardingFile::write(bytes, offset);
            note_written(bytes, offset);
        }
        void write_direct(std::span<const std::byte> bytes, std::uint64_t offset) override {
            ForwardingFile::write_direct(bytes, offset);
            note_written(bytes, offset);
        }
        void write_durable(std::span<const std::byte> bytes, std::uint64_t offset) override {
            ForwardingFile::write_durable(bytes, offset);
            note_written(bytes, offset);
        }

    private:
        void note_written(std::span<const std::byte> bytes, std::uint64_t offset) {
            std::erase_if(*refused_, [&](const RefusedPage& page) {
                return page.until_written && page.file == path() && page.offset >= offset && page.offset + page_bytes <= offset + bytes.size();
            });
        }
        void may_refuse(ByteCount length, std::uint64_t offset) const {
            for (const RefusedPage& page : *refused_)
                if (page.file == path() && offset < page.offset + page_bytes && page.offset < offset + length)
                    throw Error(page.code, path(), page.offset, "the test refuses to read this page");
        }
        std::shared_ptr<Refused> refused_;
    };

    io::Storage& inner_;
    std::shared_ptr<Refused> refused_ = std::make_shared<Refused>();
};

}  // namespace taiyen::store::test
