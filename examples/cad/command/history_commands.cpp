#include <algorithm>

#include "command/commands.hpp"
#include "command/description.hpp"

namespace cad::command {
namespace {

std::string named(const std::string& step) { return step.empty() ? std::string("(without a name)") : step; }

/// Throws CommandError if the file's history ended: it was damaged, or a step was too big for it.
taiyen::SnapshotHeap& heap_with_history(Workplace& place) {
    taiyen::SnapshotHeap& heap = place.open_file().heap();
    if (!heap.has_undo()) {
        const std::optional<taiyen::Error> why = heap.last_error();
        throw CommandError("the history of " + place.open_file().name() + " ended" + (why ? std::string(": ") + why->what() : std::string()));
    }
    return heap;
}

}  // namespace

void run_undo(Workplace& place, Arguments& arguments) {
    const std::size_t count = arguments.count_or(1, "how many steps");
    arguments.end();
    taiyen::SnapshotHeap& heap = heap_with_history(place);
    for (std::size_t i = 0; i < count; ++i) {
        const std::string step = named(heap.undo_name());
        if (!heap.undo()) {
            place.out << (i == 0 ? "nothing to undo\n" : "nothing more to undo\n");
            return;
        }
        place.file->changed = true;
        place.out << "undone: " << step << '\n';
    }
}

void run_redo(Workplace& place, Arguments& arguments) {
    const std::size_t count = arguments.count_or(1, "how many steps");
    arguments.end();
    taiyen::SnapshotHeap& heap = heap_with_history(place);
    for (std::size_t i = 0; i < count; ++i) {
        const std::string step = named(heap.redo_name());
        if (!heap.redo()) {
            place.out << (i == 0 ? "nothing to redo\n" : "nothing more to redo\n");
            return;
        }
        place.file->changed = true;
        place.out << "done again: " << step << '\n';
    }
}

void run_history(Workplace& place, Arguments& arguments) {
    constexpr std::size_t listed = 20;
    const std::size_t count = arguments.count_or(listed, "how many steps");
    arguments.end();
    const std::vector<taiyen::UndoStep> steps = heap_with_history(place).undo_steps();
    const auto undone = std::find_if(steps.begin(), steps.end(), [](const taiyen::UndoStep& step) { return step.undone; });
    const auto done = static_cast<std::size_t>(undone - steps.begin());
    if (steps.empty()) place.out << "no steps yet\n";
    if (done > count) place.out << "  " << counted(done - count, "older step", "older steps") << '\n';
    // Each step beside the command that leads there: 'undo 3' takes back the third last.
    for (std::size_t i = done - std::min(done, count); i < steps.size() && i < done + count; ++i) {
        const std::string way = i < done ? "undo " + std::to_string(done - i) : "redo " + std::to_string(i - done + 1);
        place.out << "  " << way << std::string(10 - std::min<std::size_t>(way.size(), 9), ' ') << named(steps[i].name) << '\n';
    }
    if (steps.size() - done > count)
        place.out << "  " << counted(steps.size() - done - count, "more that was undone", "more that were undone") << '\n';
}

std::string history_text(const taiyen::SnapshotHeap& heap) {
    std::size_t bytes = 0;
    std::size_t undone = 0;
    const std::vector<taiyen::UndoStep> steps = heap.undo_steps();
    for (const taiyen::UndoStep& step : steps) {
        bytes += step.bytes;
        undone += step.undone ? 1 : 0;
    }
    return counted(steps.size(), "step", "steps") + ", " + std::to_string(undone) + " of them undone, " + std::to_string(bytes) + " bytes";
}

}  // namespace cad::command
