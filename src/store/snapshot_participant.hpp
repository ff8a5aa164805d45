#pragma once
/// SnapshotParticipant: how capture and history take part in a heap's life without store knowing them.
///
/// Calls come in the order of the heap's own life, on the thread that uses the heap. What throws before anything was written leaves the heap as it was.
/// Thread rule: as the heap.

#include <cstdint>
#include <functional>

#include <taiyen/base/units.hpp>

#include "heap/engine.hpp"

namespace taiyen::store {

class SnapshotParticipant {
public:
    virtual ~SnapshotParticipant() = default;

    /// Who is told about the engine's metadata writes; asked once, when the participant joins. May be null.
    virtual heap::WriteObserver* observer() = 0;

    /// Whether it is what a transactional heap has; for those who ask all the time, which dynamic_cast is too slow for.
    virtual bool has_transactions() const noexcept { return false; }
    /// The heap is asked to save, and this participant does it itself (Saves::save_images or HeapFile::save_at). False: it does not, and nothing happened; the heap saves.
    virtual bool save_itself() { return false; }
    /// Runs `step` while nobody changes the heap, and its files hold all that was committed. Throws: Error{scope_open}: it didn't run; what `step` throws.
    virtual void stand_still(const std::function<void()>& step) { step(); }
    /// Something is about to be allocated, resized, named or freed. Throws: Error{no_transaction}: nothing happens then. Must not change anything.
    virtual void check_change() const {}
    /// A save begins; what belongs into it must be in the span (or the annex) on return. Throws: Error{scope_open | …}: nothing is saved.
    virtual void before_save() = 0;
    /// What was saved is durable.
    virtual void saved() noexcept = 0;
    /// The span grew: [from, to) is mapped, writable and zero. Throws: HeapFull; then the heap does not grow.
    virtual void extended(ByteCount from, ByteCount to) = 0;
    /// Store is about to restore a damaged page of the span in memory: capture opens it (HeapCore::about_to_change), and sees no change.
    virtual void about_to_restore(PageNumber page) = 0;
    /// Whether capture keeps that page of the span open: what is stored there next it doesn't announce. Such a page's private copy stays.
    virtual bool keeps_open(PageNumber page) const noexcept = 0;
    /// The program asks to close. Throws: Error{scope_open}: the heap stays open. A destructor doesn't ask: `left` comes at once.
    virtual void before_close() = 0;
    /// The heap ends without having been asked to close: the last moment at which the participant can save. Transactions that are open are over.
    virtual void before_abandon() noexcept {}
    /// The heap is done with its participant: unsaved changes are about to be dropped, then the span is unmapped.
    virtual void left() noexcept = 0;
    /// A durable block is freed. True: it will be, later; false: it may be freed now.
    virtual bool free_later(void* /*block*/) noexcept { return false; }
    /// A durable block that was lent to an object outside is freed by it; `scope` is the serial of the scope it was lent in, 0: none.
    /// False: a bad free, which was reported.
    virtual bool free_lent(void* block, std::uint32_t scope) noexcept = 0;
    /// Whether what that scope lent belongs to the heap again: it was rolled back, or its step is undone.
    virtual bool lent_came_back(std::uint32_t /*scope*/) const noexcept { return false; }
};

}  // namespace taiyen::store
