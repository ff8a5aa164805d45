// Scopes and the heap's life; the history's side is in undo_steps.cpp.

#include "undo/snapshot_undo.hpp"

#include <algorithm>

#include <taiyen/base/check.hpp>
#include <taiyen/base/report.hpp>

#include "base/planted.hpp"

namespace taiyen::undo {

using change::ChangeSet;
using change::Direction;

SnapshotUndo::SnapshotUndo(store::HeapFile& file)
    : file_(&file), scopes_(file, make_recorder(file.capture(), file, file.image().mapped(), file.audit())) {}

std::shared_ptr<SnapshotUndo> SnapshotUndo::join(store::HeapFile& file) {
    if (file.kind() == HeapKind::transactional)
        throw Error(errc::invalid_argument, file.path(), "only transactions change this heap, and nobody runs them");
    std::shared_ptr<SnapshotUndo> made(new SnapshotUndo(file));
    file.join(made);
    try {
        made->scopes_.recorder().start();
    } catch (...) {
        file.leave();
        throw;
    }
    return made;
}

store::HeapFile& SnapshotUndo::open_file() const {
    if (file_ == nullptr) throw Error(errc::closed, "the heap was closed; open it again");
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
    if (in_call()) throw Error(errc::scope_open, file.path(), "a procedure can't open a scope: it is a step, or part of one, itself");
    if (name.size() > layout::name_bytes_max) throw Error(errc::invalid_argument, file.path(), "the name of a step has at most 1,024 bytes");
    if (scopes_.depth() != 0) {
        if (owner_ != this_thread()) throw Error(errc::scope_open, file.path(), "another thread has a scope open on this heap; end it first");
        begin_inner();
    } else {
        std::string kept_name(name);
        collect_implicit();
        scopes_.begin(begin_loan(), change::OpenScopes::Kind::edit);
        name_.swap(kept_name);
        owner_ = this_thread();
        loans_.free_waiting([&](void* block) { file.deallocate_durable(block); });
    }
    file.set_scope_serial(scopes_.number());
}

void SnapshotUndo::begin_inner() {
    try {
        scopes_.begin_inner(loans_.begin_inner(scopes_.depth() + 1));
    } catch (const std::exception& error) {
        poison_if_doomed(error.what());
        throw;
    }
}

void SnapshotUndo::poison_if_doomed(const char* why) noexcept {
    if (scopes_.is_doomed()) file_->condition().poison("capturing again what a scope has touched", why);
}

/// The time between scopes is over. There is room for the one that follows.
std::uint32_t SnapshotUndo::begin_loan() {
    loans_.end(true);
    return loans_.begin(1);
}

void SnapshotUndo::commit() {
    if (open_file().in_forked_child()) file_->check_usable(false);  // neither span nor history are mapped here
    TAIYEN_CHECK(scopes_.depth() != 0);
    if (scopes_.depth() > 1) {  // part of the outer scope from here on; its serials end with the outer one's
        scopes_.leave_inner();
        file_->set_scope_serial(scopes_.number());
        return;
    }
    keep_step();
    file_->held().settle();
    end_outermost(true);
}

void SnapshotUndo::end_outermost(bool kept) noexcept {
    loans_.end(kept);
    scopes_.end();
    scopes_.shrink(kept_bytes);
    between_scopes();
}

/// A new time between scopes begins.
void SnapshotUndo::between_scopes() noexcept {
    loans_.end(true);
    implicit_number_ = history_ ? loans_.try_begin() : 0;
    file_->set_scope_serial(implicit_number_);
}

void SnapshotUndo::cancel() noexcept {
    if (file_ == nullptr || file_->in_forked_child()) return;
    TAIYEN_CHECK(scopes_.depth() != 0);
    const bool is_outermost = scopes_.depth() == 1;
    const std::uint32_t number = scopes_.number();
    try {
        is_outermost ? scopes_.roll_back() : scopes_.roll_back_inner();
    } catch (const std::exception& error) {
        file_->condition().poison("taking back a scope", error.what());
    }
    file_->held().taken_back(number);
    if (!is_outermost) {
        loans_.inner_rolled_back(number);
        file_->set_scope_serial(scopes_.number());
        return poison_if_doomed("the system refuses to open its pages (mprotect(2))");
    }
    file_->type_notes().wait_again();
    end_outermost(false);
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
    if (offset > file.image().mapped() || bytes > file.image().mapped() - offset)
        throw Error(errc::invalid_argument, file.path(), "touch: the range does not lie in the heap's durable memory");
    scopes_.touch({offset}, bytes);
}

void SnapshotUndo::about_to_write(HeapOffset offset, ByteCount length) {
    if (file_ == nullptr) return;
    scopes_.about_to_write(offset, length);
}

void SnapshotUndo::before_save() {
    if ((scopes_.depth() != 0 || in_call()) && !planted(Bug::save_within_scope))
        throw Error(errc::scope_open, open_file().path(), "a scope is open on this heap; end it before saving");
    collect_implicit();
    if (file_->audit() != Audit::off) {
        cut_.clear();
        scopes_.recorder().cut(cut_);
        scopes_.recorder().audit();
    }
#ifdef TAIYEN_PLANTED_BUGS
    if (planted(Bug::cursor_outside_record) && history_) {
        cursor_ = history_->cursor();
        history_->put_back(saved_cursor_);
    }
#endif
}

void SnapshotUndo::about_to_restore(PageNumber page) { scopes_.recorder().touch(offset_of(page), page_bytes); }

void SnapshotUndo::saved() noexcept {
#ifdef TAIYEN_PLANTED_BUGS
    if (planted(Bug::cursor_outside_record) && history_) {
        saved_cursor_ = cursor_;
        history_->put_back(cursor_);
    }
#endif
}

void SnapshotUndo::before_close() {
    if (scopes_.depth() != 0 || in_call()) throw Error(errc::scope_open, open_file().path(), "a scope is open on this heap; end it before closing");
}

void SnapshotUndo::left() noexcept {
    store::HeapFile& file = *std::exchange(file_, nullptr);
    history_.reset();
    file.set_scope_serial(0);
    if (file.in_forked_child()) {
        (void)scopes_.set_recorder(nullptr).release();  // the span is not mapped here, and the handlers are the parent's
        return;
    }
    if (scopes_.depth() != 0) scopes_.end();
    scopes_.recorder().stop();
}

bool SnapshotUndo::free_lent(void* block, std::uint32_t scope) noexcept {
    if (file_ == nullptr) return true;
    if (lent_came_back(scope)) return true;
    if (history_ && loans_.fate(scope) == change::Loans::Fate::committed) {
        try {
            loans_.wait(block, scope);
            return true;
        } catch (const std::bad_alloc&) {
            // No room to remember it: freed now, at the price of an implicit step.
        }
    }
    return file_->deallocate_durable(block);
}

bool SnapshotUndo::lent_came_back(std::uint32_t scope) const noexcept { return loans_.fate(scope) == change::Loans::Fate::rolled_back; }

/// Forgets what was stored outside scopes of a heap without a history.
void SnapshotUndo::drop_uncaptured() {
    if (!scopes_.recorder().certainly_unchanged()) scopes_.recorder().accept();
}

}  // namespace taiyen::undo
