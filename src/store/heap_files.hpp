#pragma once
/// HeapFiles: the files of an open heap, and what the newest save in them is. No mapping.
///
/// (F1) Tables, headers and growth are written into both copies alike.
/// (F2) The point moves while a save is being written; `durable_serial` follows behind the save's commit point, and is what others are told.
/// Thread rule: who writes files, headers or the table holds `hold_saves()`, or is alone with the heap (opening, closing); the point may be asked for at any time.

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_set>
#include <vector>

#include <taiyen/store/archive_heap.hpp>

#include "base/aligned_buffer.hpp"
#include "log/ring.hpp"
#include "store/condition.hpp"
#include "store/events.hpp"
#include "store/heap_paths.hpp"
#include "store/page_file.hpp"
#include "store/page_table.hpp"
#include "store/proven_pages.hpp"
#include "store/recovery.hpp"

namespace taiyen::store {

/// A page whose bytes differ from the newest save.
struct ChangedPage {
    PageNumber page;
    std::uint64_t checksum;
};

/// What the newest save is.
struct SavedPoint {
    Generation generation;
    Serial serial;             ///< the newest transaction that it contains
    Serial durable_serial;     ///< the same, once it is durable
    log::RingStart log_start;  ///< of the transaction log, if that is the ring in use
    ByteCount extent = 0;      ///< of the span
    AnnexHead annex{};
    Extents extents() const { return {extent, annex.extent}; }
};

class HeapFiles {
public:
    /// Takes `found` over, but for the pages of a reader's overlay, which the caller applies: generation and extent come with them.
    HeapFiles(io::Storage& storage, const HeapPaths& paths, HeapKind kind, Condition& condition, std::shared_ptr<EventSource> events,
              OpenFiles& found);

    io::Storage& storage() const noexcept { return storage_; }
    const HeapPaths& paths() const noexcept { return paths_; }
    /// What errors call the heap.
    std::string_view name() const noexcept { return paths_.backing.native(); }
    HeapKind kind() const noexcept { return kind_; }
    bool is_read_only() const noexcept { return condition_.is_read_only(); }
    /// The log may still turn out wrong: files stay as they are.
    bool is_replaying() const noexcept { return replaying_; }
    void set_replaying(bool replaying) noexcept { replaying_ = replaying; }
    PageFile& backing() noexcept { return *backing_; }
    const PageFile& backing() const noexcept { return *backing_; }
    /// The second copy; null: there is none.
    PageFile* data() noexcept { return data_ ? &*data_ : nullptr; }
    const PageFile* data() const noexcept { return data_ ? &*data_ : nullptr; }
    /// `visit(PageFile&)`: the backing file, then the data file if there is one.
    template <class F>
    void for_each(F&& visit) {
        visit(*backing_);
        if (data_) visit(*data_);
    }
    template <class F>
    void for_each(F&& visit) const {
        visit(*backing_);
        if (data_) visit(*data_);
    }
    /// The file under the mapping: of a reader of a heap whose user crashed it may be the data file.
    const PageFile& view() const { return maps_data_ ? *data_ : *backing_; }
    bool maps_data() const noexcept { return maps_data_; }
    /// Checksums of the newest save; loads on use.
    PageTable& table() const noexcept { return table_; }

    // The ring.
    bool uses_log() const noexcept { return active_ == RingKind::log; }
    RingKind active_ring() const noexcept { return active_; }
    /// The journal, to append to; null: the ring is a log, there is none yet, or this is a reader.
    log::Ring* journal() const noexcept { return journal_.get(); }
    /// The journal or the transaction log in use, also of a reader; null: none.
    const std::shared_ptr<io::File>& ring_file() const noexcept { return ring_file_; }
    const log::RingIdentity& ring_identity() const noexcept { return ring_identity_; }
    ByteCount log_bytes() const noexcept { return uses_log() ? ring_identity_.capacity_bytes : backing_->header.log_capacity; }
    /// From now on that is the ring. `journal`: null for a log.
    void use_ring(RingKind kind, std::shared_ptr<io::File> file, const log::RingIdentity& identity, std::unique_ptr<log::Ring> journal) noexcept;
    /// Whether the files contain everything that is in the log.
    bool contains_log() const;
    /// Cuts off what a save without a data file left behind the log's ring.
    void trim_log();

    // The newest save.
    SavedPoint point() const {
        const std::lock_guard lock(point_mutex_);
        return point_;
    }
    /// `change(SavedPoint&)`.
    template <class F>
    void move_point(F&& change) {
        const std::lock_guard lock(point_mutex_);
        change(point_);
    }
    /// The newest transaction that the files hold durably.
    Serial durable_serial() const {
        const std::lock_guard lock(point_mutex_);
        return point_.durable_serial;
    }
    Extents extents() const {
        const std::lock_guard lock(point_mutex_);
        return point_.extents();
    }
    /// What is mapped from the file as it was saved. What a reader has from a journal or a log may go beyond: there its memory is its own.
    Extents file_extents() const { return condition_.is_read_only() ? view().header.extents() : extents(); }
    /// A reader's pages whose bytes come from the journal: in the files a crash may have left anything.
    const std::unordered_set<std::uint64_t>& recovering_pages() const noexcept { return recovering_pages_; }
    void note_recovering(PageNumber page) { recovering_pages_.insert(page.value); }
    bool is_recovering(const TableCover& cover) const;
    /// While it is held nothing is saved; for who reads the files of a heap that saves in the background.
    std::unique_lock<std::mutex> hold_saves() const { return std::unique_lock(save_mutex_); }
    std::unique_lock<std::mutex> try_hold_saves() const { return {save_mutex_, std::try_to_lock}; }
    /// While it is held nobody lays the annex of a heap without transactions out anew: for a scrub, which asks where pages lie.
    std::unique_lock<std::mutex> hold_layout() const { return std::unique_lock(layout_mutex_); }
    void lay_out(const FileLayout& layout);

    // Reading.
    /// The page as the newest save left it, from whichever file has it, asked past the page cache. `image`: aligned.
    /// Throws: what the device said if it refused a copy, else Error{corrupt} with `why`.
    void read_whole(PageNumber page, std::span<std::byte> image, const char* why) const;
    /// The same, with a reason that fits.
    void read_whole(PageNumber page, std::span<std::byte> image) const;
    /// Throws: Error{truncated}: a file is shorter than the newest save is. Who writes into it then would make it long enough again, and hide what is lost.
    void require_whole() const;

    // Writing.
    /// Runs `action`: growth that the system refuses is a full heap. Throws: HeapFull{disk | address_space}; what `action` throws else.
    void grow(ByteCount by, const std::function<void()>& action) const;
    /// What the heap has grown by is a hole at the files' ends. Throws: Error{no_space (a limit of file sizes) | truncated}.
    void make_long_enough(const Extents& extents);
    /// What the heap is about to grow by, from behind all that was ever in use, becomes zero in the files. Poisons if it fails.
    void clear_growth(const Extents& before, const Extents& after);
    /// Disk blocks in every file for pages that were zero so far, before anything says what they become: a full disk is a save that never began. `any`: what they become is not known yet.
    void take_blocks(std::span<const ChangedPage> changed, bool any);
    void fill_header(PageFile& file, bool clean);
    /// Durability: on return; the journal is free then.
    void write_headers();
    void write_tables(Generation generation);
    /// Removes the file, unless somebody moved ours while the heap was open.
    void remove_ours(const io::File& file, const std::filesystem::path& path);
    /// The file becomes the second copy. Throws: nothing.
    void adopt_data(PageFile&& data, HeapPaths&& to) noexcept;
    void drop_data() noexcept { data_.reset(); }
    void set_log_path(std::filesystem::path&& path) noexcept { paths_.log = std::move(path); }
    void close() noexcept;

    // What is told of it.
    /// Shared with who may outlive the heap.
    const std::shared_ptr<EventSource>& events() const noexcept { return events_; }
    Restoration restoration() const;
    /// What opening found; it grows until the heap is open.
    Restoration& found() noexcept { return restoration_; }
    /// Pages were restored from the other copy.
    void note_healed(std::uint64_t pages = 1) const noexcept;
    /// What the newest save is, with that kind.
    Event event_of(EventKind kind) const noexcept;
    /// `saved` or `checkpointed`.
    void tell_written(EventKind kind, const EventClock& clock, std::uint64_t pages) const noexcept;

private:
    io::Storage& storage_;
    HeapPaths paths_;
    const HeapKind kind_;
    Condition& condition_;
    const std::shared_ptr<EventSource> events_;
    std::optional<PageFile> backing_;
    std::optional<PageFile> data_;
    const bool maps_data_;
    bool replaying_ = false;
    std::shared_ptr<io::File> ring_file_;
    std::unique_ptr<log::Ring> journal_;
    log::RingIdentity ring_identity_;
    RingKind active_;
    mutable std::atomic<std::uint64_t> healed_ = 0;
    std::unordered_set<std::uint64_t> recovering_pages_;
    mutable PageTable table_;
    Restoration restoration_;  ///< but for what was healed since

    mutable std::mutex layout_mutex_;
    mutable std::mutex save_mutex_;
    mutable std::mutex point_mutex_;
    SavedPoint point_;
    std::mutex size_mutex_;  ///< files become longer: by growth, and by disk blocks at their ends
    ProvenPages backed_;     ///< one for each run of `blocks_taken_at_once`: it has disk blocks
};

}  // namespace taiyen::store
