/// Real plug pulls: a worker on ext4 or xfs on a loop device; at a random moment the file system is shut down by its own ioctl, which drops whatever the page cache alone held. Then unmount,
/// mount (the journal recovers), open, compare. What the ioctl can't show is a disk with a cache of its own: that is taiyen_outside_blocks.

#include <cstdio>
#include <memory>
#include <optional>
#include <random>

#include "auditor.hpp"
#include "campaign.hpp"
#include "child.hpp"
#include "volume.hpp"

namespace outside {
namespace {

constexpr const char* help =
    "usage: taiyen_outside_plugs [options]\n\n"
    "Shuts ext4 and xfs on loop devices down under a worker, so that everything unsynced is lost; mounts again and checks that everything "
    "acknowledged is there.\n"
    "Needs root, loop devices, e2fsprogs and xfsprogs. Control: the worker's syncs are swallowed by a preloaded library.\n";

struct Tally {
    std::uint64_t pulls = 0;
    std::uint64_t acknowledgements = 0;
    std::uint64_t recovered = 0;
    std::uint64_t replayed = 0;
    std::uint64_t torn = 0;
    std::uint64_t typed = 0;      ///< workers that told what happened
    std::uint64_t killed = 0;     ///< workers that were killed right after
    std::uint64_t bus_error = 0;  ///< workers that touched a page which the file system gives no more
};

/// A file system and the heap on it.
class Rig {
public:
    Rig(const FileSystem& kind, const std::filesystem::path& folder, const Options& options)
        : kind_(kind), options_(options), folder_(folder / kind.name), auditor_(Shape{options.seed}) {
        std::filesystem::create_directories(folder_);
        start_anew();
    }

    std::string pull(std::mt19937_64& random, Tally& tally) {
        if (age_++ == 40) start_anew();
        static const char* const modes[] = {"archive", "snapshot", "undo", "sync", "async", "steps"};
        const std::string mode = modes[random() % std::size(modes)];
        std::vector<std::string> environment;
        // The control's heap exists for good: what is lost are saves and commits, not only a name.
        if (options_.control && told_.opened) environment = {"LD_PRELOAD=" + options_.without_syncs.string(), "TAIYEN_BUFFERED=1"};
        Told now;
        Child child({options_.worker.string(), heap().string(), "--mode", mode, "--seed", std::to_string(options_.seed), "--life",
                     std::to_string(random() % 1'000'000), "--threads", random() % 2 == 0 ? "1" : "4"},
                    environment, (folder_ / "worker.txt").string());
        const bool early = random() % 4 == 0;
        const auto far = std::chrono::steady_clock::now() + std::chrono::seconds(30);
        bool alive = child.listen(far, now, [&] { return early ? now.opening : now.opened; });
        const std::chrono::microseconds length(early ? random() % 5'000 : random() % (age_ % 8 == 0 ? 100'000 : 25'000));
        alive = alive && child.listen(std::chrono::steady_clock::now() + length, now);
        mounted_->pull_the_plug(random() % 4 == 0);
        const bool left_alone = random() % 2 == 0;
        if (!left_alone) child.kill();
        const End end = child.wait(std::chrono::seconds(20));
        child.drain(now);
        remount();
        if (!alive) return about(mode, tally) + ended_early(end, folder_ / "worker.txt");
        ++tally.pulls;
        tally.acknowledgements += now.acknowledgements;
        if (std::string wrong = judged(end, left_alone, tally); !wrong.empty()) return about(mode, tally) + wrong;
        for (unsigned lane = 0; lane < lanes; ++lane) told_.step[lane] = std::max(told_.step[lane], now.step[lane]);
        told_.order = std::max(told_.order, now.order);
        told_.opened |= now.opened;
        const std::string wrong = look(tally);
        return wrong.empty() ? wrong : about(mode, tally) + wrong;
    }

private:
    std::filesystem::path heap() const { return folder_ / "mount" / "heap.tyn"; }
    std::string about(const std::string& mode, const Tally& tally) const {
        return std::string(kind_.name) + ", mode " + mode + ", pull " + std::to_string(tally.pulls) + ": ";
    }

    void start_anew() {
        mounted_.reset();
        image_ = memory_image(kind_.image_bytes);
        const LoopDevice device(image_.get());
        format(kind_, device, folder_ / "mkfs.txt");
        mounted_.emplace(kind_, device, folder_ / "mount");
        told_ = {};
        age_ = 0;
    }

    /// The file system recovers from its own journal.
    void remount() {
        mounted_->unmount();
        mounted_.reset();
        const LoopDevice device(image_.get());
        mounted_.emplace(kind_, device, folder_ / "mount");
    }

    /// How a worker ended that was left alone on a file system that fails every call: by itself, and it said why.
    static std::string judged(const End& end, bool left_alone, Tally& tally) {
        if (!left_alone)
            ++tally.killed;
        else if (end.timed_out)
            return "a hang: the worker did not end on a dead file system";
        else if (end.signal == 7)
            ++tally.bus_error;
        else if (end.signal != 0 || end.code != 3)
            return "the worker ended by " + (end.signal != 0 ? "signal " + std::to_string(end.signal) : "code " + std::to_string(end.code));
        else
            ++tally.typed;
        return {};
    }

    std::string look(Tally& tally) {
        watchdog(60, "opening the heap after pull " + std::to_string(tally.pulls));
        std::string wrong = auditor_.audit(heap(), told_, tally.pulls % 4 == 0 ? Auditor::As::writer : Auditor::As::reader);
        watchdog(0, "");
        const Found& found = auditor_.found();
        tally.recovered += found.exists && !found.clean ? 1 : 0;
        tally.replayed += found.transactions_replayed + found.snapshots_replayed;
        tally.torn += found.records_cut;
        if (found.exists) told_ = at_least(found);
        return wrong;
    }

    const FileSystem& kind_;
    const Options& options_;
    std::filesystem::path folder_;
    Descriptor image_;
    std::optional<Mounted> mounted_;
    Auditor auditor_;
    Told told_;
    unsigned age_ = 0;
};

std::string pulls(const Options& options) {
    enter_private_mounts();
    TemporaryFolder folder(options.folder);
    std::vector<std::unique_ptr<Rig>> rigs;
    std::string names;
    for (const FileSystem& kind : file_systems()) {
        if (kind.name == "btrfs") continue;  // has no such ioctl
        if (const std::string missing = missing_for(kind); !missing.empty()) {
            std::printf("without %s: %s\n", std::string(kind.name).c_str(), missing.c_str());
            continue;
        }
        rigs.push_back(std::make_unique<Rig>(kind, folder.path(), options));
        names += (names.empty() ? "" : " and ") + std::string(kind.name);
    }
    if (rigs.empty()) throw Unavailable("neither ext4 nor xfs");
    std::mt19937_64 random(options.seed);
    const Clock clock(options);
    Progress progress;
    Tally tally;
    std::string wrong;
    while (wrong.empty() && tally.pulls < options.count && !clock.over()) {
        wrong = rigs[tally.pulls % rigs.size()]->pull(random, tally);
        progress.show(std::to_string(tally.pulls) + " pulls, " + std::to_string(tally.acknowledgements) + " acknowledgements, " +
                      std::to_string(static_cast<int>(clock.seconds())) + " s");
    }
    if (tally.pulls == 0 && wrong.empty() && options.least == 0) throw std::runtime_error("the time was over before anything was tried");
    const auto number = [](std::uint64_t value) { return static_cast<unsigned long long>(value); };
    std::printf(
        "%llu plug pulls on %s in %.1f s, seed %llu; workers: %llu killed, %llu told an error, %llu stopped by a page that could not be read\n",
        number(tally.pulls), names.c_str(), clock.seconds(), number(options.seed), number(tally.killed), number(tally.typed),
        number(tally.bus_error));
    std::printf("%llu acknowledgements checked; %llu heaps needed recovery, %llu records replayed, %llu torn\n", number(tally.acknowledgements),
                number(tally.recovered), number(tally.replayed), number(tally.torn));
    return wrong.empty() && !options.control ? too_few(options, tally.pulls, "plug pulls") : wrong;
}

}  // namespace
}  // namespace outside

int main(int count, char** words) {
    outside::Options defaults;
    defaults.count = 500;
    return outside::run_harness(count, words, outside::help, defaults, outside::pulls);
}
