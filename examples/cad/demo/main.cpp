/// The demo: a drawing library moves into a heap, and what comes of it is measured and checked. See --help.

#include <cstdio>
#include <exception>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "demo/console.hpp"
#include "demo/stages.hpp"
#include "demo/ten_lines.hpp"
#include "dxf_import.hpp"

namespace {

namespace fs = std::filesystem;
using namespace cad::demo;

constexpr std::string_view usage =
    "usage: taiyen_cad_demo [options]\n"
    "\n"
    "Imports LibreCAD's part library into a heap file, opens it from a new process, draws pictures,\n"
    "edits, saves, is killed, takes back what was done, sends a compressed copy, and becomes its own next version.\n"
    "Exits with 1 if anything it checks does not hold.\n"
    "\n"
    "  --library DIR  folder of DXF files (default: /usr/share/librecad/library, Debian package librecad-data)\n"
    "  --out DIR      where the heap and the pictures go (default: taiyen-cad-demo); use a disk, not a RAM disk\n"
    "  --seed N       repeats a run's kills and edits\n"
    "  --help         this text\n";

enum class Task { demo, help, reopen, edit_until_killed, edit_and_undo, reopen_and_undo, receive_mail };

struct Arguments {
    Task task = Task::demo;
    Setting setting{cad::library_folder, "taiyen-cad-demo", 0};
    bool seeded = false;
};

/// Nothing if the arguments make no sense.
std::optional<Arguments> parse(const std::vector<std::string>& words) {
    Arguments arguments;
    for (std::size_t i = 0; i < words.size(); ++i) {
        const std::string& word = words[i];
        const bool last = i + 1 == words.size();
        if (word == "--help" || word == "-h") {
            arguments.task = Task::help;
        } else if (word == "--reopen") {
            arguments.task = Task::reopen;
        } else if (word == "--edit-until-killed") {
            arguments.task = Task::edit_until_killed;
        } else if (word == "--edit-and-undo") {
            arguments.task = Task::edit_and_undo;
        } else if (word == "--reopen-and-undo") {
            arguments.task = Task::reopen_and_undo;
        } else if (word == "--receive-mail") {
            arguments.task = Task::receive_mail;
        } else if (word == "--library" && !last) {
            arguments.setting.part_folder = words[++i];
        } else if (word == "--out" && !last) {
            arguments.setting.out = words[++i];
        } else if (word == "--seed" && !last) {
            char* end = nullptr;
            arguments.setting.seed = std::strtoull(words[++i].c_str(), &end, 10);
            arguments.seeded = end != words[i].c_str() && *end == '\0';
            if (!arguments.seeded) return std::nullopt;
        } else {
            return std::nullopt;
        }
    }
    return arguments;
}

void print_ten_lines() {
    heading("10. The lines that did it, as they stand in examples/cad");
    std::printf("%s", ten_lines);
}

int run_demo(const Arguments& arguments) {
    Setting setting = arguments.setting;
    if (!fs::is_directory(setting.part_folder)) {
        std::fprintf(stderr, "taiyen_cad_demo: %s is no folder; install librecad-data or name a folder of DXF files with --library\n",
                     setting.part_folder.c_str());
        return 1;
    }
    if (!arguments.seeded) setting.seed = std::random_device()();
    fs::create_directories(setting.out);
    const Clock::time_point start = Clock::now();
    bool fine = import_and_save(setting);
    fine &= reopen_in_new_process(setting);
    fine &= draw_pictures(setting);
    fine &= save_one_edit(setting);
    fine &= kill_during_saves(setting);
    fine &= undo_after_restart(setting);
    fine &= send_by_mail(setting);
    fine &= migrate_to_next_version(setting);
    fine &= closing_table(setting);
    print_ten_lines();
    std::printf("\n%s in %s; repeat the random parts with --seed %llu\n", fine ? "Everything held," : "SOMETHING DID NOT HOLD,",
                time_text(microseconds_since(start)).c_str(), static_cast<unsigned long long>(setting.seed));
    return fine ? 0 : 1;
}

int run(const Arguments& arguments) {
    switch (arguments.task) {
        case Task::help: std::printf("%s", usage.data()); return 0;
        case Task::reopen: return reopen_and_report(arguments.setting);
        case Task::edit_until_killed: return edit_until_killed(arguments.setting);
        case Task::edit_and_undo: return edit_and_undo(arguments.setting);
        case Task::reopen_and_undo: return reopen_and_undo(arguments.setting);
        case Task::receive_mail: return receive_mail(arguments.setting);
        case Task::demo: break;
    }
    return run_demo(arguments);
}

}  // namespace

int main(int count, char** words) {
    const std::optional<Arguments> arguments = parse({words + 1, words + count});
    if (!arguments) {
        std::fprintf(stderr, "%s", usage.data());
        return 2;
    }
    try {
        return run(*arguments);
    } catch (const std::exception& error) {
        std::fflush(stdout);
        std::fprintf(stderr, "taiyen_cad_demo: %s\n", error.what());
        return 1;
    }
}
