// The history's side of SnapshotUndo: keeping steps, applying them, procedures.

#include <algorithm>
#include <array>
#include <cstring>

#include <taiyen/base/check.hpp>
#include <taiyen/base/report.hpp>

#include "base/planted.hpp"
#include "base/sentence.hpp"
#include "undo/history_memory.hpp"
#include "undo/snapshot_undo.hpp"

namespace taiyen::undo {

using change::ChangeSet;
using change::ChangeSetView;
using change::Direction;
using change::Entry;
using change::EntryKind;

namespace {

constexpr Direction opposite(Direction direction) { return direction == Direction::backward ? Direction::forward : Direction::backward; }

}  // namespace

template <class F>
auto SnapshotUndo::on_history(F&& action) {
    try {
        return action();
    } catch (const Error& error) {
        if (error.code() != errc::corrupt) throw;
        const Error told(errc::corrupt, open_file().path(), error.offset(),
                         sentence_of(error) + "; the history was given up, the heap itself is not concerned: attach a new history to go on");
        end(errc::corrupt, told.what());
        throw told;
    }
}

/// The history is over; the heap goes on.
void SnapshotUndo::end(errc code, const std::string& text) noexcept {
    if (history_) {
        UndoHistory::erase(history_->memory());
        history_.reset();
    }
    implicit_number_ = 0;
    if (scopes_.depth() == 0 && file_ != nullptr) file_->set_scope_serial(0);
    try {
        last_error_.emplace(code, std::filesystem::path(), text);
    } catch (...) {
        last_error_.reset();
    }
    report({code, nullptr, text});
}

void SnapshotUndo::require_idle(const char* what) const {
    open_file().check_usable(false);
    if (in_call() || scopes_.depth() != 0)
        throw Error(errc::scope_open, file_->path(), std::string(what) + ": a scope is open on this heap; end it first");
}

void SnapshotUndo::attach(const UndoOptions& given) {
    const UndoOptions options = with_defaults(given);
    require_idle("attach_undo");
    require_room(*file_, "attach_undo", options.bytes);
    if (history_) return;
    drop_uncaptured();
    begin_loan();
    const bool changed = options.persistent && file_->differs_from_save();
    auto memory = options.persistent ? annex_history_memory(*file_, options.bytes) : anonymous_history_memory(options.bytes);
    try {
        history_ = UndoHistory::resume(memory);
        if (history_ && history_->undoable() + history_->redoable() != 0) {
            (void)history_->cursor_id();
            if (changed) {
                throw Error(errc::history_conflict,
                            "the heap was changed before its history was attached, and the history's steps don't know of that");
            }
        }
    } catch (const Error& error) {
        UndoHistory::erase(memory ? *memory : history_->memory());  // resuming moves it
        history_.reset();
        throw Error(static_cast<errc>(error.code().value()), file_->path(), error.offset(),
                    sentence_of(error) + "; it is given up with the next save, attach again to begin a new one");
    }
    if (!history_) history_ = UndoHistory::create(std::move(memory), options.bytes, options.circular);
    tell_ignored(*file_, given);
    between_scopes();
}

void SnapshotUndo::end_history() {
    require_idle("end_undo");
    if (history_) {
        UndoHistory::erase(history_->memory());
        history_.reset();
        between_scopes();
    }
}

/// What was stored outside scopes becomes a step; without a history it is forgotten.
void SnapshotUndo::collect_implicit() {
    write_notes_if_changed();
    if (!history_) {
        drop_uncaptured();
        return;
    }
    if (scopes_.recorder().certainly_unchanged() || planted(Bug::drop_implicit_step)) return;
    cut_.clear();
    scopes_.recorder().cut(cut_);
    if (cut_.empty()) return;
    file_->held().settle();
    const Piece piece{cut_.view().bytes(), false};
    keep({{}, layout::step_implicit, life_, implicit_number_, implicit_number_, std::span(&piece, 1)});
    if (cut_.size() > kept_bytes) cut_ = ChangeSet();
    between_scopes();
}

/// What is noted of types comes with what was changed, if anything was.
void SnapshotUndo::write_notes_if_changed() {
    if (!file_->type_notes().are_waiting()) return;
    if (!scopes_.segments().empty() || scopes_.recorder().has_changed()) file_->write_type_notes();
}

/// The open scope's changes become a step.
void SnapshotUndo::keep_step() {
    write_notes_if_changed();
    if (!history_ && file_->audit() == Audit::off) {
        scopes_.recorder().accept();
        return;
    }
    // All memory first, so that nothing can go wrong with what was cut, but the audit.
    std::vector<Piece> pieces;
    if (history_) pieces.reserve(scopes_.segments().size() + 1);
    scopes_.cut();
    if (file_->audit() == Audit::scope) {
        try {
            scopes_.recorder().audit();
        } catch (...) {
            scopes_.reserve();  // it can be cancelled, or kept later
            throw;
        }
    }
    if (!history_) return;
    bool previous_is_call = true;
    for (const change::OpenScopes::Segment& segment : scopes_.segments()) add_piece(pieces, segment.story(), previous_is_call);
    keep({name_, 0, life_, scopes_.number(), loans_.last(), pieces});
}

void SnapshotUndo::keep(const NewStep& step) noexcept {
    try {
        if (!history_->append(step)) return end(errc::history_full, full_text(history_->circular()));
        loans_.settle();
    } catch (const Error& error) {
        end(static_cast<errc>(error.code().value()), "the undo history could not take a step and ended; the heap goes on: " + sentence_of(error));
    }
}

bool SnapshotUndo::can_move(Direction direction) {
    open_file().check_usable(true);
    if (scopes_.depth() == 0 && !in_call()) collect_implicit();
    return history_ && (direction == Direction::backward ? history_->undoable() : history_->redoable()) != 0;
}

std::string SnapshotUndo::name_of_next(Direction direction) {
    if (!can_move(direction)) return {};
    return on_history([&] { return std::string((direction == Direction::backward ? history_->to_undo() : history_->to_redo())->name); });
}

bool SnapshotUndo::move(Direction direction) {
    require_idle(direction == Direction::backward ? "undo" : "redo");
    if (!can_move(direction)) return false;
    const bool back = direction == Direction::backward;
    const UndoHistory::Cursor before = history_->cursor();
    const StepView step = *on_history([&] { return back ? history_->to_undo() : history_->to_redo(); });
    begin_loan();
    scopes_.recorder().begin_scope();  // to the recorder a step that is applied is a scope: what it needs stays open, and the rest ages
    struct End {
        SnapshotUndo& undo;
        ~End() {
            undo.scopes_.recorder().end_scope();
            undo.between_scopes();
        }
    } const end{*this};
    on_history([&] { back ? history_->step_back(step) : history_->step_forward(step); });
    try {
        apply_step(step, direction);
    } catch (...) {
        if (history_) history_->put_back(before);
        throw;
    }
    if (step.life == life_ && step.first_serial != 0)
        back ? loans_.undo(step.first_serial, step.last_serial) : loans_.redo(step.first_serial, step.last_serial);
    return true;
}

void SnapshotUndo::apply_step(const StepView& step, Direction direction) {
    change::Recorder& recorder = scopes_.recorder();
    std::vector<ChangeSetView> segments = on_history([&] { return history_->segments(step, file_->ranges().durable_bytes); });
    if (direction == Direction::backward) std::reverse(segments.begin(), segments.end());
    // Everything that can be missing, before anything is changed.
    for (const ChangeSetView& segment : segments) {
        if (is_call(segment)) {
            (void)on_history([&] { return call_in(segment); });
        } else {
            ensure_mapped(*file_, segment);
            recorder.reserve_for(segment);
        }
    }
    std::vector<ChangeSet> called(segments.size());  // what the procedures changed
    std::size_t done = 0;
    try {
        for (; done < segments.size(); ++done) {
            const ChangeSetView& segment = segments[done];
            if (is_call(segment))
                scopes_.calls().repeat(recorder, file_->image().mapped(), call_in(segment), direction, called[done]);
            else if (const auto where = recorder.conflict(segment, direction))
                throw_conflict(*file_, where->value, step);
            else
                recorder.apply(segment, direction);
        }
    } catch (...) {
        if (done < segments.size() && !called[done].empty())
            recorder.apply(called[done], Direction::backward);  // a call that ran, and was refused for what it did
        while (done-- > 0)
            if (is_call(segments[done]))
                recorder.apply(called[done], Direction::backward);
            else
                recorder.apply(segments[done], opposite(direction));
        throw;
    }
}

// Procedures.

void SnapshotUndo::call(std::string_view name, const std::string& signature, std::span<const std::byte> arguments) {
    const ByteCount mapped = open_file().image().mapped();
    try {
        scopes_.call(mapped, name, signature, arguments);
    } catch (...) {
        poison_if_doomed("the system refuses to open its pages (mprotect(2))");
        throw;
    }
}

// Looking, marks.

std::vector<UndoStep> SnapshotUndo::steps() {
    (void)can_move(Direction::backward);
    return history_ ? on_history([&] { return history_->steps(); }) : std::vector<UndoStep>{};
}

void SnapshotUndo::squash(std::size_t count, std::string_view name) {
    require_idle("squash_undo");
    collect_implicit();
    require_squashable(*file_, count, name);
    if (count > 1 && !on_history([&] { return history_->squash(count, name); }))
        throw Error(errc::history_full, file_->path(), "squash_undo: the history has no room for the steps in one piece; nothing was changed");
}

void SnapshotUndo::squash_since(UndoMark mark, std::string_view name) {
    require_idle("squash_undo");
    collect_implicit();
    const std::optional<std::size_t> count = on_history([&] { return steps_since(mark); });
    if (!count) throw_not_before(*file_);
    squash(*count, name);
}

void SnapshotUndo::resize(std::size_t bytes) {
    require_idle("resize_undo");
    collect_implicit();
    on_history([&] { resize_history(*file_, bytes); });
}

UndoMark SnapshotUndo::mark() {
    (void)can_move(Direction::backward);
    return {history_ ? on_history([&] { return history_->cursor_id(); }) : 0};
}

bool SnapshotUndo::go_to(UndoMark mark) {
    require_idle("go_to");
    collect_implicit();
    if (!on_history([&] { return has_place(mark); })) return false;
    const auto now = [&] { return on_history([&] { return history_->cursor_id(); }); };
    while (now() > mark.id) move(Direction::backward);
    while (now() < mark.id) move(Direction::forward);
    return true;
}

}  // namespace taiyen::undo
