// The history's side of UndoService: keeping steps, applying them, procedures.

#include <algorithm>
#include <cstring>

#include <taiyen/base/check.hpp>
#include <taiyen/base/report.hpp>

#include "base/checksum.hpp"
#include "base/planted.hpp"
#include "undo/history_memory.hpp"
#include "undo/undo_service.hpp"

namespace taiyen::undo {

using change::ChangeSet;
using change::ChangeSetView;
using change::Direction;
using change::Entry;
using change::EntryKind;

namespace {

constexpr Direction opposite(Direction direction) { return direction == Direction::backward ? Direction::forward : Direction::backward; }

std::span<const std::byte> bytes_of(const auto& value) { return std::as_bytes(std::span(&value, 1)); }

/// Calls `visit(first page, count)` for each run; false stops.
template <class F>
void for_each_run(std::span<const std::byte> runs, F&& visit) {
    for (; !runs.empty(); runs = runs.subspan(sizeof(layout::CallRun))) {
        layout::CallRun run;
        std::memcpy(&run, runs.data(), sizeof run);
        visit(run.first, run.count);
    }
}

/// The pages of the set's entries, as ascending runs.
std::vector<layout::CallRun> changed_pages(const ChangeSetView& changes) {
    std::vector<layout::CallRun> runs;
    changes.for_each(Direction::forward, [&](const Entry& entry) {
        const std::uint64_t first = page_of(entry.where).value;
        const std::uint64_t end = (entry.where.value + entry.length - 1) / page_bytes + 1;
        if (!runs.empty() && first >= runs.back().first && first <= runs.back().first + runs.back().count) {
            runs.back().count = std::max(runs.back().count, end - runs.back().first);
        } else {
            runs.push_back({first, end - first});
        }
    });
    std::sort(runs.begin(), runs.end(), [](const layout::CallRun& a, const layout::CallRun& b) { return a.first < b.first; });
    std::vector<layout::CallRun> merged;
    for (const layout::CallRun& run : runs) {
        if (!merged.empty() && run.first <= merged.back().first + merged.back().count) {
            merged.back().count = std::max(merged.back().count, run.first + run.count - merged.back().first);
        } else {
            merged.push_back(run);
        }
    }
    return merged;
}

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
    if (in_call_ || !levels_.empty()) {
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
    if (levels_.empty() && !in_call_) {
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
            (void)on_history([&] { return parse_call(segment); });
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
                run_call(parse_call(segment), direction, called[done]);
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

UndoService::Call UndoService::parse_call(const ChangeSetView& segment) const {
    Entry entry;
    std::size_t entries = 0;
    segment.for_each(Direction::forward, [&](const Entry& found) {
        entry = found;
        ++entries;
    });
    layout::CallHead head{};
    const auto refuse = [] { throw Error(errc::corrupt, "a procedure's call is impossible"); };
    if (entries != 1 || entry.arguments.size() < sizeof head) {
        refuse();
    }
    std::memcpy(&head, entry.arguments.data(), sizeof head);
    const auto rest = entry.arguments.subspan(sizeof head);
    if (head.runs > rest.size() / sizeof(layout::CallRun)) {
        refuse();
    }
    Call call{entry.name, find_procedure(entry.name), rest.subspan(head.runs * sizeof(layout::CallRun)), rest.first(head.runs * sizeof(layout::CallRun)),
              head.digest_before, entry.digest};
    std::uint64_t end = 0;
    for_each_run(call.runs, [&](std::uint64_t first, std::uint64_t count) {
        const std::uint64_t pages = file_->ranges().durable_bytes / page_bytes;
        if (first < end || first > pages || count == 0 || count > pages - first) {
            refuse();
        }
        end = first + count;
    });
    if (call.procedure == nullptr) {
        throw Error(errc::missing_procedure, file_->path(), "the step calls the procedure '" + std::string(call.name) + "', which this program has not registered; nothing was changed");
    }
    if (call.procedure->signature_checksum != head.signature) {
        throw Error(errc::missing_procedure, file_->path(),
                    "the step calls a procedure '" + std::string(call.name) + "' with other types of arguments than the one this program has registered; nothing was changed");
    }
    return call;
}

std::uint64_t UndoService::digest(std::span<const std::byte> runs) const {
    std::uint64_t sum = layout::header_magic;
    const auto* const span = reinterpret_cast<const std::byte*>(file_->ranges().durable);
    for_each_run(runs, [&](std::uint64_t first, std::uint64_t count) {
        for (std::uint64_t page = first; page < first + count; ++page) {
            if (page < file_->mapped_bytes() / page_bytes) {
                sum = checksum({span + page * page_bytes, page_bytes}, mix(sum, page));
            }
        }
    });
    return sum;
}

/// The same of the bytes before the changes. Requires: the heap stands behind them.
std::uint64_t UndoService::digest_before(const ChangeSet& changes, std::span<const std::byte> runs) const {
    // Entries of one cut ascend, or nearly: each page is put together from what stands there and what stood there.
    struct Piece {
        std::uint64_t where;
        std::uint64_t length;
        std::span<const std::byte> before;
    };
    std::vector<Piece> pieces;
    changes.for_each(Direction::forward, [&](const Entry& entry) { pieces.push_back({entry.where.value, entry.length, entry.before}); });
    std::sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) { return a.where < b.where; });
    std::uint64_t sum = layout::header_magic;
    std::size_t next = 0;
    const auto* const span = reinterpret_cast<const std::byte*>(file_->ranges().durable);
    std::vector<std::byte> image(page_bytes);
    for_each_run(runs, [&](std::uint64_t first, std::uint64_t count) {
        for (std::uint64_t page = first; page < first + count; ++page) {
            const std::uint64_t begin = page * page_bytes;
            std::memcpy(image.data(), span + begin, page_bytes);
            while (next < pieces.size() && pieces[next].where + pieces[next].length <= begin) {
                ++next;
            }
            for (std::size_t i = next; i < pieces.size() && pieces[i].where < begin + page_bytes; ++i) {
                const Piece& piece = pieces[i];
                const std::uint64_t from = std::max(piece.where, begin);
                const std::uint64_t to = std::min(piece.where + piece.length, begin + page_bytes);
                if (piece.before.empty()) {
                    std::memset(image.data() + (from - begin), 0, to - from);
                } else {
                    std::memcpy(image.data() + (from - begin), piece.before.data() + (from - piece.where), to - from);
                }
            }
            sum = checksum(image, mix(sum, page));
        }
    });
    return sum;
}

/// Calls the user's function under capture.
void UndoService::run(const ErasedProcedure& procedure, std::span<const std::byte> arguments) {
    struct Running {
        UndoService& service;
        heap::HeapCore* before;
        explicit Running(UndoService& s) : service(s), before(heap::exchange_current_core(s.file_)) {
            service.in_call_ = true;
            service.engine_wrote_ = false;
        }
        ~Running() {
            service.in_call_ = false;
            heap::exchange_current_core(before);
        }
    } running(*this);
    ProcedureHeap heap(*file_);
    procedure(heap, arguments);
}

void UndoService::call(std::string_view name, const std::string& signature, std::span<const std::byte> arguments) {
    open_file();
    if (in_call_) {
        throw Error(errc::scope_open, file_->path(), "a procedure can't call another one through the scope; call its function");
    }
    const Procedure* const procedure = find_procedure(name);
    if (procedure == nullptr) {
        throw Error(errc::missing_procedure, file_->path(), "there is no procedure '" + std::string(name) + "'; register it first (register_procedure)");
    }
    if (procedure->signature != signature) {
        throw Error(errc::type_mismatch, file_->path(), "the procedure '" + std::string(name) + "' was registered with other types of arguments than it is called with");
    }
    cut_segment();
    segments_.reserve(segments_.size() + 1);
    Segment made;
    try {
        run(procedure->forward, arguments);
        recorder_->cut(made.changes);
    } catch (...) {
        recorder_->restore();
        throw;
    }
    try {
        recorder_->reserve_for(made.changes);
        if (!engine_wrote_) {
            const std::vector<layout::CallRun> runs = changed_pages(made.changes);
            const auto run_bytes = std::as_bytes(std::span(runs));
            const layout::CallHead head{procedure->signature_checksum, digest_before(made.changes, run_bytes), runs.size()};
            std::vector<std::byte> stored;
            for (const auto part : {bytes_of(head), run_bytes, arguments}) {
                stored.insert(stored.end(), part.begin(), part.end());
            }
            made.call.add_procedure(name, stored, digest(run_bytes));
            if (made.call.size() >= made.changes.size()) {
                made.call.clear();  // the bytes are the shorter story, and the surer one
            }
        }
    } catch (...) {
        recorder_->apply(made.changes, Direction::backward);
        throw;
    }
    if (!made.changes.empty()) {
        segments_.push_back(std::move(made));
    }
}

void UndoService::run_call(const Call& call, Direction direction, ChangeSet& changes) {
    const bool back = direction == Direction::backward;
    const auto text = [&](const char* what) { return "procedure '" + std::string(call.name) + "': " + what; };
    if (digest(call.runs) != (back ? call.digest_after : call.digest_before)) {
        throw_conflict(Error::no_offset, text("the pages that it changed are not as the step left them"));
    }
    recorder_->begin_scope();
    try {
        run(back ? call.procedure->inverse : call.procedure->forward, call.arguments);
        recorder_->cut(changes);
    } catch (...) {
        recorder_->restore();
        recorder_->end_scope();
        throw;
    }
    recorder_->end_scope();
    recorder_->reserve_for(changes);
    const bool same = !engine_wrote_ && digest(call.runs) == (back ? call.digest_before : call.digest_after);
    if (!same) {
        throw_conflict(Error::no_offset, text(back ? "its inverse did not restore the bytes that were there before the call" : "called again it gave other bytes than the first time"));
    }
    bool elsewhere = false;
    for (const layout::CallRun& run : changed_pages(changes)) {
        bool inside = false;
        for_each_run(call.runs, [&](std::uint64_t first, std::uint64_t count) { inside = inside || (run.first >= first && run.first + run.count <= first + count); });
        elsewhere = elsewhere || !inside;
    }
    if (elsewhere) {
        throw_conflict(Error::no_offset, text("it changed pages that it did not change the first time"));
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
