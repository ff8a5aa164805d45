// The history's side of UndoService: keeping steps, applying them, procedures.

#include <algorithm>
#include <cstring>

#include <taiyen/base/check.hpp>
#include <taiyen/base/report.hpp>

#include "base/planted.hpp"
#include "undo/history_memory.hpp"
#include "undo/undo_service.hpp"

namespace taiyen::undo {

using change::ChangeSet;
using change::ChangeSetView;
using change::Direction;
using change::Entry;
using change::EntryKind;
using change::LentBlocks;

namespace {

constexpr Direction opposite(Direction direction) { return direction == Direction::backward ? Direction::forward : Direction::backward; }

}  // namespace

template <class F>
auto UndoService::on_history(F&& action) {
    try {
        return action();
    } catch (const Error& error) {
        if (error.code() != errc::corrupt) {
            throw;
        }
        const Error told(errc::corrupt, open_file().path(), error.offset(),
                         std::string(error.what()) + "; the history was given up, the heap itself is not concerned: attach a new history to go on");
        end(errc::corrupt, told.what());
        throw told;
    }
}

/// The history is over; the heap goes on.
void UndoService::end(errc code, const std::string& text) noexcept {
    if (history_) {
        UndoHistory::erase(history_->memory());
        history_.reset();
    }
    implicit_serial_ = 0;
    if (levels_.empty() && file_ != nullptr) {
        file_->set_scope_serial(0);
    }
    try {
        last_error_.emplace(code, std::filesystem::path(), text);
    } catch (...) {
        last_error_.reset();
    }
    report({code, nullptr, text});
}

void UndoService::require_idle(const char* what) const {
    open_file().check_usable(false);
    if (in_call() || !levels_.empty()) {
        throw Error(errc::scope_open, file_->path(), std::string(what) + ": a scope is open on this heap; end it first");
    }
}

void UndoService::attach(const UndoOptions& options) {
    require_idle("attach_undo");
    if (options.bytes < UndoHistory::capacity_min) {
        throw Error(errc::invalid_argument, file_->path(), "an undo history has at least 16 KiB");
    }
    if (history_) {
        return;
    }
    drop_uncaptured();
    (void)lent_.begin(1);
    const bool changed = options.persistent && file_->differs_from_save();
    auto memory = options.persistent ? annex_history_memory(*file_, options.bytes) : anonymous_history_memory(options.bytes);
    try {
        history_ = UndoHistory::resume(memory);
        if (history_ && history_->undoable() + history_->redoable() != 0) {
            (void)history_->cursor_id();
            if (changed) {
                throw Error(errc::history_conflict, "the heap was changed before its history was attached, and the history's steps don't know of that");
            }
        }
    } catch (const Error& error) {
        UndoHistory::erase(memory ? *memory : history_->memory());  // resuming moves it
        history_.reset();
        throw Error(static_cast<errc>(error.code().value()), file_->path(), error.offset(),
                    std::string(error.what()) + "; it is given up with the next save, attach again to begin a new one");
    }
    if (!history_) {
        history_ = UndoHistory::create(std::move(memory), options.bytes, options.circular);
    }
    between_scopes();
}

void UndoService::end_history() {
    require_idle("end_undo");
    if (history_) {
        UndoHistory::erase(history_->memory());
        history_.reset();
        between_scopes();
    }
}

/// What was stored outside scopes becomes a step; without a history it is forgotten.
void UndoService::collect_implicit() {
    if (!history_) {
        drop_uncaptured();
        return;
    }
    if (recorder_->certainly_unchanged() || planted(Bug::drop_implicit_step)) {
        return;
    }
    cut_.clear();
    (void)lent_.begin(1);  // room for the serial that follows
    recorder_->cut(cut_);
    if (cut_.empty()) {
        return;
    }
    const Piece piece{cut_.view().bytes(), false};
    const std::uint32_t serial = implicit_serial_;
    keep({{}, layout::step_implicit, life_, serial, serial, std::span(&piece, 1)});
    lent_.change(serial, serial, LentBlocks::Fate::open, LentBlocks::Fate::committed);
    if (cut_.size() > kept_bytes) {
        cut_ = ChangeSet();
    }
    between_scopes();
}

/// The open scope's changes become a step.
void UndoService::keep_step() {
    // All memory first, so that nothing can go wrong with what was cut, but the audit.
    std::vector<Piece> pieces;
    if (history_) {
        pieces.reserve(segments_.size() + 1);
    }
    segments_.reserve(segments_.size() + 1);
    cut_.clear();
    recorder_->cut(cut_);
    if (file_->audit() == Audit::scope) {
        try {
            recorder_->audit();
        } catch (...) {
            segments_.emplace_back();  // still the scope's: it can be cancelled, or kept later
            std::swap(segments_.back().changes, cut_);
            throw;
        }
    }
    if (!history_) {
        return;
    }
    bool previous_is_call = true;
    const auto add = [&](const ChangeSet& changes, bool call) {
        if (!changes.empty()) {
            pieces.push_back({changes.view().bytes(), !call && !previous_is_call});
            previous_is_call = call;
        }
    };
    for (const Segment& segment : segments_) {
        const bool call = !segment.call.empty();
        add(call ? segment.call : segment.changes, call);
    }
    add(cut_, false);
    keep({name_, 0, life_, levels_.front().serial, lent_.last(), pieces});
}

void UndoService::keep(const NewStep& step) noexcept {
    try {
        if (!history_->append(step)) {
            end(errc::history_full, history_->circular() ? "a step was larger than the whole undo history, which ended with it; the heap goes on, attach a larger history to go on undoing"
                                                         : "the undo history is full and ended; the heap goes on, attach a larger or a circular history to go on undoing");
        }
    } catch (const Error& error) {
        end(static_cast<errc>(error.code().value()), std::string("the undo history could not take a step and ended; the heap goes on: ") + error.what());
    }
}

bool UndoService::can_move(Direction direction) {
    open_file().check_usable(true);
    if (levels_.empty() && !in_call()) {
        collect_implicit();
    }
    return history_ && (direction == Direction::backward ? history_->undoable() : history_->redoable()) != 0;
}

std::string UndoService::name_of_next(Direction direction) {
    if (!can_move(direction)) {
        return {};
    }
    return on_history([&] { return std::string((direction == Direction::backward ? history_->to_undo() : history_->to_redo())->name); });
}

bool UndoService::move(Direction direction) {
    require_idle(direction == Direction::backward ? "undo" : "redo");
    if (!can_move(direction)) {
        return false;
    }
    const bool back = direction == Direction::backward;
    const UndoHistory::Cursor before = history_->cursor();
    const StepView step = *on_history([&] { return back ? history_->to_undo() : history_->to_redo(); });
    recorder_->begin_scope();  // to the recorder a step that is applied is a scope: what it needs stays open, and the rest ages
    struct End {
        change::Recorder& recorder;
        ~End() { recorder.end_scope(); }
    } const end{*recorder_};
    on_history([&] { back ? history_->step_back(step) : history_->step_forward(step); });
    try {
        apply_step(step, direction);
    } catch (...) {
        if (history_) {
            history_->put_back(before);
        }
        throw;
    }
    if (step.life == life_) {
        lent_.change(step.first_serial, step.last_serial, back ? LentBlocks::Fate::committed : LentBlocks::Fate::undone,
                     back ? LentBlocks::Fate::undone : LentBlocks::Fate::committed);
    }
    return true;
}

void UndoService::throw_conflict(std::uint64_t offset, const std::string& what) const {
    throw Error(errc::history_conflict, file_->path(), offset, what + "; nothing was changed");
}

void UndoService::ensure_mapped(const ChangeSetView& changes) {
    std::uint64_t end = 0;
    changes.for_each(Direction::forward, [&](const Entry& entry) {
        end = std::max(end, entry.where.value + entry.length);
        if (entry.kind == EntryKind::pages_moved) {
            end = std::max(end, entry.source.value + entry.length);
        }
    });
    if (end > file_->mapped_bytes()) {
        file_->extend(round_up(end, page_bytes));
    }
}

void UndoService::apply_step(const StepView& step, Direction direction) {
    std::vector<ChangeSetView> segments = on_history([&] { return history_->segments(step, file_->ranges().durable_bytes); });
    if (direction == Direction::backward) {
        std::reverse(segments.begin(), segments.end());
    }
    // Everything that can be missing, before anything is changed.
    for (const ChangeSetView& segment : segments) {
        if (is_call(segment)) {
            (void)on_history([&] { return call_in(segment); });
        } else {
            ensure_mapped(segment);
            recorder_->reserve_for(segment);
        }
    }
    std::vector<ChangeSet> called(segments.size());  // what the procedures changed
    std::size_t done = 0;
    try {
        for (; done < segments.size(); ++done) {
            const ChangeSetView& segment = segments[done];
            if (is_call(segment)) {
                calls_.repeat(*recorder_, file_->mapped_bytes(), call_in(segment), direction, called[done]);
            } else if (const auto where = recorder_->conflict(segment, direction)) {
                throw_conflict(where->value, "the heap's bytes are not those that the step '" + std::string(step.name) + "' left: something was changed that no step knows");
            } else {
                recorder_->apply(segment, direction);
            }
        }
    } catch (...) {
        if (done < segments.size() && !called[done].empty()) {
            recorder_->apply(called[done], Direction::backward);  // a call that ran, and was refused for what it did
        }
        while (done-- > 0) {
            if (is_call(segments[done])) {
                recorder_->apply(called[done], Direction::backward);
            } else {
                recorder_->apply(segments[done], opposite(direction));
            }
        }
        throw;
    }
}

// Procedures.

change::StoredCall UndoService::call_in(const ChangeSetView& segment) const {
    std::optional<Entry> call;
    segment.for_each(Direction::forward, [&](const Entry& entry) {
        if (call) {
            throw Error(errc::corrupt, "a procedure's call is not alone in its segment");
        }
        call = entry;
    });
    return calls_.stored(*call);
}

void UndoService::call(std::string_view name, const std::string& signature, std::span<const std::byte> arguments) {
    open_file();
    if (!in_call()) {
        cut_segment();
    }
    segments_.reserve(segments_.size() + 1);
    Segment made;
    calls_.call(*recorder_, file_->mapped_bytes(), name, signature, arguments, made.changes, made.call);
    if (!made.changes.empty()) {
        segments_.push_back(std::move(made));
    }
}

// Looking, marks.

std::vector<UndoStep> UndoService::steps() {
    (void)can_move(Direction::backward);
    return history_ ? on_history([&] { return history_->steps(); }) : std::vector<UndoStep>{};
}

void UndoService::squash(std::size_t count, std::string_view name) {
    require_idle("squash_undo");
    collect_implicit();
    if (!history_ || count > history_->undoable() || history_->redoable() != 0 || name.size() > layout::name_bytes_max) {
        throw Error(errc::invalid_argument, file_->path(), "squash_undo: there are fewer steps, steps that can be redone, or the name has more than 1,024 bytes");
    }
    if (count > 1 && !on_history([&] { return history_->squash(count, name); })) {
        throw Error(errc::history_full, file_->path(), "squash_undo: the history has no room for the steps in one piece; nothing was changed");
    }
}

void UndoService::squash_since(UndoMark mark, std::string_view name) {
    require_idle("squash_undo");
    collect_implicit();
    std::size_t count = 0;
    bool found = history_ && mark.id == history_->base_id();
    if (history_) {
        on_history([&] {
            for (const StepView& step : history_->newest(history_->undoable())) {
                if (step.id == mark.id) {
                    found = true;
                    break;
                }
                ++count;
            }
        });
    }
    if (!found) {
        throw Error(errc::invalid_argument, file_->path(), "squash_undo: the mark does not stand before the newest steps");
    }
    squash(count, name);
}

UndoMark UndoService::mark() {
    (void)can_move(Direction::backward);
    return {history_ ? on_history([&] { return history_->cursor_id(); }) : 0};
}

bool UndoService::go_to(UndoMark mark) {
    require_idle("go_to");
    collect_implicit();
    if (!history_) {
        return false;
    }
    const std::vector<UndoStep> all = steps();
    const bool exists = mark.id == history_->base_id() || std::any_of(all.begin(), all.end(), [&](const UndoStep& step) { return step.id == mark.id; });
    if (!exists) {
        return false;
    }
    const auto now = [&] { return on_history([&] { return history_->cursor_id(); }); };
    while (now() > mark.id) {
        move(Direction::backward);
    }
    while (now() < mark.id) {
        move(Direction::forward);
    }
    return true;
}

}  // namespace taiyen::undo
