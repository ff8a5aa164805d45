#pragma once
/// Recovery: from the files as a crash left them to files that hold the newest acknowledged save.
///
/// (I1) Everything is read from the device; nothing is written before the row of the table in FORMAT.md is chosen (recovery_table.hpp); a file that is refused is untouched.
/// (I2) Idempotent: interrupted anywhere and run again, it ends in the same state.
/// (I3) Afterwards all copies are whole, at one generation, and the ring begins a new epoch; if a transaction log has to be replayed, the save of that does so.
/// A read-only opener changes nothing: it gets the saves to apply in its private view.
/// Thread rule: external lock.

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include <taiyen/store/options.hpp>
#include <taiyen/store/restoration.hpp>

#include "store/heap_paths.hpp"
#include "store/log_replay.hpp"
#include "store/page_file.hpp"
#include "store/ring_contents.hpp"
#include "store/save_record.hpp"

namespace taiyen::store {

/// The files of an open heap.
struct OpenFiles {
    std::optional<PageFile> backing;
    std::optional<PageFile> data;
    std::shared_ptr<io::File> ring;  ///< null: none attached
    Restoration restoration;
    bool map_data = false;            ///< read-only: the data file is the newer one
    std::vector<SaveRecord> overlay;  ///< read-only: saves to apply in the view, oldest first
    std::shared_ptr<io::File> stage;  ///< where staged saves of the overlay lie
    std::optional<LogTail> tail;      ///< to be applied in the private view. A writer then saves that, and its header begins the new epoch
    bool remakes_data = false;        ///< the data file was lost, and the heap is to get another one
    bool header_behind = false;       ///< a header slot is damaged: the next header write repairs it
};

/// Whether the heap's own file is missing, but its data file is there and was whole: then opening brings it back. Throws: Error{io_error | …}.
bool is_restorable(io::Storage& storage, const HeapPaths& paths);

/// What recovery makes of the ring. The others are a last resort's (last_resort.hpp): by `proven` and `given_up` the last save is proven, every page of it, before anything is written.
enum class RingUse {
    all,      ///< what was acknowledged
    cut,      ///< the same, of a journal whose damaged end was cut off just before
    proven,   ///< the same, of a log as far as `log_replay` wants it
    given_up  ///< what is left of it (`read_what_is_left`); the heap goes on without it
};

/// Opens and locks the files and recovers them. `before_writing` is called with the newest header when the row is chosen and nothing was written yet; if it
/// throws, nothing is. Throws: Error as ArchiveHeap's constructors.
/// `log_replay`: makes what checks the transaction log.
/// `detach_data`: if the attached data file is missing, the heap goes on without it; that is the first thing written. So it is without asking if the heap was closed, which then gets another one.
OpenFiles open_files(io::Storage& storage, const HeapPaths& paths, bool read_only, bool detach_data, const LogReplayMaker& log_replay,
                     const std::function<void(const Header&)>& before_writing, RingUse use = RingUse::all);

}  // namespace taiyen::store
