// What does one durable 100-byte update of an ordered map cost, with 750 pages of map nodes updated at random?
//
// Contenders: a TransactionalHeap with each capture mode, LMDB, SQLite, RocksDB and libpmemobj with durable commits, and the yardstick: a bare 4 KiB
// O_DIRECT|O_DSYNC write. All files lie on the same file system. SQLite and RocksDB run twice: with their fastest settings, in steady state, and as they come. Then the same by 1, 2, 4 and 8 threads at once, and what is written per byte changed.

#include <cstdio>
#include <memory>

#include <taiyen/taiyen.hpp>

#include "harness.hpp"
#include "key_values/key_values.hpp"
#include "machine.hpp"

namespace {

constexpr std::size_t keys_of_750_pages = 750 * (4096 / 144);  // a node of the map takes 144 bytes

struct Contenders {
    std::vector<std::unique_ptr<bench::KeyValues>> all;

    void add(std::unique_ptr<bench::KeyValues> one) {
        if (one != nullptr) all.push_back(std::move(one));
    }
    std::vector<const bench::KeyValues*> list() const {
        std::vector<const bench::KeyValues*> result;
        for (const auto& one : all) result.push_back(one.get());
        return result;
    }
};

/// Median microseconds of single commits in a batch; `means` gets the batch's mean.
double batch(bench::KeyValues& store, bench::Random& random, const bench::Keys& keys, std::size_t commits, bench::Samples& means) {
    store.update(random, keys, 3);  // what the contender before left in the caches is not its successor's fault
    bench::Samples single;
    double total = 0;
    for (std::size_t i = 0; i < commits; ++i) {
        single.add(bench::microseconds_of([&] { store.update(random, keys, 1); }));
        total += single[i];
    }
    means.add(total / static_cast<double>(commits));
    return single.median();
}

double bare_batch(bench::DirectFile& bare, std::size_t commits, bench::Samples& means) {
    bench::Samples single;
    double total = 0;
    for (std::size_t i = 0; i < commits; ++i) {
        single.add(bare.write(4096));
        total += single[i];
    }
    means.add(total / static_cast<double>(commits));
    return single.median();
}

void one_thread(const bench::Options& options, Contenders& stores, const bench::Keys& keys, bench::DirectFile& bare) {
    const std::size_t commits = options.quick() ? 20 : 100;
    std::vector<bench::Samples> means(stores.all.size() + 1);
    std::vector<bench::Contender> contenders{{"bare 4 KiB direct synchronous write", [&] { return bare_batch(bare, commits, means[0]); }}};
    std::vector<bench::Random> random;
    for (std::size_t i = 0; i < stores.all.size(); ++i) random.emplace_back(31 + i);
    for (std::size_t i = 0; i < stores.all.size(); ++i)
        contenders.push_back({stores.all[i]->name(), [&, i] { return batch(*stores.all[i], random[i], keys, commits, means[i + 1]); }});
    const auto samples = bench::interleave(options.rounds(), contenders);
    std::printf("One thread; %zu commits of each contender per round: their median, and their mean\n", commits);
    bench::Table table({"", "median, µs", "÷ bare write", "÷ first row of taiyen", "mean, µs"});
    for (std::size_t i = 0; i < contenders.size(); ++i) {
        table.row({contenders[i].name, bench::spread(samples[i]), bench::spread(bench::ratio(samples[i], samples[0]), 2),
                   i == 0 ? "" : bench::spread(bench::ratio(samples[i], samples[1]), 2), bench::spread(means[i])});
    }
    table.print();
}

void threads(const bench::Options& options, Contenders& stores, const bench::Keys& keys) {
    const double seconds = options.quick() ? 0.05 : 0.2;
    const std::vector<std::size_t> counts{1, 2, 4, 8};
    std::vector<bench::Contender> contenders;
    for (const auto& store : stores.all)
        for (const std::size_t count : counts)
            contenders.push_back({store->name(), [&, count, one = store.get()] { return bench::update_rate(*one, keys, count, seconds); }});
    const auto samples = bench::interleave(options.quick() ? 1 : std::min(options.rounds(), 5), contenders);
    std::printf("So many threads committing for %.2f s each: commits per second, and how many times the rate of one thread\n", seconds);
    bench::Table table({"", "1", "2", "4", "8", "2 threads", "4 threads", "8 threads"});
    for (std::size_t i = 0; i < stores.all.size(); ++i) {
        std::vector<std::string> cells{stores.all[i]->name()};
        const std::size_t first = i * counts.size();
        for (std::size_t k = 0; k < counts.size(); ++k) cells.push_back(bench::fixed(samples[first + k].median(), 0));
        for (std::size_t k = 1; k < counts.size(); ++k) cells.push_back(bench::spread(bench::ratio(samples[first + k], samples[first]), 2));
        table.row(std::move(cells));
    }
    table.print();

    // Only one thread writes at a time, and in page mode what it opens and protects interrupts every other processor that runs a thread of the process.
    std::vector<bench::Contender> bound;
    std::vector<std::string> names;
    for (const auto& store : stores.all) {
        if (dynamic_cast<bench::HeapKeyValues*>(store.get()) == nullptr) continue;
        names.push_back(store->name());
        for (const std::size_t count : {std::size_t{1}, std::size_t{8}}) {
            bound.push_back({store->name(),
                             [&, count, one = store.get()] { return bench::update_rate(*one, keys, count, seconds, bench::Spread::one_processor); }});
        }
    }
    const auto on_one = bench::interleave(options.quick() ? 1 : std::min(options.rounds(), 5), bound);
    std::printf("The same with all committing threads on one processor\n");
    bench::Table second({"", "1", "8", "8 threads"});
    for (std::size_t i = 0; i < names.size(); ++i) {
        second.row({names[i], bench::fixed(on_one[2 * i].median(), 0), bench::fixed(on_one[2 * i + 1].median(), 0),
                    bench::spread(bench::ratio(on_one[2 * i + 1], on_one[2 * i]), 2)});
    }
    second.print();
}

/// What one thread's commits write, by the kernel's books. Without what snapshots write, or one that falls into one row would look like its commits' price.
void volume(const bench::Options& options, Contenders& stores, const bench::Keys& keys) {
    const std::size_t commits = options.quick() ? 50 : 500;
    std::printf(
        "Bytes written per commit by one thread (100 bytes changed), after %zu commits: passed to write calls, and on their way to the device\n",
        commits);
    bench::Table table({"", "write calls", "bytes written", "÷ bytes changed", "to the device"});
    for (const auto& store : stores.all) {
        bench::Random random(5);
        if (auto* const ours = dynamic_cast<bench::HeapKeyValues*>(store.get()))
            ours->heap().snapshot();  // the log is empty, and far from asking for the next one
        const bench::Counters before = bench::Counters::now();
        store->update(random, keys, commits);
        const bench::Counters after = bench::Counters::now();
        const auto each = [&](std::uint64_t from, std::uint64_t to) { return static_cast<double>(to - from) / static_cast<double>(commits); };
        table.row({store->name(), bench::fixed(each(before.write_calls, after.write_calls), 2),
                   bench::fixed(each(before.write_bytes, after.write_bytes), 0), bench::fixed(each(before.write_bytes, after.write_bytes) / 100),
                   bench::fixed(each(before.device_write_bytes, after.device_write_bytes), 0)});
    }
    table.print();
}

int run(const bench::Options& options) {
    bench::print_head(options, "One durable 100-byte update per transaction");
    const bench::Folder folder(options.folder());
    const std::size_t count = keys_of_750_pages;
    const bench::Keys keys(count);
    const auto setup = [&](const char* name, bench::Settings settings = bench::Settings::fastest) {
        return bench::Setup{folder / name, count, bench::Commit::sync, settings};
    };
    taiyen::PersistentOptions pages;
    taiyen::PersistentOptions declared;
    declared.capture = taiyen::Capture::declared;
    Contenders stores;
    const std::string only = options.text("--only");
    const auto wanted = [&](const char* name) { return only.empty() || only == name; };
    if (wanted("pages"))
        stores.add(bench::make_if_possible("taiyen", [&] { return bench::make_taiyen(setup("pages"), bench::Container::map, pages); }));
    if (wanted("stores"))
        stores.add(
            bench::make_if_possible("taiyen_stores", [&] { return bench::make_taiyen_stores(setup("stores"), bench::Container::map, pages); }));
    if (wanted("declared"))
        stores.add(bench::make_if_possible("taiyen", [&] { return bench::make_taiyen(setup("declared"), bench::Container::map, declared); }));
    if (wanted("lmdb")) stores.add(bench::make_if_possible("lmdb", [&] { return bench::make_lmdb(setup("lmdb")); }));
    if (wanted("sqlite")) stores.add(bench::make_if_possible("sqlite", [&] { return bench::make_sqlite(setup("sqlite")); }));
    if (wanted("rocksdb")) stores.add(bench::make_if_possible("rocksdb", [&] { return bench::make_rocksdb(setup("rocksdb")); }));
    if (wanted("sqlite-defaults"))
        stores.add(bench::make_if_possible("sqlite", [&] { return bench::make_sqlite(setup("sqlite-defaults", bench::Settings::defaults)); }));
    if (wanted("rocksdb-defaults"))
        stores.add(bench::make_if_possible("rocksdb", [&] { return bench::make_rocksdb(setup("rocksdb-defaults", bench::Settings::defaults)); }));
    if (wanted("pmemobj")) stores.add(bench::make_if_possible("pmemobj", [&] { return bench::make_pmemobj(setup("pmemobj")); }));
    bench::print_contenders(stores.list());
    for (const auto& store : stores.all) {
        if (auto* const heap = dynamic_cast<bench::HeapKeyValues*>(store.get())) {
            heap->warm_up();
            std::printf("%s: %zu keys on %zu pages\n", heap->name().c_str(), count, heap->pages());
        }
    }
    std::printf("\n");
    bench::DirectFile bare(folder / "bare", std::size_t{4} << 20U);
    bench::settle(folder / "settle");
    one_thread(options, stores, keys, bare);
    threads(options, stores, keys);
    volume(options, stores, keys);
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    return bench::guarded([&] {
        return run(bench::Options(
            argc, argv, "What does one durable 100-byte update of an ordered map cost, beside what people use now?", 30, bench::Priority::real_time,
            {{"--only", "", "one contender alone: pages, stores, declared, lmdb, sqlite, rocksdb, sqlite-defaults, rocksdb-defaults, pmemobj"}},
            bench::Processors::all));
    });
}
