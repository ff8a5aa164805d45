/// kill -9 at random moments, every second time while the heap is being opened and recovered. What a worker acknowledged is there afterwards, and nothing else than the model says.
/// This shows nothing about power cuts: the page cache outlives the process.

#include <cstdio>
#include <random>
#include <thread>

#include "auditor.hpp"
#include "campaign.hpp"
#include "child.hpp"

namespace outside {
namespace {

constexpr const char* help =
    "usage: taiyen_outside_kills [options]\n\n"
    "Kills workers on heaps of all kinds at random moments, and checks after each kill that everything acknowledged is there, that the content is "
    "what an independent\n"
    "model says, and that verify() finds nothing. Control: a worker that acknowledges before it commits.\n";

using Microseconds = std::chrono::microseconds;

/// One heap that is used by every kind of worker in turn, or by one kind only.
struct Patient {
    std::string name;
    std::vector<const char*> modes;
    std::filesystem::path file;
    std::uint64_t age = 0;  ///< lives since it was created
    Told told;
    Auditor auditor;
};

struct Tally {
    std::uint64_t kills = 0;
    std::uint64_t while_opening = 0;
    std::uint64_t acknowledgements = 0;
    std::uint64_t recovered = 0;
    std::uint64_t replayed = 0;
    std::uint64_t torn = 0;
    std::uint64_t heaps = 0;
};

void remove_heap(const std::filesystem::path& file) {
    std::filesystem::remove_all(file.parent_path());
    std::filesystem::create_directories(file.parent_path());
}

std::string one_life(const Options& options, const Shape& shape, Patient& patient, std::mt19937_64& random, Tally& tally) {
    const char* const mode = patient.modes[random() % patient.modes.size()];
    const std::filesystem::path words = patient.file.parent_path() / "worker.txt";
    Child child({options.worker.string(), patient.file.string(), "--mode", mode, "--seed", std::to_string(shape.seed), "--life",
                 std::to_string(random() % 1'000'000), "--threads", random() % 2 == 0 ? "1" : "4", "--control", options.control ? "early" : "none"},
                {}, words);
    const auto far = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    Told now;
    const bool early = random() % 2 == 0;
    bool alive = child.listen(far, now, [&] { return early ? now.opening : now.opened; });
    const Microseconds length(early ? random() % 6'000 : random() % (patient.age % 4 == 0 ? 60'000 : 15'000));
    alive = alive && child.listen(std::chrono::steady_clock::now() + length, now);
    child.kill();
    const End end = child.wait(std::chrono::seconds(30));
    child.drain(now);
    if (!alive || end.signal != 9)
        return patient.name + ", mode " + mode + ", after " + std::to_string(tally.kills) + " kills: " + ended_early(end, words);
    ++tally.kills;
    tally.while_opening += now.opened ? 0 : 1;
    tally.acknowledgements += now.acknowledgements;
    for (unsigned lane = 0; lane < lanes; ++lane) patient.told.step[lane] = std::max(patient.told.step[lane], now.step[lane]);
    patient.told.order = std::max(patient.told.order, now.order);
    patient.told.acknowledgements += now.acknowledgements;
    patient.told.opened |= now.opened;

    watchdog(60, "opening " + patient.file.string() + " after kill " + std::to_string(tally.kills));
    const std::string wrong = patient.auditor.audit(patient.file, patient.told, tally.kills % 4 == 0 ? Auditor::As::writer : Auditor::As::reader);
    watchdog(0, "");
    if (!wrong.empty()) return patient.name + ", last mode " + mode + ", after kill " + std::to_string(tally.kills) + ": " + wrong;
    const Found& found = patient.auditor.found();
    tally.recovered += found.exists && !found.clean ? 1 : 0;
    tally.replayed += found.transactions_replayed + found.snapshots_replayed;
    tally.torn += found.records_cut;
    // What was found once is found again.
    if (found.exists) {
        const std::uint64_t acknowledgements = patient.told.acknowledgements;
        patient.told = at_least(found);
        patient.told.acknowledgements = acknowledgements;
    }
    return {};
}

std::string storm(const Options& options) {
    TemporaryFolder folder(options.folder);
    const Shape shape{options.seed};
    std::vector<Patient> patients;
    const std::vector<std::pair<const char*, std::vector<const char*>>> kinds{{"archive", {"archive"}},
                                                                              {"snapshot", {"snapshot"}},
                                                                              {"undo", {"undo"}},
                                                                              {"sync", {"sync"}},
                                                                              {"async", {"async"}},
                                                                              {"steps", {"steps"}},
                                                                              {"any", {"archive", "snapshot", "undo", "sync", "async", "steps"}}};
    for (const auto& [name, modes] : kinds) {
        patients.push_back({name, modes, folder.path() / name / "heap.tyn", 0, {}, Auditor(shape)});
        remove_heap(patients.back().file);
    }
    std::mt19937_64 random(options.seed);
    const Clock clock(options);
    Progress progress;
    Tally tally;
    std::string wrong;
    while (wrong.empty() && tally.kills < options.count && !clock.over()) {
        Patient& patient = patients[tally.kills % patients.size()];
        // A heap grows old, then a new one is created and killed in its creation.
        if (patient.age++ == 60) {
            remove_heap(patient.file);
            patient.age = 0;
            patient.told = {};
            ++tally.heaps;
        }
        wrong = one_life(options, shape, patient, random, tally);
        progress.show(std::to_string(tally.kills) + " kills, " + std::to_string(tally.acknowledgements) + " acknowledgements, " +
                      std::to_string(static_cast<int>(clock.seconds())) + " s");
    }
    if (tally.kills == 0 && wrong.empty() && options.least == 0) throw std::runtime_error("the time was over before anything was tried");
    std::printf("%llu kills in %.1f s, seed %llu: %llu of them while opening or recovering, %llu heaps\n",
                static_cast<unsigned long long>(tally.kills), clock.seconds(), static_cast<unsigned long long>(options.seed),
                static_cast<unsigned long long>(tally.while_opening), static_cast<unsigned long long>(tally.heaps + patients.size()));
    std::printf("%llu acknowledgements checked; %llu heaps needed recovery, %llu records replayed, %llu torn\n",
                static_cast<unsigned long long>(tally.acknowledgements), static_cast<unsigned long long>(tally.recovered),
                static_cast<unsigned long long>(tally.replayed), static_cast<unsigned long long>(tally.torn));
    if (wrong.empty()) return options.control ? wrong : too_few(options, tally.kills, "kills");
    if (!options.control) {
        folder.keep();
        wrong += "; the heaps stay in " + folder.path().string();
    }
    return wrong;
}

}  // namespace
}  // namespace outside

int main(int count, char** words) {
    outside::Options defaults;
    defaults.count = 500;
    return outside::run_harness(count, words, outside::help, defaults, outside::storm);
}
