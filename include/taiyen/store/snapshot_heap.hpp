#pragma once
/// SnapshotHeap: an ArchiveHeap with a second copy, the data file: saves are fail-safe against a bad disk too, damaged pages heal page by page.
///
/// Opening an archive as a SnapshotHeap attaches a data file. Thread rule: as ArchiveHeap.

#include <taiyen/store/archive_heap.hpp>

namespace taiyen {

class TAIYEN_EXPORT SnapshotHeap : public ArchiveHeap {
public:
    SnapshotHeap(create_only_t, const std::filesystem::path& path, const PersistentOptions& options = {});
    SnapshotHeap(open_only_t, const std::filesystem::path& path, const PersistentOptions& options = {});
    SnapshotHeap(open_or_create_t, const std::filesystem::path& path, const PersistentOptions& options = {});
    SnapshotHeap(open_read_only_t, const std::filesystem::path& path, const PersistentOptions& options = {});

protected:
    using ArchiveHeap::ArchiveHeap;
    friend struct HeapAccess;
};

}  // namespace taiyen
