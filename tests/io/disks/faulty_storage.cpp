#include "io/disks/faulty_storage.hpp"

#include <algorithm>

#include <taiyen/base/check.hpp>
#include <taiyen/base/error.hpp>

#include "base/aligned_buffer.hpp"
#include "base/system_error.hpp"
#include "io/disks/unsynced.hpp"

namespace taiyen::io {

namespace fs = std::filesystem;

namespace {
constexpr std::string_view injected = "injected fault";
}

class FaultyFile final : public File, public LosesUnsynced {
public:
    FaultyFile(FaultyStorage& storage, std::unique_ptr<File> inner) : storage_(storage), inner_(std::move(inner)) {}

    File& inner() { return *inner_; }

    const fs::path& path() const override { return inner_->path(); }
    FileInfo info() const override {
        may_strike(Call::info);
        return inner_->info();
    }
    ByteCount read(std::span<std::byte> bytes, std::uint64_t offset) const override {
        may_strike(Call::read, offset);
        return inner_->read(bytes, offset);
    }
    ByteCount read_direct(std::span<std::byte> bytes, std::uint64_t offset) const override {
        may_strike(Call::read_direct, offset);
        return inner_->read_direct(bytes, offset);
    }
    void write(std::span<const std::byte> bytes, std::uint64_t offset) override {
        if (storage_.strikes(Call::write)) {
            inner_->write(bytes.first(std::min(bytes.size(), storage_.fault_.short_bytes)), offset);
            throw_errno(storage_.fault_.error, path(), offset, injected);
        }
        inner_->write(bytes, offset);
    }
    void write_durable(std::span<const std::byte> bytes, std::uint64_t offset) override {
        if (storage_.strikes(Call::write_durable)) {
            write_prefix(bytes, offset);
            throw_errno(storage_.fault_.error, path(), offset, injected);
        }
        inner_->write_durable(bytes, offset);
    }
    void start_writing(std::uint64_t offset, ByteCount length) noexcept override {
        storage_.begun_bytes_ += length;
        inner_->start_writing(offset, length);
    }
    void wait_for_writing(std::uint64_t offset, ByteCount length) override {
        if (storage_.strikes(Call::sync)) {
            lose_unsynced();
            throw_errno(storage_.fault_.error, path(), offset, injected);
        }
        inner_->wait_for_writing(offset, length);
    }
    void sync() override {
        if (storage_.strikes(Call::sync)) {
            lose_unsynced();
            throw_errno(storage_.fault_.error, path(), injected);
        }
        inner_->sync();
    }
    void lose_unsynced() override {
        if (auto* const loses = dynamic_cast<LosesUnsynced*>(inner_.get())) loses->lose_unsynced();
    }
    void allocate(std::uint64_t offset, ByteCount length) override {
        if (storage_.strikes(Call::allocate)) {
            if (storage_.fault_.short_bytes != 0) inner_->allocate(offset, std::min(length, page_bytes));
            throw_errno(storage_.fault_.error, path(), offset, injected);
        }
        inner_->allocate(offset, length);
    }
    void punch(std::uint64_t offset, ByteCount length) override {
        may_strike(Call::punch, offset);
        inner_->punch(offset, length);
    }
    std::vector<Extent> data_extents(std::uint64_t offset, ByteCount length) const override {
        may_strike(Call::data_extents, offset);
        return inner_->data_extents(offset, length);
    }
    void resize(ByteCount size_bytes) override {
        may_strike(Call::resize, size_bytes);
        inner_->resize(size_bytes);
    }
    bool try_lock(Lock lock) override {
        may_strike(Call::lock);
        return inner_->try_lock(lock);
    }
    void map_private(void* address, ByteCount length, std::uint64_t offset, Protection protection) const override {
        may_strike(Call::map, offset);
        inner_->map_private(address, length, offset, protection);
    }

private:
    void may_strike(Call call, std::uint64_t offset = Error::no_offset) const { storage_.may_strike(call, inner_->path(), offset); }

    /// Whole sectors of a torn durable write: those of the last, incomplete direct unit are mixed with what was there before.
    void write_prefix(std::span<const std::byte> bytes, std::uint64_t offset) {
        const ByteCount prefix = round_down(std::min(bytes.size(), storage_.fault_.short_bytes), sector_bytes);
        if (prefix == 0) return;
        const ByteCount units = round_up(prefix, direct_alignment);
        const AlignedBuffer mixed(units);
        const ByteCount there = inner_->read_direct(mixed.span(), offset);
        std::fill(mixed.span().begin() + static_cast<std::ptrdiff_t>(there), mixed.span().end(), std::byte{0});
        std::copy_n(bytes.begin(), prefix, mixed.span().begin());
        inner_->write_durable(mixed.span(), offset);
    }

    FaultyStorage& storage_;
    std::unique_ptr<File> inner_;
};

void FaultyStorage::arm(const Fault& fault) {
    const std::scoped_lock lock(mutex_);
    fault_ = fault;
    armed_ = true;
    calls_ = 0;
    fired_ = 0;
    begun_bytes_ = 0;
}

void FaultyStorage::disarm() {
    const std::scoped_lock lock(mutex_);
    armed_ = false;
}

bool FaultyStorage::strikes(Call call) {
    const std::scoped_lock lock(mutex_);
    if (!armed_ || !includes(fault_.calls, call)) return false;
    ++calls_;
    if (calls_ != fault_.at && !(fault_.sticky && calls_ > fault_.at)) return false;
    ++fired_;
    return true;
}

void FaultyStorage::may_strike(Call call, const fs::path& path, std::uint64_t offset) {
    if (strikes(call)) throw_errno(fault_.error, path, offset, injected);
}

std::vector<std::string> FaultyStorage::list(const fs::path& directory) {
    may_strike(Call::find, directory, Error::no_offset);
    return inner_.list(directory);
}
std::optional<FileInfo> FaultyStorage::find(const fs::path& path) {
    may_strike(Call::find, path, Error::no_offset);
    return inner_.find(path);
}
std::unique_ptr<File> FaultyStorage::open(const fs::path& path, Access access) {
    may_strike(Call::open, path, Error::no_offset);
    return std::make_unique<FaultyFile>(*this, inner_.open(path, access));
}
std::unique_ptr<File> FaultyStorage::create(const fs::path& path) {
    may_strike(Call::create, path, Error::no_offset);
    return std::make_unique<FaultyFile>(*this, inner_.create(path));
}
std::unique_ptr<File> FaultyStorage::create_unnamed(const fs::path& directory) {
    may_strike(Call::create_unnamed, directory, Error::no_offset);
    return std::make_unique<FaultyFile>(*this, inner_.create_unnamed(directory));
}
void FaultyStorage::publish(File& file, const fs::path& path) {
    may_strike(Call::publish, path, Error::no_offset);
    auto* const faulty = dynamic_cast<FaultyFile*>(&file);
    TAIYEN_CHECK(faulty != nullptr);
    inner_.publish(faulty->inner(), path);
}
void FaultyStorage::rename(const fs::path& from, const fs::path& to, Existing existing) {
    may_strike(Call::rename, from, Error::no_offset);
    inner_.rename(from, to, existing);
}
bool FaultyStorage::remove(const fs::path& path) {
    may_strike(Call::remove, path, Error::no_offset);
    return inner_.remove(path);
}
void FaultyStorage::sync_directory(const fs::path& directory) {
    may_strike(Call::sync_directory, directory, Error::no_offset);
    inner_.sync_directory(directory);
}

}  // namespace taiyen::io
