// What does a scrub in the background cost those who commit?
//
// Four threads commit small transactions, each durable before the next begins, for a second each time: without a scrub and with one, in turns. The heap and its second copy are larger than what is changed, and
// lie in the page cache; the scrub reads past it.

#include <vector>

#include <taiyen/inspect/background_scrub.hpp>
#include <taiyen/taiyen.hpp>

#include "committers.hpp"
#include "harness.hpp"
#include "machine.hpp"

namespace {

int run(const bench::Options& options) {
    bench::print_head(options, "A scrub in the background, beside four threads that commit");
    const bench::Folder folder(options.folder());
    const std::size_t mebibytes = options.quick() ? 64 : options.number("--mebibytes");
    const std::size_t rate = options.number("--rate") * 1'000'000;
    const std::chrono::milliseconds time(options.quick() ? 200 : options.number("--milliseconds"));
    for (const taiyen::Durability durability : {taiyen::Durability::sync, taiyen::Durability::async}) {
        const bool waits = durability == taiyen::Durability::sync;
        taiyen::PersistentOptions how;
        how.capture = taiyen::Capture::declared;
        how.durability = durability;
        how.data_file = folder / (waits ? "sync.tyn.data" : "async.tyn.data");
        taiyen::TransactionalHeap heap(taiyen::create_only, folder / (waits ? "sync.tyn" : "async.tyn"), how);
        bench::Counted& counters = bench::make_counted(heap, mebibytes);
        bench::commits(heap, counters, time);  // warm
        std::uint64_t read = 0;
        double seconds = 0;
        const auto beside = [&](std::size_t bytes_per_second) {
            taiyen::BackgroundScrubOptions scrubbing;
            scrubbing.bytes_per_second = bytes_per_second;
            scrubbing.pause = std::chrono::milliseconds(0);
            const auto start = std::chrono::steady_clock::now();
            taiyen::BackgroundScrub scrub(heap, scrubbing);
            const double figure = bench::commits(heap, counters, time);
            read += scrub.stats().bytes_read;
            seconds += bench::microseconds_since(start) / 1e6;
            return figure;
        };
        const std::vector<bench::Samples> samples = bench::interleave(
            options.rounds(), {{"without", [&] { return bench::commits(heap, counters, time); }}, {"with", [&] { return beside(rate); }}});
        std::printf("%s, a heap of %zu MiB in two copies\n", waits ? "Each commit waits until it is durable" : "Commits that nobody waits for",
                    mebibytes);
        bench::Table table({"", "commits per second", "of those without"});
        table.row({"without a scrub", bench::spread(samples[0], 0), "1"});
        table.row({"with a scrub that read " + bench::fixed(static_cast<double>(read) / seconds / 1e6, 0) + " MB/s", bench::spread(samples[1], 0),
                   bench::spread(bench::ratio(samples[1], samples[0]), 3)});
        table.print();
        heap.close();
    }
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    return bench::guarded([&] {
        const bench::Options options(argc, argv, "What does a scrub in the background cost those who commit?", 15, bench::Priority::normal,
                                     {{"--mebibytes", "512", "of the heap"},
                                      {"--rate", "50", "MB per second that the scrub reads"},
                                      {"--milliseconds", "1000", "of each round"}},
                                     bench::Processors::all);
        return run(options);
    });
}
