// How much faster a transactional heap fills while its loading is relaxed: one entry a transaction, by one thread and by eight, until everything is durable; and how near that comes to an archive heap.
//
// Strict loading of millions of entries takes minutes: it runs for a given time, and its rate counts. Relaxed loading and the archive heap run to their end, the save included.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <taiyen/taiyen.hpp>

#include "harness.hpp"
#include "random.hpp"

namespace {

using Map = taiyen::unordered_map<std::int64_t, std::int64_t>;
using Clock = std::chrono::steady_clock;

struct Load {
    taiyen::Capture capture;
    unsigned threads;
    std::uint64_t entries;
    std::chrono::milliseconds strict_time;
    bool relaxed;
};

/// Entries per second.
double run(const bench::Options& options, const Load& load) {
    const bench::Folder folder(options.folder());
    taiyen::PersistentOptions persistent;
    persistent.capture = load.capture;
    taiyen::TransactionalHeap heap(taiyen::create_only, folder / "load.tyn", persistent);
    taiyen::transact(heap, [&] { heap.construct<Map>("map").reserve(load.entries); });
    Map& map = *heap.find<Map>("map");
    heap.snapshot();
    std::optional<taiyen::RelaxedLoading> loading;
    if (load.relaxed) loading.emplace(heap);
    std::atomic<std::uint64_t> loaded{0};
    const auto begin = Clock::now();
    std::vector<std::thread> threads;
    for (unsigned number = 0; number < load.threads; ++number) {
        threads.emplace_back([&, number] {
            std::uint64_t mine = 0;
            for (std::uint64_t i = number; i < load.entries; i += load.threads) {
                if (!load.relaxed && Clock::now() - begin > load.strict_time) break;
                taiyen::Transaction transaction(heap);
                map[static_cast<std::int64_t>(i * 0x9e37'79b9'7f4a'7c15ULL)] = static_cast<std::int64_t>(i);
                transaction.commit();
                ++mine;
            }
            loaded += mine;
        });
    }
    for (std::thread& thread : threads) thread.join();
    if (loading) loading->wait_until_strict();
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    if (map.size() != loaded) throw std::runtime_error("entries were lost");
    return static_cast<double>(loaded) / seconds;
}

using Tree = taiyen::map<std::uint64_t, std::uint64_t>;

template <class F>
double microseconds_an_entry(std::uint64_t entries, const F& fill) {
    const auto begin = Clock::now();
    fill();
    return std::chrono::duration<double, std::micro>(Clock::now() - begin).count() / static_cast<double>(entries);
}

double fill_archive(const bench::Options& options, std::uint64_t entries) {
    const bench::Folder folder(options.folder());
    taiyen::ArchiveHeap heap(taiyen::create_only, folder / "fill.tyn");
    Tree& tree = heap.construct<Tree>("tree");
    heap.snapshot();
    return microseconds_an_entry(entries, [&] {
        bench::Random random(1);
        for (std::uint64_t i = 0; i < entries; ++i) tree[random.next()] = i;
        heap.snapshot();
    });
}

double fill_relaxed(const bench::Options& options, std::uint64_t entries, taiyen::RelaxedRollback takes_back) {
    const bench::Folder folder(options.folder());
    taiyen::TransactionalHeap heap(taiyen::create_only, folder / "fill.tyn");
    taiyen::transact(heap, [&] { heap.construct<Tree>("tree"); });
    Tree& tree = *heap.find<Tree>("tree");
    heap.snapshot();
    return microseconds_an_entry(entries, [&] {
        taiyen::RelaxedLoading loading(heap, takes_back);
        bench::Random random(1);
        for (std::uint64_t i = 0; i < entries; ++i) {
            taiyen::Transaction transaction(heap);
            tree[random.next()] = i;
            transaction.commit();
        }
        loading.wait_until_strict();
    });
}

int run_all(int argc, char** argv) {
    const bench::Options options(
        argc, argv, "How much faster does a transactional heap fill while its loading is relaxed?", 3, bench::Priority::normal,
        {{"--entries", "300000", "of a relaxed load; the aim is stated for 3000000"}, {"--milliseconds", "1000", "of a strict load"}},
        bench::Processors::all);
    const std::uint64_t entries = options.quick() ? 50'000 : options.number("--entries");
    const std::chrono::milliseconds time(options.quick() ? 300 : options.number("--milliseconds"));
    std::printf("taiyen %s, %s; %llu entries of a taiyen::unordered_map, one a transaction\n\n", TAIYEN_BENCH_VERSION, TAIYEN_BENCH_COMPILER,
                static_cast<unsigned long long>(entries));
    bench::Table table({"", "strict, entries/s", "relaxed, entries/s", "relaxed / strict"});
    for (const unsigned threads : {1U, 8U}) {
        for (const taiyen::Capture capture : {taiyen::Capture::pages, taiyen::Capture::stores}) {
            const std::vector<bench::Samples> rates =
                bench::interleave(options.rounds(), {{"strict", [&] { return run(options, {capture, threads, entries, time, false}); }},
                                                     {"relaxed", [&] { return run(options, {capture, threads, entries, time, true}); }}});
            table.row({std::to_string(threads) + " threads, " + (capture == taiyen::Capture::pages ? "pages" : "stores"), bench::spread(rates[0], 0),
                       bench::spread(rates[1], 0), bench::spread(bench::ratio(rates[1], rates[0]), 1)});
        }
    }
    table.print();

    std::printf("\n%llu entries of a taiyen::map with random keys, one a transaction, by one thread; microseconds an entry\n\n",
                static_cast<unsigned long long>(entries));
    const std::vector<bench::Samples> times = bench::interleave(
        options.rounds(), {{"archive heap", [&] { return fill_archive(options, entries); }},
                           {"relaxed, captured", [&] { return fill_relaxed(options, entries, taiyen::RelaxedRollback::transaction); }},
                           {"relaxed", [&] { return fill_relaxed(options, entries, taiyen::RelaxedRollback::loading); }}});
    bench::Table beside({"", "archive heap", "relaxed, captured", "relaxed", "captured / archive", "relaxed / archive"});
    beside.row({"µs", bench::spread(times[0], 2), bench::spread(times[1], 2), bench::spread(times[2], 2),
                bench::spread(bench::ratio(times[1], times[0]), 1), bench::spread(bench::ratio(times[2], times[0]), 2)});
    beside.print();
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    return bench::guarded([&] { return run_all(argc, argv); });
}
