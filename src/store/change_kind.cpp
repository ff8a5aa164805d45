#include <taiyen/store/change_kind.hpp>

#include "store/heap_access.hpp"

namespace taiyen::store {

ClosedHeap close_for_another_kind(ArchiveHeap& heap, const PersistentOptions& options) {
    HeapFile& file = HeapAccess::file(heap);
    heap.snapshot();
    const HeapPaths& paths = file.files().paths();
    ClosedHeap closed{paths.backing, options};
    if (options.data_file.empty() && !paths.data_is_beside) closed.options.data_file = paths.data;
    if (options.log_file.empty()) closed.options.log_file = paths.log;
    heap.close();
    return closed;
}

void remove_left_log(ArchiveHeap& heap) {
    HeapFile& file = HeapAccess::file(heap);
    if (!file.uses_log()) file.companions().remove_log();
}

}  // namespace taiyen::store
