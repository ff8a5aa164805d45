/// Power cuts below the file system: everything that ext4, xfs or btrfs send to the disk while workers live on it is recorded, with the flushes. At random moments of that recording disks are
/// put together as a power cut may leave them: all that a flush covers, and of the rest nothing, all, a random part, or parts of single writes, by sectors of 512 bytes. Each is mounted, the
/// file system recovers, the heap is opened and compared with what had been acknowledged at that moment.

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <system_error>
#include <unordered_set>

#include "auditor.hpp"
#include "campaign.hpp"
#include "child.hpp"
#include "recorded_disk.hpp"
#include "volume.hpp"

namespace outside {
namespace {

constexpr const char* help =
    "usage: taiyen_outside_blocks [options]\n\n"
    "Records every write and flush that a file system sends to a loop device while workers live on it, puts disks together as power cuts may leave "
    "them, mounts each and\n"
    "checks that everything acknowledged is there. Needs root, loop devices, FUSE, and mkfs of ext4, xfs, btrfs. Control: the syncs of the second "
    "and third worker are swallowed.\n"
    "  --images N   images of one recording (default 16)\n"
    "  --only FS    one file system\n"
    "  --untorn 1   writes reach the disk whole or not at all\n";

/// What had been told when the disk had seen so many operations, or a little later.
struct Stamp {
    std::size_t position = 0;
    Told told;
};

struct Recording {
    const FileSystem* kind = nullptr;
    std::string modes;
    Descriptor base;  ///< the disk before the first operation
    std::vector<DiskOperation> operations;
    std::vector<Stamp> stamps;
    std::vector<std::size_t> lives;  ///< how far the disk was when each worker started

    /// What must be there if power fails after so many operations.
    Told told_at(std::size_t cut) const {
        const auto after = std::ranges::upper_bound(stamps, cut, {}, &Stamp::position);
        if (after == stamps.begin()) return {};
        // What is withdrawn is told before it happens, and stamped a little later: it may have happened already.
        const Told& told = std::prev(after)->told;
        return after == stamps.end() ? told : told.throughout(after->told);
    }
};

enum class Selection { none, all, some, one_missing, torn };
constexpr const char* names[] = {"none", "all", "some", "one missing", "torn"};

struct Tally {
    std::uint64_t images = 0;
    std::uint64_t recordings = 0;
    std::uint64_t operations = 0;
    std::uint64_t flushes = 0;
    std::uint64_t with_acknowledgements = 0;  ///< images in which something acknowledged had to be there
    std::uint64_t with_heap = 0;
    std::uint64_t recovered = 0;
    std::uint64_t records = 0;
    std::uint64_t torn = 0;
    std::map<std::string, std::uint64_t> by_file_system;
    std::map<std::string, std::uint64_t> refused;  ///< disks that the file system itself does not take
};

void copy_sparse(int from, int to) {
    std::vector<char> buffer(1U << 20U);
    off_t at = 0;
    while ((at = lseek(from, at, SEEK_DATA)) >= 0) {
        const off_t end = lseek(from, at, SEEK_HOLE);
        while (at < end) {
            const ssize_t got = pread(from, buffer.data(), std::min<std::size_t>(buffer.size(), static_cast<std::size_t>(end - at)), at);
            if (got <= 0 || pwrite(to, buffer.data(), static_cast<std::size_t>(got), at) != got)
                throw std::system_error(errno, std::generic_category(), "copying an image");
            at += got;
        }
    }
}

Descriptor copy_of(const Descriptor& image, std::uint64_t bytes) {
    Descriptor copy = memory_image(bytes);
    copy_sparse(image.get(), copy.get());
    return copy;
}

void apply(const DiskOperation& operation, std::size_t first, std::size_t count, int image) {
    const ssize_t written = pwrite(image, operation.bytes.data() + first, count, static_cast<off_t>(operation.offset + first));
    if (written != static_cast<ssize_t>(count)) throw std::system_error(errno, std::generic_category(), "writing an image");
}

Recording record(const FileSystem& kind, const Options& options, const std::filesystem::path& folder, std::mt19937_64& random) {
    Recording recording;
    recording.kind = &kind;
    Descriptor image = memory_image(kind.image_bytes);
    format(kind, LoopDevice(image.get()), folder / "mkfs.txt");
    recording.base = copy_of(image, kind.image_bytes);

    RecordedDisk disk(image.get(), folder / "fuse");
    {
        const Descriptor file(open(disk.file().c_str(), O_RDWR | O_CLOEXEC));
        if (file.get() < 0) throw Unavailable("the FUSE file can't be opened");
        LoopDevice device(file.get());
        Mounted mounted(kind, device, folder / "mount");
        Told told;
        const auto stamp = [&] {
            const Told last = recording.stamps.empty() ? Told() : recording.stamps.back().told;
            if (recording.stamps.empty() || last.acknowledgements != told.acknowledgements || last.withdrawals != told.withdrawals ||
                last.opened != told.opened) {
                recording.stamps.push_back({disk.position(), told});
                told.begin_stretch();
            }
            return false;
        };
        // The second and third life recover what a kill left, and power may fail while they do.
        for (int life = 0; life < 3; ++life) {
            static const char* const modes[] = {"archive", "snapshot", "undo", "sync", "async", "steps"};
            const std::string mode = modes[random() % std::size(modes)];
            recording.modes += (life == 0 ? "" : ", ") + mode;
            recording.lives.push_back(disk.position());
            // The control's heap exists for good: what is lost are saves and commits, not only a name.
            std::vector<std::string> environment;
            if (options.control && life > 0) environment = {"LD_PRELOAD=" + options.without_syncs.string()};
            Child child({options.worker.string(), (folder / "mount" / "heap.tyn").string(), "--mode", mode, "--seed", std::to_string(options.seed),
                         "--life", std::to_string(random() % 1'000'000), "--threads", random() % 2 == 0 ? "1" : "4"},
                        environment, (folder / "worker.txt").string());
            const bool alive = child.listen(std::chrono::steady_clock::now() + std::chrono::milliseconds(100 + random() % 200), told, stamp);
            child.kill();
            const End end = child.wait(std::chrono::seconds(30));
            child.drain(told);
            stamp();
            if (!alive) throw std::runtime_error(std::string(kind.name) + ", mode " + mode + ": " + ended_early(end, folder / "worker.txt"));
        }
        mounted.unmount();
    }
    disk.stop();
    recording.operations = disk.operations();
    return recording;
}

/// The disks of a recording, by ascending moments.
class Images {
public:
    Images(const Recording& recording, std::uint64_t bytes) : recording_(recording), durable_(copy_of(recording.base, bytes)), bytes_(bytes) {}

    Descriptor at(std::size_t cut, Selection selection, std::mt19937_64& random) {
        std::size_t flushed = done_;
        for (std::size_t i = done_; i < cut; ++i)
            if (recording_.operations[i].is_flush()) flushed = i + 1;
        for (; done_ < flushed; ++done_) {
            const DiskOperation& operation = recording_.operations[done_];
            if (!operation.is_flush()) apply(operation, 0, operation.bytes.size(), durable_.get());
        }
        Descriptor image = copy_of(durable_, bytes_);
        const std::size_t missing = flushed + (cut > flushed ? random() % (cut - flushed) : 0);
        const std::uint64_t share = 1 + random() % 9;
        for (std::size_t i = flushed; i < cut; ++i) {
            const bool chosen = random() % 10 < share;
            const DiskOperation& operation = recording_.operations[i];
            switch (selection) {
                case Selection::none: break;
                case Selection::all: apply(operation, 0, operation.bytes.size(), image.get()); break;
                case Selection::one_missing:
                    if (i != missing) apply(operation, 0, operation.bytes.size(), image.get());
                    break;
                case Selection::some:
                    if (chosen) apply(operation, 0, operation.bytes.size(), image.get());
                    break;
                case Selection::torn:
                    for (std::size_t at = 0; at < operation.bytes.size(); at += sector_bytes)
                        if (random() % 10 < share) apply(operation, at, std::min(sector_bytes, operation.bytes.size() - at), image.get());
                    break;
            }
        }
        return image;
    }

private:
    const Recording& recording_;
    Descriptor durable_;
    std::uint64_t bytes_;
    std::size_t done_ = 0;  ///< operations that are in durable_
};

std::string look_at(const Recording& recording, const Descriptor& image, const Told& told, Auditor& auditor, const std::filesystem::path& folder,
                    Tally& tally) {
    const LoopDevice device(image.get());
    std::optional<Mounted> mounted;
    try {
        mounted.emplace(*recording.kind, device, folder / "mount");
    } catch (const std::system_error&) {
        ++tally.refused[std::string(recording.kind->name)];
        return {};
    }
    watchdog(60, "opening the heap of image " + std::to_string(tally.images));
    std::string wrong = auditor.audit(folder / "mount" / "heap.tyn", told, tally.images % 3 == 0 ? Auditor::As::writer : Auditor::As::reader);
    watchdog(0, "");
    mounted->unmount();
    const Found& found = auditor.found();
    tally.with_acknowledgements += told.order > 0 ? 1 : 0;
    tally.with_heap += found.exists ? 1 : 0;
    tally.recovered += found.exists && !found.clean ? 1 : 0;
    tally.records += found.transactions_replayed + found.snapshots_replayed;
    tally.torn += found.records_cut;
    return wrong;
}

/// Keeps the disk as the power cut left it, and what was recorded up to then. Returns where.
std::string kept(const Recording& recording, std::size_t cut, const Descriptor& image, const Options& options) {
    const std::filesystem::path stem = options.folder / ("taiyen-outside-" + std::string(recording.kind->name));
    const Descriptor file(open((stem.string() + ".img").c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (file.get() < 0 || ftruncate(file.get(), static_cast<off_t>(recording.kind->image_bytes)) != 0) return {};
    copy_sparse(image.get(), file.get());
    std::ofstream list(stem.string() + ".txt");
    auto stamp = recording.stamps.begin();
    for (std::size_t i = 0; i <= std::min(cut + 20, recording.operations.size()); ++i) {
        for (; stamp != recording.stamps.end() && stamp->position == i; ++stamp)
            list << "  told: opened " << stamp->told.opened << ", " << stamp->told.order << " steps\n";
        if (i == cut) list << "  power fails\n";
        if (i == recording.operations.size()) break;
        const DiskOperation& operation = recording.operations[i];
        list << i
             << (operation.is_flush() ? " flush" : " write " + std::to_string(operation.bytes.size()) + " at " + std::to_string(operation.offset))
             << '\n';
    }
    return "; the disk as power left it: " + stem.string() + ".img, and the operations: " + stem.string() + ".txt";
}

std::string replay(const Recording& recording, const Options& options, const std::filesystem::path& folder, std::mt19937_64& random, Tally& tally,
                   const Clock& clock, Progress& progress) {
    const std::uint64_t wanted = std::strtoull(options.more.at("--images").c_str(), nullptr, 10);
    std::vector<std::size_t> cuts(wanted);
    // Every fourth while the heap is created, or soon after.
    const std::size_t first = std::min<std::size_t>(recording.operations.size(), 150);
    for (std::size_t& cut : cuts) cut = random() % ((random() % 4 == 0 ? first : recording.operations.size()) + 1);
    std::ranges::sort(cuts);
    Images images(recording, recording.kind->image_bytes);
    Auditor auditor(Shape{options.seed});
    for (const std::size_t cut : cuts) {
        if (clock.over() || tally.images >= options.count) break;
        const auto selection = static_cast<Selection>(random() % (options.more.at("--untorn") == "1" ? 4 : 5));
        const Descriptor image = images.at(cut, selection, random);
        ++tally.images;
        progress.show(std::to_string(tally.images) + " images of " + std::to_string(tally.recordings) + " recordings, " +
                      std::to_string(static_cast<int>(clock.seconds())) + " s");
        ++tally.by_file_system[std::string(recording.kind->name)];
        const Descriptor untouched = copy_of(image, recording.kind->image_bytes);
        if (const std::string wrong = look_at(recording, image, recording.told_at(cut), auditor, folder, tally); !wrong.empty()) {
            return std::string(recording.kind->name) + ", lives " + recording.modes + ", in life " +
                   std::to_string(std::ranges::upper_bound(recording.lives, cut) - recording.lives.begin()) + ", cut " + std::to_string(cut) +
                   " of " + std::to_string(recording.operations.size()) + ", selection " + names[static_cast<int>(selection)] + ": " + wrong +
                   (options.control ? "" : kept(recording, cut, untouched, options));
        }
    }
    return {};
}

std::string blocks(const Options& options) {
    enter_private_mounts();
    TemporaryFolder folder(options.folder);
    std::vector<const FileSystem*> kinds;
    for (const FileSystem& kind : file_systems()) {
        if (const std::string& only = options.more.at("--only"); !only.empty() && only != kind.name) continue;
        if (const std::string missing = missing_for(kind); !missing.empty())
            std::printf("without %s: %s\n", std::string(kind.name).c_str(), missing.c_str());
        else
            kinds.push_back(&kind);
    }
    if (kinds.empty()) throw Unavailable("no file system to try");
    std::mt19937_64 random(options.seed);
    const Clock clock(options);
    Progress progress;
    Tally tally;
    std::string wrong;
    while (wrong.empty() && tally.images < options.count && !clock.over()) {
        const Recording recording = record(*kinds[tally.recordings % kinds.size()], options, folder.path(), random);
        ++tally.recordings;
        tally.operations += recording.operations.size();
        tally.flushes += static_cast<std::uint64_t>(std::ranges::count_if(recording.operations, &DiskOperation::is_flush));
        wrong = replay(recording, options, folder.path(), random, tally, clock, progress);
    }
    if (tally.images == 0 && wrong.empty()) throw std::runtime_error("the time was over before anything was tried");
    const auto number = [](std::uint64_t value) { return static_cast<unsigned long long>(value); };
    std::printf("%llu images of %llu recordings (%llu writes, %llu flushes) in %.1f s, seed %llu:", number(tally.images), number(tally.recordings),
                number(tally.operations - tally.flushes), number(tally.flushes), clock.seconds(), number(options.seed));
    for (const auto& [name, count] : tally.by_file_system)
        std::printf(" %s %llu (refused by the file system: %llu)", name.c_str(), number(count), number(tally.refused[name]));
    std::printf("\n%llu images with a heap, %llu with something acknowledged; %llu heaps needed recovery, %llu records replayed, %llu torn\n",
                number(tally.with_heap), number(tally.with_acknowledgements), number(tally.recovered), number(tally.records), number(tally.torn));
    return wrong;
}

}  // namespace
}  // namespace outside

int main(int count, char** words) {
    outside::Options defaults;
    defaults.count = 150;
    defaults.more = {{"--images", "16"}, {"--only", ""}, {"--untorn", "0"}};
    return outside::run_harness(count, words, outside::help, defaults, outside::blocks);
}
