#include "undo/undo_service.hpp"

#include <algorithm>

#include <taiyen/base/report.hpp>

#include "base/uuid.hpp"
#include "change/edits.hpp"
#include "undo/snapshot_undo.hpp"
#include "undo/transaction_undo.hpp"

namespace taiyen::undo {

using change::ChangeSetView;
using change::Direction;
using change::Entry;

UndoService::RecorderMaker UndoService::make_recorder = [](Capture mode, heap::HeapCore& core, ByteCount mapped, Audit audit) {
    return change::Recorder::make(mode, core, mapped, audit);
};

UndoService::UndoService() : life_(random_u64()) {}

std::shared_ptr<UndoService> UndoService::find(const store::HeapFile& file) noexcept {
    if (const auto* const edits = dynamic_cast<const change::Edits*>(file.participant()))
        return std::dynamic_pointer_cast<UndoService>(edits->keeper());
    auto* const service = dynamic_cast<SnapshotUndo*>(file.participant());
    return service == nullptr ? nullptr : service->shared_from_this();
}

std::shared_ptr<UndoService> UndoService::of(store::HeapFile& file) {
    file.check_usable(false);
    if (auto* const edits = dynamic_cast<change::Edits*>(file.participant())) return TransactionUndo::of(file, *edits);
    if (auto found = find(file)) return found;
    return SnapshotUndo::join(file);
}

UndoOptions UndoService::with_defaults(const UndoOptions& given) {
    UndoOptions options = given;
    if (options.bytes == 0) options.bytes = 256_MiB;
    return options;
}

void UndoService::tell_ignored(const store::HeapFile& file, const UndoOptions& given) const {
    if (given.bytes == 0 || !history_ || history_->capacity() == given.bytes) return;
    const std::string text = file.path().string() + ": its undo history has room for " + std::to_string(history_->capacity()) + " bytes, not the " +
                             std::to_string(given.bytes) + " that were asked for; end_undo() and attach_undo() make a new one of that size";
    report({errc::invalid_argument, nullptr, text});
}

std::optional<std::size_t> UndoService::steps_since(UndoMark mark) const {
    if (!history_) return std::nullopt;
    std::size_t count = 0;
    for (const StepView& step : history_->newest(history_->undoable())) {
        if (step.id == mark.id) return count;
        ++count;
    }
    return mark.id == history_->base_id() ? std::optional(count) : std::nullopt;
}

bool UndoService::has_place(UndoMark mark) const {
    if (!history_) return false;
    const std::vector<UndoStep> all = history_->steps();
    return mark.id == history_->base_id() || std::any_of(all.begin(), all.end(), [&](const UndoStep& step) { return step.id == mark.id; });
}

void UndoService::require_squashable(const store::HeapFile& file, std::size_t count, std::string_view name) const {
    if (!history_ || count > history_->undoable() || history_->redoable() != 0 || name.size() > layout::name_bytes_max) {
        throw Error(errc::invalid_argument, file.path(),
                    "squash_undo: there are fewer steps, steps that can be redone, or the name has more than 1,024 bytes");
    }
}

void UndoService::resize_history(const store::HeapFile& file, std::size_t bytes) {
    if (!history_)
        throw Error(errc::invalid_argument, file.path(),
                    "resize_undo: the heap has no undo history; attach_undo() makes one of the size that you give it");
    require_room(file, "resize_undo", bytes);
    const auto resize = [&] {
        try {
            return history_->resize(bytes);
        } catch (const HeapFull& full) {
            throw full.about(file.name());
        }
    };
    if (!resize()) {
        throw Error(errc::history_full, file.path(),
                    "resize_undo: what can be redone has no room in " + std::to_string(bytes) + " bytes; nothing was changed");
    }
}

void UndoService::require_room(const store::HeapFile& file, const char* what, std::size_t bytes) {
    if (bytes < UndoHistory::capacity_min || bytes > store::sequence_bytes_max) {
        throw Error(errc::invalid_argument, file.path(),
                    std::string(what) + ": an undo history has at least 16 KiB, and at most " + std::to_string(store::sequence_bytes_max) + " bytes");
    }
}

void UndoService::ensure_mapped(store::HeapFile& file, const ChangeSetView& changes) {
    std::uint64_t end = 0;
    changes.for_each(Direction::forward, [&](const Entry& entry) {
        end = std::max(end, entry.where.value + entry.length);
        if (entry.kind == change::EntryKind::pages_moved) end = std::max(end, entry.source.value + entry.length);
    });
    if (end > file.image().mapped()) file.extend(round_up(end, page_bytes));
}

void UndoService::add_piece(std::vector<Piece>& pieces, const ChangeSetView& changes, bool& previous_is_call) {
    if (changes.empty()) return;
    const bool call = is_call(changes);
    pieces.push_back({changes.bytes(), !call && !previous_is_call});
    previous_is_call = call;
}

Entry UndoService::call_entry(const ChangeSetView& segment) {
    std::optional<Entry> call;
    segment.for_each(Direction::forward, [&](const Entry& entry) {
        if (call) throw Error(errc::corrupt, "a procedure's call is not alone in its segment");
        call = entry;
    });
    return *call;
}

void UndoService::throw_conflict(const store::HeapFile& file, std::uint64_t offset, const StepView& step) {
    throw Error(errc::history_conflict, file.path(), offset,
                "the heap's bytes are not those that the step '" + std::string(step.name) +
                    "' left: something was changed that no step knows; nothing was changed");
}

void UndoService::throw_not_before(const store::HeapFile& file) {
    throw Error(errc::invalid_argument, file.path(), "squash_undo: the mark does not stand before the newest steps");
}

const char* UndoService::full_text(bool circular) {
    return circular ? "a step found no room, in the whole undo history or on the disk, and the history ended with it; the heap goes on, attach a "
                      "larger history to go on undoing"
                    : "the undo history is full and ended; the heap goes on, attach a larger or a circular history to go on undoing";
}

}  // namespace taiyen::undo
