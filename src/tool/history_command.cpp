#include <taiyen/inspect/history_report.hpp>

#include <algorithm>
#include <span>

#include "base/json.hpp"
#include "tool/command.hpp"
#include "tool/console.hpp"
#include "tool/fields.hpp"

namespace taiyen::tool {
namespace {

/// What each of the newest steps changed; empty: that isn't wanted.
using Changes = std::vector<Fields>;

Changes changes_of(const Given& given, std::span<const StoredStep> steps) {
    Changes changes;
    const auto wanted = fields_wanted(given);
    if (!wanted) return changes;
    ProgressLine line("comparing");
    const Progress progress = line.progress();
    for (const StoredStep& stored : steps) {
        changes.push_back(fields_if_known(
            *wanted, [&](const auto& take) { return for_each_difference_of_step(given.files[0], stored.step.id, take, given.heap_options()); }));
        if (progress) progress(changes.size(), steps.size());
    }
    return changes;
}

JsonWriter json_of(const Given& given, const HistoryReport& report, const Changes& changes) {
    JsonWriter json;
    json.begin_object()
        .member("file", given.files[0])
        .member("attached", report.attached)
        .member("persistent", report.attached)
        .member("circular", report.circular)
        .member("capacity_bytes", report.capacity_bytes)
        .member("file_bytes", report.file_bytes)
        .member("used_bytes", report.used_bytes)
        .member("undoable", report.undoable)
        .member("redoable", report.redoable)
        .member("mark", report.mark.id)
        .member("steps_made", report.steps_made)
        .member("ok", report.ok());
    if (!report.ok()) json.member("damage", report.damage).member("damaged_at", report.damaged_at);
    json.key("steps").begin_array();
    for (std::size_t i = 0; i != report.steps.size(); ++i) {
        const StoredStep& stored = report.steps[i];
        const std::size_t newer = report.steps.size() - i;
        json.begin_object()
            .member("id", stored.step.id)
            .member("name", stored.step.name)
            .member("bytes", stored.step.bytes)
            .member("ranges", stored.ranges)
            .member("changed_bytes", stored.changed_bytes)
            .member("calls", stored.calls)
            .member("implicit", stored.step.implicit)
            .member("undone", stored.step.undone);
        if (newer <= changes.size()) add_fields(json, changes[changes.size() - newer]);
        json.end_object();
    }
    json.end_array().end_object();
    return json;
}

std::string name_of(const UndoStep& step) {
    if (!step.name.empty()) return styled(Style::bold, visible(step.name));
    return styled(Style::faint, step.implicit ? "(stored outside scopes)" : "(unnamed)");
}

const char* place_of(const StoredStep& stored, const HistoryReport& report) {
    return stored.step.undone ? "undone" : stored.step.id == report.mark.id ? "now" : "";
}

void print_changes(std::span<const StoredStep> steps, const Changes& changes, const HistoryReport& report) {
    for (std::size_t i = 0; i != steps.size(); ++i) {
        const std::string place = place_of(steps[i], report);
        print("\n" + styled(Style::bold, "step " + count_text(steps[i].step.id)) + ", " + name_of(steps[i].step) +
              (place.empty() ? "" : ", " + place) + "\n");
        print_fields(changes[i]);
    }
}

void print_text(const HistoryReport& report, std::size_t listed, const Changes& changes) {
    if (!report.attached) {
        print("this heap has no undo history in its files\n");
        return;
    }
    if (report.capacity_bytes != 0) {
        print_fields({
            {"history", bytes_text(report.used_bytes) + " of at most " + bytes_text(report.capacity_bytes) + ", " + bytes_text(report.file_bytes) +
                            " in the file; " + (report.circular ? "full: the oldest steps fall off" : "full: it ends")},
            {"steps", count_text(report.undoable) + " to undo, " + count_text(report.redoable) + " to redo; " + count_text(report.steps_made) +
                          " were made in all"},
            {"stands", report.mark.id == 0 ? "before the first step" : "behind step " + count_text(report.mark.id)},
        });
    }
    const std::span<const StoredStep> steps = std::span(report.steps).last(listed);
    if (!changes.empty()) {
        print_changes(steps, changes, report);
    } else if (listed != 0) {
        print("\n");
        print_table(steps, {{"", Align::left, [&](const StoredStep& stored) { return std::string(place_of(stored, report)); }},
                            {"STEP", Align::right, [](const StoredStep& stored) { return count_text(stored.step.id); }},
                            {"NAME", Align::left, [](const StoredStep& stored) { return name_of(stored.step); }},
                            {"BYTES", Align::right, [](const StoredStep& stored) { return count_text(stored.step.bytes); }},
                            {"RANGES", Align::right, [](const StoredStep& stored) { return count_text(stored.ranges); }},
                            {"CHANGED", Align::right, [](const StoredStep& stored) { return bytes_text(stored.changed_bytes); }},
                            {"CALLS", Align::right, [](const StoredStep& stored) { return count_text(stored.calls); }}});
    }
    if (listed != 0) print_left_out(listed, report.steps.size(), "older ones");
    if (!report.ok()) {
        print(styled(Style::bad, "damaged") + " at byte " + std::to_string(report.damaged_at) + " of the history: " + visible(report.damage) +
              "; the heap itself is not concerned\n");
    }
}

Exit run_history(const Given& given) {
    const std::size_t listed_max = given.number("list", 50);
    HistoryReport report;
    {
        ProgressLine line("reading the history");
        report = look_at_history(given.files[0], given.heap_options(), line.progress());
    }
    const std::size_t listed = std::min(report.steps.size(), listed_max);
    const Changes changes = changes_of(given, std::span(report.steps).last(listed));
    if (given.has("json"))
        print(json_of(given, report, changes));
    else
        print_text(report, listed, changes);
    return report.ok() && std::ranges::none_of(changes, &Fields::is_damaged) ? Exit::ok : Exit::found;
}

}  // namespace

Command history_command() {
    return {"history",
            "The steps of the undo history",
            "Lists the steps of the undo history that lies in the heap's files, oldest first, and where the history stands: undo takes back the step "
            "marked 'now', redo does the first "
            "one marked 'undone' again. A history that is not persistent lies in no file. Opens the heap for reading; "
            "a program that changes the heap without attaching its history ends that, this command does not.",
            {"FILE"},
            {fields_option("tell which fields, elements and keys each step changed, so many of them (0: all), by the shapes of the types; for each "
                           "of them the heap is compared with itself"),
             {"list", "N", "how many steps are listed, the newest ones (50)"}},
            "the history is damaged, which doesn't concern the heap; with --fields also if the heap is",
            run_history};
}

}  // namespace taiyen::tool
