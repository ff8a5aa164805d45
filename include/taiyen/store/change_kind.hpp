#pragma once
/// Another kind for a heap in use: with transactions or without them, with a second copy or without.
///
///   taiyen::SnapshotHeap drawing(taiyen::open_only, "drawing.tyn");
///   auto shared = taiyen::change_kind<taiyen::TransactionalHeap>(std::move(drawing));  // from here on it has a log
///   drawing = taiyen::change_kind<taiyen::SnapshotHeap>(std::move(shared));            // and from here on none

#include <filesystem>
#include <utility>

#include <taiyen/base/detail/export.hpp>
#include <taiyen/store/archive_heap.hpp>
#include <taiyen/store/options.hpp>

namespace taiyen {

namespace store {
struct ClosedHeap {
    std::filesystem::path path;
    PersistentOptions options;
};
/// Saves and closes; the options open it again, with what lies elsewhere.
TAIYEN_EXPORT ClosedHeap close_for_another_kind(ArchiveHeap& heap, const PersistentOptions& options);
/// The log of an earlier kind goes, if this one has none.
TAIYEN_EXPORT void remove_left_log(ArchiveHeap& heap);
}  // namespace store

/// Saves everything, closes the heap and opens it as `To`: ArchiveHeap, SnapshotHeap (which gets a data file if there is none) or TransactionalHeap (which gets a log; that of one that becomes another kind is
/// removed). uuid, names, pointers into the heap and the stored undo history stay; attach_undo() again before changing anything. An ArchiveHeap keeps a data file that is there: detach_data_file(). `options`: of the new
/// opening; files that lie elsewhere are known.
/// Requires: nobody uses the heap meanwhile; other threads' transactions are waited for.
/// Durability: everything on return; a crash before leaves the heap closed, of the old kind or the new one, with all that was saved.
/// Throws: Error{scope_open | foreign_pointer | read_only | …} as snapshot(): the heap is open and as before. Error{still_in_use | busy | address_in_use | no_space | …} as closing and opening: it is closed, and what was
/// saved is whole. Complexity: that of a save and of opening, milliseconds; and of a data file that is made.
template <class To>
To change_kind(ArchiveHeap&& heap, const PersistentOptions& options = {}) {
    const store::ClosedHeap closed = store::close_for_another_kind(heap, options);
    To changed(open_only, closed.path, closed.options);
    store::remove_left_log(changed);
    return changed;
}

}  // namespace taiyen
