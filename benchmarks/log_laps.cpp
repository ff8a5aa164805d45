// Does the log look endless, and what does it cost when a program opens again?
//
// 1. The same transactions on a heap whose log goes round ten times, with snapshots in the background, and on one whose log never fills.
// 2. The longest commit while a snapshot of many changed pages runs; the yardstick: bare direct synchronous writes while another thread writes the same bytes.
// 3. Opening after a crash: megabytes of log replayed per second. Opening after a clean close.

#include <sys/wait.h>

#include <atomic>
#include <cstdio>
#include <exception>
#include <limits>
#include <memory>
#include <sstream>
#include <thread>

#include <taiyen/taiyen.hpp>

#include "harness.hpp"
#include "key_values/key_values.hpp"
#include "machine.hpp"

#ifdef TAIYEN_BENCH_TXN
namespace {

constexpr std::size_t mebibyte = std::size_t{1} << 20U;

taiyen::PersistentOptions without_snapshots(std::size_t log_capacity) {
    taiyen::PersistentOptions options;
    options.capture = taiyen::Capture::declared;
    options.durability = taiyen::Durability::async;
    options.log_capacity = log_capacity;
    options.snapshot_log_fill = 1;
    options.snapshot_dirty_bytes = std::numeric_limits<std::size_t>::max();
    options.dirty_limit = std::size_t{1} << 50U;  // else transactions would wait for a snapshot once half of it was changed
    return options;
}

/// Bytes that `transactions` updates put into the log, padding of the groups included.
std::uint64_t bytes_logged(bench::HeapKeyValues& store, bench::Random& random, const bench::Keys& keys, std::size_t transactions) {
    const std::uint64_t before = bench::Counters::now().write_bytes;
    store.update(random, keys, transactions);
    store.heap().wait_durable(taiyen::ReadLock(store.heap()).serial());
    return bench::Counters::now().write_bytes - before;
}

void laps(const bench::Options& options, const bench::Folder& folder) {
    const std::size_t lap = (options.quick() ? 2 : options.number("--lap")) * mebibyte;
    const int rounds = options.quick() ? 3 : 10;
    const std::size_t count = options.quick() ? 20'000 : 100'000;
    const bench::Keys keys(count);
    taiyen::PersistentOptions small;
    small.capture = taiyen::Capture::declared;
    small.log_capacity = lap;
    const auto setup = [&](const char* name) { return bench::Setup{folder / name, count, bench::Commit::async}; };
    const auto ring = bench::make_taiyen(setup("ring"), bench::Container::unordered_map, small);
    const auto endless =
        bench::make_taiyen(setup("endless"), bench::Container::unordered_map, without_snapshots(lap * static_cast<std::size_t>(rounds + 6)));
    ring->warm_up();
    endless->warm_up();
    bench::Random random(3);
    const std::size_t probe = 20'000;
    const double each = static_cast<double>(bytes_logged(*endless, random, keys, probe)) / static_cast<double>(probe);
    const auto transactions = static_cast<std::size_t>(static_cast<double>(lap) / each);
    std::printf(
        "Random updates of %zu keys, 100 bytes each, async: %.0f bytes of log per transaction (%.2f per byte changed); %zu transactions fill the log "
        "of %zu MiB once\n",
        count, each, each / 100, transactions, lap / mebibyte);
    bench::settle(folder / "settle");
    bench::Random other(4);
    const auto rate = [&](bench::HeapKeyValues& store, bench::Random& source) {
        return static_cast<double>(transactions) / bench::microseconds_of([&] {
                   store.update(source, keys, transactions);
                   store.heap().wait_durable(taiyen::ReadLock(store.heap()).serial());
               }) *
               1e6;
    };
    const std::uint64_t generation = ring->heap().stats().generation;
    const auto samples = bench::interleave(rounds, {{"", [&] { return rate(*ring, random); }}, {"", [&] { return rate(*endless, other); }}});
    const auto whole = [&](const bench::Samples& one) {
        double seconds = 0;
        for (std::size_t i = 0; i < one.size(); ++i) seconds += static_cast<double>(transactions) / one[i];
        return static_cast<double>(transactions) * static_cast<double>(one.size()) / seconds;
    };
    bench::Table table({"transactions per second, made durable at the end of each lap", "per lap", "over all laps", "snapshots"});
    table.row({"log of " + std::to_string(lap / mebibyte) + " MiB, " + std::to_string(rounds) + " laps", bench::spread(samples[0], 0),
               bench::fixed(whole(samples[0]), 0), std::to_string(ring->heap().stats().generation - generation)});
    table.row({"log that never fills", bench::spread(samples[1], 0), bench::fixed(whole(samples[1]), 0), "0"});
    table.print();
    std::printf("with snapshots ÷ without: %s per lap, %.2f over all laps\n\n", bench::spread(bench::ratio(samples[0], samples[1]), 2).c_str(),
                whole(samples[0]) / whole(samples[1]));
    std::fflush(stdout);
}

struct Stalls {
    double longest = 0;
    double median = 0;
    double of_a_thousand = 0;  ///< longer is one of a thousand
    std::size_t count = 0;
    std::size_t long_ones = 0;  ///< more than 20 ms
};
Stalls stalls_of(std::vector<double> times) {
    Stalls result;
    std::sort(times.begin(), times.end());
    if (times.empty()) return result;
    result.count = times.size();
    result.longest = times.back() / 1e3;
    result.median = times[times.size() / 2] / 1e3;
    result.of_a_thousand = times[times.size() - 1 - times.size() / 1000] / 1e3;
    result.long_ones = static_cast<std::size_t>(std::count_if(times.begin(), times.end(), [](double time) { return time > 20e3; }));
    return result;
}

/// Times of `action`, again and again while `beside` runs on another thread (at least a hundred times).
template <class Action, class Beside>
Stalls while_running(Action&& action, Beside&& beside, double& seconds) {
    std::atomic<bool> done{false};
    std::exception_ptr failure;
    std::thread other([&] {
        try {
            seconds = bench::microseconds_of(beside) / 1e6;
        } catch (...) {
            failure = std::current_exception();
        }
        done.store(true);
    });
    std::vector<double> times;
    while (!done.load(std::memory_order_relaxed) || times.size() < 100) times.push_back(bench::microseconds_of(action));
    other.join();
    if (failure != nullptr) std::rethrow_exception(failure);
    return stalls_of(std::move(times));
}

/// As many bytes as the snapshot writes, the way it has to write them: twice, synced once each.
void write_twice(const std::filesystem::path& path, std::size_t bytes) {
    std::vector<char> block(mebibyte, 'x');
    for (const char* const end : {".1", ".2"}) {
        const int file = ::open((path.string() + end).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (file < 0) throw std::runtime_error("the yardstick's file can't be made");
        for (std::size_t at = 0; at < bytes; at += block.size()) {
            if (::pwrite(file, block.data(), block.size(), static_cast<off_t>(at)) < 0)
                throw std::runtime_error("the yardstick's file can't be written");
            ::sync_file_range(file, static_cast<off_t>(at), static_cast<off_t>(block.size()), SYNC_FILE_RANGE_WRITE);
        }
        ::fsync(file);
        ::close(file);
    }
}

void stalls(const bench::Options& options, const bench::Folder& folder) {
    std::vector<std::size_t> sizes;
    std::istringstream text(options.quick() ? "16" : options.text("--dirty"));
    for (std::string size; std::getline(text, size, ',');) sizes.push_back(std::stoull(size));
    const std::size_t largest = *std::max_element(sizes.begin(), sizes.end()) * mebibyte;
    const auto path = folder / "stall.tyn";
    using Bytes = taiyen::vector<std::uint64_t>;
    {
        taiyen::ArchiveHeap heap(taiyen::create_only, path);
        heap.construct<Bytes>("bytes", largest / sizeof(std::uint64_t), std::uint64_t{0x0123'4567'89ab'cdef});
        heap.construct<Bytes>("small", 4096 * 8 / sizeof(std::uint64_t), std::uint64_t{1});
        heap.snapshot();
        heap.close();
    }
    // Each durable commit takes 4 KiB of the log: it must have room for those made while the snapshot lasts, or they wait for it.
    taiyen::PersistentOptions made = without_snapshots(512 * mebibyte);
    made.durability = taiyen::Durability::sync;
    taiyen::TransactionalHeap heap(taiyen::open_only, path, made);
    Bytes& bytes = *heap.find<Bytes>("bytes");
    Bytes& little = *heap.find<Bytes>("small");
    bench::Random random(8);
    const auto commit = [&] {
        taiyen::Transaction transaction(heap);
        std::uint64_t& word = little[random.below(little.size())];
        transaction.touch(&word, sizeof word);
        word = random.next();
        transaction.commit();
    };
    bench::DirectFile bare(folder / "bare", 4 * mebibyte);
    std::printf("Commits of one thread while a snapshot runs; the yardstick beside it\n");
    bench::Table table({"", "took, s", "commits", "median, ms", "0.1 % longer than, ms", "longest, ms", "longer than 20 ms"});
    const auto row = [&](const std::string& name, const Stalls& one, double seconds) {
        table.row({name, bench::fixed(seconds, 2), std::to_string(one.count), bench::fixed(one.median, 3), bench::fixed(one.of_a_thousand, 2),
                   bench::fixed(one.longest, 2), std::to_string(one.long_ones)});
    };
    for (const std::size_t size : sizes) {
        const std::size_t words = size * mebibyte / sizeof(std::uint64_t);
        const std::size_t page_words = 4096 / sizeof(std::uint64_t);
        for (std::size_t at = 0; at < words;) {
            taiyen::Transaction transaction(heap);
            for (std::size_t i = 0; i < 1024 && at < words; ++i, at += page_words) {
                transaction.touch(&bytes[at], sizeof bytes[at]);
                bytes[at] = random.next();
            }
            transaction.commit();
        }
        bench::settle(folder / "settle");
        double seconds = 0;
        const std::string megabytes = std::to_string(size) + " MiB";
        const Stalls idle = while_running(commit, [&] { ::usleep(options.quick() ? 100'000 : 1'000'000); }, seconds);
        row("commits, no snapshot", idle, seconds);
        const Stalls busy = while_running(commit, [&] { heap.snapshot(); }, seconds);
        row("commits, snapshot of " + megabytes + " of pages changed", busy, seconds);
        bench::settle(folder / "settle");
        const Stalls yardstick = while_running([&] { bare.write(4096); }, [&] { write_twice(folder / "yardstick", size * mebibyte); }, seconds);
        row("bare 4 KiB writes, " + megabytes + " written twice", yardstick, seconds);
    }
    table.print();
    heap.close();
}

struct Crashed {
    std::uint64_t transactions;
    std::uint64_t log_bytes;
};

/// A process that fills the log and ends without closing the heap.
Crashed crash(const std::filesystem::path& path, std::size_t wanted, std::size_t capacity, std::uint64_t seed) {
    int ends[2];
    if (::pipe(ends) != 0) throw std::runtime_error("no pipe");
    std::fflush(stdout);
    const pid_t child = ::fork();
    if (child < 0) throw std::runtime_error("no process");
    if (child == 0) {
        try {
            using Map = taiyen::unordered_map<std::uint64_t, bench::Value>;
            taiyen::TransactionalHeap heap(taiyen::open_only, path, without_snapshots(capacity));
            Map& map = *heap.find<Map>("pairs");
            const bench::Keys keys(map.size());
            bench::Random random(seed);
            const std::uint64_t before = bench::Counters::now().write_bytes;
            Crashed result{0, 0};
            taiyen::Serial last;
            while (result.log_bytes < wanted) {
                for (int i = 0; i < 1000; ++i, ++result.transactions) {
                    const bench::Update next = bench::next_update(random, keys);
                    taiyen::Transaction transaction(heap);
                    bench::Value& value = map.find(next.key)->second;
                    transaction.touch(&value, sizeof value);
                    value = next.value;
                    last = transaction.commit();
                }
                result.log_bytes = bench::Counters::now().write_bytes - before;
            }
            heap.wait_durable(last);
            result.log_bytes = bench::Counters::now().write_bytes - before;
            const bool told = ::write(ends[1], &result, sizeof result) == sizeof result;
            ::_exit(told ? 0 : 1);
        } catch (const std::exception& error) {
            std::fprintf(stderr, "the process that was to crash: %s\n", error.what());
            ::_exit(1);
        }
    }
    ::close(ends[1]);
    Crashed result{};
    const bool told = ::read(ends[0], &result, sizeof result) == sizeof result;
    ::close(ends[0]);
    int status = 0;
    ::waitpid(child, &status, 0);
    if (!told || status != 0) throw std::runtime_error("the process that was to crash failed");
    return result;
}

void recovery(const bench::Options& options, const bench::Folder& folder) {
    const std::size_t wanted = (options.quick() ? 8 : options.number("--log")) * mebibyte;
    const std::size_t capacity = wanted + wanted / 4;
    const std::size_t count = options.quick() ? 20'000 : 100'000;
    const auto path = folder / "crash.tyn";
    {
        using Map = taiyen::unordered_map<std::uint64_t, bench::Value>;
        taiyen::ArchiveHeap heap(taiyen::create_only, path);
        Map& map = heap.construct<Map>("pairs");
        for (std::size_t i = 0; i < count; ++i) map.emplace(bench::key_of(i), bench::first_value(bench::key_of(i)));
        heap.snapshot();
        heap.close();
    }
    bench::Samples reading;
    bench::Samples writing;
    bench::Samples clean;
    bench::Samples clean_reading;
    std::uint64_t bytes = 0;
    std::uint64_t transactions = 0;
    for (int round = 0; round < std::min(options.rounds(), 5); ++round) {
        const Crashed crashed = crash(path, wanted, capacity, 100 + static_cast<std::uint64_t>(round));
        bytes = crashed.log_bytes;
        transactions = crashed.transactions;
        const taiyen::PersistentOptions again = without_snapshots(capacity);
        const double log = static_cast<double>(crashed.log_bytes) / 1e6;
        const auto expect = [&](const taiyen::TransactionalHeap& heap) {
            if (heap.restoration().transactions_replayed != crashed.transactions) {
                throw std::runtime_error(std::to_string(heap.restoration().transactions_replayed) + " transactions were replayed instead of " +
                                         std::to_string(crashed.transactions));
            }
        };
        std::unique_ptr<taiyen::TransactionalHeap> heap;
        reading.add(log /
                    (bench::microseconds_of([&] { heap = std::make_unique<taiyen::TransactionalHeap>(taiyen::open_read_only, path, again); }) / 1e6));
        expect(*heap);
        heap.reset();
        writing.add(log /
                    (bench::microseconds_of([&] { heap = std::make_unique<taiyen::TransactionalHeap>(taiyen::open_only, path, again); }) / 1e6));
        expect(*heap);
        heap->close();
        heap.reset();
        for (int i = 0; i < 5; ++i) {
            ::usleep(20'000);
            clean_reading.add(
                bench::microseconds_of([&] { heap = std::make_unique<taiyen::TransactionalHeap>(taiyen::open_read_only, path, again); }) / 1e3);
            heap.reset();
            clean.add(bench::microseconds_of([&] { heap = std::make_unique<taiyen::TransactionalHeap>(taiyen::open_only, path, again); }) / 1e3);
            heap->close();
            heap.reset();
        }
    }
    std::printf("Opening a heap of %zu keys; after a crash with %llu transactions, %.1f MB, in the log\n", count,
                static_cast<unsigned long long>(transactions), static_cast<double>(bytes) / 1e6);
    bench::Table table({"", "MB of log per second", "ms"});
    table.row({"after a crash, read-only (replayed in memory)", bench::spread(reading, 0), ""});
    table.row({"after a crash, for writing (replayed and saved)", bench::spread(writing, 0), ""});
    table.row({"after a clean close, read-only", "", bench::spread(clean_reading, 2)});
    table.row({"after a clean close, for writing", "", bench::spread(clean, 2)});
    table.print();
}

int run(const bench::Options& options) {
    bench::print_head(options, "The log: laps, snapshots beside commits, recovery");
    const bench::Folder folder(options.folder());
    const std::string part = options.text("--part");
    if (part.empty() || part == "recovery") recovery(options, folder);  // first: it makes processes, and this one has no threads yet
    if (part.empty() || part == "laps") laps(options, folder);
    if (part.empty() || part == "stalls") stalls(options, folder);
    return 0;
}

}  // namespace
#endif

int main(int argc, char** argv) {
    return bench::guarded([&] {
        const bench::Options options(argc, argv, "Does the log look endless, what do snapshots do to commits, how fast is it replayed?", 5,
                                     bench::Priority::real_time,
                                     {{"--part", "", "one part alone: recovery, laps, stalls"},
                                      {"--lap", "64", "MiB of the log that goes round ten times, as a heap has by default"},
                                      {"--dirty", "64,256,1024", "MiB of changed pages that snapshots save while commits go on"},
                                      {"--log", "256", "MiB of log to replay"}},
                                     bench::Processors::all);
#ifdef TAIYEN_BENCH_TXN
        return run(options);
#else
        std::printf("This version has no transactional heap.\n");
        return 0;
#endif
    });
}
