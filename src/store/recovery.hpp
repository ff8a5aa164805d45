#pragma once
/// Recovery: from the files as a crash left them to files that hold the newest acknowledged save.
///
/// (I1) Everything is read from the device; nothing is written before the row of the table in FORMAT.md is chosen; a file that is refused is untouched.
/// (I2) Idempotent: interrupted anywhere and run again, it ends in the same state.
/// (I3) Afterwards all copies are whole, at one generation, and the ring begins a new epoch; if a transaction log has to be replayed, the save of that does so.
/// A read-only opener changes nothing: it gets the saves to apply in its private view.
/// Thread rule: external lock.

#include <atomic>
#include <chrono>
#include <optional>
#include <vector>

#include <taiyen/store/options.hpp>

#include "store/log_replay.hpp"
#include "store/page_file.hpp"
#include "store/save_record.hpp"

namespace taiyen::store {

struct HeapPaths {
    std::filesystem::path backing;
    std::filesystem::path data;
    std::filesystem::path journal;
    std::filesystem::path log;
};
/// Where a heap's files lie: where the options say, else beside it.
HeapPaths heap_paths(const std::filesystem::path& path, const PersistentOptions& options);

/// What the files do not contain yet: the transaction log's groups from here on.
struct LogTail {
    Serial contained;  ///< newest serial that the files contain, once the row is done
    log::RingStart start;
    bool checked = false;  ///< every group; else who applies them checks them, and nothing has been written until then
};

/// Which rows of the recovery table were taken; counted for the tests.
enum class Row {
    slot_repaired,
    backing_rebuilt,
    clean,
    data_refilled,
    data_to_backing,
    backing_to_data,
    records_installed,
    stage_installed,
    log_replayed,
    torn_record_cut,
    table_page_rebuilt,
    orphan_removed,
    count_
};
/// How often each row was taken in this process (relaxed; for tests).
std::uint64_t rows_taken(Row row) noexcept;
void count_row(Row row) noexcept;

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
    bool header_behind = false;       ///< a header slot is damaged: the next header write repairs it
};

/// Opens and locks the files and recovers them. `before_writing` is called with the newest header when the row is chosen and nothing was written yet; if it
/// throws, nothing is. Throws: Error as ArchiveHeap's constructors.
/// `log_replay`: makes what checks the transaction log.
/// `detach_data`: if the attached data file is missing, the heap goes on without it; that is the first thing written.
OpenFiles open_files(io::Storage& storage, const HeapPaths& paths, bool read_only, bool detach_data, const LogReplayMaker& log_replay,
                     const std::function<void(const Header&)>& before_writing);

/// What the end of the journal or the log at `path` means. Throws: Error{corrupt}.
void judge_end(const log::ScanResult& result, ByteCount capacity, const std::filesystem::path& path, Restoration& restoration);

/// How long a lock may take to go after its owner was killed: his mappings hold the file, and whoever looks at a process when it dies (ps, a debugger) holds those a moment longer.
inline std::atomic<std::chrono::milliseconds> lock_goes_within{std::chrono::milliseconds(250)};
/// Whether the file has still this name: it may have been removed, or replaced, before it was locked.
bool is_still_at(io::Storage& storage, const io::File& file, const std::filesystem::path& path);
/// The file of the heap that has this name, opened and locked. Throws: Error{busy | …}.
std::shared_ptr<io::File> open_locked(io::Storage& storage, const std::filesystem::path& path, bool read_only);

/// Gives the sound table page, from the backing file, else from the data file, else rebuilt: entries of pages that `is_covered` are left as found
/// (their saves follow), all others must match their pages. `via`: how the backing file is asked first; recovery asks the device, an open heap knows that what its
/// page cache holds was recovered or is its own. What the device refuses to read is as bad as what is damaged. Throws: Error{corrupt | io_error}. Returns whether it had to be repaired.
bool load_table_page(const PageFile& backing, const PageFile* data, std::uint64_t index, const Extents& extents,
                     const std::function<bool(PageNumber)>& is_covered, Via via, TablePage& page);

/// Brings `to` to what `from` holds: pages of table pages newer than `since` (all, if `everything`), compared by content; then table, sync, and a header
/// with `from`'s generation. Throws: Error{corrupt} if a page of `from` is damaged.
void copy_newer(const PageFile& from, PageFile& to, Generation since, bool everything);

/// Sum over the non-zero table pages of mix(index, checksum). `twin`: a file of the same generation (null: none), asked where the device refuses.
/// Throws: Error{io_error}.
std::uint64_t table_root_of(const PageFile& file, const Extents& extents, Via via, const PageFile* twin = nullptr);

}  // namespace taiyen::store
