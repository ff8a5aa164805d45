#pragma once
/// Proofs: what is on the disk is what was saved: proven before a save builds on it, before somebody decides by it, and for whoever asks.
///
/// (V1) A page of the file under the image is proven once, until its private copy is dropped: read, and compared with the checksum of the newest save.
/// (V2) One that rotted is restored in memory first, from the copy that has it whole; the file keeps what it has until it is saved or healed. Such a page's private copy stays until the file has it again.
/// (V3) What was stored on top of rot is kept only if it hides all of it: else nobody can tell what was stored from what rotted. Who only asks is refused; a save, or a store that was asked for, poisons the heap.
/// Thread rule: external lock, the heap's, or that of saves; readers who look for names prove beside each other.

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_set>
#include <vector>

#include "base/aligned_buffer.hpp"
#include "heap/foreign_pointers.hpp"
#include "store/image.hpp"
#include "store/proven_pages.hpp"
#include "store/snapshot_participant.hpp"

namespace taiyen::store {

class Proofs {
public:
    /// All must outlive it. `participant`: null while nobody takes part.
    Proofs(const heap::HeapCore& core, Condition& condition, HeapFiles& files, Image& image, const std::shared_ptr<SnapshotParticipant>& participant,
           Capture capture)
        : core_(core), condition_(condition), files_(files), image_(image), participant_(participant), capture_(capture) {}

    // As heap::SpanHost and heap::HeapCore say.
    void prove(HeapOffset offset, ByteCount length);
    /// Whether they are as they were saved, or stored since; nothing is put right, and what is hidden stays so.
    bool is_sound(HeapOffset offset, ByteCount length);
    heap::Proof about_to_change(HeapOffset offset, ByteCount length, bool asked) noexcept;
    heap::Touched on_touch(void* address, bool writes) noexcept;

    /// Verifies what that level asks for when a heap is opened. Throws: Error{corrupt | io_error}.
    void verify_at_opening(Verify verify);
    /// Requires: nothing was changed since the newest save. Throws: Error{corrupt} naming a page of the span that isn't as it was saved.
    void prove_span() const;
    /// Of these pages of the span, a bit each, those that nobody has written since the newest save. Throws: Error{corrupt} naming one that isn't as it was saved.
    void prove_unwritten(const std::vector<bool>& pages) const;
    /// What the newest save has of that part of the span, written since or not: who copies from there copies what the file gave. Throws: Error{corrupt} naming a page of the backing file that isn't as it
    /// was saved. Complexity: reads these pages.
    void prove_saved(HeapOffset offset, ByteCount length);
    /// Whether the pages that say what is free are as they were saved. Requires: nothing was changed since the newest save.
    bool metadata_is_sound() const;
    /// Of an annex that somebody opens. Throws: Error{corrupt | io_error}.
    void prove_annex();
    /// The engine reads the heap's first page before anybody could ask for a proof: damage there is healed, or named, here. `in_view_only`: nothing may be written yet. Throws: Error{corrupt | io_error}.
    void heal_first_page(bool in_view_only);
    /// What waited for a log that has turned out right.
    void write_first_page();
    void map_first_page();

    // For saves.
    /// The pages of a batch as the newest save left them; zero where there is nothing yet. What rotted in the backing file comes from the data file. Throws: Error{corrupt | io_error}.
    void read_bases(std::span<const ChangedPage> batch, std::span<std::byte> images);
    /// What was changed lies on what the newest save left. Throws: Error{corrupt}: the heap is poisoned, but its files have the page whole again if one of them had.
    void check_base(PageNumber page);
    /// The same for many pages, read by runs.
    void check_bases(std::span<const ChangedPage> changed, bool punches);
    /// The pages of these runs that differ from the newest save. `scan`: looks for words that lead out of the heap; null: none is looked for.
    std::vector<ChangedPage> changed_pages(const std::vector<vm::PageRun>& runs, heap::ForeignPointerScan* scan);
    /// Whether the page is a private copy of what was saved; then nothing in the file is below it.
    bool is_saved_copy(PageNumber page) const noexcept { return saved_copies_.contains(page.value); }
    /// These pages are such copies from now on. Without memory: then `dirty_bytes` counts pages that aren't.
    void note_saved(const vm::PageRun& run) noexcept;
    void reserve_saved(std::size_t more) { saved_copies_.reserve(saved_copies_.size() + more); }
    void note_saved(std::unordered_set<std::uint64_t>& pages) { saved_copies_.merge(pages); }
    /// Pages whose base in the backing file, proven by nobody, is part of what the program sees. (A transactional heap saves what stands in its log on top of the file's own bytes.)
    std::unordered_set<std::uint64_t> pages_with_live_base() const;
    /// Whether the program sees what the file's page had become: its private copy was made of that, behind the proof.
    bool keeps_rot(PageNumber page, std::span<const std::byte> rotten, std::span<const std::byte> good) const;
    /// Of those: the backing file has them whole. Throws: Error{corrupt}. Requires: saves are held.
    void require_whole_below_changes() const;
    /// The file gets back what it has lost and memory has whole; returns how many pages. What it can't get stays. Takes no memory where nothing is to be done.
    /// Requires: saves are held, nothing waits for a checkpoint. Throws: std::bad_alloc.
    std::uint64_t restore_in_files();

    // Private copies that go.
    /// Whether capture would not announce the next store into the page: then its proof must last, and so must the private copy that it is about.
    bool is_kept_open(PageNumber page) const noexcept;
    void drop_copies(PageNumber first, std::uint64_t count);
    /// The save is done: whatever fails here must not look like one that failed. What must stay stays.
    void drop_written(const std::vector<vm::PageRun>& runs) noexcept;
    /// All of the span: it is what the files hold. Throws: Error{corrupt}: memory alone has a page whole, and no file can get it.
    void drop_all();

    [[noreturn]] void throw_damaged_page(PageNumber page) const;

private:
    static constexpr std::uint64_t no_page = ~std::uint64_t{0};

    bool has_base(PageNumber page) const;
    /// Whether the page of the backing file is what the newest save left, or nobody needs to know.
    bool is_proven(PageNumber page, bool hidden = false);
    /// What memory held of these pages is dropped: the file's bytes count again.
    void forget_proofs(PageNumber first, std::uint64_t count) noexcept;
    void forget_proofs() noexcept;
    /// `is_proven` of many, without saying which: what is sound is remembered.
    void find_proven(PageNumber first, std::uint64_t count);
    void prove_page(PageNumber page);
    heap::Proof prove_for_change(PageNumber page, bool asked) noexcept;
    bool is_metadata(PageNumber page) const { return core_.engine().is_metadata(offset_of(page)); }
    /// Of a page of the span that rotted; what it holds is replaced in memory.
    void restore_in_memory(PageNumber page);
    /// Of one that rotted before it was changed: whether what was stored there hides all of it. `good`: as the newest save left it.
    bool hides_rot(PageNumber page, std::span<const std::byte> rotten, std::span<const std::byte> good) const;
    void restore_in_file(PageNumber page, std::span<const std::byte> good);
    bool is_whole_in_memory_only(PageNumber page) const noexcept {
        const std::lock_guard lock(mutex_);
        return restored_.contains(page.value);
    }
    /// Before all private copies go. Throws: Error{corrupt}.
    void require_restored();
    void hide_until_touched();
    /// Each mapping of the span gets a private page, before it is split.
    void make_joinable();
    /// What a page opens as: capture wants to hear of the first store.
    bool opens_writable() const noexcept { return !files_.is_read_only() && (capture_ != Capture::pages || core_.listener() == nullptr); }
    /// Of pages that nobody has seen yet. Returns those that nobody has whole.
    std::vector<FirstTouch::LostPage> prove_hidden(PageNumber first, std::uint64_t count);
    void replace_hidden(PageNumber page);
    /// The device may begin with the bases from `next` on, some way ahead. `asked`: how many were asked for already.
    void will_read_bases(std::span<const ChangedPage> pages, std::size_t next, std::size_t& asked) const noexcept;
    void will_read_tables(const std::vector<vm::PageRun>& runs) const;
    /// Compares the pages of the span, as the program sees them, with their checksums, where `is_asked(number)`. Requires: saves are held.
    template <class F>
    void prove_pages(F&& is_asked) const;

    const heap::HeapCore& core_;
    Condition& condition_;
    HeapFiles& files_;
    Image& image_;
    const std::shared_ptr<SnapshotParticipant>& participant_;
    const Capture capture_;

    mutable std::mutex mutex_;                        ///< guards the next three: by readers who look for names, one after the other
    ProvenPages proven_;                              ///< whose base is known to be right
    std::unordered_set<std::uint64_t> restored_;      ///< of these, those that memory has right and the file has not: their private copies stay
    AlignedBuffer proof_{page_bytes};                 ///< of a signal handler, too, which has little stack
    std::atomic<std::uint64_t> restoring_ = no_page;  ///< its rot is known: who is told that it changes may put it right
    /// Pages that are private copies although they were saved: for them "written" must be decided by content.
    std::unordered_set<std::uint64_t> saved_copies_;
    bool first_page_is_ours_ = false;  ///< in memory of its own, because the device can't read the file's
    bool owes_first_page_ = false;     ///< it is healed in the private view only
};

}  // namespace taiyen::store
