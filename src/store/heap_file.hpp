#pragma once
/// HeapFile: an open heap on files: it ties the parts together, and is what the rooms above hold.
///
/// | part | has |
/// |---|---|
/// | Condition | whether the heap can be used |
/// | HeapFiles | the files, and what the newest save in them is |
/// | Image | span and annex, mapped over the files |
/// | Proofs | what is known to be as it was saved |
/// | Writing | of a writer only: Saves, Healing, Companions, GiveBack |
///
/// Promises:
/// (I1) The files never hold anything that was not saved: the program works on private copies (MAP_PRIVATE).
/// (I2) `save` is durable on return; a crash anywhere leaves the save before or the save after, whole.
/// (I3) A failed write or sync poisons the heap: nothing more is written, later calls say so, reopening recovers.
/// (I4) Nothing is saved by closing.
/// The order of all durable steps: FORMAT.md. Opening: creation.cpp, replay.cpp.
/// Thread rule: external lock.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <taiyen/store/archive_heap.hpp>
#include <taiyen/store/options.hpp>

#include "heap/core.hpp"
#include "heap/held_blocks.hpp"
#include "heap/tail_guards.hpp"
#include "store/companions.hpp"
#include "store/give_back.hpp"
#include "store/held_pages.hpp"
#include "store/log_replay.hpp"
#include "vm/memory_limit.hpp"

namespace taiyen::store {

enum class OpenMode { create_only, open_only, open_or_create, read_only };

class HeapFile;

/// Whose file may be opened for writing. follower: of a file that follows, and no other one. any: by who leaves its bytes as they are.
enum class RoleWanted { owner, follower, any };

/// What tests set beside the public options.
struct Tuning {
    ByteCount journal_bytes = ByteCount{1} << 20U;  ///< of the ring, a multiple of 4 KiB, at least 32 KiB
    ByteCount batch_bytes = ByteCount{64} << 20U;   ///< of page images that a background save holds in memory; a multiple of 4 KiB
    LogReplayMaker log_replay = make_log_replay;
    RingUse ring_use = RingUse::all;
    RoleWanted role = RoleWanted::owner;
    bool elsewhere = false;                                 ///< mapped where it disturbs nobody, not at its address: for who follows no pointer in it
    std::function<ByteCount()> memory = vm::usable_memory;  ///< that the process may have
    std::function<void(HeapFile&)> join = nullptr;  ///< of who takes part in the heap's life; if it throws, nothing was created. Empty: nobody, yet
};

/// What a writer has beside what every open heap has.
struct Writing {
    Writing(heap::HeapCore& core, Condition& condition, HeapFiles& files, Image& image, Proofs& proofs, Visits& visits,
            const std::shared_ptr<SnapshotParticipant>& participant, ByteCount batch_bytes, const Companions::Wanted& wanted)
        : saves(condition, files, image, proofs, batch_bytes), healing(condition, files, proofs, saves, visits),
          companions(condition, files, image, proofs, saves, healing, visits, participant, wanted),
          give_back(core, condition, files, image, proofs, saves) {}
    Saves saves;
    Healing healing;
    Companions companions;
    GiveBack give_back;
};

class HeapFile final : public heap::HeapCore, public heap::SpanHost {
public:
    /// Creates or opens. Throws: as the constructors of ArchiveHeap.
    static std::shared_ptr<HeapFile> open(io::Storage& storage, const std::filesystem::path& path, OpenMode mode, HeapKind kind,
                                          const PersistentOptions& options, const Tuning& tuning = {});
    ~HeapFile() override;

    // The parts.
    Condition& condition() noexcept { return condition_; }
    const Condition& condition() const noexcept { return condition_; }
    HeapFiles& files() noexcept { return files_; }
    const HeapFiles& files() const noexcept { return files_; }
    Image& image() noexcept { return image_; }
    const Image& image() const noexcept { return image_; }
    Proofs& proofs() noexcept { return proofs_; }
    const Proofs& proofs() const noexcept { return proofs_; }
    /// Throws: Error{closed | forked | poisoned | read_only}.
    Saves& saves() { return writing().saves; }
    /// Moves the heap, or gives it another capacity: as Saves. Requires: nobody joined.
    void save_moved(std::uintptr_t base, std::span<const PageNumber> pages, const FillPages& patch);
    void save_resized(ByteCount capacity);
    Healing& healing() { return writing().healing; }
    /// As Healing::describe, which needs no heap in order. Requires: a writer.
    Error describe(const DamagedPage& damaged, const char* what) const { return writing_->healing.describe(damaged, what); }
    Companions& companions() { return writing().companions; }
    GiveBack& give_back() { return writing().give_back; }
    /// Of threads that read the files beside the program's; closing waits for them.
    Visits& visits() const noexcept { return visits_; }

    const std::filesystem::path& path() const override { return files_.paths().backing; }
    std::string_view name() const noexcept override { return files_.name(); }
    HeapKind kind() const { return files_.kind(); }
    Capture capture() const { return capture_; }
    Audit audit() const { return audit_; }
    bool read_only() const { return condition_.is_read_only(); }
    bool uses_log() const { return files_.uses_log(); }
    void check_usable(bool for_reading) const override { condition_.check_usable(for_reading); }
    void require_usable(bool for_reading) const { condition_.require_usable(for_reading); }
    void check_changeable() const override {
        require_usable(false);
        if (participant_) participant_->check_change();
    }
    using HeapCore::engine;
    heap::Engine& engine() override { return *engine_; }

    // Saving.
    /// Saves everything. Durability: on return. Throws: Error{foreign_pointer | no_space | io_error | corrupt | poisoned | …}.
    void save();
    /// Of a heap with a log: saves what the span holds now. Requires: nobody stores meanwhile, and the span is as of `point.serial`. Durability: on return. Throws: as save_images; Error{foreign_pointer}: nothing changed.
    void save_at(const SavePoint& point);
    /// The pages of the span that were written since the last save.
    std::vector<WrittenRange> written_ranges() const;
    /// Whether a byte of the span is not as the newest save has it. Complexity: reads the pages that were written since the last save.
    bool differs_from_save();
    /// The private copies of pages that a file holds too. Thread-safe.
    std::vector<vm::PageRun> private_pages() const { return image_.written_span_runs(files_.extents().span); }
    /// What the private copies of the span take. Requires: nobody grows it.
    ByteCount private_bytes() const;
    /// What private copies may take.
    ByteCount dirty_limit() const { return dirty_limit_; }
    /// Drops all private copies: the span is what the files hold. Requires: nobody stores, no save runs. What the engine has built from the old bytes is forgotten.
    void drop_private();
    ForeignPointers foreign_pointers() const noexcept override { return foreign_pointers_; }
    std::vector<heap::WordUse> uses_of(std::span<const HeapOffset> words) override;  // in inspect
    /// Which pointers to the program's memory the next save or commit is searched for. What objects outside have on loan leads to them, rightly.
    ProgramPointers next_program_pointers() const noexcept {
        const bool searched = (program_pointers_ == ProgramPointers::linked && searched_program_) || !held_.is_idle();
        return searched ? ProgramPointers::unsearched : program_pointers_;
    }
    /// A save or commit that changes something was searched.
    void note_searched(ProgramPointers program) noexcept { searched_program_ = searched_program_ || program != ProgramPointers::unsearched; }

    // heap::SpanHost and heap::HeapCore: what the program sees is as the newest save left it, or stored on top of that. A page that rotted comes from the second copy, in memory: the file keeps what it has
    // until it is saved or healed. Each page once, until it is dropped. Requires: nobody else changes or proves pages meanwhile. Complexity: reads these pages of the file.
    bool proves() const noexcept override { return true; }
    /// Throws: Error{corrupt | io_error}: nobody has the page whole, or it was changed already and nobody can tell what was stored from what rotted.
    void prove(HeapOffset offset, ByteCount length) override { proofs_.prove(offset, length); }
    /// For who would rather not know than have something put right. Requires: as prove.
    bool is_sound(HeapOffset offset, ByteCount length) { return proofs_.is_sound(offset, length); }
    heap::Proof about_to_change(HeapOffset offset, ByteCount length, bool asked) noexcept override {
        return proofs_.about_to_change(offset, length, asked);
    }
    heap::Touched on_touch(void* address, bool writes) noexcept override { return proofs_.on_touch(address, writes); }
    void uncover(HeapOffset offset, ByteCount length) const override { image_.uncover(offset, length); }
    bool protect(HeapOffset offset, ByteCount length, bool writable) noexcept override;
    void extend(ByteCount extent_bytes) override;
    void about_to_use(ByteCount length) override;

    // Blocks.
    void* allocate_durable(ByteCount bytes, ByteCount alignment, heap::Content content = heap::Content::any) override {
        check_changeable();
        return guards_ ? allocate_guarded(bytes, alignment, content) : engine_->allocate(bytes, alignment, content);
    }
    /// Dynamic block, as Engine::resize. Throws: what check_changeable does.
    void* resize_durable(void* block, ByteCount bytes);
    ByteCount usable_durable(const void* block) const noexcept override;
    bool deallocate_durable(void* block) noexcept override;
    bool deallocate_lent(void* block, std::uint32_t scope) noexcept override;
    bool lent_came_back(std::uint32_t scope) const noexcept override { return participant_ && participant_->lent_came_back(scope); }
    /// As TailGuards::check; 0 in a heap without guards.
    std::size_t check_guards() const noexcept { return guards_ ? guards_->check(*engine_) : 0; }
    /// A block is about to be freed, or moved, past deallocate_durable.
    void retire_guard(const void* block) const noexcept {
        if (guards_) guards_->retire(*engine_, block);
    }
    /// Durable blocks that objects outside may have taken along.
    heap::HeldBlocks& held() const noexcept { return held_; }
    /// Those that they have. Requires: nobody changes the heap.
    /// Complexity: if there may be any it reads all live blocks, so that nothing of the heap's own is taken for one of them. Throws: std::bad_alloc.
    std::vector<HeapOffset> held_blocks();
    /// With the next save that brings something else, too, of a heap that nobody joined; else whoever did writes them into a step or a transaction, likewise.
    void note_type(std::string_view name, std::string_view fingerprint) override { type_notes().note(name, fingerprint); }
    void note_shape(std::string_view fingerprint, std::string_view encoded) override { type_notes().note_shape(fingerprint, encoded); }
    /// Beside changes only: what changes nothing stays nothing. False: there were none.
    bool write_type_notes() noexcept { return type_notes().write_into(*engine_); }

    // The annex: as Annex. Throws: Error{closed | …}.
    std::byte* open_annex(ByteCount capacity);
    Annex::View view_annex() const;
    void extend_annex(ByteCount bytes);
    /// While a log is replayed, which asks nothing: a page, to be changed.
    std::span<std::byte> replay_annex_page(PageNumber page);

    // Its life.
    /// From now on the participant takes part in saves and growth. The engine tells its observer about its writes. Requires: none joined before.
    void join(std::shared_ptr<SnapshotParticipant> participant);
    void leave() noexcept;
    SnapshotParticipant* participant() const { return participant_.get(); }
    /// Thread-safe. Throws: Error{closed}.
    bool has_data_file() const;
    bool is_open() const noexcept { return condition_.is_open(); }
    /// Closes without saving. Throws: Error{still_in_use} after everything was closed; Error{scope_open}: nothing was closed.
    void close();
    /// Closes whatever the participant says; for destructors.
    void abandon();

    /// Where a heap with so much in use, and of that capacity, would find room in this process, that far behind the beginning of a slot. Throws: Error{out_of_address_space}.
    static std::uintptr_t find_place(ByteCount extent, ByteCount capacity, std::uintptr_t within_slot = heap::base_alignment);
    /// Where its pointers mean it to lie, wherever it is open.
    std::uintptr_t home() const noexcept { return home_ != 0 ? home_ : ranges().durable; }
    /// Of a reader, whose view is its own: `change` may write anywhere in it, to show the heap as it was once, and nothing of that reaches the files. It proves pages before it changes them. Requires: pages are not proven at their first touch. Throws: what it throws; Error{corrupt}: what it leaves is no heap. Then the view is worth nothing.
    void change_view(const std::function<void(std::byte* span)>& change);
    /// Of one that was opened elsewhere. Throws: Error{address_in_use}: at its address it can't be opened in this process now.
    void require_room_at_address() const;

private:
    HeapFile(io::Storage& storage, const HeapPaths& paths, HeapKind kind, const PersistentOptions& options, const Tuning& tuning,
             vm::Reservation reservation, const heap::CoreRanges& ranges, OpenFiles files, bool read_only);

    static std::shared_ptr<HeapFile> create(io::Storage& storage, const HeapPaths& paths, HeapKind kind, const PersistentOptions& options,
                                            const Tuning& tuning);
    static std::shared_ptr<HeapFile> open_existing(io::Storage& storage, const HeapPaths& paths, HeapKind kind, const PersistentOptions& options,
                                                   const Tuning& tuning, bool read_only);

    Writing& writing() {
        condition_.require_usable(false);
        return *writing_;
    }
    void make_engine();
    void set_mapped(ByteCount bytes) noexcept {
        image_.set_mapped(bytes);
        set_durable_extent(bytes);
    }
    /// Takes the addresses for so much of the span. Throws: HeapFull{neighbor}: somebody else has them; HeapFull{address_space}.
    void reserve(ByteCount extent);
    /// Options that were given, and that the heap does not have.
    void tell_ignored(const PersistentOptions& given) const;
    /// What a reader gets of saves that recovery would bring into the files.
    void apply_overlay(const std::vector<SaveRecord>& overlay, const io::File* stage);
    /// Applies what the log holds beyond the files; a writer saves the result. Nothing is written before all of it has turned out right.
    void replay_log(const LogTail& tail);
    /// The heap is open for its user.
    void tell_opened();
    void tell_closed(const EventClock& clock, std::string_view failure) const noexcept;
    /// Throws: as TailGuards::admit. Requires: guarded.
    void guard(void* block, ByteCount bytes);
    void* allocate_guarded(ByteCount bytes, ByteCount alignment, heap::Content content);
    /// What objects outside hold.
    HeldPages copy_held_pages() noexcept;
    /// Span and annex are what the newest save says. The engine still knows what it knew.
    void drop_unsaved();
    /// Brings the files of a writer up to date, and says that they are.
    void finish_files();
    void close_files();

    const std::shared_ptr<EventSource> events_;
    Condition condition_;
    HeapFiles files_;
    Image image_;
    std::shared_ptr<SnapshotParticipant> participant_;
    Proofs proofs_;
    mutable Visits visits_;
    std::optional<Writing> writing_;

    const LogReplayMaker log_replay_;
    const ByteCount dirty_limit_;
    const Capture capture_;
    const Audit audit_;
    const ForeignPointers foreign_pointers_;
    std::uintptr_t home_ = 0;  ///< 0: where it is open
    const ProgramPointers program_pointers_;
    bool searched_program_ = false;
    ByteCount used_since_look_ = 0;  ///< bytes of pages that became part of blocks since the last look at the dirty limit
    mutable std::optional<heap::TailGuards> guards_;
    std::unique_ptr<heap::Engine> engine_;
    mutable heap::HeldBlocks held_{*this};
    HeldPages held_pages_;  ///< once the heap is closed
};

}  // namespace taiyen::store
