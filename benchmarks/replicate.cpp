// What does replication cost those who commit, how far behind is the target, and how long does restoring take?
//
// Four threads commit small transactions for a second each time: alone, and while the heap is replicated into a directory of the same disk, in turns. Then the heap is restored.

#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include <taiyen/taiyen.hpp>

#include "committers.hpp"
#include "harness.hpp"
#include "machine.hpp"

namespace {

std::uint64_t bytes_in(const std::filesystem::path& directory) {
    std::uint64_t bytes = 0;
    for (const auto& file : std::filesystem::directory_iterator(directory)) bytes += file.file_size();
    return bytes;
}

int run(const bench::Options& options) {
    bench::print_head(options, "A heap that is replicated into a directory, beside four threads that commit");
    const bench::Folder folder(options.folder());
    const std::size_t mebibytes = options.quick() ? 32 : options.number("--mebibytes");
    const std::chrono::milliseconds time(options.quick() ? 200 : options.number("--milliseconds"));
    for (const taiyen::Durability durability : {taiyen::Durability::sync, taiyen::Durability::async}) {
        const bool waits = durability == taiyen::Durability::sync;
        const std::filesystem::path frames = folder / (waits ? "sync" : "async");
        std::filesystem::create_directory(frames);
        const auto target = std::make_shared<taiyen::DirectoryTarget>(frames);
        taiyen::PersistentOptions how;
        how.capture = taiyen::Capture::declared;
        how.durability = durability;
        const std::filesystem::path path = folder / (waits ? "sync.tyn" : "async.tyn");
        std::optional<taiyen::TransactionalHeap> heap(std::in_place, taiyen::create_only, path, how);
        bench::Counted& counters = bench::make_counted(*heap, mebibytes);
        bench::commits(*heap, counters, time);  // warm
        bench::Samples behind;
        bench::Samples catching_up;
        const auto alone = [&] { return bench::commits(*heap, counters, time); };
        const auto replicated = [&] {
            taiyen::Replication replication(*heap, target);
            const double figure = alone();
            behind.add(static_cast<double>(replication.status().behind));
            const taiyen::Serial newest = heap->last_durable();
            catching_up.add(bench::microseconds_of([&] {
                                if (!replication.wait_replicated(newest, std::chrono::minutes(10)))
                                    throw std::runtime_error("the target doesn't get it");
                            }) /
                            1e3);
            return figure;
        };
        const std::vector<bench::Samples> samples = bench::interleave(options.rounds(), {{"alone", alone}, {"replicated", replicated}});
        std::printf("%s, a heap of %zu MiB\n", waits ? "Each commit waits until it is durable" : "Commits that nobody waits for", mebibytes);
        bench::Table table({"", "commits per second", "of those alone"});
        table.row({"alone", bench::spread(samples[0], 0), "1"});
        table.row({"replicated", bench::spread(samples[1], 0), bench::spread(bench::ratio(samples[1], samples[0]), 3)});
        table.print();
        std::printf("transactions behind when they stopped: %s; sent %s ms later\n", bench::spread(behind, 0).c_str(),
                    bench::spread(catching_up, 1).c_str());
        {
            taiyen::Replication replication(*heap, target);
            replication.make_base();
        }
        heap->close();
        heap.reset();
        const double microseconds = bench::microseconds_of([&] { (void)taiyen::restore(*target, folder / "restored.tyn"); });
        std::printf("restored in %.2f s; the directory has %.2f GB, the heap %.2f GB\n\n", microseconds / 1e6,
                    static_cast<double>(bytes_in(frames)) / 1e9, static_cast<double>(std::filesystem::file_size(folder / "restored.tyn")) / 1e9);
        std::filesystem::remove(folder / "restored.tyn");
    }
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    return bench::guarded([&] {
        const bench::Options options(argc, argv, "What does replication cost those who commit, and how far behind is the target?", 11,
                                     bench::Priority::normal, {{"--mebibytes", "128", "of the heap"}, {"--milliseconds", "1000", "of each round"}},
                                     bench::Processors::all);
        return run(options);
    });
}
