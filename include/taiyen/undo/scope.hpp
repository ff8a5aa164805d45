#pragma once
/// UndoScope: what happens between its construction and its end is one step, or never happened.
///
/// Leaves normally, or `commit()`: with a history on the heap one undoable step, also when nothing changed. Leaves by an exception, or `cancel()`: the heap is as it was at the
/// scope's begin, and what could be redone still can. Without a history (`attach_undo`) a scope can be cancelled and leaves no step.
/// Scopes nest: an inner scope that leaves normally becomes part of the outer one; cancelled, it takes back its own changes only.
/// The innermost scope's heap is the thread's current heap. A container outside the heap that existed before a scope and was changed inside it is invalid after a cancel.
/// Scopes end in reverse order, on the thread that began them; coroutines call `commit()` or `cancel()` themselves.
/// On a TransactionalHeap a scope is a transaction (doc/transactions.md): durable when `commit()` returns, soon if the destructor keeps it. A `commit()` that throws has then ended the scope and taken it back.
/// Thread rule: as the heap.

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <taiyen/base/detail/export.hpp>
#include <taiyen/change/arguments.hpp>
#include <taiyen/heap/detail/access.hpp>
#include <taiyen/store/snapshot_heap.hpp>

namespace taiyen {

namespace undo {
class UndoService;  ///< the compiled engine behind scopes and histories
}

class TAIYEN_EXPORT UndoScope {
public:
    /// `name` (at most 1 KiB) names the step. The first scope of a heap starts the capture of its writes.
    /// Throws: Error{closed | read_only | poisoned | forked | not_instrumented | stray_write | scope_open (another thread's scope, or a procedure is running) |
    /// invalid_argument}, std::bad_alloc, HeapFull.
    [[nodiscard]] explicit UndoScope(SnapshotHeap& heap, std::string_view name = {});
    /// Ends the scope if nobody did: keeps its changes, or takes them back if an exception is passing through or keeping them fails (`SnapshotHeap::last_error`).
    ~UndoScope();
    UndoScope(const UndoScope&) = delete;
    UndoScope& operator=(const UndoScope&) = delete;

    /// Ends the scope and keeps its changes. A history that ends because it is full does not throw: it is reported, and the changes stay.
    /// Throws: Error{closed (the heap was) | scope_open (an inner scope is) | uncaptured_store | invalid_argument (ended already)}, std::bad_alloc: the scope is still open.
    /// On a TransactionalHeap as Transaction::commit.
    void commit();
    /// Ends the scope and takes its changes back; allocates nothing. Throws: Error{scope_open (an inner scope is)}. Nothing happens to a scope that ended, or whose heap was closed.
    void cancel();
    /// The bytes are about to be changed by means that capture can't see: a system call that writes into the heap, any store with Capture::declared. Holds until the scope ends, within inner ones, too.
    /// Throws: Error{closed | invalid_argument (not in the heap)}, std::bad_alloc.
    void touch(void* address, std::size_t bytes);

    /// Calls a registered procedure; the step remembers the call instead of the bytes it changes, unless it allocates or frees.
    /// Throws: Error{missing_procedure | type_mismatch | closed | …} and what the procedure throws: then the call never happened.
    template <class... A>
    void call(std::string_view name, const A&... arguments) {
        change::ArgumentWriter bytes(core());
        (change::put_argument<change::stored_t<A>>(bytes, change::stored_t<A>(arguments)), ...);
        call_erased(name, change::signature<change::stored_t<A>...>(), bytes.bytes);
    }

    bool is_open() const noexcept;

private:
    friend class undo::UndoService;
    heap::HeapCore& core() const;
    void call_erased(std::string_view name, const std::string& signature, std::span<const std::byte> arguments);
    undo::UndoService& open_service() const;
    void leave() noexcept;

    std::shared_ptr<undo::UndoService> service_;  ///< null: ended
    UndoScope* outer_ = nullptr;                  ///< the thread's innermost scope before this one, of whatever heap
    std::size_t depth_ = 0;                       ///< 1: outermost of its heap
    int exceptions_ = 0;
};

}  // namespace taiyen
