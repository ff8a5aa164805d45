#include <taiyen/inspect/up_to_date.hpp>

#include <taiyen/store/archive_heap.hpp>

#include "store/heap_access.hpp"

namespace taiyen {

UpToDateReport bring_up_to_date(const std::filesystem::path& path, const PersistentOptions& options, const std::filesystem::path& copy,
                                const Progress& progress) {
    UpToDateReport report;
    store::Tuning tuning;
    tuning.role = store::RoleWanted::any;  // what a follower has, or one that was deposed, stays as it is
    auto heap = HeapAccess::make<ArchiveHeap>(HeapAccess::open(path, store::OpenMode::open_only, HeapKind::archive, options, tuning));
    report.restoration = heap.restoration();
    if (!copy.empty()) write_copy(heap, copy, progress);
    const store::HeapFile& file = HeapAccess::file(heap);
    report.generation = file.files().point().generation.value;
    report.extent_bytes = file.engine().extent();
    heap.close();
    return report;
}

void write_copy(const ArchiveHeap& heap, const std::filesystem::path& to, const Progress& progress) {
    HeapAccess::file(heap).companions().write_copy(std::filesystem::absolute(to), progress);
}

void attach_data_file(ArchiveHeap& heap, const std::filesystem::path& path, const Progress& progress) {
    HeapAccess::file(heap).companions().attach_data_file(path.empty() ? path : std::filesystem::absolute(path), progress);
}

}  // namespace taiyen
