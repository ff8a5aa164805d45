#pragma once
/// Four threads that commit small transactions: what runs beside them is measured by what they get done.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include <taiyen/taiyen.hpp>

#include "harness.hpp"
#include "random.hpp"

namespace bench {

/// What is changed.
struct Counted {
    static constexpr unsigned threads = 4;
    static constexpr std::size_t slots = 10'000;
    std::uint64_t values[threads][slots];
};

/// A transaction of four stores.
inline void commit_one(taiyen::TransactionalHeap& heap, Counted& counters, unsigned thread, Random& random) {
    taiyen::Transaction transaction(heap);
    for (int i = 0; i < 4; ++i) {
        std::uint64_t& value = counters.values[thread][random.next() % Counted::slots];
        transaction.touch(&value, sizeof value);
        ++value;
    }
    transaction.commit();
}

/// Commits per second of all threads.
inline double commits(taiyen::TransactionalHeap& heap, Counted& counters, std::chrono::milliseconds time) {
    std::atomic<bool> done{false};
    std::atomic<std::uint64_t> all{0};
    std::vector<std::thread> writers;
    const auto start = std::chrono::steady_clock::now();
    for (unsigned number = 0; number < Counted::threads; ++number) {
        writers.emplace_back([&, number] {
            Random random(number + 1);
            std::uint64_t own = 0;
            for (; !done; ++own) commit_one(heap, counters, number, random);
            all += own;
        });
    }
    std::this_thread::sleep_for(time);
    done = true;
    for (std::thread& writer : writers) writer.join();
    return static_cast<double>(all.load()) / (microseconds_since(start) / 1e6);
}

/// Fills the heap with so many MiB beside what is changed, and saves it.
inline Counted& make_counted(taiyen::TransactionalHeap& heap, std::size_t mebibytes) {
    constexpr std::size_t piece = std::size_t{16} << 20U;
    Counted* counters = nullptr;
    for (std::size_t made = 0; made < mebibytes << 20U || counters == nullptr; made += piece) {
        taiyen::Transaction transaction(heap);
        if (counters == nullptr) counters = &heap.construct<Counted>("counters");
        auto* const block = static_cast<char*>(heap.allocate(piece));
        transaction.touch(block, piece);
        std::memset(block, 'x', piece);
        transaction.commit();
    }
    heap.snapshot();
    return *counters;
}

}  // namespace bench
