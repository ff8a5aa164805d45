#pragma once
/// UndoHistory: a log of steps in one contiguous span of bytes, with a cursor.
///
/// (I1) Steps are whole and in one piece: what fell off fell off whole, and a step can be read in place.
/// (I2) Nothing is believed: every offset, size and checksum is checked when it is used. Bytes that contradict themselves are Error{corrupt}, never a wrong step.
/// (I3) A call that throws has changed nothing.
/// Format: FORMAT.md. Thread rule: external lock.

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <taiyen/base/units.hpp>
#include <taiyen/undo/history.hpp>

#include "change/change_set.hpp"
#include "undo/history_layout.hpp"

namespace taiyen::undo {

/// Where a history lies: [0, bytes) of one range that never moves and can grow to `capacity`.
class HistoryMemory {
public:
    virtual ~HistoryMemory() = default;
    virtual std::byte* base() = 0;
    virtual ByteCount bytes() const = 0;
    virtual ByteCount capacity() const = 0;
    /// Throws: HeapFull; then nothing changed. Requires: at most `capacity`.
    virtual void extend(ByteCount bytes) = 0;
    /// The history is about to write there. Throws: std::bad_alloc; then it doesn't.
    virtual void about_to_write(std::uint64_t /*offset*/, ByteCount /*bytes*/) {}
};

/// Address space is reserved for a history larger than the one that is asked for: it can become larger, or be followed by a larger one.
inline constexpr ByteCount reserved_bytes_min = ByteCount{1} << 30U;

/// Memory that ends with the process.
std::unique_ptr<HistoryMemory> anonymous_history_memory(ByteCount capacity);

/// A step as it lies in the log; good until the log changes.
struct StepView {
    std::uint64_t offset = 0;
    std::uint64_t id = 0;
    std::uint64_t size = 0;
    std::uint64_t previous = 0;
    std::uint64_t life = 0;
    std::uint32_t first_serial = 0;
    std::uint32_t last_serial = 0;
    std::uint32_t flags = 0;
    std::string_view name;
    std::span<const std::byte> body;

    std::uint64_t end() const { return offset + size; }
    bool implicit() const { return (flags & layout::step_implicit) != 0; }
};

/// A piece of a step to be: a change set. One that `joins` makes one segment with the piece before it.
struct Piece {
    std::span<const std::byte> changes;
    bool joins = false;
};

/// A step to be.
struct NewStep {
    std::string_view name;
    std::uint32_t flags = 0;
    std::uint64_t life = 0;
    std::uint32_t first_serial = 0;
    std::uint32_t last_serial = 0;
    std::span<const Piece> pieces;  ///< in the order in which they happened
};

/// A place where a history contradicts itself: an offset from its start, and a sentence.
struct HistoryFault {
    std::uint64_t offset = 0;
    std::string what;
};

/// What a look at all of a history found.
struct HistoryCheck {
    static constexpr std::size_t faults_max = 1000;

    bool attached = false;             ///< a history lies there
    bool other_version = false;        ///< one that this library doesn't read: nothing was looked at
    std::uint64_t steps = 0;           ///< that were proven, or have a fault of their own; behind a broken link there may be more
    std::vector<HistoryFault> faults;  ///< the first ones, in the order in which they were met
};

/// Proves all that FORMAT.md promises: after it without faults undo and redo go through the whole history, unless the heap's bytes or the program's procedures are others than the steps say.
/// Whatever the bytes are: it ends, throws no Error{corrupt}, and writes nothing. Complexity: reads the steps once, in constant memory.
HistoryCheck check_history(std::unique_ptr<HistoryMemory> memory, ByteCount heap_capacity);

/// Whether the segment is a procedure's call.
bool is_call(const change::ChangeSetView& segment);

/// What all sentences about bytes that can't be a history begin with.
std::string contradiction(const char* what);

class UndoHistory {
public:
    static constexpr ByteCount capacity_min = 16 * 1024;

    /// An empty history of at most `bytes`. Throws: HeapFull (not even the first page).
    static UndoHistory create(std::unique_ptr<HistoryMemory> memory, ByteCount bytes, bool circular);
    /// The history that lies there; nothing: none. Throws: Error{corrupt | unsupported_version}.
    static std::optional<UndoHistory> resume(std::unique_ptr<HistoryMemory>& memory);

    /// Adds a step behind the cursor; what could be done again is forgotten. False: there is no room (the history is not circular, or the step is larger than all of it);
    /// then nothing changed. Throws: Error{corrupt}.
    bool append(const NewStep& step);
    bool append(const NewStep& step, std::uint64_t id);

    bool circular() const { return (header().flags & layout::flag_circular) != 0; }
    std::uint64_t undoable() const { return header().undoable; }
    std::uint64_t redoable() const { return header().redoable; }
    /// Id of the step before the cursor, 0 or that of the newest step that fell off: the cursor stands before all steps.
    std::uint64_t cursor_id() const;
    std::uint64_t base_id() const { return header().base_id; }
    std::uint64_t next_id() const { return header().next_id; }

    /// The step that undo would take back, or redo would do again; its head is proven. Throws: Error{corrupt}.
    std::optional<StepView> to_undo() const;
    std::optional<StepView> to_redo() const;
    /// Proves the body and returns its change sets in order. Throws: Error{corrupt}, std::bad_alloc.
    std::vector<change::ChangeSetView> segments(const StepView& step, ByteCount heap_capacity) const;
    /// The same without memory: those before a part that is wrong were visited when it throws. Throws: Error{corrupt}.
    void for_each_segment(const StepView& step, ByteCount heap_capacity, const std::function<void(const change::ChangeSetView&)>& visit) const;
    /// The cursor passes that step. Requires: it came from to_undo (to_redo).
    void step_back(const StepView& undone);
    void step_forward(const StepView& redone);
    /// Where the cursor stands, and back there; steps must not have come or gone in between. Behind the memory's back.
    using Cursor = layout::HistoryHeader;
    Cursor cursor() const { return header(); }
    void put_back(const Cursor& cursor) noexcept { std::memcpy(memory_->base(), &cursor, sizeof cursor); }

    /// What the options asked for when it was made: bytes, its header included.
    ByteCount capacity() const { return header().capacity; }

    /// All steps, oldest first. Throws: Error{corrupt}.
    std::vector<UndoStep> steps() const;
    /// Calls `visit` for each of them; those before one that contradicts itself were visited when it throws. Throws: Error{corrupt}.
    void for_each_step(const std::function<void(const StepView& step, bool undone)>& visit) const;
    /// The newest `count` steps before the cursor, newest first. Throws: Error{corrupt}.
    std::vector<StepView> newest(std::uint64_t count) const;
    /// Makes the newest `count` steps one, which has the last one's id. False: there is no room for it in one piece; nothing changed.
    /// Requires: nothing can be done again, 0 < count ≤ undoable. Throws: Error{corrupt}, std::bad_alloc.
    bool squash(std::uint64_t count, std::string_view name);

    /// Gives it another capacity, of at least `capacity_min`; steps that have no room any more are dropped, the oldest first. False: what can be done again has none; nothing changed.
    /// Throws: Error{corrupt}, std::bad_alloc, HeapFull: more than the memory's capacity. Complexity: moves all steps, unless it becomes larger and they lie in one piece.
    bool resize(ByteCount bytes);

    /// Proves header, links, steps and cursor against each other; the header alone was proven by `resume`.
    void check(ByteCount heap_capacity, HistoryCheck& found) const;

    /// Writes the end into the memory: it holds no history any more.
    /// Throws: what `about_to_write` throws.
    static void erase(HistoryMemory& memory);
    HistoryMemory& memory() { return *memory_; }

private:
    explicit UndoHistory(std::unique_ptr<HistoryMemory> memory) : memory_(std::move(memory)) {}
    const layout::HistoryHeader& header() const { return *reinterpret_cast<const layout::HistoryHeader*>(memory_->base()); }
    void store(layout::HistoryHeader header);
    StepView step_at(std::uint64_t offset) const;
    std::uint64_t offset_behind(const layout::HistoryHeader& header, const StepView& step) const;
    StepView checked_previous(const StepView& step) const;
    bool grow(ByteCount bytes);
    std::uint64_t place(layout::HistoryHeader& header, std::uint64_t size);
    bool drop_oldest(layout::HistoryHeader& header) const;
    void forget_redoable(layout::HistoryHeader& header) const;
    void write(layout::HistoryHeader header, std::uint64_t at, const NewStep& step, std::uint64_t size, std::uint64_t id);

    std::unique_ptr<HistoryMemory> memory_;
};

}  // namespace taiyen::undo
