#pragma once
/// Saves: writes saves of an open heap: small ones as one record of the journal, large ones by the data file or, without one, by a stage behind the ring; checkpoints. The order of durable steps: FORMAT.md.
///
/// (S1) A save is durable on return; a crash anywhere leaves the save before or the save after, whole.
/// (S2) A full disk is a save that never began: blocks, memory and room in the ring are taken before anything says what pages become.
/// Thread rule: the caller holds saves, or is alone with the heap; where it is said, a call holds them itself.

#include <chrono>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "store/proofs.hpp"

namespace taiyen::store {

/// Where a save stands in the transaction log: it contains everything up to `serial`, and the group of serial + 1 begins at `log_start`.
struct SavePoint {
    Serial serial;
    log::RingStart log_start;
    ByteCount extent = 0;              ///< of the span as of that serial
    std::optional<AnnexHead> annex{};  ///< as of that serial; nothing: as the save before it left it. A save of the live span takes the live one
    bool searches = false;             ///< a save of the live span refuses pointers that lead out of the heap: nobody has looked for them before
};

/// A batch of pages, ascending, and their images, to be brought to the save's point.
using FillPages = std::function<void(std::span<const PageNumber> pages, std::span<std::byte> images)>;

class Saves {
public:
    /// All must outlive it. `batch_bytes`: of page images that a background save holds in memory; a multiple of 4 KiB.
    Saves(Condition& condition, HeapFiles& files, Image& image, Proofs& proofs, ByteCount batch_bytes)
        : condition_(condition), files_(files), image_(image), proofs_(proofs), batch_bytes_(batch_bytes) {}

    /// Saves these pages of the live span and annex, ascending; what their checksums are said to be must be what they are. `punches`: zero pages become holes.
    /// Throws: Error{no_space}: nothing changed; Error{corrupt | io_error | …}: the heap is poisoned.
    void save_changed(std::vector<ChangedPage>& changed, bool punches);
    /// The first page of an annex that has ended becomes zero, in the save of these pages.
    void end_annex(std::vector<ChangedPage>& changed);
    /// Brings the files up to the newest save and frees the ring.
    void checkpoint();
    /// A save is done: copies that nobody needs are dropped, behind a checkpoint, if the ring is half full, the copies are many or the save didn't go by the ring. `runs`: all that was written; `changed`: what of it
    /// was saved, ascending.
    void tidy(const std::vector<vm::PageRun>& runs, std::span<const ChangedPage> changed);
    /// Whether the page's newest image stands in the ring only.
    bool is_pending(std::uint64_t page) const { return pending_.contains(page); }
    /// Whether closing has something to give back for.
    bool saved_anything() const noexcept { return saved_anything_; }

    // Of a heap whose ring is a transaction log: the files are brought up to date from the log, in the background, and never from the program's memory. But for `save_live` they hold saves themselves, and are safe
    // beside the program.
    /// Saves `pages` (ascending): `fill` gives their images, the same ones each time that it is asked. Durability: on return; from then on the log is needed from `point.log_start` only.
    /// Waits for another save, heal and verify; the program goes on meanwhile.
    /// Throws: Error{no_space}: nothing changed; Error{corrupt | io_error | …}: the heap is poisoned. What `fill` throws poisons too.
    void save_images(const SavePoint& point, std::span<const PageNumber> pages, const FillPages& fill) { save_pages(point, pages, fill, false); }
    /// The same, but `patch` is called once for each batch, with the images as `read_base` gives them.
    void save_patched(const SavePoint& point, std::span<const PageNumber> pages, const FillPages& patch) { save_pages(point, pages, patch, true); }
    /// The page as the newest save left it, verified; zero where there is nothing yet. A damaged one comes from the data file. Throws: Error{corrupt | io_error}: the heap is poisoned.
    void read_base(PageNumber page, std::span<std::byte> image);
    ByteCount batch_bytes() const noexcept { return batch_bytes_; }
    /// Saves these pages of the live span, as of that point. Requires: nobody stores.
    void save_live(const SavePoint& point, std::vector<ChangedPage> changed);
    /// Drops private copies that are byte for byte what the backing file holds, and that capture doesn't keep open: from then on they are its pages. Takes pages off the end of `todo` for about as long as `time`, and returns
    /// how many it dropped. Who reads the span meanwhile sees no difference. `buffer`: at least a page; aligned.
    /// Requires: nobody stores, no save runs, and the next save is of no serial before the newest one in the span. Throws: Error{io_error}; nothing is lost.
    std::uint64_t drop_saved(std::vector<vm::PageRun>& todo, std::span<std::byte> buffer, std::chrono::microseconds time);

    // Of a heap that nobody joined, whose ring is a journal; what was changed since the newest save is not looked at. They hold saves themselves. Durability: on return.
    /// Moves the heap to another address: one save of these pages of the span, ascending, each as the newest save has it and then patched, whose commit point is also that of the address. An annex in use ends
    /// with it. What is mapped here stays where it is: close the heap, and open it where it lies now. Requires: a place that can hold it (`is_base`).
    void save_moved(std::uintptr_t base, std::span<const PageNumber> pages, const FillPages& patch);
    /// Gives the heap another capacity (bytes; 0: the least): one save of its first page, whose commit point is also that of the capacity. What is mapped here stays as it is: close the heap, and open it again.
    /// Throws: Error{invalid_argument}: it can't have that one.
    void save_resized(ByteCount capacity);

private:
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
    /// Images of saves that stand in the ring only; empty: a zero page.
    struct PendingPage {
        AlignedBuffer image;
        bool punch = false;
    };
    class PageWriter;

    void save_pages(const SavePoint& point, std::span<const PageNumber> pages, const FillPages& fill, bool patches);
    void save_small(std::vector<ChangedPage>& changed, bool punches);
    std::uint64_t count_idle(const std::vector<vm::PageRun>& runs, std::span<const ChangedPage> changed) const noexcept;
    LargeSave live_save(std::vector<ChangedPage> changed) const;
    void save_large(LargeSave& save);
    void save_large_with_data(LargeSave& save);
    void save_large_with_stage(LargeSave& save);
    void save_headers(const LargeSave& save);
    template <class F>
    void for_each_batch(LargeSave& save, F&& visit);
    void write_all_images(PageFile& file, LargeSave& save);
    void write_changed_pages(PageFile& file, const std::vector<ChangedPage>& changed, const PageFile* fallback);
    void read_saved(const PageFile& file, std::span<const ChangedPage> batch, std::span<std::byte> images) const;
    std::uint64_t read_staged(const io::File& stage, std::uint64_t at, std::span<const ChangedPage> batch, std::span<std::byte> images) const;
    void set_saved(Generation generation, const LargeSave& save);
    /// The commit point is passed: whoever asks may be told.
    void tell_saved();
    [[noreturn]] void throw_changed_meanwhile(PageNumber page) const;

    Condition& condition_;
    HeapFiles& files_;
    Image& image_;
    Proofs& proofs_;
    const ByteCount batch_bytes_;
    std::map<std::uint64_t, PendingPage> pending_;
    bool saved_anything_ = false;
};

}  // namespace taiyen::store
