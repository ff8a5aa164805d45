// Scopes and the heap's life; the history's side is in undo_steps.cpp.

#include "undo/snapshot_undo.hpp"

#include <algorithm>

#include <taiyen/base/check.hpp>
#include <taiyen/base/report.hpp>

#include "base/planted.hpp"

namespace taiyen::undo {

using change::ChangeSet;
using change::Direction;
using change::LentBlocks;

SnapshotUndo::SnapshotUndo(store::HeapFile& file) : file_(&file), calls_(file) {
    recorder_ = make_recorder(file.capture(), file, file.mapped_bytes(), file.audit());
}

std::shared_ptr<SnapshotUndo> SnapshotUndo::join(store::HeapFile& file) {
    if (file.kind() == HeapKind::transactional) {
        throw Error(errc::invalid_argument, file.path(), "only transactions change this heap, and nobody runs them");
    }
    std::shared_ptr<SnapshotUndo> made(new SnapshotUndo(file));
    file.join(made);
    try {
        made->recorder_->start();
    } catch (...) {
        file.leave();
        throw;
    }
    return made;
}

store::HeapFile& SnapshotUndo::open_file() const {
    if (file_ == nullptr) {
        throw Error(errc::closed, "the heap was closed; open it again");
    }
    return *file_;
}

void SnapshotUndo::remember(const Error& error) noexcept {
    try {
        last_error_ = error;
    } catch (...) {
        last_error_.reset();
    }
}

void SnapshotUndo::begin(std::string_view name) {
    store::HeapFile& file = open_file();
    file.check_usable(false);
    if (in_call()) {
        throw Error(errc::scope_open, file.path(), "a procedure can't open a scope: it is a step, or part of one, itself");
    }
    if (name.size() > layout::name_bytes_max) {
        throw Error(errc::invalid_argument, file.path(), "the name of a step has at most 1,024 bytes");
    }
    levels_.reserve(levels_.size() + 1);
    if (!levels_.empty()) {
        if (owner_ != this_thread()) {
            throw Error(errc::scope_open, file.path(), "another thread has a scope open on this heap; end it first");
        }
        cut_segment();
        touch_again();
        levels_.push_back({segments_.size(), lent_.begin(1), {}});
    } else {
        std::string kept_name(name);
        collect_implicit();
        const std::uint32_t serial = lent_.begin(1);
        recorder_->begin_scope();
        name_.swap(kept_name);
        owner_ = this_thread();
        levels_.push_back({0, serial, {}});
        apply_queued_frees();
        file.write_type_notes();
    }
    file.set_scope_serial(levels_.back().serial);
}

/// What happened since the last cut becomes a segment of its own.
void SnapshotUndo::cut_segment() {
    if (recorder_->certainly_unchanged()) {
        return;
    }
    segments_.emplace_back();
    try {
        recorder_->cut(segments_.back().changes);
    } catch (...) {
        segments_.pop_back();
        throw;
    }
    if (segments_.back().changes.empty()) {
        segments_.pop_back();
        return;
    }
    recorder_->reserve_for(segments_.back().changes);
}

void SnapshotUndo::touch_again() {
    try {
        for (Level& level : levels_) level.touched.for_each([this](HeapOffset where, ByteCount length) { recorder_->touch(where, length); });
    } catch (const std::exception& error) {
        file_->poison("capturing again what a scope has touched", error.what());
        throw;
    }
}

void SnapshotUndo::apply_queued_frees() {
    if (lent_.has_queued()) {
        lent_.apply([this](void* block) { file_->deallocate_durable(block); });
    }
}

void SnapshotUndo::commit() {
    if (open_file().in_forked_child()) {
        file_->check_usable(false);  // neither span nor history are mapped here
    }
    TAIYEN_CHECK(!levels_.empty());
    if (levels_.size() > 1) {  // part of the outer scope from here on; its serials end with the outer one's
        levels_.pop_back();
        file_->set_scope_serial(levels_.back().serial);
        return;
    }
    keep_step();
    file_->held().settle();
    lent_.kept();
    lent_.change(levels_.back().serial, lent_.last(), LentBlocks::Fate::open, LentBlocks::Fate::committed);
    leave_level();
}

void SnapshotUndo::leave_level() noexcept {
    levels_.pop_back();
    if (!levels_.empty()) {
        file_->set_scope_serial(levels_.back().serial);
        return;
    }
    segments_.clear();
    recorder_->end_scope();
    between_scopes();
}

/// A new time between scopes begins.
void SnapshotUndo::between_scopes() noexcept {
    implicit_serial_ = history_ ? lent_.begin_spare() : 0;
    file_->set_scope_serial(implicit_serial_);
}

void SnapshotUndo::cancel() noexcept {
    if (file_ == nullptr || file_->in_forked_child()) {
        return;
    }
    TAIYEN_CHECK(!levels_.empty());
    recorder_->restore();
    const Level& level = levels_.back();
    while (segments_.size() > level.first_segment) {
        recorder_->apply(segments_.back().changes, Direction::backward);
        segments_.pop_back();
    }
    lent_.change(level.serial, lent_.last(), LentBlocks::Fate::open, LentBlocks::Fate::rolled_back);
    file_->held().taken_back(level.serial);
    if (levels_.size() == 1) lent_.taken_back();
    leave_level();
    try {
        touch_again();
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): the heap says it
    }
}

void SnapshotUndo::commit_or_cancel() noexcept {
    try {
        commit();
    } catch (const std::exception& error) {
        cancel();
        try {
            const auto* const typed = dynamic_cast<const Error*>(&error);
            remember(typed != nullptr ? *typed
                                      : Error(errc::cancelled, std::string("a scope could not be kept and was taken back: ") + error.what()));
        } catch (const std::bad_alloc&) {
            // Nothing can be remembered either.
        }
    }
}

void SnapshotUndo::touch(const void* address, ByteCount bytes) {
    store::HeapFile& file = open_file();
    const std::uint64_t offset = reinterpret_cast<std::uintptr_t>(address) - file.ranges().durable;
    if (offset > file.mapped_bytes() || bytes > file.mapped_bytes() - offset) {
        throw Error(errc::invalid_argument, file.path(), "touch: the range does not lie in the heap's durable memory");
    }
    recorder_->touch({offset}, bytes);
    levels_.back().touched.add({offset}, bytes);
}

void SnapshotUndo::about_to_write(HeapOffset offset, ByteCount length) {
    if (file_ == nullptr) {
        return;
    }
    calls_.engine_writes();
    recorder_->about_to_write(offset, length);
}

void SnapshotUndo::before_save() {
    if ((!levels_.empty() || in_call()) && !planted(Bug::save_within_scope)) {
        throw Error(errc::scope_open, open_file().path(), "a scope is open on this heap; end it before saving");
    }
    collect_implicit();
    if (file_->audit() != Audit::off) {
        cut_.clear();
        recorder_->cut(cut_);
        recorder_->audit();
    }
#ifdef TAIYEN_PLANTED_BUGS
    if (planted(Bug::cursor_outside_record) && history_) {
        cursor_ = history_->cursor();
        history_->put_back(saved_cursor_);
    }
#endif
}

void SnapshotUndo::about_to_restore(PageNumber page) { recorder_->touch(offset_of(page), page_bytes); }

void SnapshotUndo::saved() noexcept {
#ifdef TAIYEN_PLANTED_BUGS
    if (planted(Bug::cursor_outside_record) && history_) {
        saved_cursor_ = cursor_;
        history_->put_back(cursor_);
    }
#endif
}

void SnapshotUndo::before_close() {
    if (!levels_.empty() || in_call()) {
        throw Error(errc::scope_open, open_file().path(), "a scope is open on this heap; end it before closing");
    }
}

void SnapshotUndo::left() noexcept {
    store::HeapFile& file = *std::exchange(file_, nullptr);
    levels_.clear();
    segments_.clear();
    history_.reset();
    file.set_scope_serial(0);
    if (file.in_forked_child()) {
        (void)recorder_.release();  // the span is not mapped here, and the handlers are the parent's
        return;
    }
    recorder_->stop();
}

bool SnapshotUndo::free_lent(void* block, std::uint32_t scope) noexcept {
    if (file_ == nullptr) {
        return true;
    }
    if (lent_came_back(scope)) {
        return true;
    }
    if (history_ && lent_.fate(scope) == LentBlocks::Fate::committed) {
        try {
            lent_.queue(block, scope);
            return true;
        } catch (const std::bad_alloc&) {
            // No room to remember it: freed now, at the price of an implicit step.
        }
    }
    return file_->deallocate_durable(block);
}

bool SnapshotUndo::lent_came_back(std::uint32_t scope) const noexcept {
    const LentBlocks::Fate fate = lent_.fate(scope);
    return fate == LentBlocks::Fate::rolled_back || fate == LentBlocks::Fate::undone;
}

/// Forgets what was stored outside scopes of a heap without a history.
void SnapshotUndo::drop_uncaptured() {
    if (!recorder_->certainly_unchanged()) {
        recorder_->accept();
    }
}

}  // namespace taiyen::undo
