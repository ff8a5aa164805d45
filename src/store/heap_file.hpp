#pragma once
/// HeapFile: the compiled engine behind the persistent heaps: files, mapping, saving.
///
/// Promises:
/// (I1) The files never hold anything that was not saved: the program works on private copies (MAP_PRIVATE).
/// (I2) `save` is durable on return; a crash anywhere leaves the save before or the save after, whole.
/// (I3) A failed write or sync poisons the heap: nothing more is written, later calls say so, reopening recovers.
/// (I4) Nothing is saved by closing.
/// The order of all durable steps: FORMAT.md. Opening: creation.cpp, replay.cpp; saving: save.cpp, large_save.cpp, transactional_file.cpp; proofs.cpp, heal.cpp, copy.cpp; companions.cpp. Parts of it: Annex, GiveBack, HeldPages.
/// Thread rule: external lock.

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include <taiyen/store/archive_heap.hpp>
#include <taiyen/store/options.hpp>

#include "base/aligned_buffer.hpp"
#include "heap/core.hpp"
#include "heap/foreign_pointers.hpp"
#include "heap/held_blocks.hpp"
#include "heap/tail_guards.hpp"
#include "log/ring.hpp"
#include "store/annex.hpp"
#include "store/events.hpp"
#include "store/first_touch.hpp"
#include "store/give_back.hpp"
#include "store/held_pages.hpp"
#include "store/log_replay.hpp"
#include "store/proven_pages.hpp"
#include "store/recovery.hpp"
#include "store/snapshot_participant.hpp"
#include "store/visits.hpp"
#include "vm/memory_limit.hpp"
#include "vm/page_tracker.hpp"

namespace taiyen::store {

/// Where a save stands in the transaction log: it contains everything up to `serial`, and the group of serial + 1 begins at `log_start`.
struct SavePoint {
    Serial serial;
    log::RingStart log_start;
    ByteCount extent = 0;              ///< of the span as of that serial
    std::optional<AnnexHead> annex{};  ///< as of that serial; nothing: as the save before it left it. A save of the live span takes the live one
    bool searches = false;             ///< a save of the live span refuses pointers that lead out of the heap: nobody has looked for them before
};

enum class OpenMode { create_only, open_only, open_or_create, read_only };

/// What tests set beside the public options.
class HeapFile;

struct Tuning {
    ByteCount journal_bytes = ByteCount{1} << 20U;  ///< of the ring, a multiple of 4 KiB, at least 32 KiB
    ByteCount batch_bytes = ByteCount{64} << 20U;   ///< of page images that a background save holds in memory; a multiple of 4 KiB
    LogReplayMaker log_replay = make_log_replay;
    RingUse ring_use = RingUse::all;
    std::function<ByteCount()> memory = vm::usable_memory;  ///< that the process may have
    std::function<void(HeapFile&)> join = nullptr;  ///< of who takes part in the heap's life; if it throws, nothing was created. Empty: nobody, yet
};

class HeapFile final : public heap::HeapCore, public heap::SpanHost {
public:
    /// Creates or opens. Throws: as the constructors of ArchiveHeap.
    static std::shared_ptr<HeapFile> open(io::Storage& storage, const std::filesystem::path& path, OpenMode mode, HeapKind kind,
                                          const PersistentOptions& options, const Tuning& tuning = {});
    ~HeapFile() override;

    const std::filesystem::path& path() const override { return paths_.backing; }
    void check_usable(bool for_reading) const override;
    /// The same, for those who ask all the time.
    void require_usable(bool for_reading) const {
        if (!open_ || in_forked_child() || poisoned_.load(std::memory_order_relaxed) || (read_only_ && !for_reading)) [[unlikely]]
            check_usable(for_reading);
    }
    using HeapCore::engine;
    heap::Engine& engine() override { return *engine_; }
    std::string_view name() const noexcept override { return paths_.backing.native(); }

    void check_changeable() const override {
        require_usable(false);
        if (participant_) participant_->check_change();
    }

    /// Saves everything. Durability: on return. Throws: Error{foreign_pointer | no_space | io_error | corrupt | poisoned | …}.
    void save();
    /// Brings the files up to the newest save and frees the ring.
    void checkpoint();
    using TellLost = std::function<void(const Error& lost)>;
    using TellBytes = GiveBack::TellBytes;
    /// Reads every page of both copies, restores damaged and unreadable ones from the other copy; returns how many. `lost` is told of each that neither has; without it: throws
    /// Error{corrupt} of the first one, after everything else was restored. Throws: Error{io_error}.
    std::uint64_t heal(const TellLost& lost = {}, const TellBytes& tell = {});
    // Scrubbing: the same by pieces, on a thread of its own, while the program goes on.
    /// A page of a file that isn't as the newest save left it. Of the table: the index of the table page.
    struct DamagedPage {
        bool in_data = false;
        bool of_table = false;
        std::uint64_t number = 0;
        auto operator<=>(const DamagedPage&) const = default;
    };
    /// What became of it.
    enum class Healed { healed, whole /** meanwhile, by a save */, lost, waits /** for the next save: the program may be changing it */ };
    /// So many bytes a piece takes at most, of each file.
    static constexpr ByteCount scrubbed_bytes_max = ByteCount{256} << 10U;
    /// Compares up to `bytes` of both copies from `next` on, past the page cache, and moves `next` on; behind the last page it becomes 0, and a round has ended. What stands in the ring alone isn't looked at.
    /// Returns how many bytes were read. `damaged`: those found are added. Thread rule: safe beside everything; saves wait meanwhile. Throws: Error{closed | poisoned | io_error}, std::bad_alloc.
    ByteCount look_over(PageNumber& next, ByteCount bytes, std::vector<DamagedPage>& damaged);
    /// Restores one page from the other copy, if that is whole. Nothing: a save is at work, and it wasn't waited for. A page of the backing file of a heap without transactions waits for the next save, when nobody stores;
    /// of one with transactions: the caller sees to it that nobody changes the heap meanwhile, and that the log is not behind.
    /// Durability: it is synced. Throws: Error{closed | truncated | …}; Error{io_error | corrupt}: it can't be written, the heap is poisoned.
    std::optional<Healed> heal_one(const DamagedPage& damaged);
    /// A sentence about it, with file and offset. Throws: Error{closed}.
    Error describe(const DamagedPage& damaged, const char* what) const;
    bool uses_log() const { return active_ == RingKind::log; }
    /// Writes the newest save into a new file: a heap of its own without a second copy, closed. It has the heap's uuid and address. Every page is proven, and comes from the data file if need be.
    /// Durability: on return the copy is durable, with its name; a crash before leaves all of it or nothing. Throws: Error{already_exists | not_found (directory) | no_space | corrupt | …}: there is
    /// no copy, and this heap is as before.
    void write_copy(const std::filesystem::path& to, const TellBytes& tell = {});
    // Companions that come and go while the heap is in use. Thread rule: safe beside transactions; a heap without them: external lock.
    /// Gives the heap a second copy of everything in that file (empty: beside it); saves wait for a part of it at a time, transactions only for what was saved meanwhile.
    /// `tell` is called while saves are held. Durability: on return; a crash before leaves the heap without. Throws: Error{already_exists | busy | scope_open | no_space | corrupt | mismatch | invalid_argument}:
    /// nothing changed.
    void attach_data_file(const std::filesystem::path& path, const TellBytes& tell);
    /// Proves the heap's own file, then goes on without the other one, which is removed. Durability: on return. Throws: Error{not_found | scope_open | corrupt}: nothing changed.
    void detach_data_file();
    /// Thread-safe. Throws: Error{closed}.
    bool has_data_file() const;
    /// Puts an empty log of that capacity (0: as it is) in the place of the one in use, there or in another file (empty: there); to be appended to. Durability: on return.
    /// Requires: the files hold everything that was committed, and nobody appends. Throws: Error{no_space | mismatch | invalid_argument}: nothing changed.
    std::unique_ptr<log::Ring> replace_log(ByteCount capacity, const std::filesystem::path& path);
    /// Runs the step while nobody changes the heap and the files hold all that was committed. Throws: Error{scope_open}; what `step` throws.
    void stand_still(const std::function<void()>& step);
    /// A batch of pages, ascending, and their images, to be brought to the save's point.
    using FillPages = std::function<void(std::span<const PageNumber> pages, std::span<std::byte> images)>;
    /// Moves the heap to another address: one save of these pages of the span, ascending, each as the newest save has it and then patched, whose commit point is also that of
    /// the address. An annex in use ends with it. What is mapped here stays where it is: close the heap, and open it where it lies now.
    /// Requires: a journal as its ring, nobody joined, a place that can hold it (`is_base`); what was changed since the newest save is not looked at. Durability: on return.
    void save_moved(std::uintptr_t base, std::span<const PageNumber> pages, const FillPages& patch);
    /// Gives the heap another capacity (bytes; 0: the least): one save of its first page, whose commit point is also that of the capacity. What is mapped here stays as it is: close the heap, and open it again.
    /// Requires: a journal as its ring, nobody joined; what was changed since the newest save is not looked at. Durability: on return. Throws: Error{invalid_argument}: it can't have that one.
    void save_resized(ByteCount capacity);
    /// Where a heap with so much in use, and of that capacity, would find room in this process, that far behind the beginning of a slot. Throws: Error{out_of_address_space}.
    static std::uintptr_t find_place(ByteCount extent, ByteCount capacity, std::uintptr_t within_slot = heap::base_alignment);
    /// Requires: nothing was changed since the newest save. Throws: Error{corrupt} naming a page of the span that isn't as it was saved.
    void prove_span() const;
    /// Of these pages of the span, a bit each, those that nobody has written since the newest save. Throws: Error{corrupt} naming one that isn't as it was saved.
    void prove_unwritten(const std::vector<bool>& pages);
    /// What the newest save has of that part of the span, written since or not: who copies from there copies what the file gave. Throws: Error{corrupt} naming a page of the backing file that isn't as it
    /// was saved. Complexity: reads these pages.
    void prove_saved(HeapOffset offset, ByteCount length);
    // heap::SpanHost: what the program sees there is as the newest save left it, or stored on top of that. A page that rotted comes from the second copy, in memory: the file keeps what it has until it is
    // saved or healed. Each page once, until it is dropped. Requires: nobody else changes or proves pages meanwhile. Complexity: reads these pages of the file.
    bool proves() const noexcept override { return true; }
    /// Throws: Error{corrupt | io_error}: nobody has the page whole, or it was changed already and nobody can tell what was stored from what rotted.
    void prove(HeapOffset offset, ByteCount length) override;
    // heap::HeapCore, for capture.
    heap::Proof about_to_change(HeapOffset offset, ByteCount length, bool asked) noexcept override;
    // Verify::at_first_touch.
    heap::Touched on_touch(void* address, bool writes) noexcept override;
    void uncover(HeapOffset offset, ByteCount length) const override;
    bool protect(HeapOffset offset, ByteCount length, bool writable) noexcept override;
    /// Whether the program sees proven pages only.
    bool hides_unproven() const noexcept { return first_touch_ != nullptr; }
    /// The pages of the span that were written since the last save.
    std::vector<WrittenRange> written_ranges() const;
    /// Whether a byte of the span is not as the newest save has it. Complexity: reads the pages that were written since the last save.
    bool differs_from_save();

    // A heap opened as HeapKind::transactional. What changes it stands in the transaction log before it gets into a file, so the files are brought up to date from the
    // log, in the background, and never from the program's memory.
    /// The ring of the transaction log, to append to; the heap keeps the file and its identity for headers, stage and recovery. Once, and not of a reader.
    std::unique_ptr<log::Ring> take_log();
    /// The newest transaction that the files contain. Thread-safe.
    Serial serial() const;
    /// Capacity of the transaction log that is attached; 0: none. While the log is in use a save in the background writes the header meanwhile.
    ByteCount attached_log_bytes() const { return uses_log() ? ring_identity_.capacity_bytes : backing_->header.log_capacity; }
    /// Where the group of the next one begins, by the newest header. Thread-safe.
    log::RingStart log_start() const;
    /// Saves `pages` (ascending): `fill` gives their images, the same ones each time that it is asked. Durability: on return; from then on the log is needed from `point.log_start` only.
    /// Thread-safe against everything but another save, heal and verify, which it waits for; the program goes on meanwhile.
    /// Throws: Error{no_space}: nothing changed; Error{corrupt | io_error | …}: the heap is poisoned. What `fill` throws poisons too.
    void save_images(const SavePoint& point, std::span<const PageNumber> pages, const FillPages& fill);
    /// The same, but `patch` is called once for each batch, with the images as `read_base` gives them.
    void save_patched(const SavePoint& point, std::span<const PageNumber> pages, const FillPages& patch);
    /// The page as the newest save left it, verified; zero where there is nothing yet. A damaged one comes from the data file. Thread-safe as save_images. Throws: Error{corrupt | io_error}:
    /// the heap is poisoned.
    void read_base(PageNumber page, std::span<std::byte> image);
    /// Of images that a save may hold in memory.
    ByteCount batch_bytes() const { return tuning_.batch_bytes; }
    /// Saves what the span holds now. Requires: nobody stores meanwhile, and the span is as of `point.serial`. Durability: on return. Throws: as save_images; Error{foreign_pointer}: nothing changed.
    void save_at(const SavePoint& point);
    /// While a log is replayed: as Annex.
    void replay_annex(const AnnexHead& annex) { annex_.replay(annex); }
    std::span<std::byte> replay_annex_page(PageNumber page) { return annex_.replay_page(page); }
    /// The private copies of pages that a file holds too. Thread-safe.
    std::vector<vm::PageRun> private_pages() const;
    /// What the private copies of the span take. Requires: nobody grows it.
    ByteCount private_bytes() const;
    /// Drops private copies that are byte for byte what the backing file holds, and that capture doesn't keep open: from then on they are its pages. Takes pages off the end of `todo` for about as long as `time`, and returns
    /// how many it dropped. Who reads the span meanwhile sees no difference. `buffer`: at least a page; aligned.
    /// Requires: nobody stores, no save runs, and the next save is of no serial before the newest one in the span. Throws: Error{io_error}; nothing is lost.
    std::uint64_t drop_saved(std::vector<vm::PageRun>& todo, std::span<std::byte> buffer, std::chrono::microseconds time);
    /// What private copies may take.
    ByteCount dirty_limit() const { return dirty_limit_; }
    /// Drops all private copies: the span is what the files hold. Requires: nobody stores, no save runs. What the engine has built from the old bytes is forgotten.
    void drop_private();

    /// From now on the heap refuses everything, until it is opened again: what is in memory and what is in the files may differ by more than anybody knows.
    void poison(const char* what, const char* why) noexcept;
    bool is_poisoned() const noexcept { return poisoned_; }
    /// Requires: it is.
    std::string why_poisoned() const;

    /// close() makes a hole of each free page in every file, whether anything was saved or not; also of those that an interrupted close left with their disk blocks. Without a call: of free runs of
    /// 64 KiB and more, if anything was saved. Never where a history is, whose steps remember what free pages hold. `tell`: bytes of free pages that are holes by now; it must not throw.
    void give_all_back_at_close(TellBytes tell = {}) { give_back_.take_all(std::move(tell)); }
    /// Whether the pages that say what is free are as they were saved; close() gives nothing back otherwise. Requires: nothing was changed since the newest save.
    bool metadata_is_sound() const { return give_back_.metadata_is_sound(); }
    /// Closes without saving. Throws: Error{still_in_use} after everything was closed; Error{scope_open}: nothing was closed.
    void close();
    /// Closes whatever the participant says; for destructors.
    void abandon();

    /// From now on the participant takes part in saves and growth. The engine tells its observer about its writes. Requires: none joined before.
    void join(std::shared_ptr<SnapshotParticipant> participant);
    void leave() noexcept;
    SnapshotParticipant* participant() const { return participant_.get(); }
    /// With the next save of a heap that nobody joined; else whoever did writes them into a step or a transaction.
    void note_type(std::string_view name, std::string_view fingerprint) override { type_notes().note(name, fingerprint); }
    void write_type_notes() noexcept { type_notes().write_into(*engine_); }
    void* allocate_durable(ByteCount bytes, ByteCount alignment, heap::Content content = heap::Content::any) override {
        check_changeable();
        return guards_ ? allocate_guarded(bytes, alignment, content) : engine_->allocate(bytes, alignment, content);
    }
    /// Dynamic block, as Engine::resize. Throws: what check_changeable does.
    void* resize_durable(void* block, ByteCount bytes);
    ByteCount usable_durable(const void* block) const noexcept override;
    /// As TailGuards::check; 0 in a heap without guards.
    std::size_t check_guards() const noexcept { return guards_ ? guards_->check(*engine_) : 0; }
    /// A block is about to be freed, or moved, past deallocate_durable.
    void retire_guard(const void* block) const noexcept {
        if (guards_) guards_->retire(*engine_, block);
    }
    bool deallocate_durable(void* block) noexcept override {
        if (participant_ && participant_->free_later(block)) return true;
        retire_guard(block);
        heap::FreeResult result;
        try {
            check_changeable();
            result = engine_->deallocate(block);
        } catch (...) {
            return heap::tell_failed_free(block);
        }
        if (result != heap::FreeResult::freed) [[unlikely]]
            return heap::tell(result, block);
        held_.freed(block);
        return true;
    }
    /// Durable blocks that objects outside may have taken along.
    heap::HeldBlocks& held() const noexcept { return held_; }
    /// Those that they have. Requires: nobody changes the heap.
    /// Complexity: if there may be any it reads all live blocks, so that nothing of the heap's own is taken for one of them. Throws: std::bad_alloc.
    std::vector<HeapOffset> held_blocks();
    bool deallocate_lent(void* block, std::uint32_t scope) noexcept override;
    bool lent_came_back(std::uint32_t scope) const noexcept override { return participant_ && participant_->lent_came_back(scope); }
    bool is_open() const noexcept { return open_; }

    // The annex: as Annex.
    std::byte* open_annex(ByteCount capacity) { return annex_.open(capacity); }
    bool annex_is_open() const { return annex_.is_open(); }
    ByteCount annex_bytes() const { return annex_.used(); }
    Annex::View view_annex() const { return annex_.view(); }
    AnnexHead annex_head() const { return annex_.head(); }
    bool annex_is_saved() const { return annex_.is_saved(); }
    void extend_annex(ByteCount bytes) { annex_.extend(bytes); }

    HeapKind kind() const { return kind_; }
    Capture capture() const { return capture_; }
    Audit audit() const { return audit_; }
    /// Whether pages are hidden until they are touched (Verify::at_first_touch).
    bool hides_pages() const { return first_touch_ != nullptr; }
    ForeignPointers foreign_pointers() const noexcept override { return foreign_pointers_; }
    /// Which pointers to the program's memory the next save or commit is searched for. What objects outside have on loan leads to them, rightly.
    ProgramPointers next_program_pointers() const noexcept {
        const bool searched = (program_pointers_ == ProgramPointers::linked && searched_program_) || !held_.is_idle();
        return searched ? ProgramPointers::unsearched : program_pointers_;
    }
    /// A save or commit that changes something was searched.
    void note_searched(ProgramPointers program) noexcept { searched_program_ = searched_program_ || program != ProgramPointers::unsearched; }
    Restoration restoration() const;
    /// Shared with who may outlive the heap.
    const std::shared_ptr<EventSource>& events() const noexcept { return events_; }
    /// Of the newest save. Thread-safe.
    Generation generation() const;
    /// While it is held nothing is saved; for who reads the files of a heap that saves in the background.
    std::unique_lock<std::mutex> hold_saves() const { return std::unique_lock(save_mutex_); }
    /// Of threads that read the files beside the program's; closing waits for them.
    Visits& visits() const noexcept { return visits_; }
    const vm::PageTracker& tracker() const { return tracker_; }
    const PageFile& backing() const { return *backing_; }
    const PageFile* data() const { return data_ ? &*data_ : nullptr; }
    const log::Ring* ring() const { return ring_.get(); }
    /// The journal or the transaction log in use, also of a reader; null: none.
    const io::File* ring_file() const { return ring_file_.get(); }
    ByteCount mapped_bytes() const { return mapped_; }
    /// How pages of the span come in now: `normal` or `random`. Thread-safe.
    ReadAhead read_ahead() const noexcept { return reads_alone_.load(std::memory_order_relaxed) ? ReadAhead::random : ReadAhead::normal; }
    /// Hint: that part of the span is about to be read from one end to the other. Where pages come in one by one it is asked for as a whole.
    void will_read(HeapOffset offset, ByteCount length) const noexcept;
    /// The same of all metadata.
    void will_read_metadata() const noexcept;
    bool read_only() const { return read_only_; }
    /// The file under the mapping: of a reader of a heap whose user crashed it may be the data file.
    const PageFile& view() const { return maps_data_ ? *data_ : *backing_; }
    /// A reader's pages whose bytes come from the journal: in the files a crash may have left anything.
    const std::unordered_set<std::uint64_t>& recovering_pages() const { return recovering_pages_; }
    bool is_recovering(const TableCover& cover) const;

    // heap::SpanHost, for the engine.
    void extend(ByteCount extent_bytes) override;
    void about_to_use(ByteCount length) override;

private:
    /// Throws: as TailGuards::admit. Requires: guarded.
    void guard(void* block, ByteCount bytes);
    void* allocate_guarded(ByteCount bytes, ByteCount alignment, heap::Content content);
    friend class Annex;
    friend class GiveBack;
    HeapFile(io::Storage& storage, const HeapPaths& paths, HeapKind kind, const PersistentOptions& options, const Tuning& tuning,
             vm::Reservation reservation, const heap::CoreRanges& ranges, OpenFiles files, bool read_only);

    static std::shared_ptr<HeapFile> create(io::Storage& storage, const HeapPaths& paths, HeapKind kind, const PersistentOptions& options,
                                            const Tuning& tuning);
    static std::shared_ptr<HeapFile> open_existing(io::Storage& storage, const HeapPaths& paths, HeapKind kind, const PersistentOptions& options,
                                                   const Tuning& tuning, bool read_only);

    /// Maps [offset, offset + length) of span or annex from the file.
    void map(HeapOffset offset, ByteCount length, io::Protection protection) {
        map_at(live_page(page_of(offset)).data(), offset, length, protection);
    }
    void map_at(std::byte* address, HeapOffset offset, ByteCount length, io::Protection protection) const;
    void set_mapped(ByteCount bytes) noexcept {
        mapped_ = bytes;
        set_durable_extent(bytes);
    }
    /// Decides how pages come in, by what the span takes and `memory_`.
    void choose_read_ahead() noexcept;
    /// The same; the memory that the process may have is looked at again.
    void look_at_memory() noexcept;
    /// Takes the addresses for so much of the span. Throws: HeapFull{neighbor}: somebody else has them; HeapFull{address_space}.
    void reserve(ByteCount extent);
    /// What the heap has grown by is a hole at the files' ends. Throws: Error{no_space (a limit of file sizes) | truncated}.
    void make_long_enough(const Extents& extents);
    /// What the heap is about to grow by, from behind all that was ever in use, becomes zero in the files. Poisons if it fails.
    void clear_growth(const Extents& before, const Extents& after);
    /// Growth that the system refuses is a full heap.
    void grow(ByteCount by, const std::function<void()>& action) const;
    /// `in_view_only`: nothing may be written yet.
    void heal_first_page(bool in_view_only);
    /// From the data file. Throws: Error{corrupt}.
    AlignedBuffer good_first_page() const;
    void apply_overlay(const std::vector<SaveRecord>& overlay, const io::File* stage);
    void begin_writing();
    /// Options that were given, and that the heap does not have.
    void tell_ignored(const PersistentOptions& given) const;
    /// A data file in the making, without a name: its first headers.
    PageFile make_data(const HeapPaths& to);
    /// One that holds the newest save gets its name, durably: an orphan until it is adopted.
    void publish_data(PageFile& data, const HeapPaths& to);
    /// It becomes the heap's.
    void adopt_data(PageFile& data);
    /// Throws: Error{already_exists}.
    void require_no_data() const;
    /// Of the pages that were changed and that nobody has proven: the backing file has them whole. Throws: Error{corrupt}. Requires: saves are held.
    void require_whole_below_changes() const;
    void attach_data();
    void attach_journal();
    void attach_log();
    /// Cuts off what a save without a data file left behind the log's ring.
    void trim_log();
    /// What objects outside hold.
    HeldPages copy_held_pages() noexcept;
    void remove_ours(const io::File& file, const std::filesystem::path& path);
    /// Applies what the log holds beyond the files; a writer saves the result. Nothing is written before all of it has turned out right.
    void replay_log(const LogTail& tail);
    /// Whether the files contain everything that is in the log.
    bool contains_log() const;
    /// Throws: Error{truncated}: a file is shorter than the newest save is. Who writes into it then would make it long enough again, and hide what is lost.
    void require_whole_files() const;
    void close_files();
    void make_engine();

    static constexpr std::uint64_t no_page = ~std::uint64_t{0};
    /// A page whose bytes differ from the newest save.
    struct ChangedPage {
        PageNumber page;
        std::uint64_t checksum;
    };
    /// Private copies of span and annex, by page number.
    std::vector<vm::PageRun> written_runs() const;
    std::vector<vm::PageRun> written_span_runs() const;
    Extents mapped_extents() const { return {mapped_, annex_.mapped()}; }
    bool is_mapped(PageNumber page) const { return sequence_of(page) == Sequence::span || annex_.is_open(); }
    void end_annex(std::vector<ChangedPage>& changed);
    void will_read_tables(const std::vector<vm::PageRun>& runs) const;
    /// `scan`: refuses changed pages with a pointer that leads out of the heap; null: none is looked for.
    std::vector<ChangedPage> changed_pages(const std::vector<vm::PageRun>& runs, heap::ForeignPointerScan* scan);
    bool has_base(PageNumber page);
    /// Whether the page of the backing file is what the newest save left, or nobody needs to know.
    bool is_proven(PageNumber page, bool hidden = false);
    /// What memory held of these pages is dropped: the file's bytes count again.
    void forget_proofs(PageNumber first, std::uint64_t count) noexcept;
    void forget_proofs() noexcept;
    /// The same of many, without saying which: what is sound is remembered.
    void find_proven(PageNumber first, std::uint64_t count);
    void prove_page(PageNumber page);
    heap::Proof prove_for_change(PageNumber page, bool asked) noexcept;
    /// Of a page of the span that rotted; what it holds is replaced in memory.
    void restore_in_memory(PageNumber page);
    /// Of one that rotted before it was changed: whether what was stored there hides all of it. `good`: as the newest save left it.
    bool hides_rot(PageNumber page, std::span<const std::byte> rotten, std::span<const std::byte> good) const;
    void restore_in_file(PageNumber page, std::span<const std::byte> good);
    void verify_at_opening(Verify verify);
    void hide_until_touched();
    /// Each mapping of the span gets a private page, before it is split.
    void make_joinable();
    /// Of pages that nobody has seen yet. Returns those that nobody has whole.
    std::vector<FirstTouch::LostPage> prove_hidden(PageNumber first, std::uint64_t count);
    void replace_hidden(PageNumber page);
    /// Whether nobody has the hidden page whole.
    bool is_lost(PageNumber page) const;
    bool is_hidden(PageNumber page) const noexcept { return first_touch_ && sequence_of(page) == Sequence::span && !first_touch_->is_visible(page); }
    /// What a page opens as: capture wants to hear of the first store.
    bool opens_writable() const noexcept { return !read_only_ && (capture_ != Capture::pages || listener() == nullptr); }
    /// Throws: Error{corrupt | io_error}: nobody has the page whole; HeapFull{address_space}.
    void open_hidden(PageNumber page) const;
    /// Of an annex that somebody opens. Throws: Error{corrupt | io_error}.
    void prove_annex();
    bool is_whole_in_memory_only(PageNumber page) const noexcept {
        const std::lock_guard lock(proof_mutex_);
        return restored_.contains(page.value);
    }
    /// The file gets back what it has lost and memory has whole; returns how many pages. What it can't get stays in `restored_`. Takes no memory where nothing is to be done.
    /// Requires: saves are held, nothing waits for a checkpoint. Throws: std::bad_alloc.
    std::uint64_t restore_in_files();
    /// Before all private copies go. Throws: Error{corrupt}.
    void require_restored();
    /// The device may begin with the bases from `next` on, some way ahead. `asked`: how many were asked for already.
    void will_read_bases(std::span<const ChangedPage> pages, std::size_t next, std::size_t& asked) const noexcept;
    void check_base(PageNumber page);
    void check_bases(std::span<const ChangedPage> changed, bool punches);
    void save_changed(std::vector<ChangedPage>& changed, bool punches);
    void save_small(std::vector<ChangedPage>& changed, bool punches);
    /// Where a heap lies and how far it may grow; 0: as before.
    struct Place {
        std::uintptr_t base = 0;
        ByteCount capacity = 0;
    };
    /// Much at once, with the data file or the stage.
    struct LargeSave {
        SavePoint point;
        AnnexHead annex;
        std::vector<ChangedPage> changed;
        /// Gives the images of a batch of pages and sets their checksums. Null: both are those of the live pages.
        std::function<void(std::span<ChangedPage> batch, std::span<std::byte> images)> images;
        bool images_once = false;  ///< they are dear: what was written is read back instead of asking again
        Place place;               ///< of the heap from that save on
    };
    LargeSave live_save(std::vector<ChangedPage> changed) const;
    /// Disk blocks in every file for pages that were zero so far, before anything says what they become: a full disk is a save that never began. `any`: what they become is not known yet.
    void take_blocks(std::span<const ChangedPage> changed, bool any);
    void save_large(LargeSave& save);
    void save_large_with_data(LargeSave& save);
    void save_large_with_stage(LargeSave& save);
    void save_headers(const LargeSave& save);
    void save_pages(const SavePoint& point, std::span<const PageNumber> pages, const FillPages& fill, bool patches);
    void read_bases(std::span<const ChangedPage> batch, std::span<std::byte> images);
    /// The page as the newest save left it, from whichever file has it, asked past the page cache. `image`: aligned.
    /// Throws: what the device said if it refused a copy, else Error{corrupt} with `why`.
    void read_whole(PageNumber page, std::span<std::byte> image, const char* why) const;
    template <class F>
    void for_each_batch(LargeSave& save, F&& visit);
    class PageWriter;
    void write_all_images(PageFile& file, LargeSave& save);
    void read_saved(const PageFile& file, std::span<const ChangedPage> batch, std::span<std::byte> images) const;
    std::uint64_t read_staged(const io::File& stage, std::uint64_t at, std::span<const ChangedPage> batch, std::span<std::byte> images) const;
    class Healing;
    bool has_table_page(const PageFile& file, std::uint64_t index);
    /// What the scrub left for a moment when nobody stores. Requires: saves are held.
    void heal_waiting();
    std::unordered_set<std::uint64_t> pages_with_live_base() const;
    [[noreturn]] void throw_changed_meanwhile(PageNumber page) const;
    [[noreturn]] void throw_damaged_page(PageNumber page) const;
    /// Compares the pages of the span, as the program sees them, with their checksums, where `is_asked(number)`. Requires: saves are held.
    template <class F>
    void prove_pages(F&& is_asked) const;
    void set_saved(Generation generation, const LargeSave& save);
    void tell_saved();
    /// Pages were restored from the other copy.
    void note_healed(std::uint64_t pages = 1) const noexcept;
    /// The heap is open for its user.
    void tell_opened();
    /// `saved` or `checkpointed`.
    void tell_written(EventKind kind, const EventClock& clock, std::uint64_t pages) const noexcept;
    void tell_closed(const EventClock& clock, std::string_view failure) const noexcept;
    /// What the newest save is, with that kind.
    Event event_of(EventKind kind) const noexcept;
    void write_changed_pages(PageFile& file, const std::vector<ChangedPage>& changed, const PageFile* fallback);
    void write_tables(Generation generation);
    void write_headers();
    void fill_header(PageFile& file, bool clean);
    void note_saved(const std::vector<vm::PageRun>& runs) noexcept;
    void note_saved(const vm::PageRun& run) noexcept;
    std::uint64_t count_idle(const std::vector<vm::PageRun>& runs, const std::vector<ChangedPage>& changed) const noexcept;
    bool is_kept_open(PageNumber page) const noexcept;
    void drop_copies(PageNumber first, std::uint64_t count);
    void drop_written(const std::vector<vm::PageRun>& runs) noexcept;
    /// Span and annex are what the newest save says. The engine still knows what it knew.
    void drop_unsaved();
    Extents saved_extents() const {
        const std::lock_guard lock(point_mutex_);
        return {saved_extent_, saved_annex_.extent};
    }
    /// Copies the pages of the newest save and the table into `to`, proven; `since`: of table pages that were changed by later saves than that one, over what is there. `saves`: held, and let go for a moment
    /// again and again. Requires: nothing waits for a checkpoint. Throws: Error{corrupt | no_space | io_error}.
    void copy_saved(PageFile& to, std::optional<Generation> since, const TellBytes& tell, std::unique_lock<std::mutex>* saves);
    /// What is mapped from the file as it was saved. What a reader has from a journal or a log may go beyond: there its memory is its own.
    Extents file_extents() const { return read_only_ ? view().header.extents() : saved_extents(); }
    /// Runs the step; if it throws, the heap is poisoned.
    void durable_step(const char* what, const std::function<void()>& step);
    std::span<std::byte> live_page(PageNumber page) const;

    io::Storage& storage_;
    HeapPaths paths_;
    HeapKind kind_;
    Tuning tuning_;
    ByteCount log_capacity_;
    bool wants_data_;  ///< a data file, if the heap has none
    const ReadAhead wanted_read_ahead_;
    std::atomic<ByteCount> memory_;  ///< that the process may have
    ByteCount dirty_limit_;
    bool read_only_;
    Capture capture_;
    Audit audit_;
    const ForeignPointers foreign_pointers_;
    const ProgramPointers program_pointers_;
    mutable std::optional<heap::TailGuards> guards_;
    bool searched_program_ = false;
    bool open_ = true;
    std::atomic<bool> poisoned_ = false;
    std::string poison_;  ///< why; never changes once the flag is set
    mutable std::mutex poison_mutex_;

    vm::Reservation reservation_;
    std::optional<PageFile> backing_;
    std::optional<PageFile> data_;
    std::shared_ptr<io::File> ring_file_;
    std::unique_ptr<log::Ring> ring_;
    log::RingIdentity ring_identity_;
    vm::PageTracker tracker_;
    mutable PageTable table_;                         ///< loads on use
    mutable std::mutex proof_mutex_;                  ///< guards the next three: by readers who look for names, one after the other
    ProvenPages proven_;                              ///< whose base is known to be right
    std::unordered_set<std::uint64_t> restored_;      ///< of these, those that memory has right and the file has not: their private copies stay
    AlignedBuffer proof_{page_bytes};                 ///< of a signal handler, too, which has little stack
    std::atomic<std::uint64_t> restoring_ = no_page;  ///< its rot is known: who is told that it changes may put it right
    std::unique_ptr<FirstTouch> first_touch_;         ///< null: nothing is hidden
    std::unique_ptr<heap::Engine> engine_;
    mutable heap::HeldBlocks held_{*this};
    HeldPages held_pages_;  ///< once the heap is closed
    std::shared_ptr<SnapshotParticipant> participant_;
    const std::shared_ptr<EventSource> events_ = std::make_shared<EventSource>(paths_.backing.string());
    Restoration restoration_;  ///< but for what was healed since
    mutable std::atomic<std::uint64_t> healed_ = 0;

    mutable Visits visits_;
    mutable std::mutex layout_mutex_;  ///< of a heap without transactions: who lays out its annex, and a scrub, which asks where pages lie
    std::set<DamagedPage> waiting_;    ///< for `heal_waiting`; the save mutex guards it
    mutable std::mutex save_mutex_;    ///< one save, heal or verify at a time; guards the table and the files' headers
    mutable std::mutex point_mutex_;   ///< guards the next four against who asks meanwhile
    Generation generation_;            ///< of the newest save
    Serial serial_;                    ///< that it contains
    Serial durable_serial_;            ///< the same, once it is durable
    log::RingStart log_start_;         ///< of the transaction log, if that is the ring in use
    RingKind active_ = RingKind::none;
    std::atomic<bool> log_taken_ = false;
    bool first_page_is_ours_ = false;  ///< in memory of its own, because the device can't read the file's
    ByteCount saved_extent_ = 0;       ///< of the newest save
    AnnexHead saved_annex_{};          ///< of the newest save
    ByteCount mapped_ = 0;             ///< of the span
    Annex annex_{*this};
    ByteCount used_since_look_ = 0;  ///< bytes of pages that became part of blocks since the last look at the dirty limit
    ProvenPages backed_;             ///< one for each run of `blocks_taken_at_once`: it has disk blocks
    std::mutex read_ahead_mutex_;    ///< one decision at a time
    std::atomic<bool> reads_alone_ = false;
    std::mutex size_mutex_;  ///< files become longer: by growth, and by disk blocks at their ends
    bool saved_anything_ = false;
    GiveBack give_back_{*this};
    bool maps_data_ = false;
    bool replaying_ = false;        ///< the log may still turn out wrong: files stay as they are
    bool owes_first_page_ = false;  ///< it is healed in the private view only
    std::unordered_set<std::uint64_t> recovering_pages_;

    /// Images of saves that stand in the ring only; empty: a zero page.
    struct PendingPage {
        AlignedBuffer image;
        bool punch = false;
    };
    std::map<std::uint64_t, PendingPage> pending_;
    /// Pages that are private copies although they were saved: for them "written" must be decided by content.
    std::unordered_set<std::uint64_t> saved_copies_;
};

}  // namespace taiyen::store
