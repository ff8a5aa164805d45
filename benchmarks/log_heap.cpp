// Values by number that are written, read and removed all the time: what does a LogHeap cost beside LMDB, RocksDB, libpmemobj and a TransactionalHeap, and what does cleaning cost as it fills?
//
// One million values of 100 bytes. Every contender looks its keys up. First nobody waits for the disk, then each update is durable; mixes are sums of what a read and an update take.
// Then the log heap alone: half of the operations update, half remove and put, with sizes that shift, until the heap was written several times over.

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <taiyen/taiyen.hpp>

#include "harness.hpp"
#include "key_values/key_values.hpp"
#include "machine.hpp"
#include "memory_group.hpp"
#include "own_process.hpp"

namespace {

class LogHeapValues final : public bench::KeyValues {
public:
    explicit LogHeapValues(const bench::Setup& setup)
        : KeyValues("LogHeap", "64 MiB of ring, a window of 10 ms; ids are the keys"), heap_(opened(setup)) {
        taiyen::LogBatch batch;
        for (const std::uint64_t key : bench::sorted_keys(setup.keys)) {
            batch.put(taiyen::LogId{key}, bytes_of(bench::first_value(key)));
            if (batch.size() < 10'000) continue;
            heap_.commit(batch);
            batch.clear();
        }
        heap_.commit(batch);
        heap_.checkpoint();
    }
    void update(bench::Random& random, const bench::Keys& keys, std::size_t transactions) override {
        for (std::size_t i = 0; i < transactions; ++i) {
            const bench::Update next = bench::next_update(random, keys);
            heap_.put_as(taiyen::LogId{next.key}, bytes_of(next.value));
        }
    }
    std::uint64_t read(bench::Random& random, const bench::Keys& keys, std::size_t transactions) override {
        std::uint64_t sum = 0;
        for (std::size_t i = 0; i < transactions; ++i) {
            const taiyen::LogView view = heap_.get(taiyen::LogId{keys.pick(random)});
            sum += view.as<bench::Value>()[7];
        }
        return sum;
    }

private:
    static std::span<const std::byte> bytes_of(const bench::Value& value) { return std::as_bytes(std::span(value)); }
    static taiyen::LogHeap opened(const bench::Setup& setup) {
        std::filesystem::create_directories(setup.folder);
        taiyen::LogHeapOptions options;
        options.capacity = std::size_t{1} << 30U;
        options.durability = setup.commit == bench::Commit::sync ? taiyen::Durability::sync : taiyen::Durability::async;
        return {taiyen::create_only, setup.folder / "values.tyl", options};
    }
    taiyen::LogHeap heap_;
};

struct Contenders {
    std::vector<std::unique_ptr<bench::KeyValues>> all;
    Contenders(const bench::Folder& folder, std::size_t count, bench::Commit commit) {
        const auto add = [&](const char* name, auto&& make) {
            auto one = bench::make_if_possible(name, [&] {
                return make(bench::Setup{folder / (std::string(name) + (commit == bench::Commit::sync ? "-sync" : "")), count, commit});
            });
            if (one != nullptr) all.push_back(std::move(one));
        };
        taiyen::PersistentOptions declared;
        declared.capture = taiyen::Capture::declared;
        add("log-heap", [](const bench::Setup& setup) -> std::unique_ptr<bench::KeyValues> { return std::make_unique<LogHeapValues>(setup); });
        add("declared", [&](const bench::Setup& setup) -> std::unique_ptr<bench::KeyValues> {
            return bench::make_taiyen(setup, bench::Container::unordered_map, declared);
        });
        add("lmdb", bench::make_lmdb);
        add("rocksdb", bench::make_rocksdb);
        add("pmemobj", bench::make_pmemobj);
    }
};

void compare(const bench::Options& options, const bench::Folder& folder, std::size_t count, bench::Commit commit) {
    const bool waits = commit == bench::Commit::sync;
    Contenders contenders(folder, count, commit);
    std::vector<const bench::KeyValues*> list;
    for (const auto& one : contenders.all) list.push_back(one.get());
    bench::print_contenders(list);
    const bench::Keys keys(count);
    const std::size_t updates = waits ? (options.quick() ? 20 : 200) : (options.quick() ? 2'000 : 50'000);
    const std::size_t reads = options.quick() ? 2'000 : 100'000;
    std::vector<bench::Random> random;
    for (std::size_t i = 0; i < contenders.all.size(); ++i) random.emplace_back(5 + i);
    std::vector<std::size_t> updates_of(contenders.all.size(), updates);
    for (std::size_t i = 0; i < contenders.all.size(); ++i)  // who makes each update durable needs fewer of them
        if (!waits && bench::microseconds_of([&] { contenders.all[i]->update(random[i], keys, 200); }) > 20'000) updates_of[i] = updates / 25;
    std::vector<bench::Samples> processor(contenders.all.size());
    std::vector<bench::Samples> reading(contenders.all.size());
    std::vector<bench::Contender> rounds;
    for (std::size_t i = 0; i < contenders.all.size(); ++i) {
        rounds.push_back(
            {contenders.all[i]->name(), [&, i] {
                 bench::KeyValues& store = *contenders.all[i];
                 store.read(random[i], keys, 1000);
                 reading[i].add(bench::processor_microseconds_of([&] { store.read(random[i], keys, reads); }) / static_cast<double>(reads));
                 store.update(random[i], keys, waits ? 3 : updates_of[i] / 100);
                 double wall = 0;
                 processor[i].add(
                     bench::processor_microseconds_of([&] { wall = bench::microseconds_of([&] { store.update(random[i], keys, updates_of[i]); }); }) /
                     static_cast<double>(updates_of[i]));
                 return wall / static_cast<double>(updates_of[i]);
             }});
    }
    const auto wall = bench::interleave(options.rounds(), rounds);
    std::printf(waits ? "Each update is durable: µs\n" : "Nobody waits for the disk: µs of processor time; mixes as times the log heap's rate\n");
    bench::Table table(
        waits ? std::vector<std::string>{"", "update", "÷ LogHeap's", "read", "÷ LogHeap's"}
              : std::vector<std::string>{"", "update", "÷ LogHeap's", "read", "÷ LogHeap's", "B 25/75", "C 50/50", "D 75/25", "update by the clock"});
    for (std::size_t i = 0; i < rounds.size(); ++i) {
        const bench::Samples& update = waits ? wall[i] : processor[i];
        std::vector<std::string> row{rounds[i].name, bench::spread(update, waits ? 0 : 2),
                                     bench::fixed(bench::ratio(update, waits ? wall[0] : processor[0]).median(), 2), bench::spread(reading[i], 3),
                                     bench::fixed(bench::ratio(reading[i], reading[0]).median(), 2)};
        if (!waits) {
            for (const double share : {.25, .5, .75}) {
                const auto time = [&](std::size_t of) { return share * reading[of].median() + (1 - share) * processor[of].median(); };
                row.push_back(bench::fixed(time(i) / time(0), 2));
            }
            row.push_back(bench::fixed(wall[i].median(), 2));
        }
        table.row(row);
    }
    table.print();
}

double quantile(const bench::Samples& samples, double share) {
    std::vector<double> sorted;
    for (std::size_t i = 0; i < samples.size(); ++i) sorted.push_back(samples[i]);
    std::sort(sorted.begin(), sorted.end());
    return sorted.empty() ? 0 : sorted[std::min(sorted.size() - 1, static_cast<std::size_t>(share * static_cast<double>(sorted.size())))];
}

/// Half update, half remove and put.
void churn(const bench::Options& options, const bench::Folder& folder) {
    std::printf("Churn of a heap of 1 GiB, sizes 100, then 130, then 40 to 1,000 bytes, of which the figures are\n");
    bench::Table table({"values take", "keys", "cleaning", "moved ÷ written", "live ÷ segments in use", "put, µs: median", "99 %", "99.9 %",
                        "bytes written to files ÷ put"});
    struct Case {
        double share;
        bool skewed;
        bool background;
    };
    constexpr Case cases[] = {{.5, false, true}, {.7, false, true}, {.8, false, true},  {.9, false, true},
                              {.8, true, true},  {.9, true, true},  {.8, false, false}, {.8, true, false}};
    for (const auto& [share, skewed, background] : cases) {
        taiyen::LogHeapOptions settings;
        settings.capacity = std::size_t{options.quick() ? 256U : 1024U} << 20U;
        settings.durability = taiyen::Durability::async;
        settings.utilisation = .95;
        settings.background = background;
        const std::string name = std::string(skewed ? "skewed" : "even") + std::to_string(static_cast<int>(share * 100));
        std::filesystem::create_directories(folder / name);
        taiyen::LogHeap heap(taiyen::create_only, folder / name / "churn.tyl", settings);
        bench::Random random(7);
        std::vector<taiyen::LogHandle> handles;
        std::vector<std::size_t> sizes;
        double live = 0;
        std::vector<std::byte> bytes(1000, std::byte{0x5a});
        const auto room = static_cast<double>(settings.capacity) * share;
        const auto length = [&](int phase) { return phase == 0 ? std::size_t{100} : phase == 1 ? std::size_t{130} : 40 + random.below(961); };
        const auto pick = [&] {  // nine of ten operations go to a tenth of the values
            const std::uint64_t all = handles.size();
            return skewed && random.below(10) != 0 ? random.below(std::max<std::uint64_t>(1, all / 10)) : random.below(all);
        };
        bench::Samples puts;
        double moved = 0;
        double written = 0;
        double used = 0;
        std::uint64_t to_files = 0;
        for (int phase = 0; phase < 3; ++phase) {
            const bool counts = phase == 2;
            // As many values as the share allows: what grows beyond it makes others go.
            const auto cost = [](std::size_t size) { return static_cast<double>((size + 32 + 7) / 8 * 8); };
            const auto remove_last = [&] {
                heap.remove(handles.back());
                live -= cost(sizes.back());
                handles.pop_back();
                sizes.pop_back();
            };
            const auto put_one = [&](std::size_t size) {
                handles.push_back(heap.put(std::span(bytes).first(size)));
                sizes.push_back(size);
                live += cost(size);
            };
            while (live < room) put_one(length(phase));
            const auto before = heap.stats();
            const std::uint64_t files_before = bench::Counters::now().write_bytes;
            const double goal = static_cast<double>(settings.capacity) * (counts ? 2 : .25);
            for (double done = 0; done < goal;) {
                const std::size_t size = length(phase);
                const std::uint64_t at = pick();
                const auto one = [&] {
                    if (random.below(2) == 0) {
                        heap.update(handles[at], std::span(bytes).first(size));
                    } else {
                        heap.remove(handles[at]);
                        handles[at] = heap.put(std::span(bytes).first(size));
                    }
                };
                if (counts && random.below(20) == 0)
                    puts.add(bench::microseconds_of(one));
                else
                    one();
                live += cost(size) - cost(sizes[at]);
                sizes[at] = size;
                while (live > room) remove_last();
                while (live < room - 2000) put_one(length(phase));
                done += static_cast<double>(size + 32);
            }
            if (!counts) continue;
            const auto after = heap.stats();
            moved = static_cast<double>(after.moved_bytes - before.moved_bytes);
            written = static_cast<double>(after.put_bytes - before.put_bytes);
            used = static_cast<double>(after.live_bytes) / static_cast<double>((after.segments - after.free_segments) * after.segment_bytes);
            to_files = bench::Counters::now().write_bytes - files_before;
        }
        table.row({bench::fixed(share * 100, 0) + " %", skewed ? "90 % to a tenth" : "even", background ? "ahead" : "in puts",
                   bench::fixed(moved / written, 2), bench::fixed(used, 2), bench::fixed(puts.median(), 2), bench::fixed(quantile(puts, .99), 1),
                   bench::fixed(quantile(puts, .999), 1), bench::fixed(static_cast<double>(to_files) / written, 2)});
        heap.close();
        std::filesystem::remove_all(folder / name);
        std::fprintf(stderr, "%s%s: %.2f moved for each written\n", name.c_str(), background ? "" : ", in puts", moved / written);
    }
    table.print();
}

/// Puts of 100 bytes that are durable when they return, beside a bare direct write of a page, and by eight threads at once.
void durable(const bench::Options& options, const bench::Folder& folder) {
    constexpr std::size_t threads = 8;
    const std::size_t count = options.quick() ? 20 : 300;
    std::filesystem::create_directories(folder / "durable");
    taiyen::LogHeapOptions settings;
    settings.capacity = std::size_t{1} << 30U;
    taiyen::LogHeap heap(taiyen::create_only, folder / "durable" / "values.tyl", settings);
    bench::DirectFile bare(folder / "durable" / "bare", std::size_t{64} << 20U);
    const std::vector<std::byte> bytes(100, std::byte{0x5a});
    const auto per = [&](std::size_t all, const auto& f) { return bench::microseconds_of(f) / static_cast<double>(all); };
    const std::vector<bench::Contender> contenders{{"a bare direct write of 4 KiB",
                                                    [&] {
                                                        return per(count, [&] {
                                                            for (std::size_t i = 0; i < count; ++i) bare.write(4096);
                                                        });
                                                    }},
                                                   {"LogHeap::put of 100 bytes",
                                                    [&] {
                                                        return per(count, [&] {
                                                            for (std::size_t i = 0; i < count; ++i) heap.put(bytes);
                                                        });
                                                    }},
                                                   {"the same by 8 threads", [&] {
                                                        return per(count * threads, [&] {
                                                            std::vector<std::thread> all;
                                                            for (std::size_t t = 0; t < threads; ++t) {
                                                                all.emplace_back([&] {
                                                                    for (std::size_t i = 0; i < count; ++i) heap.put(bytes);
                                                                });
                                                            }
                                                            for (std::thread& thread : all) thread.join();
                                                        });
                                                    }}};
    const auto times = bench::interleave(options.rounds(), contenders);
    std::printf("Each put is durable when it returns: µs a put\n");
    bench::Table table({"", "µs", "÷ a bare write"});
    for (std::size_t i = 0; i < contenders.size(); ++i)
        table.row({contenders[i].name, bench::spread(times[i], 1), bench::fixed(bench::ratio(times[i], times[0]).median(), 2)});
    table.print();
}

/// What opening takes: closed, and after a crash behind an image of the index.
void opening(const bench::Options& options, const bench::Folder& folder) {
    const std::size_t count = options.quick() ? 200'000 : 10'000'000;
    std::filesystem::create_directories(folder / "opening");
    const std::filesystem::path path = folder / "opening" / "values.tyl";
    taiyen::LogHeapOptions settings;
    settings.capacity = std::size_t{4} << 30U;
    settings.durability = taiyen::Durability::async;
    settings.checkpoint_bytes = std::size_t{2} << 30U;
    const std::uint64_t value[2] = {1, 2};
    const auto bytes = std::as_bytes(std::span(value));
    double index_bytes = 0;
    {
        taiyen::LogHeap heap(taiyen::create_only, path, settings);
        for (std::size_t i = 0; i < count; ++i) heap.put(bytes);
        index_bytes = static_cast<double>(heap.stats().index_bytes) / static_cast<double>(count);
    }
    bench::Samples closed;
    for (int round = 0; round < options.rounds(); ++round)
        closed.add(bench::microseconds_of([&] { const taiyen::LogHeap heap(taiyen::open_read_only, path, settings); }) / 1000);
    // A process that dies with the heap open, after so many updates.
    const auto crash_after = [&](std::size_t updates) {
        const ::pid_t child = ::fork();
        if (child == 0) {
            taiyen::LogHeap heap(taiyen::open_only, path, settings);
            const std::vector<std::byte> longer(100);
            for (std::size_t i = 0; i < updates; ++i) heap.put_as(taiyen::LogId{i * 7919 % count + 1}, longer);
            heap.wait_durable(heap.stats().appended);
            ::_exit(0);
        }
        int status = 0;
        ::waitpid(child, &status, 0);
        if (status != 0) throw std::runtime_error("the process that should leave the heap open failed");
        bench::Samples crashed;
        for (int round = 0; round < options.rounds(); ++round)
            crashed.add(bench::microseconds_of([&] { const taiyen::LogHeap heap(taiyen::open_read_only, path, settings); }) / 1000);
        return crashed;
    };
    const bench::Samples shortly = crash_after(1);
    const std::size_t updates = options.quick() ? count : (std::size_t{1} << 30U) / 136;
    const bench::Samples crashed = crash_after(updates);
    std::printf("Opening %zu values of 16 bytes (%.0f bytes of the index in memory for each)\n", count, index_bytes);
    bench::Table table({"", "ms"});
    table.row({"closed", bench::spread(closed, 1)});
    table.row({"after a crash, one record behind the image", bench::spread(shortly, 0)});
    table.row({"after a crash, " + std::to_string(updates) + " records of 136 bytes behind the image", bench::spread(crashed, 0)});
    table.print();
}

struct Beyond {
    double open_ms = 0;
    double gets = 0;  ///< a second
    double kilobytes_per_get = 0;
    double updates = 0;
    double bare_reads = 0;
    std::uint64_t index_bytes = 0;
};

/// Calls `action` until so much time has passed; calls per second.
template <class F>
double rate_of(double seconds, F&& action) {
    const auto start = std::chrono::steady_clock::now();
    std::uint64_t done = 0;
    double took = 0;
    for (; took < seconds; took = bench::microseconds_since(start) / 1e6, done += 64)
        for (int i = 0; i < 64; ++i) action();
    return static_cast<double>(done) / took;
}

/// A block of the file, read directly, by nobody's data structure.
double bare_reads_of(const std::filesystem::path& path, double seconds, std::mt19937_64& random) {
    constexpr std::size_t block = 4096;
    const int file = ::open(path.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC);
    if (file < 0) throw std::runtime_error(path.string() + ": can't be opened");
    const std::unique_ptr<void, decltype(&std::free)> memory(std::aligned_alloc(block, block), &std::free);
    struct stat about{};
    if (::fstat(file, &about) != 0) throw std::runtime_error(path.string() + ": can't be looked at");
    const std::uint64_t blocks = static_cast<std::uint64_t>(about.st_blocks) * 512 / block;  // what is in use lies in front
    const double rate = rate_of(seconds, [&] {
        if (::pread(file, memory.get(), block, static_cast<off_t>(random() % blocks * block)) != static_cast<ssize_t>(block))
            throw std::runtime_error(path.string() + ": can't be read");
    });
    ::close(file);
    return rate;
}

/// Values that together are larger than the memory that the process may have.
void beyond(const bench::Options& options, const bench::Folder& folder) {
    const std::size_t memory = options.quick() ? std::size_t{64} << 20U : options.number("--memory") << 20U;
    const std::size_t data = options.quick() ? std::size_t{512} << 20U : options.number("--data") << 30U;
    const double seconds = options.quick() ? 1 : 8;
    const std::vector<std::byte> value(1000, std::byte{7});
    const std::uint64_t count = data / value.size();
    const bench::MemoryGroup group(options.text("--group"), memory);
    const std::filesystem::path path = folder / "beyond" / "values.tyl";
    std::filesystem::create_directories(path.parent_path());
    taiyen::LogHeapOptions settings;
    settings.capacity = data / 4 * 5;
    const auto made = bench::in_child<int>([&] {
        taiyen::LogHeapOptions filling = settings;
        filling.durability = taiyen::Durability::async;
        taiyen::LogHeap heap(taiyen::create_only, path, filling);
        for (std::uint64_t id = 1; id <= count; ++id) heap.put_as(taiyen::LogId{id}, value);
        heap.close();
        return 1;
    });
    if (!made) throw std::runtime_error("the heap can't be filled");
    bench::settle(folder / "settle");
    std::array<bench::Samples, 5> samples;
    std::uint64_t index_bytes = 0;
    for (int round = 0; round < options.rounds(); ++round) {
        bench::forget_folder(path.parent_path());
        const auto found = bench::in_child<Beyond>([&] {
            group.enter();
            Beyond of;
            std::mt19937_64 random(static_cast<std::uint64_t>(round));
            of.bare_reads = bare_reads_of(path, seconds / 2, random);
            std::unique_ptr<taiyen::LogHeap> heap;
            of.open_ms = bench::microseconds_of([&] { heap = std::make_unique<taiyen::LogHeap>(taiyen::open_only, path, settings); }) / 1000;
            const auto get = [&] {
                if (heap->get(taiyen::LogId{1 + random() % count}).bytes().size() != value.size()) throw std::runtime_error("a value is gone");
            };
            // Until memory is full.
            for (const auto start = std::chrono::steady_clock::now();
                 bench::Counters::now().device_read_bytes < memory && bench::microseconds_since(start) < 90e6;)
                for (int i = 0; i < 100; ++i) get();
            const std::uint64_t before = bench::Counters::now().device_read_bytes;
            const auto start = std::chrono::steady_clock::now();
            of.gets = rate_of(seconds, get);
            const double gets = of.gets * bench::microseconds_since(start) / 1e6;
            of.kilobytes_per_get = static_cast<double>(bench::Counters::now().device_read_bytes - before) / 1024 / gets;
            of.updates = rate_of(seconds, [&] { heap->update(taiyen::LogId{1 + random() % count}, value); });
            of.index_bytes = heap->stats().index_bytes;
            heap->close();
            return of;
        });
        if (!found) throw std::runtime_error("the heap can't be read in so much memory");
        samples[0].add(found->open_ms);
        samples[1].add(found->gets);
        samples[2].add(found->gets / found->bare_reads);
        samples[3].add(found->kilobytes_per_get);
        samples[4].add(found->updates);
        index_bytes = found->index_bytes;
        bench::settle(folder / "settle");
    }
    std::printf("%llu values of 1000 bytes, %.1f GiB, in %.2f GiB of memory, of which the index takes %.2f; one thread, durable updates\n",
                static_cast<unsigned long long>(count), static_cast<double>(data) / (1U << 30U), static_cast<double>(memory) / (1U << 30U),
                static_cast<double>(index_bytes) / (1U << 30U));
    bench::Table table({"", "opening, ms", "gets/s", "÷ bare reads of 4 KiB", "KiB read for a get", "updates/s"});
    table.row({"LogHeap", bench::spread(samples[0], 1), bench::spread(samples[1], 0), bench::spread(samples[2], 2), bench::spread(samples[3], 1),
               bench::spread(samples[4], 0)});
    table.print();
}

int run(const bench::Options& options) {
    bench::print_head(options, "Values by number");
    const bench::Folder folder(options.folder());
    const std::size_t count = options.quick() ? 50'000 : 1'000'000;
    const std::string part = options.text("--part");
    if (part.empty() || part == "async") compare(options, folder, count, bench::Commit::async);
    if (part.empty() || part == "sync") compare(options, folder, count, bench::Commit::sync);
    if (part.empty() || part == "durable") durable(options, folder);
    if (part.empty() || part == "opening") opening(options, folder);
    if (part.empty() || part == "churn") churn(options, folder);
    if (part == "beyond") beyond(options, folder);
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    return bench::guarded([&] {
        return run(
            bench::Options(argc, argv, "What do values by number cost that are written and removed all the time?", 5, bench::Priority::real_time,
                           {{"--part", "", "async, sync, durable, opening or churn; nothing: all of these; or beyond: data larger than memory"},
                            {"--data", "30", "GiB of values, of part beyond"},
                            {"--memory", "4096", "MiB, of part beyond, page cache included"},
                            {"--group", "", "a memory control group that is there, of part beyond"}},
                           bench::Processors::all));
    });
}
