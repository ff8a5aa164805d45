// Ordered stores of byte strings in memory: what do insertions, look-ups, scans and erasures cost, and how do they scale with threads, in taiyen::OrderedStore, std::map and absl::btree_map behind a shared_mutex,
// tbb::concurrent_map, LMDB and RocksDB?
//
// Keys are "key<i>" or their MurmurHash64A, values decimal numbers. Each contender runs in a process of its own, one after the other in each round. Figures are millions of operations a second of all threads together, by
// wall clock; inserting is in random order. Stores that have files keep them in memory (/dev/shm) and don't sync.

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <taiyen/taiyen.hpp>

#include "harness.hpp"
#include "machine.hpp"

#if defined(TAIYEN_BENCH_ABSL)
#include <absl/container/btree_map.h>
#endif
#if defined(TAIYEN_BENCH_TBB)
#include <oneapi/tbb/concurrent_map.h>
#endif
#if defined(TAIYEN_BENCH_LMDB)
#include <lmdb.h>
#endif
#if defined(TAIYEN_BENCH_ROCKSDB)
#include <rocksdb/db.h>
#include <rocksdb/options.h>
#include <rocksdb/slice.h>
#endif

namespace {

using bench::Random;
using bench::Samples;

/// What all contenders can.
struct Store {
    virtual ~Store() = default;
    virtual void set(std::string_view key, std::string_view value) = 0;
    /// Bytes of the value, copied.
    virtual std::optional<std::size_t> get(std::string_view key, std::span<char> buffer) = 0;
    virtual void erase(std::string_view key) = 0;
    virtual bool erases() const { return true; }
    /// Bytes of the first `count` values from the key on.
    virtual std::size_t scan(std::string_view from, std::size_t count) = 0;
};

class Taiyen : public Store {
public:
    void set(std::string_view key, std::string_view value) override { store_.set(key, value); }
    std::optional<std::size_t> get(std::string_view key, std::span<char> buffer) override { return store_.get(key, buffer); }
    void erase(std::string_view key) override { store_.erase(key); }
    std::size_t scan(std::string_view from, std::size_t count) override {
        std::size_t bytes = 0;
        store_.scan(from, [&](std::string_view, std::string_view value) {
            bytes += value.size();
            return --count != 0;
        });
        return bytes;
    }

private:
    taiyen::VolatileHeap heap_{taiyen::VolatileOptions{.pages = taiyen::PageSize::huge}};
    taiyen::OrderedStore store_{heap_};
};

template <class Map>
class Locked : public Store {
public:
    void set(std::string_view key, std::string_view value) override {
        const std::unique_lock lock(mutex_);
        map_.insert_or_assign(std::string(key), value);
    }
    std::optional<std::size_t> get(std::string_view key, std::span<char> buffer) override {
        const std::shared_lock lock(mutex_);
        const auto at = map_.find(key);
        if (at == map_.end()) return std::nullopt;
        return at->second.copy(buffer.data(), buffer.size());
    }
    void erase(std::string_view key) override {
        const std::unique_lock lock(mutex_);
        const auto at = map_.find(key);
        if (at != map_.end()) map_.erase(at);
    }
    std::size_t scan(std::string_view from, std::size_t count) override {
        const std::shared_lock lock(mutex_);
        std::size_t bytes = 0;
        for (auto at = map_.lower_bound(from); at != map_.end() && count-- != 0; ++at) bytes += at->second.size();
        return bytes;
    }

private:
    std::shared_mutex mutex_;
    Map map_;
};

#if defined(TAIYEN_BENCH_TBB)
/// It can't erase while others read, and values aren't replaced here.
class Concurrent : public Store {
public:
    void set(std::string_view key, std::string_view value) override { map_.emplace(key, value); }
    std::optional<std::size_t> get(std::string_view key, std::span<char> buffer) override {
        const auto at = map_.find(key);
        if (at == map_.end()) return std::nullopt;
        return at->second.copy(buffer.data(), buffer.size());
    }
    void erase(std::string_view) override {}
    bool erases() const override { return false; }
    std::size_t scan(std::string_view from, std::size_t count) override {
        std::size_t bytes = 0;
        for (auto at = map_.lower_bound(from); at != map_.end() && count-- != 0; ++at) bytes += at->second.size();
        return bytes;
    }

private:
    tbb::concurrent_map<std::string, std::string, std::less<>> map_;
};
#endif

#if defined(TAIYEN_BENCH_LMDB)
class Lmdb : public Store {
public:
    Lmdb() {
        check(::mdb_env_create(&environment_));
        check(::mdb_env_set_mapsize(environment_, std::size_t{8} << 30U));
        check(::mdb_env_open(environment_, folder_.path().c_str(), MDB_NOSYNC | MDB_WRITEMAP | MDB_NOTLS, 0600));
        MDB_txn* transaction = nullptr;
        check(::mdb_txn_begin(environment_, nullptr, 0, &transaction));
        check(::mdb_dbi_open(transaction, nullptr, 0, &table_));
        check(::mdb_txn_commit(transaction));
    }
    ~Lmdb() override { ::mdb_env_close(environment_); }
    void set(std::string_view key, std::string_view value) override {
        write([&](MDB_txn* transaction) {
            MDB_val name = as_value(key);
            MDB_val data = as_value(value);
            check(::mdb_put(transaction, table_, &name, &data, 0));
        });
    }
    std::optional<std::size_t> get(std::string_view key, std::span<char> buffer) override {
        std::optional<std::size_t> found;
        MDB_txn* const transaction = reader();
        MDB_val name = as_value(key);
        MDB_val data{};
        if (::mdb_get(transaction, table_, &name, &data) == MDB_SUCCESS) {
            std::memcpy(buffer.data(), data.mv_data, std::min(data.mv_size, buffer.size()));
            found = data.mv_size;
        }
        ::mdb_txn_reset(transaction);
        return found;
    }
    void erase(std::string_view key) override {
        write([&](MDB_txn* transaction) {
            MDB_val name = as_value(key);
            static_cast<void>(::mdb_del(transaction, table_, &name, nullptr));
        });
    }
    std::size_t scan(std::string_view from, std::size_t count) override {
        std::size_t bytes = 0;
        MDB_txn* const transaction = reader();
        MDB_cursor* cursor = nullptr;
        check(::mdb_cursor_open(transaction, table_, &cursor));
        MDB_val name = as_value(from);
        MDB_val data{};
        for (int code = ::mdb_cursor_get(cursor, &name, &data, MDB_SET_RANGE); code == MDB_SUCCESS && count-- != 0;
             code = ::mdb_cursor_get(cursor, &name, &data, MDB_NEXT))
            bytes += data.mv_size;
        ::mdb_cursor_close(cursor);
        ::mdb_txn_reset(transaction);
        return bytes;
    }

private:
    static void check(int code) {
        if (code != MDB_SUCCESS) throw std::runtime_error(::mdb_strerror(code));
    }
    static MDB_val as_value(std::string_view text) { return {text.size(), const_cast<char*>(text.data())}; }
    template <class F>
    void write(F&& change) {
        MDB_txn* transaction = nullptr;
        check(::mdb_txn_begin(environment_, nullptr, 0, &transaction));
        change(transaction);
        check(::mdb_txn_commit(transaction));
    }
    /// One a thread, renewed.
    MDB_txn* reader() {
        static thread_local MDB_txn* transaction = nullptr;
        if (transaction == nullptr)
            check(::mdb_txn_begin(environment_, nullptr, MDB_RDONLY, &transaction));
        else
            check(::mdb_txn_renew(transaction));
        return transaction;
    }

    bench::Folder folder_{"/dev/shm"};
    MDB_env* environment_ = nullptr;
    MDB_dbi table_ = 0;
};
#endif

#if defined(TAIYEN_BENCH_ROCKSDB)
class Rocks : public Store {
public:
    Rocks() {
        rocksdb::Options options;
        options.create_if_missing = true;
        rocksdb::DB* database = nullptr;
        if (!rocksdb::DB::Open(options, folder_ / "db", &database).ok()) throw std::runtime_error("RocksDB doesn't open");
        database_.reset(database);
        write_.disableWAL = true;
    }
    void set(std::string_view key, std::string_view value) override { static_cast<void>(database_->Put(write_, slice(key), slice(value))); }
    std::optional<std::size_t> get(std::string_view key, std::span<char> buffer) override {
        rocksdb::PinnableSlice value;
        if (!database_->Get({}, database_->DefaultColumnFamily(), slice(key), &value).ok()) return std::nullopt;
        std::memcpy(buffer.data(), value.data(), std::min(value.size(), buffer.size()));
        return value.size();
    }
    void erase(std::string_view key) override { static_cast<void>(database_->Delete(write_, slice(key))); }
    std::size_t scan(std::string_view from, std::size_t count) override {
        std::size_t bytes = 0;
        const std::unique_ptr<rocksdb::Iterator> at(database_->NewIterator({}));
        for (at->Seek(slice(from)); at->Valid() && count-- != 0; at->Next()) bytes += at->value().size();
        return bytes;
    }

private:
    static rocksdb::Slice slice(std::string_view text) { return {text.data(), text.size()}; }
    bench::Folder folder_{"/dev/shm"};
    rocksdb::WriteOptions write_;
    std::unique_ptr<rocksdb::DB> database_;
};
#endif

enum Operation { insert, hit, miss, scan, overwrite, beside, erase, bytes, operations };
constexpr std::array<const char*, operations> names{"insert",    "get, there",          "get, missing", "scan of 100",
                                                    "overwrite", "get beside a writer", "erase half",   "bytes a key"};
using Figures = std::array<double, operations>;

struct Scheme {
    std::uint64_t count;
    unsigned threads;
    bool hashed;
    bool processor_time;

    std::string key(std::uint64_t number) const {
        std::string text = "key" + std::to_string(number);
        if (!hashed) return text;
        const std::uint64_t hash = taiyen::murmur_hash_64a(text);
        return {reinterpret_cast<const char*>(&hash), sizeof hash};
    }
};

double resident_bytes() { return std::atof(bench::value_in("/proc/self/smaps_rollup", "Rss").c_str()) * 1024; }

/// Millions a second of what the threads do together: thread t of n does `each` of `count / n` numbers.
double rate(const Scheme& scheme, unsigned threads, std::uint64_t count, const std::function<void(unsigned, std::uint64_t)>& each) {
    std::vector<double> microseconds(threads);
    const auto part = [&](unsigned thread) {
        microseconds[thread] = bench::processor_microseconds_of([&] {
            for (std::uint64_t i = 0; i != count / threads; ++i) each(thread, i);
        });
    };
    const double wall = bench::microseconds_of([&] {
        std::vector<std::thread> others;
        for (unsigned thread = 1; thread < threads; ++thread) others.emplace_back(part, thread);
        part(0);
        for (std::thread& other : others) other.join();
    });
    if (!scheme.processor_time) return static_cast<double>(count / threads * threads) / wall;
    double sum = 0;
    for (const double own : microseconds) sum += static_cast<double>(count / threads) / own;
    return sum;
}

Figures measure(const std::function<std::unique_ptr<Store>()>& make, const Scheme& scheme, std::uint64_t seed) {
    Figures figures{};
    // In random order.
    std::vector<std::uint64_t> order(scheme.count);
    for (std::uint64_t i = 0; i != scheme.count; ++i) order[i] = i;
    Random random(seed);
    for (std::uint64_t i = scheme.count; i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
    const double with_order = resident_bytes();
    const std::unique_ptr<Store> store = make();
    std::vector<Random> randoms;
    for (unsigned thread = 0; thread != scheme.threads; ++thread) randoms.emplace_back(seed * 64 + thread);
    std::atomic<std::uint64_t> sink{0};
    const std::uint64_t questions = std::min<std::uint64_t>(scheme.count, 1'000'000);
    const auto set = [&](unsigned thread, std::uint64_t i) {
        const std::uint64_t number = order[i * scheme.threads + thread];
        store->set(scheme.key(number), std::to_string(number));
    };
    const auto get = [&](unsigned thread, std::uint64_t from) {
        char buffer[32];
        const auto length = store->get(scheme.key(from + randoms[thread].below(scheme.count)), buffer);
        if (length.has_value() != (from == 0)) throw std::runtime_error("a key is missing, or there is one too many");
    };
    figures[insert] = rate(scheme, scheme.threads, scheme.count, set);
    figures[bytes] = (resident_bytes() - with_order) / static_cast<double>(scheme.count);
    figures[hit] = rate(scheme, scheme.threads, questions, [&](unsigned thread, std::uint64_t) { get(thread, 0); });
    figures[miss] = rate(scheme, scheme.threads, questions, [&](unsigned thread, std::uint64_t) { get(thread, scheme.count); });
    figures[scan] = rate(scheme, scheme.threads, questions / 20, [&](unsigned thread, std::uint64_t) {
        sink.fetch_add(store->scan(scheme.key(randoms[thread].below(scheme.count)), 100), std::memory_order_relaxed);
    });
    figures[overwrite] = rate(scheme, scheme.threads, questions, set);
    if (scheme.threads > 1) {
        // Thread 0 reads, the others write meanwhile.
        std::atomic<bool> ends{false};
        std::vector<std::thread> writers;
        for (unsigned thread = 1; thread < scheme.threads; ++thread)
            writers.emplace_back([&, thread] {
                for (std::uint64_t i = 0; !ends.load(std::memory_order_relaxed); ++i) set(thread, i % (scheme.count / scheme.threads));
            });
        figures[beside] = rate(scheme, 1, questions, [&](unsigned, std::uint64_t) { get(0, 0); });
        ends = true;
        for (std::thread& writer : writers) writer.join();
    }
    if (store->erases())
        figures[erase] = rate(scheme, scheme.threads, scheme.count / 2,
                              [&](unsigned thread, std::uint64_t i) { store->erase(scheme.key(order[i * scheme.threads + thread])); });
    return figures;
}

struct Peer {
    std::string name;
    std::function<std::unique_ptr<Store>()> make;
};

/// In a child, so that no contender's memory is in another's way.
Figures alone(const Peer& peer, const Scheme& scheme, std::uint64_t seed) {
    int ends[2];
    if (::pipe(ends) != 0) throw std::runtime_error("no pipe");
    std::fflush(stdout);
    const pid_t child = ::fork();
    if (child == 0) {
        Figures figures{};
        const int failed = bench::guarded([&] {
            figures = measure(peer.make, scheme, seed);
            return 0;
        });
        if (failed == 0 && ::write(ends[1], figures.data(), sizeof figures) != sizeof figures) ::_exit(1);
        ::_exit(failed);
    }
    ::close(ends[1]);
    Figures figures{};
    const bool is_read = ::read(ends[0], figures.data(), sizeof figures) == sizeof figures;
    ::close(ends[0]);
    int status = 0;
    ::waitpid(child, &status, 0);
    if (!is_read) throw std::runtime_error(peer.name + " failed");
    return figures;
}

template <class S>
Peer peer(const char* name) {
    return {name, [] { return std::make_unique<S>(); }};
}

}  // namespace

int main(int argc, char** argv) {
    return bench::guarded([&] {
        const bench::Options options(
            argc, argv, "What do byte strings by byte strings cost in order, with threads?", 3, bench::Priority::normal,
            {{"--keys", "1000000", "how many"},
             {"--threads", "2", "the most; one is measured as well"},
             {"--hashed", "0", "1: keys are hashes"},
             {"--peers", "all", "all, or taiyen alone"},
             {"--clock", "wall",
              "wall, or processor: each thread's own time, as if nobody else used the machine; what sleeps on locks costs nothing then"}},
            bench::Processors::all);
        const std::uint64_t count = options.quick() ? 20'000 : options.number("--keys");
        std::vector<Peer> peers{peer<Taiyen>("taiyen")};
        if (options.text("--peers") == "all") {
            peers.push_back(peer<Locked<std::map<std::string, std::string, std::less<>>>>("std::map"));
#if defined(TAIYEN_BENCH_ABSL)
            peers.push_back(peer<Locked<absl::btree_map<std::string, std::string, std::less<>>>>("absl::btree_map"));
#endif
#if defined(TAIYEN_BENCH_TBB)
            peers.push_back(peer<Concurrent>("tbb::concurrent_map"));
#endif
#if defined(TAIYEN_BENCH_LMDB)
            peers.push_back(peer<Lmdb>("LMDB"));
#endif
#if defined(TAIYEN_BENCH_ROCKSDB)
            peers.push_back(peer<Rocks>("RocksDB"));
#endif
        }
        std::printf("taiyen %s, %s; %llu keys \"key<i>\"%s, %d rounds\n\n", TAIYEN_BENCH_VERSION, TAIYEN_BENCH_COMPILER,
                    static_cast<unsigned long long>(count), options.number("--hashed") != 0 ? ", hashed" : "", options.rounds());
        const auto most = static_cast<unsigned>(options.number("--threads"));
        std::map<unsigned, std::vector<std::array<Samples, operations>>> all;
        for (int round = 0; round != options.rounds(); ++round) {
            for (std::size_t k = 0; k != peers.size(); ++k) {
                const std::size_t which = (k + static_cast<std::size_t>(round)) % peers.size();
                for (const unsigned threads : most == 1 ? std::vector<unsigned>{1} : std::vector<unsigned>{1, most}) {
                    auto& samples = all[threads];
                    samples.resize(peers.size());
                    const Figures figures =
                        alone(peers[which], {count, threads, options.number("--hashed") != 0, options.text("--clock") == "processor"},
                              static_cast<std::uint64_t>(round) + 1);
                    for (std::size_t i = 0; i != operations; ++i) samples[which][i].add(figures[i]);
                }
            }
        }
        for (const auto& [threads, samples] : all) {
            std::printf("%u thread%s, millions a second\n", threads, threads == 1 ? "" : "s");
            std::vector<std::string> head{""};
            for (const Peer& one : peers) head.push_back(one.name);
            bench::Table table(head);
            for (std::size_t i = 0; i != operations; ++i) {
                if (i == beside && threads == 1) continue;
                std::vector<std::string> row{names[i]};
                for (std::size_t k = 0; k != peers.size(); ++k)
                    row.push_back(samples[k][i].max() == 0 ? "\u2013" : bench::spread(samples[k][i], i == bytes ? 0 : 2));
                table.row(row);
            }
            table.print();
        }
        if (most > 1) {
            std::printf("%u threads ÷ one, median of the ratios within a round\n", most);
            std::vector<std::string> head{""};
            for (const Peer& one : peers) head.push_back(one.name);
            bench::Table table(head);
            for (const Operation i : {insert, hit, miss, scan, overwrite, beside, erase}) {
                std::vector<std::string> row{names[i]};
                for (std::size_t k = 0; k != peers.size(); ++k)
                    row.push_back(bench::spread(bench::ratio(all[most][k][i], all[1][k][i == beside ? hit : i]), 2));
                table.row(row);
            }
            table.print();
        }
        return 0;
    });
}
