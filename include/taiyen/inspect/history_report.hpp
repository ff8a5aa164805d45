#pragma once
/// The undo history that lies in a heap's files: its steps, and where it stands. Nothing is written; the history stays as it is.
///
/// A program that has the heap open asks it for `undo_steps()` instead. Guide: doc/undo.md; format: src/undo/FORMAT.md.
/// Thread rule: a value.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <taiyen/base/detail/export.hpp>
#include <taiyen/inspect/report.hpp>
#include <taiyen/store/options.hpp>
#include <taiyen/undo/history.hpp>

namespace taiyen {

/// A step, and what it does.
struct StoredStep {
    UndoStep step;
    std::uint64_t ranges = 0;       ///< of bytes that it changes; one that is changed twice counts twice
    std::size_t changed_bytes = 0;  ///< in these
    std::uint64_t calls = 0;        ///< of procedures
};

/// What the history of a heap's files says about itself and its steps.
struct HistoryReport {
    bool attached = false;           ///< the files hold a history; all histories in files are persistent ones
    bool circular = false;           ///< when it is full the oldest steps fall off; else it ends
    std::size_t capacity_bytes = 0;  ///< at most
    std::size_t file_bytes = 0;      ///< that the files hold for it; they grow towards the capacity as steps come
    std::size_t used_bytes = 0;      ///< by its steps and its header
    std::uint64_t undoable = 0;      ///< steps
    std::uint64_t redoable = 0;      ///< steps that were undone
    UndoMark mark;                   ///< where it stands: what undo_mark() gives
    std::uint64_t steps_made = 0;    ///< ever
    std::vector<StoredStep> steps;   ///< oldest first
    std::string damage;  ///< the history contradicts itself: a sentence; the steps before that place are listed. The heap itself is not concerned
    std::uint64_t damaged_at = 0;  ///< offset in the history
    bool ok() const { return damage.empty(); }
};

/// Opens the heap for reading. After a crash the history is the one that an opening would bring back.
/// Throws: as ArchiveHeap's constructor. Complexity: reads the history once.
TAIYEN_EXPORT HistoryReport look_at_history(const std::filesystem::path& path, const PersistentOptions& options = {}, const Progress& progress = {});

}  // namespace taiyen
