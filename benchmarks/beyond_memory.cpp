// Data four times as large as memory: how many random look-ups and random durable updates of 100-byte values per second, in which container of a heap, and in LMDB and RocksDB?
//
// Each contender loads its files without a limit, in the order of the keys. In each round a process of its own enters a control group of so much memory, page cache included, opens the files, of which nothing is cached, looks
// keys up until memory is full, and is then measured: look-ups in a transaction each, then updates in a transaction each, durable when it returns.

#include <sys/wait.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>

#include <taiyen/taiyen.hpp>

#include "harness.hpp"
#include "key_values/key_values.hpp"
#include "machine.hpp"
#include "memory_group.hpp"
#include "own_process.hpp"

namespace {

struct Figures {
    double reads = 0;               ///< per second
    double kilobytes_per_read = 0;  ///< from the device
    double updates = 0;
    double kilobytes_per_update = 0;
    double kilobytes_written = 0;  ///< per update
};

struct Subject {
    std::string name;
    std::string folder;
    std::function<std::unique_ptr<bench::KeyValues>(bench::Setup)> make;
};

/// Calls `action(n)` until so much time has passed; calls per second.
template <class F>
double rate_of(double seconds, std::size_t at_once, F&& action) {
    const auto start = std::chrono::steady_clock::now();
    std::uint64_t done = 0;
    double took = 0;
    do {
        action(at_once);
        done += at_once;
        took = bench::microseconds_since(start) / 1e6;
    } while (took < seconds);
    return static_cast<double>(done) / took;
}

Figures measure(const Subject& subject, const bench::Setup& setup, double seconds, std::uint64_t seed) {
    const auto store = subject.make(setup);
    if (store == nullptr) throw std::runtime_error(subject.name + ": built without it");
    const bench::Keys keys(setup.keys);
    bench::Random random(seed);
    std::uint64_t sum = 0;
    const auto read = [&](std::size_t n) { sum += store->read(random, keys, n); };
    const auto update = [&](std::size_t n) { store->update(random, keys, n); };
    Figures figures;
    // Until its memory is full: as much was read as it has.
    for (const auto start = std::chrono::steady_clock::now();
         bench::Counters::now().device_read_bytes < 3 * setup.memory / 2 && bench::microseconds_since(start) < 60e6;) {
        read(100);
    }
    const auto rate = [&](double& result, double& kilobytes, double* written, auto&& action, std::size_t at_once) {
        const auto from = bench::Counters::now();
        const auto start = std::chrono::steady_clock::now();
        result = rate_of(seconds, at_once, action);
        const double count = result * bench::microseconds_since(start) / 1e6;
        const auto to = bench::Counters::now();
        kilobytes = static_cast<double>(to.device_read_bytes - from.device_read_bytes) / 1024 / count;
        if (written != nullptr) *written = static_cast<double>(to.device_write_bytes - from.device_write_bytes) / 1024 / count;
    };
    rate(figures.reads, figures.kilobytes_per_read, nullptr, read, 100);
    rate_of(seconds / 4, 10, update);
    rate(figures.updates, figures.kilobytes_per_update, &figures.kilobytes_written, update, 10);
    if (sum == 1) std::printf("\n");
    return figures;
}

int run(const bench::Options& options) {
    bench::print_head(options, "Random look-ups and updates of data larger than memory");
    const std::size_t memory = options.number("--memory") << 20U;
    const std::size_t keys = memory * options.number("--times") / (sizeof(std::uint64_t) + sizeof(bench::Value));
    const double seconds = options.quick() ? 1 : static_cast<double>(options.number("--seconds"));
    const bench::Folder folder(options.folder());
    std::unique_ptr<bench::MemoryGroup> group;
    if (options.text("--group") != "none") group = std::make_unique<bench::MemoryGroup>(options.text("--group"), memory);

    std::vector<Subject> subjects;
    const auto taiyen_with = [&](const char* name, const char* place, bench::Container container, taiyen::ReadAhead read_ahead) {
        subjects.push_back({name, place, [=](const bench::Setup& setup) -> std::unique_ptr<bench::KeyValues> {
                                taiyen::PersistentOptions heap;
                                heap.capture = taiyen::Capture::pages;
                                heap.read_ahead = read_ahead;
                                return bench::make_taiyen(setup, container, heap);
                            }});
    };
    const taiyen::ReadAhead automatic = taiyen::ReadAhead::automatic;
    subjects.push_back({"LMDB", "lmdb", [](const bench::Setup& setup) { return bench::make_lmdb(setup); }});
    subjects.push_back({"RocksDB", "rocksdb", [](const bench::Setup& setup) { return bench::make_rocksdb(setup); }});
    taiyen_with("boost::unordered_flat_map in a heap", "flat", bench::Container::flat_map, automatic);
    taiyen_with("absl's B-tree in a heap, nodes of a page", "pages", bench::Container::absl_btree_map_pages, automatic);
    taiyen_with("absl::btree_map in a heap", "absl", bench::Container::absl_btree_map, automatic);
    taiyen_with("taiyen::btree_map", "btree", bench::Container::btree_map, automatic);
    taiyen_with("taiyen::unordered_map", "unordered", bench::Container::unordered_map, automatic);
    taiyen_with("taiyen::map", "map", bench::Container::map, automatic);
    if (options.number("--normal") != 0) taiyen_with("taiyen::map, ReadAhead::normal", "map", bench::Container::map, taiyen::ReadAhead::normal);
    const std::string only = options.text("--only");
    std::erase_if(subjects,
                  [&](const Subject& subject) { return !only.empty() && ("," + only + ",").find("," + subject.folder + ",") == std::string::npos; });

    std::printf("%zu keys, %zu MiB of keys and values; %zu MiB of memory for a contender and its page cache; %s\n\n", keys,
                keys * (sizeof(std::uint64_t) + sizeof(bench::Value)) >> 20U, memory >> 20U,
                group != nullptr ? group->folder().c_str() : "as its caller has limited it");
    const auto setup_of = [&](const Subject& subject, bool is_there) {
        return bench::Setup{folder / subject.folder, keys, bench::Commit::sync, bench::Settings::fastest, memory, true, is_there};
    };
    std::vector<std::string> made;
    std::vector<Subject> there;
    for (const Subject& subject : subjects) {
        if (std::find(made.begin(), made.end(), subject.folder) == made.end()) {
            const auto bytes = bench::in_child<std::uintmax_t>([&] {
                const auto store = subject.make(setup_of(subject, false));
                if (store == nullptr) throw std::runtime_error(subject.name + ": built without it");
                bench::print_contenders({store.get()});
                return std::uintmax_t{1};
            });
            if (!bytes) {
                std::printf("%s: not measured\n", subject.name.c_str());
                continue;
            }
            made.push_back(subject.folder);
        }
        there.push_back(subject);
    }
    bench::settle(folder / "settle");

    std::vector<std::array<bench::Samples, 5>> samples(there.size());
    std::vector<bench::Contender> contenders;
    std::uint64_t seed = 100;
    for (std::size_t i = 0; i < there.size(); ++i) {
        contenders.push_back({there[i].name, [&, i] {
                                  bench::forget_folder(folder / there[i].folder);
                                  ++seed;
                                  const auto figures = bench::in_child<Figures>([&] {
                                      if (group != nullptr) group->enter();
                                      return measure(there[i], setup_of(there[i], true), seconds, seed);
                                  });
                                  if (!figures) throw std::runtime_error(there[i].name + " failed");
                                  samples[i][0].add(figures->reads);
                                  samples[i][1].add(figures->kilobytes_per_read);
                                  samples[i][2].add(figures->updates);
                                  samples[i][3].add(figures->kilobytes_per_update);
                                  samples[i][4].add(figures->kilobytes_written);
                                  bench::settle(folder / "settle");
                                  return figures->reads;
                              }});
    }
    bench::interleave(options.rounds(), contenders);
    bench::Table table(
        {"", "look-ups/s", ("÷ " + there.front().name), "KiB read", "updates/s", ("÷ " + there.front().name), "KiB read", "KiB written"});
    for (std::size_t i = 0; i < there.size(); ++i) {
        table.row({there[i].name, bench::spread(samples[i][0], 0), bench::spread(bench::ratio(samples[i][0], samples[0][0]), 2),
                   bench::fixed(samples[i][1].median()), bench::spread(samples[i][2], 0),
                   bench::spread(bench::ratio(samples[i][2], samples[0][2]), 2), bench::fixed(samples[i][3].median()),
                   bench::fixed(samples[i][4].median())});
    }
    table.print();
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    return bench::guarded([&] {
        return run(bench::Options(
            argc, argv, "Data four times as large as memory: how many random look-ups and durable updates of 100-byte values per second?", 3,
            bench::Priority::normal,
            {{"--memory", "256", "MiB of memory for each contender, page cache included"},
             {"--times", "4", "so many times as much data"},
             {"--seconds", "5", "of look-ups, and of updates, in each round"},
             {"--normal", "0", "1: a heap with ReadAhead::normal, too"},
             {"--only", "", "contenders by their folders, with commas between them: lmdb, rocksdb, flat, pages, btree, unordered, map"},
             {"--group", "", "a memory control group that is there, or \"none\": it is limited already"}},
            bench::Processors::all));
    });
}
