// A look at all of a history that nobody uses: what undo and redo prove when they come to a step, proven for all steps at once, and what only all of them together can show.

#include <algorithm>

#include <taiyen/base/error.hpp>

#include "base/sentence.hpp"
#include "change/procedure_calls.hpp"
#include "undo/history.hpp"

namespace taiyen::undo {
namespace {

bool name_is_padded_with_zeros(const StepView& step) {
    const auto* const begin = reinterpret_cast<const std::byte*>(step.name.data()) + step.name.size();
    return std::all_of(begin, step.body.data(), [](std::byte byte) { return byte == std::byte{0}; });
}

/// Null: the segment is what a step may hold.
const char* fault_of(const change::ChangeSetView& segment, ByteCount heap_capacity) {
    std::uint64_t entries = 0;
    bool has_call = false;
    bool calls_are_sound = true;
    segment.for_each(change::Direction::forward, [&](const change::Entry& entry) {
        ++entries;
        if (entry.kind == change::EntryKind::procedure) {
            has_call = true;
            if (!change::is_call_sound(entry, heap_capacity)) calls_are_sound = false;
        }
    });
    return !calls_are_sound          ? "a step holds a procedure's call that can't be one"
           : has_call && entries > 1 ? "a procedure's call is not alone in its segment"
                                     : nullptr;
}

}  // namespace

void UndoHistory::check(ByteCount heap_capacity, HistoryCheck& found) const {
    const layout::HistoryHeader& now = header();
    const auto tell = [&](std::uint64_t offset, std::string what) {
        if (found.faults.size() < HistoryCheck::faults_max) found.faults.push_back({offset, std::move(what)});
    };
    const auto expect = [&](bool right, std::uint64_t offset, const char* what) {
        if (!right) tell(offset, contradiction(what));
        return right;
    };
    const std::uint64_t total = now.undoable + now.redoable;
    bool wrapped = false;
    StepView step;
    for (std::uint64_t i = 0; i < total; ++i) {
        StepView next;
        try {
            next = step_at(i == 0 ? now.oldest : offset_behind(now, step));
        } catch (const Error& error) {
            tell(error.offset(), sentence_of(error));
            return;  // nothing leads on from here
        }
        wrapped = wrapped || (i != 0 && next.offset < step.offset);
        // Numbers that don't rise, or a step over the oldest one: the walk could go round and round.
        if (i != 0 && !expect(next.id > step.id, next.offset, "steps don't follow each other")) return;
        if (wrapped && !expect(next.end() <= now.oldest, next.offset, "a step lies over the oldest one")) return;
        ++found.steps;
        expect(i == 0 || next.previous == step.offset, next.offset, "a step names another one as the step before it");
        expect(name_is_padded_with_zeros(next), next.offset, "behind a step's name lie bytes that nobody wrote");
        try {
            for_each_segment(next, heap_capacity, [&](const change::ChangeSetView& segment) {
                const char* const fault = fault_of(segment, heap_capacity);
                if (fault != nullptr) tell(next.offset, contradiction(fault));
            });
        } catch (const Error& error) {
            tell(error.offset(), sentence_of(error));
        }
        step = next;
        if (i + 1 == now.undoable) expect(step.offset == now.before, 0, "its header counts other steps to undo than there are before the cursor");
        if (i == now.undoable) expect(step.offset == now.behind, 0, "its header counts other steps to undo than there are before the step to redo");
    }
    expect(step.offset == now.newest, 0, "its header names another step as the newest than the last one");
    expect(wrapped == (now.wrap != 0), 0, "its header says otherwise than the steps where the log goes on at the front");
}

HistoryCheck check_history(std::unique_ptr<HistoryMemory> memory, ByteCount heap_capacity) {
    HistoryCheck found;
    try {
        const std::optional<UndoHistory> history = UndoHistory::resume(memory);
        found.attached = history.has_value();
        if (history) history->check(heap_capacity, found);
    } catch (const Error& error) {  // of the header
        found.attached = true;
        found.other_version = error.code() == errc::unsupported_version;
        found.faults.push_back({error.offset(), sentence_of(error)});
    }
    return found;
}

}  // namespace taiyen::undo
