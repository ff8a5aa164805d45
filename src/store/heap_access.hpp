#pragma once
/// HeapAccess: heaps over other storages, for tests; and the compiled side of a heap, for the rooms above.

#include <taiyen/store/snapshot_heap.hpp>

#include "store/heap_file.hpp"

namespace taiyen {

struct HeapAccess {
    template <class Heap>
    static Heap make(std::shared_ptr<store::HeapFile> file) {
        return Heap(std::move(file));
    }
    /// Over the files of this machine, as the constructors of the public classes do.
    static std::shared_ptr<store::HeapFile> open(const std::filesystem::path& path, store::OpenMode mode, HeapKind kind,
                                                 const PersistentOptions& options, const store::Tuning& tuning = {});
    /// Requires: open. Throws: Error{closed}.
    static store::HeapFile& file(const ArchiveHeap& heap) {
        if (!heap.file_) throw Error(errc::closed, "the heap is closed; open it again");
        return *heap.file_;
    }
    /// The same, for who may outlive the heap.
    static std::shared_ptr<store::HeapFile> shared(const ArchiveHeap& heap) {
        file(heap);
        return heap.file_;
    }
};

}  // namespace taiyen
