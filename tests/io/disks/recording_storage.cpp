#include "io/disks/recording_storage.hpp"

#include <taiyen/base/check.hpp>

#include "io/disks/unsynced.hpp"

namespace taiyen::io {

namespace fs = std::filesystem;
using Kind = Operation::Kind;

class RecordingFile final : public File, public LosesUnsynced {
public:
    RecordingFile(RecordingStorage& storage, std::unique_ptr<File> inner, FileId id) : storage_(storage), inner_(std::move(inner)), id_(id) {}

    File& inner() { return *inner_; }
    FileId id() const { return id_; }

    const fs::path& path() const override { return inner_->path(); }
    FileInfo info() const override { return inner_->info(); }
    ByteCount read(std::span<std::byte> bytes, std::uint64_t offset) const override { return inner_->read(bytes, offset); }
    ByteCount read_direct(std::span<std::byte> bytes, std::uint64_t offset) const override { return inner_->read_direct(bytes, offset); }
    std::vector<Extent> data_extents(std::uint64_t offset, ByteCount length) const override { return inner_->data_extents(offset, length); }
    bool try_lock(Lock lock) override { return inner_->try_lock(lock); }
    void map_private(void* address, ByteCount length, std::uint64_t offset, Protection protection) const override {
        inner_->map_private(address, length, offset, protection);
    }

    void write(std::span<const std::byte> bytes, std::uint64_t offset) override {
        perform({.kind = Kind::written, .file = id_, .offset = offset, .bytes = {bytes.begin(), bytes.end()}}, [&] { inner_->write(bytes, offset); });
    }
    void write_durable(std::span<const std::byte> bytes, std::uint64_t offset) override {
        perform({.kind = Kind::durably_written, .file = id_, .offset = offset, .bytes = {bytes.begin(), bytes.end()}},
                [&] { inner_->write_durable(bytes, offset); });
    }
    void sync() override {
        perform({.kind = Kind::synced, .file = id_}, [&] { inner_->sync(); });
    }
    void lose_unsynced() override {
        if (auto* const loses = dynamic_cast<LosesUnsynced*>(inner_.get())) loses->lose_unsynced();
        storage_.note({.kind = Kind::synced, .file = id_, .failed = true});
    }
    void allocate(std::uint64_t offset, ByteCount length) override {
        inner_->allocate(offset, length);
        storage_.note({.kind = Kind::allocated, .file = id_, .offset = offset, .length = length});
    }
    void punch(std::uint64_t offset, ByteCount length) override {
        inner_->punch(offset, length);
        storage_.note({.kind = Kind::punched, .file = id_, .offset = offset, .length = length});
    }
    void resize(ByteCount size_bytes) override {
        inner_->resize(size_bytes);
        storage_.note({.kind = Kind::resized, .file = id_, .length = size_bytes});
    }

private:
    template <class Call>
    void perform(Operation operation, const Call& call) {
        try {
            call();
        } catch (...) {
            operation.failed = true;
            storage_.note(std::move(operation));
            throw;
        }
        storage_.note(std::move(operation));
    }

    RecordingStorage& storage_;
    std::unique_ptr<File> inner_;
    FileId id_;
};

Trace RecordingStorage::take_trace() {
    const std::scoped_lock lock(mutex_);
    ids_.clear();
    last_id_ = 0;
    return std::exchange(trace_, {});
}

void RecordingStorage::note(Operation operation) {
    const std::scoped_lock lock(mutex_);
    trace_.push_back(std::move(operation));
}

void RecordingStorage::issue(std::uint64_t number) { note({.kind = Kind::issued, .number = number}); }
void RecordingStorage::acknowledge(std::uint64_t number) { note({.kind = Kind::acknowledged, .number = number}); }

std::unique_ptr<File> RecordingStorage::begin(std::unique_ptr<File> file, Kind kind, const fs::path& path) {
    const FileInfo info = file->info();
    FileId id{};
    {
        const std::scoped_lock lock(mutex_);
        const auto known = ids_.find({info.device, info.inode});
        if (kind == Kind::opened && known != ids_.end()) {
            id = known->second;
        } else {
            id = FileId{++last_id_};  // also for an inode number that a removed file had before
            ids_[{info.device, info.inode}] = id;
            trace_.push_back({.kind = kind, .file = id, .path = path});
        }
    }
    return std::make_unique<RecordingFile>(*this, std::move(file), id);
}

std::unique_ptr<File> RecordingStorage::open(const fs::path& path, Access access) { return begin(inner_.open(path, access), Kind::opened, path); }
std::unique_ptr<File> RecordingStorage::create(const fs::path& path) { return begin(inner_.create(path), Kind::created, path); }
std::unique_ptr<File> RecordingStorage::create_unnamed(const fs::path& directory) {
    return begin(inner_.create_unnamed(directory), Kind::created_unnamed, directory);
}

void RecordingStorage::publish(File& file, const fs::path& path) {
    auto* const recording = dynamic_cast<RecordingFile*>(&file);
    TAIYEN_CHECK(recording != nullptr);
    inner_.publish(recording->inner(), path);
    note({.kind = Kind::published, .file = recording->id(), .path = path});
}

void RecordingStorage::rename(const fs::path& from, const fs::path& to, Existing existing) {
    inner_.rename(from, to, existing);
    note({.kind = Kind::renamed, .path = from, .to = to});
}

bool RecordingStorage::remove(const fs::path& path) {
    const bool removed = inner_.remove(path);
    if (removed) note({.kind = Kind::removed, .path = path});
    return removed;
}

void RecordingStorage::sync_directory(const fs::path& directory) {
    inner_.sync_directory(directory);
    note({.kind = Kind::directory_synced, .path = directory});
}

}  // namespace taiyen::io
