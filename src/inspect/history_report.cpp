#include <taiyen/inspect/history_report.hpp>

#include "base/sentence.hpp"
#include "store/heap_access.hpp"
#include "undo/history_memory.hpp"

namespace taiyen {
namespace {

StoredStep described(const undo::UndoHistory& history, const undo::StepView& view, bool undone, ByteCount heap_capacity) {
    StoredStep found;
    found.step = {view.id, std::string(view.name), static_cast<std::size_t>(view.size), view.implicit(), undone};
    for (const change::ChangeSetView& segment : history.segments(view, heap_capacity)) {
        segment.for_each(change::Direction::forward, [&](const change::Entry& entry) {
            if (entry.kind == change::EntryKind::procedure) {
                ++found.calls;
            } else {
                ++found.ranges;
                found.changed_bytes += entry.length;
            }
        });
    }
    return found;
}

}  // namespace

HistoryReport look_at_history(const std::filesystem::path& path, const PersistentOptions& options, const Progress& progress) {
    HistoryReport report;
    const std::shared_ptr<store::HeapFile> file = HeapAccess::open(path, store::OpenMode::read_only, HeapKind::archive, options);
    report.file_bytes = file->image().annex().used();
    if (report.file_bytes == 0) return report;
    try {
        std::unique_ptr<undo::HistoryMemory> memory = undo::viewed_history_memory(*file);
        const std::optional<undo::UndoHistory> history = undo::UndoHistory::resume(memory);
        report.attached = history.has_value();
        if (!history) return report;
        report.circular = history->circular();
        report.capacity_bytes = history->capacity();
        report.used_bytes = undo::layout::first_step;
        report.undoable = history->undoable();
        report.redoable = history->redoable();
        report.steps_made = history->next_id() - 1;
        history->for_each_step([&](const undo::StepView& view, bool undone) {
            report.steps.push_back(described(*history, view, undone, file->files().backing().header.capacity));
            report.used_bytes += view.size;
            if (progress) progress(report.steps.size(), report.undoable + report.redoable);
        });
        report.mark.id = history->cursor_id();
    } catch (const Error& error) {
        if (error.code() != errc::corrupt && error.code() != errc::unsupported_version) throw;
        report.attached = true;
        report.damage = sentence_of(error);
        report.damaged_at = error.offset() == Error::no_offset ? 0 : error.offset();
    }
    return report;
}

}  // namespace taiyen
