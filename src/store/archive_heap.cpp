#include <taiyen/store/archive_heap.hpp>

#include <taiyen/base/report.hpp>
#include <taiyen/store/snapshot_heap.hpp>

#include "store/heap_access.hpp"

namespace taiyen {
namespace {

using store::OpenMode;

/// Files are also removed and made while the heap is open, by name: a program that changes its working directory must not make us meet other files.
std::filesystem::path made_absolute(const std::filesystem::path& path) {
    std::error_code error;
    auto found = path.empty() ? path : std::filesystem::absolute(path, error);
    return error ? path : found;
}

}  // namespace

std::shared_ptr<store::HeapFile> HeapAccess::open(const std::filesystem::path& path, OpenMode mode, HeapKind kind, const PersistentOptions& options,
                                                  const store::Tuning& tuning) {
    PersistentOptions found = options;
    found.data_file = made_absolute(options.data_file);
    found.log_file = made_absolute(options.log_file);
    return store::HeapFile::open(io::posix_storage(), made_absolute(path), mode, kind, found, tuning);
}

std::string_view name_of(HeapKind kind) noexcept {
    switch (kind) {
        case HeapKind::volatile_heap: return "volatile";
        case HeapKind::archive: return "archive";
        case HeapKind::snapshot: return "snapshot";
        case HeapKind::transactional: return "transactional";
    }
    return "unknown";
}

ArchiveHeap::ArchiveHeap(create_only_t, const std::filesystem::path& path, const PersistentOptions& options)
    : ArchiveHeap(HeapAccess::open(path, OpenMode::create_only, HeapKind::archive, options)) {}
ArchiveHeap::ArchiveHeap(open_only_t, const std::filesystem::path& path, const PersistentOptions& options)
    : ArchiveHeap(HeapAccess::open(path, OpenMode::open_only, HeapKind::archive, options)) {}
ArchiveHeap::ArchiveHeap(open_or_create_t, const std::filesystem::path& path, const PersistentOptions& options)
    : ArchiveHeap(HeapAccess::open(path, OpenMode::open_or_create, HeapKind::archive, options)) {}
ArchiveHeap::ArchiveHeap(open_read_only_t, const std::filesystem::path& path, const PersistentOptions& options)
    : ArchiveHeap(HeapAccess::open(path, OpenMode::read_only, HeapKind::archive, options)) {}
ArchiveHeap::ArchiveHeap(std::shared_ptr<store::HeapFile> file) noexcept : file_(std::move(file)) {}
ArchiveHeap::ArchiveHeap(ArchiveHeap&&) noexcept = default;

ArchiveHeap& ArchiveHeap::operator=(ArchiveHeap&& other) noexcept {
    std::swap(file_, other.file_);
    ArchiveHeap discarded(std::move(other));
    return *this;
}

ArchiveHeap::~ArchiveHeap() {
    if (!file_) return;
    try {
        file_->abandon();
    } catch (const Error& error) {
        report({static_cast<errc>(error.code().value()), nullptr, error.what()});
    } catch (const std::exception& error) {
        report({errc::io_error, nullptr, error.what()});
    }
}

void* ArchiveHeap::allocate(std::size_t bytes, std::size_t alignment) { return HeapAccess::file(*this).allocate_durable(bytes, alignment); }

void ArchiveHeap::deallocate(void* block) noexcept {
    if (block != nullptr) heap::deallocate(block);
}

void* ArchiveHeap::resize(void* block, std::size_t bytes) {
    store::HeapFile& file = HeapAccess::file(*this);
    return file.resize_durable(block, bytes);
}

std::size_t ArchiveHeap::usable_size(const void* block) const noexcept { return file_ && file_->is_open() ? file_->usable_durable(block) : 0; }
bool ArchiveHeap::owns(const void* address) const noexcept { return file_ && file_->is_open() && heap::in_durable(*file_, address); }

void ArchiveHeap::snapshot() { HeapAccess::file(*this).save(); }
std::uint64_t ArchiveHeap::heal() { return HeapAccess::file(*this).healing().heal(); }

void ArchiveHeap::attach_data_file(const std::filesystem::path& path) {
    HeapAccess::file(*this).companions().attach_data_file(made_absolute(path), {});
}
void ArchiveHeap::detach_data_file() { HeapAccess::file(*this).companions().detach_data_file(); }
bool ArchiveHeap::has_data_file() const { return HeapAccess::file(*this).has_data_file(); }

std::vector<WrittenRange> ArchiveHeap::written_ranges() const { return HeapAccess::file(*this).written_ranges(); }
std::size_t ArchiveHeap::dirty_bytes() const {
    std::size_t bytes = 0;
    for (const WrittenRange& range : written_ranges()) bytes += range.bytes;
    return bytes;
}

std::size_t ArchiveHeap::check_guards() const {
    const store::HeapFile& file = HeapAccess::file(*this);
    file.check_usable(true);
    return file.check_guards();
}

HeapKind ArchiveHeap::kind() const { return HeapAccess::file(*this).kind(); }
Restoration ArchiveHeap::restoration() const { return HeapAccess::file(*this).files().restoration(); }
const std::filesystem::path& ArchiveHeap::path() const { return HeapAccess::file(*this).path(); }
bool ArchiveHeap::is_open() const noexcept { return file_ && file_->is_open(); }

void ArchiveHeap::close() {
    if (file_) file_->close();
}

heap::HeapCore* ArchiveHeap::core() const noexcept { return is_open() ? file_.get() : nullptr; }

SnapshotHeap::SnapshotHeap(create_only_t, const std::filesystem::path& path, const PersistentOptions& options)
    : ArchiveHeap(HeapAccess::open(path, OpenMode::create_only, HeapKind::snapshot, options)) {}
SnapshotHeap::SnapshotHeap(open_only_t, const std::filesystem::path& path, const PersistentOptions& options)
    : ArchiveHeap(HeapAccess::open(path, OpenMode::open_only, HeapKind::snapshot, options)) {}
SnapshotHeap::SnapshotHeap(open_or_create_t, const std::filesystem::path& path, const PersistentOptions& options)
    : ArchiveHeap(HeapAccess::open(path, OpenMode::open_or_create, HeapKind::snapshot, options)) {}
SnapshotHeap::SnapshotHeap(open_read_only_t, const std::filesystem::path& path, const PersistentOptions& options)
    : ArchiveHeap(HeapAccess::open(path, OpenMode::read_only, HeapKind::snapshot, options)) {}

}  // namespace taiyen
