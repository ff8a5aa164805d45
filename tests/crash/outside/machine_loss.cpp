/// kill -9 of programs whose commits wait for a directory of frames. What a commit has returned for is in a heap that is restored from there, and nothing else than the model says.
/// Some of the machines are lost with their disks: the restored heap goes on in their place.

#include <cstdio>
#include <random>
#include <thread>

#include <taiyen/base/error.hpp>
#include <taiyen/replicate/directory_target.hpp>
#include <taiyen/replicate/restore.hpp>

#include "auditor.hpp"
#include "campaign.hpp"
#include "child.hpp"

namespace outside {
namespace {

constexpr const char* help =
    "usage: taiyen_outside_machines [options]\n\n"
    "Kills workers whose commits wait for a directory of frames, restores a heap from there after each kill, and checks that everything\n"
    "acknowledged is in it, that its content is what an independent model says, and that verify() finds nothing. After every fourth kill the\n"
    "worker's own files are gone, and the restored heap goes on. Control: commits that don't wait for the frames.\n";

struct Tally {
    std::uint64_t kills = 0;
    std::uint64_t while_attaching = 0;
    std::uint64_t machines = 1;
    std::uint64_t acknowledgements = 0;
    std::uint64_t replayed = 0;
};

class Machines {
public:
    Machines(const Options& options, const std::filesystem::path& folder)
        : options_(options), shape_{options.seed}, folder_(folder), random_(options.seed), auditor_(shape_) {
        std::filesystem::create_directories(home());
        std::filesystem::create_directories(frames());
    }

    /// A worker is killed, and a heap restored. Empty: all is well.
    std::string lose_one() {
        std::string wrong = one_life();
        if (wrong.empty()) wrong = restore_and_audit();
        return wrong;
    }
    const Tally& tally() const { return tally_; }

private:
    std::filesystem::path home() const { return folder_ / ("machine " + std::to_string(tally_.machines)); }
    std::filesystem::path frames() const { return folder_ / ("frames " + std::to_string(tally_.machines)); }

    std::string one_life() {
        const char* const mode = random_() % 3 == 0 ? "steps" : "sync";
        const std::filesystem::path words = folder_ / "worker.txt";
        Child child({options_.worker.string(), (home() / "heap.tyn").string(), "--mode", mode, "--seed", std::to_string(shape_.seed), "--life",
                     std::to_string(random_() % 1'000'000), "--threads", random_() % 2 == 0 ? "1" : "4", "--frames", frames().string(), "--commits",
                     options_.control ? "local" : "replicated"},
                    {}, words);
        told_.opening = told_.opened = false;
        const std::uint64_t before = told_.acknowledgements;
        const bool early = random_() % 4 == 0;
        bool alive =
            child.listen(std::chrono::steady_clock::now() + std::chrono::seconds(30), told_, [&] { return early ? told_.opening : told_.opened; });
        alive = alive && child.listen(std::chrono::steady_clock::now() + std::chrono::microseconds(random_() % (early ? 30'000 : 60'000)), told_);
        child.kill();
        const End end = child.wait(std::chrono::seconds(30));
        child.drain(told_);
        if (!alive || end.signal != 9)
            return std::string("mode ") + mode + ", after " + std::to_string(tally_.kills) + " kills: " + ended_early(end, words);
        ++tally_.kills;
        tally_.while_attaching += told_.opened ? 0 : 1;
        tally_.acknowledgements += told_.acknowledgements - before;
        return {};
    }

    std::string restore_and_audit() {
        const std::string when = "after kill " + std::to_string(tally_.kills) + ": ";
        const std::filesystem::path there = folder_ / "restored" / "heap.tyn";
        std::filesystem::remove_all(there.parent_path());
        std::filesystem::create_directories(there.parent_path());
        watchdog(60, "restoring from " + frames().string() + " " + when);
        try {
            taiyen::DirectoryTarget target(frames());
            (void)taiyen::restore(target, there);
        } catch (const taiyen::Error& error) {
            watchdog(0, "");
            // Before the first base is there this machine has told nothing.
            if (error.code() == taiyen::errc::not_found && told_.acknowledgements == told_by_others_) return {};
            return when + error.what();
        }
        const std::string wrong = auditor_.audit(there, told_, tally_.kills % 2 == 0 ? Auditor::As::writer : Auditor::As::reader);
        watchdog(0, "");
        if (!wrong.empty()) return when + wrong;
        tally_.replayed += auditor_.found().transactions_replayed;
        if (tally_.kills % 4 != 0) return {};
        std::filesystem::remove_all(home());
        std::filesystem::remove_all(frames());
        ++tally_.machines;
        told_by_others_ = told_.acknowledgements;
        std::filesystem::rename(there.parent_path(), home());
        std::filesystem::create_directories(frames());
        return {};
    }

    const Options& options_;
    const Shape shape_;
    const std::filesystem::path folder_;
    std::mt19937_64 random_;
    Auditor auditor_;
    Told told_;                         ///< of all machines: what is undone is withdrawn first
    std::uint64_t told_by_others_ = 0;  ///< acknowledgements of machines that are lost
    Tally tally_;
};

std::string lose(const Options& options) {
    TemporaryFolder folder(options.folder);
    Machines machines(options, folder.path());
    const Clock clock(options);
    Progress progress;
    const Tally& tally = machines.tally();
    std::string wrong;
    while (wrong.empty() && tally.kills < options.count && !clock.over()) {
        wrong = machines.lose_one();
        progress.show(std::to_string(tally.kills) + " kills, " + std::to_string(tally.acknowledgements) + " acknowledgements, " +
                      std::to_string(static_cast<int>(clock.seconds())) + " s");
    }
    std::printf("%llu kills in %.1f s, seed %llu: %llu of them while opening or attaching, %llu machines\n",
                static_cast<unsigned long long>(tally.kills), clock.seconds(), static_cast<unsigned long long>(options.seed),
                static_cast<unsigned long long>(tally.while_attaching), static_cast<unsigned long long>(tally.machines));
    std::printf("%llu acknowledgements checked in restored heaps\n", static_cast<unsigned long long>(tally.acknowledgements));
    if (wrong.empty()) return options.control ? wrong : too_few(options, tally.kills, "kills");
    if (!options.control) {
        folder.keep();
        wrong += "; the heaps and frames stay in " + folder.path().string();
    }
    return wrong;
}

}  // namespace
}  // namespace outside

int main(int count, char** words) {
    outside::Options defaults;
    defaults.count = 200;
    return outside::run_harness(count, words, outside::help, defaults, outside::lose);
}
