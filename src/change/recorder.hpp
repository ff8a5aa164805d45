#pragma once
/// Recorder: knows what was written into a heap's durable span since the last cut, and can take it back.
///
/// One implementation per `Capture` value; all give the same change set for the same program. A recorder decides nothing about durability or about steps:
/// the rooms above cut, restore and apply.
///
/// (I1) From `start` on, every change of the span since the last cut is in the next cut, or taken back by `restore`: stores of the program as far as the mode sees them,
///      metadata writes of the engine (announced through WriteObserver) always. With Outside::stray stores outside scopes are none of them.
/// (I2) `restore` and `apply` allocate nothing and can't fail: memory for the bytes before is reserved when a range opens, before it can be written.
/// (I3) A cut that throws has changed nothing: it can be repeated, or `restore` can follow.
/// (I4) Whatever the recorder writes itself (restore, apply) is not a change: the next cut doesn't show it; the engine forgets its hints about those ranges.
/// Thread rule: external lock, as the heap; faults and store hooks come from the thread that stores.

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include <taiyen/base/capture.hpp>
#include <taiyen/base/units.hpp>

#include "base/thread_number.hpp"
#include "change/change_set.hpp"
#include "change/written_ranges.hpp"
#include "heap/core.hpp"
#include "heap/engine.hpp"

namespace taiyen::change {

/// What capturing has cost so far; for benchmarks, tests and `stats()`.
struct RecorderCounters {
    std::uint64_t cuts = 0;
    std::uint64_t faults = 0;          ///< pages mode: protection faults taken
    std::uint64_t pages_compared = 0;  ///< pages mode
    std::uint64_t pages_hot = 0;       ///< pages mode: writable between scopes now
    std::uint64_t stores = 0;          ///< stores mode: hooks that hit the heap
};

/// What a store is that the program makes where it has no scope open: between scopes, or in a thread other than the scope's.
enum class Outside {
    implicit,  ///< a change like any other: it is in the next cut
    stray  ///< a bug of the program: reported (errc::stray_write) with address and block. Pages mode: then the fault is a real one, and whoever handled it before gets it;
    ///< stores mode: then the process is aborted, before the store. Declared mode can't tell. What the engine writes and what was touched is never stray
};

/// The first place where the span's bytes are not those that the set was recorded against (backward: its bytes after; forward: its bytes before). Writes nothing. Not compared: procedures, zeroed
/// runs, and backward the targets of moved pages (what they were copied from may be long gone). Throws: std::bad_alloc, only if there is a conflict or entries overlap.
std::optional<HeapOffset> first_conflict(const std::byte* span, const ChangeSetView& changes, Direction direction);

class Recorder : public heap::WriteObserver, public heap::StoreListener {
public:
    /// `core` outlives the recorder; [0, mapped) of its durable span is readable and writable. Nothing is captured before `start`.
    /// Throws: Error{not_instrumented} (stores mode, and no instrumented code is part of the program), std::bad_alloc, HeapFull{address_space}.
    static std::unique_ptr<Recorder> make(Capture mode, heap::HeapCore& core, ByteCount mapped, Audit audit, Outside outside = Outside::implicit);
    /// The recorder of that heap, null if nothing captures its writes. Thread-safe.
    static Recorder* of(const heap::HeapCore& core) noexcept;
    ~Recorder() override;
    Recorder(const Recorder&) = delete;
    Recorder& operator=(const Recorder&) = delete;

    virtual Capture mode() const = 0;
    /// Capture begins: the state of the span now is the base of the first cut; the recorder listens to the core's stores. The engine's observer is set by the owner of the engine.
    virtual void start() = 0;
    /// Capture ends; changes since the last cut stay as they are and are forgotten.
    virtual void stop() noexcept = 0;

    /// Bracket the outermost scope on the calling thread: who may store, and when pages that are no longer in use are protected again. Not nested.
    /// Throws: Error{stray_write} if somebody replaced the fault handler and passes nothing on.
    virtual void begin_scope() = 0;
    virtual void end_scope() noexcept = 0;
    /// Behind a cut within a scope: an inner one begins. What is no longer in use is protected again, as between scopes, so that many inner scopes cost no more than as many scopes. A range that was touched
    /// before has to be touched again. Not within a procedure.
    virtual void begin_inner_scope() noexcept = 0;

    /// The range is about to be written by means that the mode can't see (a system call, declared mode): open it. Throws: std::bad_alloc, Error{invalid_argument} (outside the span).
    virtual void touch(HeapOffset where, ByteCount length) = 0;

    /// Appends what changed since the last cut to `out`; the state now is the base of the next one. Throws: std::bad_alloc; Error{uncaptured_store} (audit).
    virtual void cut(ChangeSet& out) = 0;
    /// As `cut`, where nobody wants to know what changed: cheaper.
    virtual void accept() {
        ChangeSet unwanted;
        cut(unwanted);
    }
    /// Whether a part of that page can be changed without HeapCore::about_to_change.
    virtual bool keeps_open(PageNumber page) const noexcept = 0;
    /// Whether a cut would certainly be empty; cheap, may say false for an empty one.
    virtual bool certainly_unchanged() const = 0;
    /// Whether a cut would find something; may say true of what was announced and not changed. Needs no memory.
    virtual bool has_changed() const { return !certainly_unchanged(); }
    /// Of the modes that keep lines: those that were kept since the last cut. Throws: std::bad_alloc.
    virtual void add_written(WrittenRanges& /*ranges*/) const {}
    /// Takes back everything since the last cut.
    virtual void restore() noexcept = 0;

    /// `first_conflict` of the heap as it is. Requires: nothing changed since the last cut.
    virtual std::optional<HeapOffset> conflict(const ChangeSetView& changes, Direction direction) const {
        return first_conflict(span(), changes, direction);
    }
    /// Puts the bytes of one direction in place. Procedure entries are skipped: the caller calls them. Requires: nothing changed since the last cut.
    virtual void apply(const ChangeSetView& changes, Direction direction) noexcept = 0;
    /// Makes room so that `apply` of that set needs none. Throws: std::bad_alloc.
    virtual void reserve_for(const ChangeSetView& changes) = 0;

    /// The span grew: [from, to) is mapped, writable, zero. Throws: HeapFull{address_space}.
    virtual void extended(ByteCount from, ByteCount to) = 0;
    /// Proves that nothing was written that no cut has shown. Requires: just cut. Throws: Error{uncaptured_store} naming the block.
    virtual void audit() const = 0;

    virtual RecorderCounters counters() const = 0;

protected:
    explicit Recorder(heap::HeapCore& core, Outside outside = Outside::implicit);

    /// The calling thread is the scope's from here on, until `leave_scope`.
    void enter_scope() noexcept;
    void leave_scope() noexcept { scope_thread_.store(0, std::memory_order_relaxed); }
    /// Whether a store by this thread is a stray one now. For signal handlers, too.
    bool is_stray() const noexcept;
    /// Tells the report handler. Allocates nothing; for signal handlers, too.
    void report_stray(const void* address) const noexcept;

    std::byte* span() const { return reinterpret_cast<std::byte*>(core_.ranges().durable); }

    heap::HeapCore& core_;

private:
    const Outside outside_;
    std::atomic<ThreadNumber> scope_thread_{0};  ///< 0: no scope is open
};

}  // namespace taiyen::change
