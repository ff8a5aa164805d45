#pragma once
/// SnapshotHeap: an ArchiveHeap with a second copy, the data file: saves are fail-safe against a bad disk too, damaged pages heal page by page.
///
/// Opening an archive as a SnapshotHeap attaches a data file. Thread rule: as ArchiveHeap.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <taiyen/store/archive_heap.hpp>

namespace taiyen {

struct UndoOptions;  ///< these three: taiyen/undo/history.hpp
struct UndoStep;
struct UndoMark;

class TAIYEN_EXPORT SnapshotHeap : public ArchiveHeap {
public:
    SnapshotHeap(create_only_t, const std::filesystem::path& path, const PersistentOptions& options = {});
    SnapshotHeap(open_only_t, const std::filesystem::path& path, const PersistentOptions& options = {});
    SnapshotHeap(open_or_create_t, const std::filesystem::path& path, const PersistentOptions& options = {});
    SnapshotHeap(open_read_only_t, const std::filesystem::path& path, const PersistentOptions& options = {});

    // Undo; defined in room undo. From `attach_undo` on every change of the heap is part of a step: that of its UndoScope, or an implicit, unnamed one for what was stored
    // outside scopes (made by the next scope, undo, redo or snapshot). On a TransactionalHeap each transaction is a step, and undo, redo, squash_undo, resize_undo, attach_undo and end_undo are transactions
    // of their own: durable on return, refused (errc::scope_open) while this thread has a transaction or a ReadLock (doc/transactions.md).
    /// Attaches a history: the one that the heap has, else a new one. Attach before changing anything: the steps of a stored history know nothing of changes made since the last
    /// save. The first save of a heap that was opened without attaching ends its history. On a heap with a history attached: nothing happens.
    /// Throws: Error{read_only | not_instrumented | scope_open | corrupt (the stored history is damaged) | history_conflict (the heap was changed before its history was
    /// attached): the stored history is given up, attaching again makes a new one}, HeapFull, std::bad_alloc.
    void attach_undo();
    void attach_undo(const UndoOptions& options);
    /// Whether a history is attached and lives. Not any more: it was full, or damaged (`last_error`).
    bool has_undo() const noexcept;
    /// Ends the history; with the next save also in the files.
    void end_undo();
    /// Takes the newest step back; false: there is none. Durability: with the next snapshot(), as an edit.
    /// Throws: Error{scope_open | history_conflict (bytes are not as the step left them) | missing_procedure | corrupt}, std::bad_alloc: nothing changed.
    bool undo();
    /// Does the step again that was undone last; false: there is none. As undo().
    bool redo();
    bool can_undo() const;
    bool can_redo() const;
    /// Of the step that undo (redo) would take; empty: unnamed or none.
    std::string undo_name() const;
    std::string redo_name() const;
    /// All steps, oldest first. Complexity: linear.
    std::vector<UndoStep> undo_steps() const;
    /// Makes the newest `count` steps one, named `name`. Throws: Error{invalid_argument (fewer steps; something can be redone) | history_full (no room in one piece)}.
    void squash_undo(std::size_t count, std::string_view name = {});
    /// The same for all steps made since the mark.
    void squash_undo(const UndoMark& since, std::string_view name = {});
    /// Gives the history room for that many bytes, at least 16 KiB. Steps that have no room any more are dropped, the oldest first; marks of the others stay good. While the heap is open it can become as large as 1 GiB,
    /// or as it was attached with if that is more. Durability: with the next snapshot(), as an edit. Complexity: moves all steps.
    /// Throws: Error{scope_open | invalid_argument (no history; too small) | history_full (what can be redone has no room) | corrupt}, HeapFull{address_space}, std::bad_alloc: nothing changed.
    void resize_undo(std::size_t bytes);
    /// Where the history stands; good as long as the steps around it exist, also in a later process.
    UndoMark undo_mark() const;
    /// Undoes or redoes until the history stands there; false, and nothing happens: that place does not exist any more. Stops at a step that throws.
    bool go_to(const UndoMark& mark);
    /// The last thing that a scope's destructor or the history could not tell by an exception.
    std::optional<Error> last_error() const;

protected:
    using ArchiveHeap::ArchiveHeap;
    friend struct HeapAccess;
};

}  // namespace taiyen
