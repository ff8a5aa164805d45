#include <taiyen/inspect/history_report.hpp>

#include "store/heap_access.hpp"
#include "undo/history.hpp"

namespace taiyen {
namespace {

/// The annex of a heap that is open for reading.
class StoredMemory final : public undo::HistoryMemory {
public:
    explicit StoredMemory(store::HeapFile& file) : base_(file.open_annex(0)), bytes_(file.annex_bytes()) {}
    std::byte* base() override { return base_; }
    ByteCount bytes() const override { return bytes_; }
    ByteCount capacity() const override { return store::sequence_bytes_max; }  // whatever its header says: nobody lets it grow here
    void extend(ByteCount bytes) override { throw HeapFull(bytes, 0); }

private:
    std::byte* base_;
    ByteCount bytes_;
};

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
    report.file_bytes = file->annex_bytes();
    if (report.file_bytes == 0) return report;
    try {
        std::unique_ptr<undo::HistoryMemory> memory = std::make_unique<StoredMemory>(*file);
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
            report.steps.push_back(described(*history, view, undone, file->backing().header.capacity));
            report.used_bytes += view.size;
            if (progress) progress(report.steps.size(), report.undoable + report.redoable);
        });
        report.mark.id = history->cursor_id();
    } catch (const Error& error) {
        if (error.code() != errc::corrupt && error.code() != errc::unsupported_version) throw;
        report.attached = true;
        report.damage = error.what();
        report.damaged_at = error.offset() == Error::no_offset ? 0 : error.offset();
        // The error knows no file: what it says begins with the place.
        const std::string place = "at byte " + std::to_string(report.damaged_at) + ": ";
        if (report.damage.starts_with(place)) report.damage.erase(0, place.size());
    }
    return report;
}

}  // namespace taiyen
