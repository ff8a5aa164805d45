#pragma once
/// What an undo history is asked for, and what it says about its steps. The calls are members of SnapshotHeap.

#include <cstddef>
#include <cstdint>
#include <string>

namespace taiyen {

/// What a history is made with.
struct UndoOptions {
    /// Room for the steps, at least 16 KiB; 0: 256 MiB. A history that is resumed keeps the size it was made with; that another one was given goes to the report handler (errc::invalid_argument).
    std::size_t bytes = 0;
    bool circular = true;    ///< full: the oldest steps fall off whole; else the history ends with a report, errc::history_full
    bool persistent = true;  ///< saved by each snapshot in the same record, resumed by the next process
};

/// One step of a history.
struct UndoStep {
    std::uint64_t id = 0;   ///< ascending, never used twice
    std::string name;       ///< empty: unnamed
    std::size_t bytes = 0;  ///< that it takes in the history
    bool implicit = false;  ///< what was stored outside scopes
    bool undone = false;    ///< behind the cursor: `redo` would do it again
};

/// A place between two steps.
struct UndoMark {
    std::uint64_t id = 0;  ///< of the step before it
    bool operator==(const UndoMark&) const = default;
};

}  // namespace taiyen
