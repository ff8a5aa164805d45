#pragma once
/// PageRecorder: capture through page protection (`Capture::pages`). Works for any code, also inside libraries that nobody recompiled.
///
/// Pages of the span are read-only. The first store to one faults; its bytes are copied to a *twin*, then the page becomes writable: it is *open*. A cut compares open pages with
/// their twins, and only bytes that differ go into the change set. What the engine is about to write is announced and opens its page without a fault.
///
/// (I1) A page is writable only while it is open, and a page is open only while its twin holds its bytes as of the last cut. So the twin is copied before the page becomes
///      writable, and a page is forgotten only after it became read-only.
/// (I2) Every cut compares every open page, whoever opened it and when.
/// (I3) Twins have an arena as large as the span, and a table tells the twin of an open page: opening, restoring and applying allocate nothing, and the arena can't run out before the heap
///      does. What can run out is the number of mappings of the process, each lone open page costing two. From half of the budget on (a quarter of
///      vm.max_map_count for all heaps together) windows of 8, 64 and 512 pages are opened, and at the budget's end whatever lies between the page and the next open one. If the system
///      refuses nevertheless, windows grow until it doesn't. If it refuses to open the whole span the fault is passed on as a real one.
/// (I4) A forked child has neither span nor twins: every call returns without doing anything.
///
/// **Which pages stay open.** A page that is kept costs a comparison in each scope; one that is dropped costs a fault when it is used again, as much as some 60 comparisons. So a page stays
/// open until it was unused for 63 scopes: never more than about twice the cost of knowing the future. A page that was used in one scope only, and not in the 63 before, is on trial: it goes after 7,
/// and with all others on trial as soon as there are 4, since one call of the system closes what lies between two pages that stay. Used again within 63 scopes it stays. Unused pages together
/// may cost 128 comparisons per scope (or twice as many as the scope changed pages), youngest first. If what would stay is in too many pieces (half the budget of (I3)) nothing stays. Pages opened
/// by a window that nobody used are dropped at once.
/// **Sequential stores** open windows as long as the run of open pages before them, up to 256 pages: 1, 1, 2, 4 … The same downwards.
/// **Very large scopes.** Where a scope used more than 1024 pages for the first time these are closed by the cut, in runs, instead of getting up-to-date twins. The memory of their twins is given back
/// while the cut goes on, so that the change set grows into it: together they need little more than the change set alone. A cut that fails afterwards makes them again. Windows of 256 pages are supplied with
/// memory by one call of the system. Twins of closed pages are given back to the system when there are more than 4096 of them.
///
/// A store outside any scope opens its page likewise and is in the next cut (Outside::implicit), or is passed on as a real fault (Outside::stray). A store by another thread, or outside scopes, into a page that
/// is open goes into the next cut, unnoticed.
/// In a debugger let the signal pass: `handle SIGSEGV nostop noprint pass`.
/// Thread rule: as Recorder; faults of all threads wait for each other and for cuts.

#include <atomic>
#include <optional>

#include "change/audit_shadow.hpp"
#include "change/page_set.hpp"
#include "change/recorder.hpp"
#include "change/side_memory.hpp"
#include "change/twin_pool.hpp"

namespace taiyen::change {

class PageRecorder final : public Recorder {
public:
    /// See Recorder::make. Throws: HeapFull{address_space}, std::bad_alloc.
    PageRecorder(heap::HeapCore& core, ByteCount mapped, Audit audit, Outside outside = Outside::implicit);
    ~PageRecorder() override;

    Capture mode() const override { return Capture::pages; }
    /// Throws: Error{stray_write} (begin_scope), HeapFull{address_space}.
    void start() override;
    void stop() noexcept override;
    void begin_scope() override;
    void end_scope() noexcept override;
    void begin_inner_scope() noexcept override;
    void touch(HeapOffset where, ByteCount length) override;
    void cut(ChangeSet& out) override;
    void accept() override;
    bool keeps_open(PageNumber page) const noexcept override { return open_.contains(page.value); }
    /// True only if no page is open.
    bool certainly_unchanged() const override { return open_.count() == 0; }
    bool has_changed() const override;
    /// The open pages: those that stay writable between scopes may have been written, too.
    void restore() noexcept override;
    void apply(const ChangeSetView& changes, Direction direction) noexcept override;
    /// Opens the pages, which the system may refuse. Throws: HeapFull{address_space}.
    void reserve_for(const ChangeSetView& changes) override;
    void extended(ByteCount from, ByteCount to) override;
    void audit() const override;
    RecorderCounters counters() const override;

    void about_to_write(HeapOffset offset, ByteCount length) override;
    bool on_fault(void* address) noexcept override;
    void on_store(void*, ByteCount) noexcept override {}  // it will fault

private:
    using Page = PageSet::Page;
    struct Range {
        Page first;
        Page end;
    };
    class Guard;

    std::byte* page_at(Page page) const { return span() + page * page_bytes; }
    /// Of an open page the slot of its twin, of another one its use.
    std::uint32_t& word_of(Page page) const { return words_.as<std::uint32_t>()[page]; }
    /// Requires: open.
    std::byte* twin_at(Page page) const { return twins_.at(word_of(page)); }
    /// The scope that used the page last, and whether that was its first use within 63 scopes.
    std::uint32_t& use_of(Page page) const { return open_.contains(page) ? twins_.owner(word_of(page)).use : word_of(page); }
    std::uint32_t age_of(std::uint32_t use) const noexcept;
    bool has_expired(std::uint32_t use) const noexcept;
    Page mapped_pages() const { return mapped_ / page_bytes; }

    bool protect(Range range, bool writable) noexcept {
        return core_.protect({range.first * page_bytes}, (range.end - range.first) * page_bytes, writable);
    }
    void grow_to(ByteCount mapped);
    void make_joinable();
    Range window_for(Page page) const noexcept;
    /// The range, or a wider one when mappings become scarce.
    Range within_budget(Range range) const noexcept;
    /// Opens all pages that were asked for, and those of the window and others when mappings are scarce, if they are sound. False: the system refused, or one that was asked for can't be read.
    bool open(Range asked, Range window) noexcept;
    bool open(Range asked) noexcept { return open(asked, asked); }
    /// Calls `visit(Range)` for what isn't open.
    template <class F>
    void for_each_closed(Range range, F&& visit) const;
    /// As HeapCore::about_to_change, of what isn't open.
    heap::Proof prove(Range range, bool asked) noexcept;
    /// What of the window lies around what was asked for and is sound.
    Range sound_part(Range asked, Range window) noexcept;
    void copy_twins(Range range) noexcept;
    void take_twins(Range range) noexcept;
    void forget_twins(Range range) noexcept;
    /// The twins of those pages, which are open, get the bytes of the span.
    void copy_to_twins(HeapOffset where, ByteCount length) noexcept;
    void mark_used(Page page) noexcept;
    bool is_first_use(Page page) const noexcept;
    /// False: the system refused to open all of them.
    [[nodiscard]] bool open_all(const ChangeSetView& changes, Direction direction) noexcept;
    class SpentTwins;
    /// Compares all open pages with their twins.
    void add_changes(ChangeSet& out, SpentTwins& spent);
    /// The twins that a cut has given up hold again what the span held before those changes.
    void make_again(const SpentTwins& spent, const ChangeSetView& changes) noexcept;
    void settle_twins(const ChangeSetView& changes);
    /// After a scope with very many first uses: their pages are closed, in runs.
    void close_first_uses() noexcept;
    /// Closes every open page that `must_keep(page)` doesn't keep, nor `keeps(page)` if what it keeps lies in few enough pieces.
    template <class Keeps, class MustKeep>
    void close_except(Keeps&& keeps, MustKeep&& must_keep) noexcept;
    void close_range(Range range) noexcept;
    void close_unused() noexcept;
    /// A scope, or an inner one, is over: pages get older.
    void grow_older() noexcept;

    TwinPool twins_;
    SideMemory words_;
    PageSet open_;
    ByteCount mapped_ = 0;
    ByteCount capacity_;
    std::uint64_t runs_max_;        ///< of open pages, in the process
    std::uint64_t runs_ = 0;        ///< of ours
    std::uint32_t scope_ = 64;      ///< number of the scope, so that never used pages look old
    std::uint32_t first_uses_ = 0;  ///< pages used for the first time in this scope
    bool active_ = false;
    bool was_refused_ = false;  ///< the system refused to protect or to open pages
    Audit audit_;
    std::optional<AuditShadow> shadow_;
    RecorderCounters counters_;
    mutable std::atomic<std::uintptr_t> owner_{0};  ///< the thread that is at work here
};

}  // namespace taiyen::change
