#include "key_values.hpp"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <exception>
#include <mutex>
#include <thread>

namespace bench {

Update next_update(Random& random, const Keys& keys) {
    Update update;
    update.key = keys.pick(random);
    std::uint64_t word = 0;
    for (std::size_t i = 0; i < update.value.size(); ++i) {
        word = i % 2 == 0 ? random.next() : word >> 32U;
        // No pair of words looks like an address: random ones hit a heap's address space sooner or later, and taiyen refuses to commit a pointer into another heap.
        update.value[i] = static_cast<std::uint32_t>(word) | (i % 2 == 1 ? 0x8000'0000U : 0);
    }
    return update;
}

std::vector<std::uint64_t> sorted_keys(std::size_t count) {
    std::vector<std::uint64_t> keys(count);
    for (std::size_t i = 0; i < count; ++i) keys[i] = key_of(i);
    std::sort(keys.begin(), keys.end());
    return keys;
}

Value first_value(std::uint64_t key) {
    Value value;
    value.fill(static_cast<std::uint32_t>(key));
    return value;
}

void print_contenders(const std::vector<const KeyValues*>& contenders) {
    for (const KeyValues* contender : contenders)
        if (contender != nullptr) std::printf("%s: %s\n", contender->name().c_str(), contender->settings().c_str());
    const auto without = [](const char* name, const char* package) { std::printf("%s: built without it (%s)\n", name, package); };
    (void)without;
#ifndef TAIYEN_BENCH_LMDB
    without("LMDB", "liblmdb-dev");
#endif
#ifndef TAIYEN_BENCH_SQLITE
    without("SQLite", "libsqlite3-dev");
#endif
#ifndef TAIYEN_BENCH_ROCKSDB
    without("RocksDB", "librocksdb-dev");
#endif
#ifndef TAIYEN_BENCH_PMEMOBJ
    without("libpmemobj", "libpmemobj-dev");
#endif
    std::printf("\n");
    std::fflush(stdout);
}

double update_rate(KeyValues& store, const Keys& keys, std::size_t threads, double seconds, Spread spread) {
    std::atomic<bool> stop{false};
    std::atomic<std::size_t> ready{0};
    std::atomic<bool> start{false};
    std::atomic<std::uint64_t> done{0};
    std::exception_ptr failure;
    std::mutex failure_mutex;
    std::vector<std::thread> workers;
    // Other updates in each run: the same ones again would change nothing, and cost nothing.
    static std::uint64_t runs = 0;
    const std::uint64_t run = ++runs;
    for (std::size_t i = 0; i < threads; ++i) {
        workers.emplace_back([&, i] {
            Random random(run * 1000 + i);
            if (spread == Spread::one_processor) {
                cpu_set_t first;
                CPU_ZERO(&first);
                CPU_SET(0, &first);
                ::pthread_setaffinity_np(::pthread_self(), sizeof first, &first);
            }
            ready.fetch_add(1);
            start.wait(false);
            std::uint64_t mine = 0;
            try {
                while (!stop.load(std::memory_order_relaxed)) {
                    store.update(random, keys, 1);
                    ++mine;
                }
            } catch (...) {
                const std::lock_guard lock(failure_mutex);
                failure = std::current_exception();
            }
            done.fetch_add(mine);
        });
    }
    while (ready.load() < threads) std::this_thread::yield();
    const auto from = std::chrono::steady_clock::now();
    start.store(true);
    start.notify_all();
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    stop.store(true);
    for (std::thread& worker : workers) worker.join();
    const double took = microseconds_since(from);
    if (failure != nullptr) std::rethrow_exception(failure);
    return static_cast<double>(done.load()) / took * 1e6;
}

}  // namespace bench
