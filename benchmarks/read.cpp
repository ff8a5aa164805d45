// What does reading one of a million keys in a transaction of its own cost, and do readers keep their rate while somebody commits?
//
// taiyen: a ReadLock and a find in a flat_hash_map, unordered_map, map or btree_map; LMDB: renewing a read transaction and a get.

#include <sched.h>
#include <sys/resource.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <exception>
#include <map>
#include <memory>
#include <stdexcept>
#include <thread>
#include <unordered_map>

#include <taiyen/taiyen.hpp>

#ifdef TAIYEN_BENCH_FLAT_MAP
#include <boost/unordered/unordered_flat_map.hpp>
#endif

#include "harness.hpp"
#include "key_values/key_values.hpp"
#include "machine.hpp"

namespace {

std::atomic<std::uint64_t> sink{0};  ///< what was read goes somewhere

/// The same container in ordinary memory, without a lock: what find itself costs.
template <class Map>
double find_alone(const Map& map, bench::Random& random, const bench::Keys& keys, std::size_t reads) {
    std::uint64_t sum = 0;
    const double time = bench::processor_microseconds_of([&] {
        for (std::size_t i = 0; i < reads; ++i) sum += map.find(keys.pick(random))->second[7];
    });
    sink.fetch_add(sum);
    return time * 1e3 / static_cast<double>(reads);
}

/// A reader never waits for long, and with real-time priority it would keep what serves the writer's disk from its processor for ever.
void give_up_real_time() {
    const sched_param parameter{};
    ::sched_setscheduler(0, SCHED_OTHER, &parameter);
    ::setpriority(PRIO_PROCESS, 0, -15);  // if it is allowed
}

/// To the so-many-th from the last one of the processors that the process may use, so that a writer and a reader don't push each other about.
void stay_on_processor(std::size_t from_last) {
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
    const auto count = static_cast<std::size_t>(CPU_COUNT(&allowed));
    if (count < 2) return;
    std::size_t skip = from_last % count;
    for (std::size_t processor = CPU_SETSIZE; processor-- > 0;) {
        if (!CPU_ISSET(processor, &allowed) || skip-- != 0) continue;
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(processor, &one);
        ::sched_setaffinity(0, sizeof one, &one);
        return;
    }
}

struct Rates {
    double wall = 0;       ///< reads per second
    double processor = 0;  ///< reads per second of the readers' processor time: without what others on the machine take, and without sleep
};

/// A container in ordinary memory that nobody else touches: what a processor's reads lose to whatever goes on beside them on the machine.
class Alone final : public bench::KeyValues {
public:
    explicit Alone(const std::unordered_map<std::uint64_t, bench::Value>& map)
        : KeyValues("std::unordered_map in ordinary memory, no lock", ""), map_(map) {}
    void update(bench::Random& /*random*/, const bench::Keys& /*keys*/, std::size_t /*transactions*/) override {
        throw std::logic_error("only read here");
    }
    std::uint64_t read(bench::Random& random, const bench::Keys& keys, std::size_t transactions) override {
        std::uint64_t sum = 0;
        for (std::size_t i = 0; i < transactions; ++i) sum += map_.find(keys.pick(random))->second[7];
        return sum;
    }

private:
    const std::unordered_map<std::uint64_t, bench::Value>& map_;
};

/// The rates of so many threads, for about so long, beside a thread that commits to `written` (or to nothing).
Rates read_rate(bench::KeyValues& store, const bench::Keys& keys, std::size_t readers, bench::KeyValues* written, double seconds,
                bench::Samples* commits) {
    static std::uint64_t runs = 0;
    const std::uint64_t run = ++runs;
    std::atomic<bool> stop{false};
    std::atomic<std::uint64_t> done{0};
    std::atomic<double> processor{0};
    std::uint64_t committed = 0;
    std::thread writer;
    if (written != nullptr) {
        writer = std::thread([&] {
            stay_on_processor(readers);
            bench::Random random(run * 1000 + 999);
            for (; !stop.load(std::memory_order_relaxed); ++committed) written->update(random, keys, 1);
        });
        ::usleep(2'000);
    }
    std::vector<std::thread> threads;
    const auto start = std::chrono::steady_clock::now();
    for (std::size_t i = 0; i < readers; ++i) {
        threads.emplace_back([&, i] {
            give_up_real_time();
            stay_on_processor(i);
            bench::Random random(run * 1000 + i);
            std::uint64_t mine = 0;
            processor.fetch_add(bench::processor_microseconds_of([&] {
                for (; !stop.load(std::memory_order_relaxed); mine += 100) sink.fetch_add(store.read(random, keys, 100), std::memory_order_relaxed);
            }));
            done.fetch_add(mine);
        });
    }
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    stop.store(true);
    for (std::thread& thread : threads) thread.join();
    const double took = bench::microseconds_since(start);
    if (writer.joinable()) writer.join();
    if (commits != nullptr) commits->add(static_cast<double>(committed) / took * 1e6);
    const auto reads = static_cast<double>(done.load());
    return {reads / took * 1e6, reads / processor.load() * 1e6};
}

int run(const bench::Options& options) {
    bench::print_head(options, "Reading one key per transaction");
    const bench::Folder folder(options.folder());
    const std::size_t count = options.quick() ? 50'000 : 1'000'000;
    const bench::Keys keys(count);
    const auto setup = [&](const char* name, bench::Commit commit = bench::Commit::sync) { return bench::Setup{folder / name, count, commit}; };
    taiyen::PersistentOptions heap;
    heap.capture = taiyen::Capture::declared;
    std::vector<std::unique_ptr<bench::KeyValues>> stores;
    const auto add = [&](std::unique_ptr<bench::KeyValues> one) {
        if (one != nullptr) stores.push_back(std::move(one));
    };
    add(bench::make_if_possible("lmdb", [&] { return bench::make_lmdb(setup("lmdb")); }));
    const bool compared = !stores.empty();
    add(bench::make_if_possible("taiyen", [&] { return bench::make_taiyen(setup("flat_hash"), bench::Container::flat_hash_map, heap); }));
    add(bench::make_if_possible("taiyen", [&] { return bench::make_taiyen(setup("unordered"), bench::Container::unordered_map, heap); }));
    add(bench::make_if_possible("taiyen", [&] { return bench::make_taiyen(setup("map"), bench::Container::map, heap); }));
    add(bench::make_if_possible("taiyen", [&] { return bench::make_taiyen(setup("btree"), bench::Container::btree_map, heap); }));
    const std::size_t synchronous = stores.size();
    add(bench::make_if_possible(
        "taiyen", [&] { return bench::make_taiyen(setup("unordered-async", bench::Commit::async), bench::Container::unordered_map, heap); }));
    std::vector<const bench::KeyValues*> list;
    for (const auto& store : stores) list.push_back(store.get());
    bench::print_contenders(list);
    for (const auto& store : stores)
        if (auto* const one = dynamic_cast<bench::HeapKeyValues*>(store.get())) one->warm_up();
    bench::settle(folder / "settle");

    const std::size_t reads = options.quick() ? 10'000 : 100'000;
    std::vector<bench::Contender> contenders;
    std::vector<bench::Random> random;
    for (std::size_t i = 0; i < stores.size(); ++i) random.emplace_back(5 + i);
    for (std::size_t i = 0; i < synchronous; ++i) {
        contenders.push_back({stores[i]->name(), [&, i] {
                                  sink.fetch_add(stores[i]->read(random[i], keys, 1000));
                                  return bench::processor_microseconds_of([&] { sink.fetch_add(stores[i]->read(random[i], keys, reads)); }) * 1e3 /
                                         static_cast<double>(reads);
                              }});
    }
    std::unordered_map<std::uint64_t, bench::Value> hashed;
    std::map<std::uint64_t, bench::Value> ordered;
    for (std::size_t i = 0; i < count; ++i) {
        hashed.emplace(bench::key_of(i), bench::first_value(bench::key_of(i)));
        ordered.emplace(bench::key_of(i), bench::first_value(bench::key_of(i)));
    }
    using Pair = std::pair<const std::uint64_t, bench::Value>;
    taiyen::flat_hash_map<std::uint64_t, bench::Value, taiyen::hash<std::uint64_t>, std::equal_to<>, std::allocator<Pair>> flat(hashed.begin(),
                                                                                                                                hashed.end());
    bench::Random other(77);
    contenders.push_back({"taiyen::flat_hash_map in ordinary memory, no lock", [&] { return find_alone(flat, other, keys, reads); }});
#ifdef TAIYEN_BENCH_FLAT_MAP
    const boost::unordered_flat_map<std::uint64_t, bench::Value> boosts(hashed.begin(), hashed.end());
    contenders.push_back({"boost::unordered_flat_map in ordinary memory, no lock", [&] { return find_alone(boosts, other, keys, reads); }});
#endif
    contenders.push_back({"std::unordered_map in ordinary memory, no lock", [&] { return find_alone(hashed, other, keys, reads); }});
    contenders.push_back({"std::map in ordinary memory, no lock", [&] { return find_alone(ordered, other, keys, reads); }});
    const auto samples = bench::interleave(options.rounds(), contenders);
    std::printf("Random reads of %zu keys, one thread, %zu per round\n", count, reads);
    bench::Table table({"", "ns of processor time", "rate ÷ LMDB's"});
    for (std::size_t i = 0; i < contenders.size(); ++i)
        table.row({contenders[i].name, bench::spread(samples[i], 0), compared ? bench::spread(bench::ratio(samples[0], samples[i]), 2) : ""});
    table.print();

    const double seconds = options.quick() ? 0.05 : 0.3;
    // Each beside nobody, beside a writer of another store that shares nothing with it but the machine, and beside a writer of its own.
    enum Beside { nobody, another, own };
    Alone alone(hashed);
    std::vector<bench::KeyValues*> reading;
    for (const auto& store : stores) reading.push_back(store.get());
    reading.push_back(&alone);
    std::vector<bench::Contender> turns;
    std::vector<std::array<bench::Samples, 3>> walls(reading.size());
    std::vector<std::array<bench::Samples, 3>> by_processor(reading.size());
    std::vector<std::array<bench::Samples, 3>> commits(reading.size());
    for (std::size_t i = 0; i < reading.size(); ++i) {
        // Of the two synchronous heaps, the one that isn't read.
        bench::KeyValues* const other_store =
            reading[i] == stores[synchronous - 1].get() ? stores[synchronous - 2].get() : stores[synchronous - 1].get();
        for (const Beside beside : {nobody, another, own}) {
            if (beside == own && reading[i] == &alone) continue;
            turns.push_back({reading[i]->name(), [&, i, beside, other_store] {
                                 bench::KeyValues* const written = beside == nobody ? nullptr : beside == another ? other_store : reading[i];
                                 const Rates rates =
                                     read_rate(*reading[i], keys, 1, written, seconds, written != nullptr ? &commits[i][beside] : nullptr);
                                 walls[i][beside].add(rates.wall);
                                 by_processor[i][beside].add(rates.processor);
                                 return rates.wall;
                             }});
        }
    }
    bench::interleave(std::min(options.rounds(), 9), turns);
    std::printf(
        "One reading thread, alone and beside one that commits as fast as it can on another processor, to another store (which shares only the "
        "machine\n"
        "with the reader) and to the one that is read, %.2f s each\n",
        seconds);
    bench::Table beside({"", "reads/s alone", "kept beside another store's writer", "by processor time", "its commits/s",
                         "kept beside its own writer", "by processor time", "commits/s"});
    const auto kept = [](const std::array<bench::Samples, 3>& rates, Beside which) {
        return bench::spread(bench::ratio(rates[which], rates[nobody]), 2);
    };
    for (std::size_t i = 0; i < reading.size(); ++i) {
        const bool written = reading[i] != &alone;
        beside.row({reading[i]->name(), bench::spread(walls[i][nobody], 0), kept(walls[i], another), kept(by_processor[i], another),
                    bench::spread(commits[i][another], 0), written ? kept(walls[i], own) : "", written ? kept(by_processor[i], own) : "",
                    written ? bench::spread(commits[i][own], 0) : ""});
    }
    beside.print();
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    return bench::guarded([&] {
        return run(bench::Options(argc, argv, "What does reading one of a million keys in a transaction of its own cost, alone and beside a writer?",
                                  15, bench::Priority::real_time, {}, bench::Processors::all));
    });
}
