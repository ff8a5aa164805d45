#pragma once
/// UndoService: scopes and history of one open heap, whatever its kind; it outlives the heap as long as a scope holds it.
///
///   SnapshotUndo      a heap that the program saves: the service captures writes itself and takes part in saves
///   TransactionUndo   a heap with transactions: a scope is a transaction, a step is what one of them did
///
/// (I1) A step that is applied is applied whole, or nothing is changed.
/// (I2) The history's cursor and the heap's bytes become durable together: what the cursor says is always true of the bytes beside it.
/// Thread rule: as the heap.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <taiyen/base/capture.hpp>
#include <taiyen/base/error.hpp>
#include <taiyen/undo/history.hpp>

#include "change/recorder.hpp"
#include "store/heap_file.hpp"
#include "undo/history.hpp"

namespace taiyen::undo {

class UndoService {
public:
    /// Null: the heap has none.
    static std::shared_ptr<UndoService> find(const store::HeapFile& file) noexcept;
    /// What makes recorders for SnapshotUndo; tests put their own in its place.
    using RecorderMaker = std::unique_ptr<change::Recorder> (*)(Capture, heap::HeapCore&, ByteCount mapped, Audit);
    static RecorderMaker make_recorder;
    /// Joins one if the heap has none: capture starts. Throws: Error{read_only | not_instrumented | …}, std::bad_alloc, HeapFull.
    static std::shared_ptr<UndoService> of(store::HeapFile& file);

    virtual ~UndoService() = default;
    UndoService(const UndoService&) = delete;
    UndoService& operator=(const UndoService&) = delete;

    // Scopes.
    virtual void begin(std::string_view name) = 0;
    /// Ends the innermost scope. Throws: the scope is still open, or over (`failed_commit_ends`).
    virtual void commit() = 0;
    virtual bool failed_commit_ends() const noexcept = 0;
    virtual void cancel() noexcept = 0;
    /// Ends the innermost scope as its destructor does: what can't be kept is taken back, and the reason remembered.
    virtual void commit_or_cancel() noexcept = 0;
    /// Of the calling thread, as far as threads may have scopes of their own.
    virtual std::size_t depth() const noexcept = 0;
    /// Whether a procedure is at work.
    virtual bool in_call() const noexcept = 0;
    virtual void touch(const void* address, ByteCount bytes) = 0;
    virtual void call(std::string_view name, const std::string& signature, std::span<const std::byte> arguments) = 0;
    /// Null: the heap is gone.
    virtual store::HeapFile* file() const noexcept = 0;

    // History.
    virtual void attach(const UndoOptions& options) = 0;
    virtual bool live() const noexcept = 0;
    virtual void end_history() = 0;
    virtual bool move(change::Direction direction) = 0;
    virtual bool can_move(change::Direction direction) = 0;
    virtual std::string name_of_next(change::Direction direction) = 0;
    virtual std::vector<UndoStep> steps() = 0;
    virtual void squash(std::size_t count, std::string_view name) = 0;
    virtual void squash_since(UndoMark mark, std::string_view name) = 0;
    virtual void resize(std::size_t bytes) = 0;
    virtual UndoMark mark() = 0;
    virtual bool go_to(UndoMark mark) = 0;

    virtual std::optional<Error> last_error() const = 0;
    virtual const change::Recorder& recorder() const = 0;

protected:
    UndoService();

    /// How many steps before the cursor were made since the mark; nothing: it does not stand there. Throws: Error{corrupt}.
    std::optional<std::size_t> steps_since(UndoMark mark) const;
    /// Whether the history has that place. Throws: Error{corrupt}.
    bool has_place(UndoMark mark) const;
    /// Throws: Error{invalid_argument}.
    void require_squashable(const store::HeapFile& file, std::size_t count, std::string_view name) const;
    /// That a history may have so many bytes. Throws: Error{invalid_argument}.
    static void require_room(const store::HeapFile& file, const char* what, std::size_t bytes);
    /// Throws: as SnapshotHeap::resize_undo.
    void resize_history(const store::HeapFile& file, std::size_t bytes);
    /// Maps what the changes speak of.
    static void ensure_mapped(store::HeapFile& file, const change::ChangeSetView& changes);
    /// A piece of a step to be; `previous_is_call`: true before the first.
    static void add_piece(std::vector<Piece>& pieces, const change::ChangeSetView& changes, bool& previous_is_call);
    /// The call that the segment is. Throws: Error{corrupt}.
    static change::Entry call_entry(const change::ChangeSetView& segment);
    [[noreturn]] static void throw_conflict(const store::HeapFile& file, std::uint64_t offset, const StepView& step);
    [[noreturn]] static void throw_not_before(const store::HeapFile& file);
    static const char* full_text(bool circular);
    static UndoOptions with_defaults(const UndoOptions& given);
    /// A history that was resumed has another room than was asked for.
    void tell_ignored(const store::HeapFile& file, const UndoOptions& given) const;

    std::optional<UndoHistory> history_;
    const std::uint64_t life_;  ///< random number of this opening
};

}  // namespace taiyen::undo
