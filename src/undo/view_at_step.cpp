#include "undo/view_at_step.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <taiyen/base/error.hpp>

#include "base/sentence.hpp"
#include "base/text.hpp"
#include "change/audit_shadow.hpp"
#include "change/recorder.hpp"
#include "undo/history_memory.hpp"

namespace taiyen::undo {
namespace {

using change::Direction;

class ViewSteps {
public:
    explicit ViewSteps(store::HeapFile& file) : file_(file) {
        std::unique_ptr<HistoryMemory> memory = viewed_history_memory(file);
        history_ = UndoHistory::resume(memory);
        if (!history_) return;
        history_->for_each_step([&](const StepView& step, bool undone) {
            steps_.push_back(step);
            if (!undone) ++now_;
        });
    }

    void go_to(std::uint64_t id, StepSide side) {
        const auto found = std::ranges::find(steps_, id, &StepView::id);
        if (found == steps_.end())
            throw Error(errc::not_found, file_.path(),
                        joined({"its history holds no step ", std::to_string(id), "; 'taiyen history' lists those that it has"}));
        const std::size_t target = static_cast<std::size_t>(found - steps_.begin()) + (side == StepSide::behind ? 1 : 0);
        while (now_ > target) apply(steps_[--now_], Direction::backward);
        for (; now_ < target; ++now_) apply(steps_[now_], Direction::forward);
    }

private:
    void apply(const StepView& step, Direction direction) {
        std::vector<change::ChangeSetView> segments = history_->segments(step, file_.ranges().durable_bytes);
        if (direction == Direction::backward) std::ranges::reverse(segments);
        for (const change::ChangeSetView& segment : segments) {
            if (is_call(segment))
                throw Error(
                    errc::mismatch, file_.path(),
                    joined({"the step ", std::to_string(step.id), " calls a procedure, which only the heap's program can take back or repeat"}));
            apply(segment, direction, step.id);
        }
    }

    void apply(const change::ChangeSetView& segment, Direction direction, std::uint64_t step) {
        segment.for_each(direction, [&](const change::Entry& entry) {
            prove(entry.where, entry.length);
            if (entry.kind == change::EntryKind::pages_moved) prove(entry.source, entry.length);
        });
        auto* const span = reinterpret_cast<std::byte*>(file_.ranges().durable);
        if (const auto where = change::first_conflict(span, segment, direction))
            throw Error(
                errc::history_conflict, file_.path(), where->value,
                joined({"the heap's bytes are not those that the step ", std::to_string(step), " left: something was changed that no step knows"}));
        change::write_changes(span, segment, direction);
    }

    void prove(HeapOffset where, ByteCount length) {
        if (where.value + length > file_.image().mapped()) file_.extend(round_up(where.value + length, page_bytes));
        file_.prove(where, length);
    }

    store::HeapFile& file_;
    std::optional<UndoHistory> history_;
    std::vector<StepView> steps_;  ///< oldest first
    std::size_t now_ = 0;          ///< behind so many of them
};

}  // namespace

void view_at_step(store::HeapFile& file, std::uint64_t step, StepSide side) {
    try {
        file.change_view([&](std::byte*) { ViewSteps(file).go_to(step, side); });
    } catch (const Error& error) {
        if (!error.path().empty()) throw;
        throw Error(static_cast<errc>(error.code().value()), file.path(), sentence_of(error));
    } catch (const HeapFull& full) {
        throw Error(errc::out_of_address_space, file.path(), full.what());
    }
}

}  // namespace taiyen::undo
