#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <functional>
#include <sstream>
#include <stdexcept>
#include <string>

#include "checksum.hpp"
#include "command/commands.hpp"
#include "command/random_commands.hpp"
#include "demo/console.hpp"
#include "demo/process.hpp"
#include "demo/stages.hpp"
#include "picture.hpp"
#include "render_svg.hpp"

namespace cad::demo {
namespace {

namespace fs = std::filesystem;
using command::Workplace;

constexpr int edits = 100;
constexpr int undone_at_once = 50;
constexpr int undone_later = 20;
constexpr int redone_later = 35;
constexpr int left = edits - undone_at_once - undone_later;  ///< steps that are done when nothing is undone any more

std::string state_key(const char* what, int steps_done) { return std::string(what) + "_" + std::to_string(steps_done); }

/// The sheet: a frame of the library with room for a plan.
constexpr const char* frame = "misc/a3";
constexpr const char* sheet = "plans/garden";
constexpr Box room_for_plan{{60, 95}, {370, 265}};

/// A number over everything the sheet says, and how often it was edited.
std::uint64_t state_of(Workplace& place) { return checksum(place.drawing_in_use, place.drawing()) + place.file->document().revision; }

std::string svg_of(Workplace& place) {
    const StrokeFont font(fs::path(font_folder) / "unicode.lff");
    PictureOptions options;
    options.font = &font;
    std::ostringstream out;
    write_svg(picture_of(place.drawing(), place.drawing_in_use, options), out);
    return out.str();
}

fs::path svg_file(const Setting& setting, const char* when) {
    std::string name = sheet;
    std::replace(name.begin(), name.end(), '/', '-');
    return setting.out / (name + "-" + when + ".svg");
}

void write_text(const fs::path& file, const std::string& text) {
    std::ofstream out(file);
    out << text;
    if (!out.flush()) throw std::runtime_error(file.string() + ": cannot be written");
}

/// An open file with the sheet in use.
void open_sheet(Workplace& place, const Setting& setting) {
    command::execute(place, "open " + command::as_typed(setting.heap_file().string()));
    if (!place.file->document().drawings.contains(sheet)) {
        const fs::path file = setting.part_folder / (std::string(frame) + ".dxf");
        command::execute(place, "import " + command::as_typed(file.string()) + " " + sheet);
    }
    command::execute(place, std::string("use ") + sheet);
}

/// Walks through the history one step at a time, from `done` steps to `wanted`, and tells each state; returns the median time of a step.
double walk(Workplace& place, int done, int wanted) {
    std::vector<double> times;
    taiyen::SnapshotHeap& heap = place.file->heap();
    while (done != wanted) {
        const bool back = wanted < done;
        const Clock::time_point start = Clock::now();
        const bool walked = back ? heap.undo() : heap.redo();
        times.push_back(microseconds_since(start));
        if (!walked) throw std::runtime_error("the history ends early");
        done += back ? -1 : 1;
        report(state_key(back ? "undone" : "redone", done), state_of(place));
    }
    return median(times);
}

void tell_history(const taiyen::SnapshotHeap& heap) {
    std::uint64_t bytes = 0;
    std::vector<double> sizes;
    const std::vector<taiyen::UndoStep> steps = heap.undo_steps();
    for (const taiyen::UndoStep& step : steps) {
        bytes += step.bytes;
        sizes.push_back(static_cast<double>(step.bytes));
    }
    report("steps", std::uint64_t{steps.size()});
    report("steps_undone", static_cast<std::uint64_t>(std::count_if(steps.begin(), steps.end(), [](const auto& step) { return step.undone; })));
    report("bytes", bytes);
    report("bytes_of_step", median(sizes));
}

/// A child of the demo and what it reported.
struct Told {
    pid_t pid = 0;
    bool ended_well = false;
    std::map<std::string, std::string> report;

    Told(const char* task, const Setting& setting) {
        Child child({task, "--library", setting.part_folder.string(), "--out", setting.out.string(), "--seed", std::to_string(setting.seed)});
        pid = child.pid();
        report = parsed_report(child.read_all());
        const int status = child.wait();
        ended_well = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    }
    std::string text(const std::string& key) const { return report.contains(key) ? report.at(key) : std::string("?"); }
    double figure(const std::string& key) const { return report.contains(key) ? std::stod(report.at(key)) : 0; }
    std::string time(const char* key) const { return time_text(figure(key)); }
};

/// How many states that `walked` came by are those that `edited` kept when it made them.
int states_that_agree(const Told& edited, const Told& walked, const char* way, int first, int last) {
    int agree = 0;
    for (int done = first; done <= last; ++done) {
        const std::string kept = edited.text(state_key("made", done));
        agree += kept != "?" && kept == walked.text(state_key(way, done)) ? 1 : 0;
    }
    return agree;
}

}  // namespace

int edit_and_undo(const Setting& setting) {
    std::ostringstream silence;
    Workplace place(silence);
    open_sheet(place, setting);
    command::Dice dice(setting.seed);
    const command::Playground playground{room_for_plan, place.drawing().last_id};
    std::vector<double> times;
    report(state_key("made", 0), state_of(place));
    for (int done = 1; done <= edits; ++done) {
        const std::string line = command::random_edit(place.drawing(), playground, dice);
        const Clock::time_point start = Clock::now();
        command::execute(place, line);
        times.push_back(microseconds_since(start));
        report(state_key("made", done), state_of(place));
        if (done == left) report("picture", std::uint64_t{std::hash<std::string>()(svg_of(place))});
    }
    write_text(svg_file(setting, "edited"), svg_of(place));
    report("command_time", median(times));
    report("undo_time", walk(place, edits, edits - undone_at_once));
    const Clock::time_point saving = Clock::now();
    command::execute(place, "save");
    report("save_time", microseconds_since(saving));
    tell_history(place.file->heap());
    report("entities", std::uint64_t{place.drawing().entities.size()});
    return 0;
}

int reopen_and_undo(const Setting& setting) {
    std::ostringstream silence;
    Workplace place(silence);
    open_sheet(place, setting);
    taiyen::SnapshotHeap& heap = place.file->heap();
    tell_history(heap);
    std::printf("next %s\n", heap.undo_name().c_str());
    report("undo_time", walk(place, edits - undone_at_once, left));
    const std::string picture = svg_of(place);
    report("picture", std::uint64_t{std::hash<std::string>()(picture)});
    write_text(svg_file(setting, "undone"), picture);
    report("redo_time", walk(place, left, left + redone_later));
    const Clock::time_point saving = Clock::now();
    command::execute(place, "save");
    report("save_time", microseconds_since(saving));
    const bool whole = heap.verify().ok() && broken_invariant(place.file->document()).empty();
    std::printf("whole %s\n", whole ? "yes" : "no");
    return 0;
}

bool undo_after_restart(const Setting& setting) {
    heading("6. A hundred commands, and taking them back after the program has ended");
    say("A process carries out a hundred commands of taiyen_cad on a new sheet framed by " + std::string(frame) + ": lines, circles, arcs,");
    say("texts, moves, turns, deletions, layers. Each is one step of the history. It takes half of them back,");
    say("saves and ends. Another process goes on where it stopped.");
    const Told edited("--edit-and-undo", setting);
    const Told later("--reopen-and-undo", setting);
    row("a command", edited.time("command_time"), "median; read, carried out, kept as a step");
    row("undo", edited.time("undo_time"), "median of " + std::to_string(undone_at_once));
    row("the history", bytes_text(static_cast<std::uint64_t>(edited.figure("bytes"))),
        edited.text("steps") + " steps of " + bytes_text(static_cast<std::uint64_t>(edited.figure("bytes_of_step"))) + " (median); the sheet has " +
            edited.text("entities") + " entities");
    row("saved", edited.time("save_time"), "sheet and history in one record; process " + std::to_string(edited.pid) + " ends");
    row("process " + std::to_string(later.pid) + " finds", later.text("steps") + " steps",
        later.text("steps_undone") + " of them undone; next: " + later.text("next"));
    row("undo, " + std::to_string(undone_later) + " more", later.time("undo_time"), "median");
    row("redo, " + std::to_string(redone_later), later.time("redo_time"), "median");
    row("saved again", later.time("save_time"));
    row("before and after", svg_file(setting, "edited").filename().string(), svg_file(setting, "undone").filename().string());

    int agree = states_that_agree(edited, edited, "undone", edits - undone_at_once, edits - 1);
    agree += states_that_agree(edited, later, "undone", left, edits - undone_at_once - 1);
    agree += states_that_agree(edited, later, "redone", left + 1, left + redone_later);
    constexpr int all = undone_at_once + undone_later + redone_later;
    bool fine = verdict("both processes came to their end", edited.ended_well && later.ended_well);
    fine &= verdict("every state as it was made", agree == all, std::to_string(agree) + " of " + std::to_string(all) + " checksums");
    fine &= verdict("the picture drawn after edit " + std::to_string(left),
                    edited.text("picture") == later.text("picture") && later.text("picture") != "?", "and after all undoing: byte for byte the same");
    fine &= verdict("verify(), pointers, index", later.text("whole") == "yes");
    return fine;
}

}  // namespace cad::demo
