// The front end of the crash harness: scenarios, planted bugs and faults by name, and single states by id.

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "crash/budget.hpp"
#include "crash/fault_sweep.hpp"
#include "crash/runner.hpp"
#include "crash/state_note.hpp"

namespace taiyen::crash {
namespace {

constexpr const char* usage = R"(usage: taiyen_crash COMMAND [OPTIONS]

  list                 scenarios, planted bugs and faults by name
  states               every scenario through its crash states; with --minutes again and again, with new seeds
  bugs                 every planted bug against the scenarios that must notice
  faults               calls on the storage seam, allocations and room on the disk fail
  campaign             states with new seeds until --minutes are over, then bugs and faults
  replay ID            one crash state again
  shrink ID            the same state with as few units as possible that make it fail

  --only TEXT          names that contain TEXT
  --budget NUMBER      1: some minutes of two processors; more looks longer (TAIYEN_CRASH_BUDGET)
  --seed NUMBER        other samples (TAIYEN_SEED)
  --workers NUMBER     processes at a time (default: processors)
  --minutes NUMBER     how long new rounds begin
  --report FILE        where the report goes (default: standard output)
  --bug NAME           replay, shrink: with this bug planted
  --quiet              no line for each scenario

A state that fails is shown with its id; the program then ends with status 1.
)";

struct Command {
    std::string name;
    std::string id;
    std::string report;
    Bug bug = Bug::none;
    RunOptions options;
};

Command parse(const std::vector<std::string>& words) {
    if (words.empty()) throw std::invalid_argument("no command");
    Command command;
    command.name = words[0];
    command.options.budget = budget();
    command.options.seed = seed_of_this_run();
    for (std::size_t i = 1; i < words.size(); ++i) {
        const auto value = [&]() -> const std::string& {
            if (i + 1 == words.size()) throw std::invalid_argument(words[i] + " needs a value");
            return words[++i];
        };
        if (words[i] == "--only")
            command.options.only = value();
        else if (words[i] == "--budget")
            command.options.budget = std::stod(value());
        else if (words[i] == "--seed")
            command.options.seed = std::stoull(value());
        else if (words[i] == "--workers")
            command.options.workers = static_cast<unsigned>(std::stoul(value()));
        else if (words[i] == "--minutes")
            command.options.minutes = std::stod(value());
        else if (words[i] == "--report")
            command.report = value();
        else if (words[i] == "--bug")
            command.bug = planted_bug_of(value());
        else if (words[i] == "--quiet")
            command.options.prints = false;
        else if (!words[i].starts_with("--") && command.id.empty())
            command.id = words[i];
        else
            throw std::invalid_argument("unknown option " + words[i]);
    }
    return command;
}

void list() {
    std::string about;
    for (const CrashScenario& scenario : all_scenarios()) {
        if (about != scenario.about) std::printf("%s%s:\n", about.empty() ? "" : "\n", scenario.about);
        about = scenario.about;
        std::printf("  %s\n", scenario.name.c_str());
    }
    std::printf("\nplanted bugs:\n");
    for (const PlantedBug& bug : planted_bugs()) std::printf("  %-30s %-24s %s\n", bug.name, bug.scenarios.front(), bug.rule);
    std::printf("\nfaults:\n");
    for (const FaultKind& kind : fault_kinds()) std::printf("  %s\n", kind.name);
}

int run(const Command& command) {
    std::ofstream file;
    if (!command.report.empty()) {
        file.open(command.report);
        if (!file) throw std::runtime_error(command.report + ": can't be written");
    }
    std::ostream& out = command.report.empty() ? std::cout : file;
    bool good = true;
    const auto require = [&](bool is_any) {
        if (!is_any) throw std::invalid_argument("no name contains '" + command.options.only + "'; `taiyen_crash list` prints them");
    };
    if (command.name == "list") {
        list();
    } else if (command.name == "states" || command.name == "campaign") {
        const RunOptions& options = command.options;
        const StatesReport states = explore_all(options);
        require(!states.scenarios.empty());
        write(out, states);
        good = states.failures() == 0 && (is_thin(options) || states.uncovered() == 0);
        if (command.name == "campaign") {
            out << "\n";
            const BugsReport bugs = plant_all(options);
            write(out, bugs);
            out << "\n";
            const FaultsReport faults = sweep_all(options);
            write(out, faults);
            good = good && bugs.caught() == bugs.bugs.size() && faults.wrong() == 0;
        }
    } else if (command.name == "bugs") {
        const BugsReport bugs = plant_all(command.options);
        require(!bugs.bugs.empty());
        write(out, bugs);
        good = bugs.caught() == bugs.bugs.size();
    } else if (command.name == "faults") {
        const FaultsReport faults = sweep_all(command.options);
        require(is_thin(command.options) || !faults.results.empty());
        write(out, faults);
        good = faults.wrong() == 0;
    } else if (command.name == "replay" || command.name == "shrink") {
        const ReplayResult result = replay_state(command.id, command.options, command.bug, command.name == "shrink");
        good = !result.failure;
        std::printf("%s\n", result.failure ? (result.failure->id + ": " + result.failure->what).c_str() : "sound");
        if (result.shrunk) std::printf("%s: %s\n  %s\n", result.shrunk->id.c_str(), result.shrunk->what.c_str(), result.shrunk->words.c_str());
    } else {
        throw std::invalid_argument("unknown command " + command.name);
    }
    return good ? 0 : 1;
}

}  // namespace
}  // namespace taiyen::crash

int main(int argc, char** argv) {
    using namespace taiyen::crash;
    try {
        const std::vector<std::string> words(argv + 1, argv + argc);
        watch_for_crashes();
        return run(parse(words));
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n\n%s", error.what(), usage);
        return 2;
    }
}
