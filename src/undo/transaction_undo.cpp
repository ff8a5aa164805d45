#include "undo/transaction_undo.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <type_traits>

#include <taiyen/base/check.hpp>
#include <taiyen/base/report.hpp>

#include "base/planted.hpp"
#include "base/sentence.hpp"
#include "change/audit_shadow.hpp"
#include "undo/history_memory.hpp"

namespace taiyen::undo {

using change::ChangeSet;
using change::ChangeSetView;
using change::Direction;
using change::Edits;
using change::Entry;

namespace {

errc code_of(const Error& error) { return static_cast<errc>(error.code().value()); }

}  // namespace

std::shared_ptr<TransactionUndo> TransactionUndo::of(store::HeapFile& file, Edits& edits) {
    static std::mutex making;  // two threads may ask for the first time
    const std::lock_guard lock(making);
    if (auto found = std::dynamic_pointer_cast<TransactionUndo>(edits.keeper())) return found;
    std::shared_ptr<TransactionUndo> made(new TransactionUndo(file, edits.shared()));
    edits.set_keeper(made);
    return made;
}

store::HeapFile& TransactionUndo::open_file() const {
    store::HeapFile* const found = file();
    if (found == nullptr) throw Error(errc::closed, "the heap was closed; open it again");
    return *found;
}

void TransactionUndo::remember(const std::exception& error) noexcept {
    const std::lock_guard lock(error_mutex_);
    try {
        const auto* const typed = dynamic_cast<const Error*>(&error);
        last_error_.emplace(typed != nullptr ? *typed
                                             : Error(errc::cancelled, std::string("a scope could not be kept and was taken back: ") + error.what()));
    } catch (...) {
        last_error_.reset();
    }
}

std::optional<Error> TransactionUndo::last_error() const {
    const std::lock_guard lock(error_mutex_);
    return last_error_;
}

// Scopes.

void TransactionUndo::begin(std::string_view name) {
    const store::HeapFile& file = open_file();
    if (name.size() > layout::name_bytes_max) throw Error(errc::invalid_argument, file.path(), "the name of a step has at most 1,024 bytes");
    std::string kept_name(name);
    edits_->begin(Edits::Purpose::edit);
    const std::size_t depth = edits_->depth();
    if (name_.empty()) {
        name_.swap(kept_name);
        name_depth_ = depth;
    }
    if (scope_depth_ == 0) scope_depth_ = depth;
}

void TransactionUndo::inner_ended(std::size_t depth, bool kept) noexcept {
    if (name_depth_ > depth) {
        if (!kept) name_.clear();
        name_depth_ = kept ? depth : 0;
    }
    if (scope_depth_ > depth) scope_depth_ = kept ? depth : 0;
}

void TransactionUndo::commit_or_cancel() noexcept {
    try {
        edits_->commit(Edits::Wait::soon);
    } catch (const std::exception& error) {
        remember(error);
    }
}

void TransactionUndo::keep(std::uint32_t first, std::uint32_t last, std::span<const ChangeSetView> parts, ChangeSet& annex) {
    if (history_ && !manages_ && (scope_depth_ != 0 || !parts.empty())) keep_step(first, last, parts);
    const auto log = [&](HistoryMemory& memory) { static_cast<LoggedMemory&>(memory).add_changes(annex); };
    if (!persistent_ || (moved_ && planted(Bug::undo_moves_cursor_unlogged))) return;
    if (history_) log(history_->memory());
    if (ending_) log(ending_->memory());
    if (given_up_) log(*given_up_);
}

void TransactionUndo::keep_step(std::uint32_t first, std::uint32_t last, std::span<const ChangeSetView> parts) {
    std::vector<Piece> pieces;
    pieces.reserve(parts.size());
    bool previous_is_call = true;
    for (const ChangeSetView& part : parts) add_piece(pieces, part, previous_is_call);
    const bool circular = history_->circular();
    try {
        adds_step_ = true;
        if (!history_->append({name_, 0, life_, first, last, pieces})) give_up(Error(errc::history_full, open_file().path(), full_text(circular)));
    } catch (const Error& error) {
        if (code_of(error) != errc::corrupt) throw;
        give_up(Error(errc::corrupt, open_file().path(), error.offset(),
                      "the undo history could not take a step and ended; the heap goes on: " + sentence_of(error)));
    }
}

/// The history is over with this transaction; the heap goes on.
void TransactionUndo::give_up(std::optional<Error> reason) {
    UndoHistory::erase(history_->memory());
    ending_ = std::move(history_);
    history_.reset();
    why_ended_ = std::move(reason);
}

void TransactionUndo::ended(bool kept) noexcept {
    const auto settle = [kept](HistoryMemory& memory) {
        auto& logged = static_cast<LoggedMemory&>(memory);
        kept ? logged.forget() : logged.take_back();
    };
    if (history_) settle(history_->memory());
    if (ending_) settle(ending_->memory());
    if (given_up_) settle(*given_up_);
    if (!kept) {
        if (ending_) history_ = std::move(ending_);
        if (begun_) history_.reset();
    } else {
        if (adds_step_) edits_->loans_settled();
        if (moved_ && moved_->first <= moved_->last)
            moved_->direction == Direction::backward ? edits_->loans_undone(moved_->first, moved_->last)
                                                     : edits_->loans_redone(moved_->first, moved_->last);
        if (why_ended_) {
            remember(*why_ended_);
            report({code_of(*why_ended_), nullptr, why_ended_->what()});
        }
    }
    ending_.reset();
    given_up_.reset();
    why_ended_.reset();
    moved_.reset();
    manages_ = begun_ = adds_step_ = false;
    scope_depth_ = name_depth_ = 0;
    name_.clear();
    live_.store(history_.has_value(), std::memory_order_release);
}

void TransactionUndo::left() noexcept {
    file_.store(nullptr, std::memory_order_release);
    live_.store(false, std::memory_order_release);
    history_.reset();
}

// History.

template <class F>
auto TransactionUndo::manage(const char* what, F&& action) {
    const store::HeapFile& file = open_file();
    file.check_usable(false);
    if (edits_->depth() != 0)
        throw Error(errc::scope_open, file.path(), std::string(what) + ": a scope or a transaction is open on this heap; end it first");
    const auto transact = [&](auto&& body) {
        edits_->begin(Edits::Purpose::history);
        manages_ = true;
        try {
            if constexpr (std::is_void_v<decltype(body())>)
                body();
            else
                return body();
        } catch (...) {
            edits_->rollback();
            throw;
        }
    };
    try {
        if constexpr (std::is_void_v<decltype(action())>) {
            transact(action);
            edits_->commit(Edits::Wait::durable);
        } else {
            auto result = transact(action);
            edits_->commit(Edits::Wait::durable);
            return result;
        }
    } catch (const Error& error) {
        if (code_of(error) != errc::corrupt || file.condition().is_poisoned()) throw;
        const Error told(errc::corrupt, file.path(), error.offset(),
                         sentence_of(error) + "; the history was given up, the heap itself is not concerned: attach a new history to go on");
        transact([&] {
            if (history_) give_up(told);
        });
        edits_->commit(Edits::Wait::durable);
        throw told;
    }
}

template <class F>
auto TransactionUndo::look(F&& action) const {
    open_file();
    struct Reading {
        Edits& edits;
        bool locked;
        explicit Reading(Edits& of) : edits(of), locked(of.lock_shared()) {}
        ~Reading() {
            if (locked) edits.unlock_shared();
        }
    } const reading(*edits_);
    try {
        return action();
    } catch (const Error& error) {
        if (code_of(error) != errc::corrupt) throw;
        throw Error(errc::corrupt, open_file().path(), error.offset(),
                    sentence_of(error) + "; the heap itself is not concerned: end the history and attach a new one to go on");
    }
}

std::unique_ptr<HistoryMemory> TransactionUndo::make_memory(const UndoOptions& options) {
    return std::make_unique<LoggedMemory>(options.persistent ? annex_history_memory(open_file(), options.bytes)
                                                             : anonymous_history_memory(options.bytes));
}

std::optional<Error> TransactionUndo::begin_history(const UndoOptions& options) {
    auto memory = make_memory(options);
    persistent_ = options.persistent;
    const auto base = memory.get();
    try {
        if (persistent_ && !edits_->annex_fits() && memory->bytes() >= layout::first_step)
            std::memset(base->base(), 0, layout::first_step);  // so the log has it already: transactions didn't go on with what lies there
        history_ = UndoHistory::resume(memory);
        if (history_) (void)history_->cursor_id();
    } catch (const Error& error) {
        UndoHistory::erase(*base);
        if (history_) {
            ending_ = std::move(history_);
            history_.reset();
        } else {
            given_up_ = std::move(memory);
        }
        return Error(code_of(error), open_file().path(), error.offset(), sentence_of(error) + "; it was given up, attach again to begin a new one");
    }
    begun_ = true;
    if (!history_) history_ = UndoHistory::create(std::move(memory), options.bytes, options.circular);
    return std::nullopt;
}

void TransactionUndo::attach(const UndoOptions& given) {
    const UndoOptions options = with_defaults(given);
    require_room(open_file(), "attach_undo", options.bytes);
    const std::optional<Error> damage =
        manage("attach_undo", [&]() -> std::optional<Error> { return history_ ? std::nullopt : begin_history(options); });
    if (damage) throw *damage;
    tell_ignored(open_file(), given);
}

void TransactionUndo::end_history() {
    manage("end_undo", [&] {
        if (history_) give_up(std::nullopt);
    });
}

bool TransactionUndo::can_move(Direction direction) {
    return look([&] { return history_ && (direction == Direction::backward ? history_->undoable() : history_->redoable()) != 0; });
}

std::string TransactionUndo::name_of_next(Direction direction) {
    return look([&] {
        const std::optional<StepView> step = !history_ ? std::nullopt : direction == Direction::backward ? history_->to_undo() : history_->to_redo();
        return step ? std::string(step->name) : std::string();
    });
}

std::vector<UndoStep> TransactionUndo::steps() {
    return look([&] { return history_ ? history_->steps() : std::vector<UndoStep>{}; });
}

bool TransactionUndo::move(Direction direction) {
    const bool back = direction == Direction::backward;
    return manage(back ? "undo" : "redo", [&] {
        const std::optional<StepView> step = !history_ ? std::nullopt : back ? history_->to_undo() : history_->to_redo();
        if (!step) return false;
        back ? history_->step_back(*step) : history_->step_forward(*step);
        apply_step(*step, direction);
        if (step->life == life_)
            moved_ = Moved{step->first_serial, step->last_serial, direction};
        else
            moved_ = Moved{1, 0, direction};  // lent by nobody who is here
        return true;
    });
}

void TransactionUndo::apply_step(const StepView& step, Direction direction) {
    store::HeapFile& file = open_file();
    std::vector<ChangeSetView> segments = history_->segments(step, file.ranges().durable_bytes);
    if (direction == Direction::backward) std::reverse(segments.begin(), segments.end());
    for (const ChangeSetView& segment : segments) {
        edits_->end_part();
        if (is_call(segment)) {
            edits_->repeat(call_entry(segment), direction);
            continue;
        }
        ensure_mapped(file, segment);
        if (const auto where = edits_->recorder().conflict(segment, direction)) throw_conflict(file, where->value, step);
        write(segment, direction);
    }
}

void TransactionUndo::write(const ChangeSetView& changes, Direction direction) {
    store::HeapFile& file = open_file();
    auto* const span = reinterpret_cast<std::byte*>(file.ranges().durable);
    changes.for_each(direction, [&](const Entry& entry) {
        edits_->touch(span + entry.where.value, entry.length);
        change::write_entry(span, entry, direction);
        file.engine().forget(entry.where, entry.length);
    });
}

void TransactionUndo::squash_now(std::size_t count, std::string_view name) {
    const store::HeapFile& file = open_file();
    require_squashable(file, count, name);
    if (count > 1 && !history_->squash(count, name))
        throw Error(errc::history_full, file.path(), "squash_undo: the history has no room for the steps in one piece; nothing was changed");
}

void TransactionUndo::squash(std::size_t count, std::string_view name) {
    manage("squash_undo", [&] { squash_now(count, name); });
}

void TransactionUndo::squash_since(UndoMark mark, std::string_view name) {
    manage("squash_undo", [&] {
        const std::optional<std::size_t> count = steps_since(mark);
        if (!count) throw_not_before(open_file());
        squash_now(*count, name);
    });
}

void TransactionUndo::resize(std::size_t bytes) {
    manage("resize_undo", [&] { resize_history(open_file(), bytes); });
}

UndoMark TransactionUndo::mark() {
    return look([&] { return UndoMark{history_ ? history_->cursor_id() : 0}; });
}

bool TransactionUndo::go_to(UndoMark mark) {
    const auto stands_at = [&] { return look([&] { return has_place(mark) ? std::optional(history_->cursor_id()) : std::nullopt; }); };
    if (edits_->depth() != 0) throw Error(errc::scope_open, open_file().path(), "go_to: a scope or a transaction is open on this heap; end it first");
    std::exception_ptr unconfirmed;
    bool is_there = false;
    for (;;) {
        const std::optional<std::uint64_t> now = stands_at();
        is_there = now && *now == mark.id;
        if (!now || is_there) break;
        try {
            if (!move(*now > mark.id ? Direction::backward : Direction::forward)) break;
        } catch (const Error& error) {
            if (code_of(error) != errc::unconfirmed) throw;
            unconfirmed = std::current_exception();  // the step has happened
        }
    }
    if (unconfirmed) std::rethrow_exception(unconfirmed);
    return is_there;
}

}  // namespace taiyen::undo
