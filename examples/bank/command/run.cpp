#include <fmt/format.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <iterator>

#include "command/commands.hpp"
#include "command/figures.hpp"
#include "latencies.hpp"
#include "server.hpp"

namespace bank::command {
namespace {

struct Tally {
    std::array<Latencies, std::size(request_names)> latencies;
    std::atomic<std::uint64_t> refused{0};
    std::atomic<std::uint64_t> committed{0};
    std::atomic<std::uint64_t> newest{0};  ///< serial

    void count(const Answer& answer) {
        latencies[answer.request.index()].add(answer.took);
        if (answer.outcome != Outcome::done)
            refused.fetch_add(1, std::memory_order_relaxed);
        else if (changes(answer.request))
            committed.fetch_add(1, std::memory_order_relaxed);
        for (std::uint64_t seen = newest; seen < answer.serial.value && !newest.compare_exchange_weak(seen, answer.serial.value);) {}
    }
};

void print(const Tally& tally, double seconds) {
    fmt::print("{:<18}{:>12}{:>12}{:>12}{:>12}\n", "", "a second", "median", "99 %", "slowest");
    for (std::size_t i = 0; i < tally.latencies.size(); ++i) {
        const Latencies& times = tally.latencies[i];
        const auto rate = static_cast<std::uint64_t>(static_cast<double>(times.count()) / seconds);
        fmt::print("{:<18}{:>12}{:>12}{:>12}{:>12}\n", request_names[i], grouped(rate), time_text(times.quantile(0.5)),
                   time_text(times.quantile(0.99)), time_text(times.quantile(1)));
    }
    fmt::print("{} transactions committed, {} a second; {} refused\n", grouped(tally.committed),
               grouped(static_cast<std::uint64_t>(static_cast<double>(tally.committed) / seconds)), counted(tally.refused, "request"));
}

bool holds(const Ledger& ledger) {
    const auto start = Clock::now();
    const std::string broken = broken_invariant(ledger);
    fmt::print("{} accounts, {} postings: {} (checked in {})\n", grouped(ledger.last_account), grouped(ledger.journal.size()),
               broken.empty() ? "every invariant holds" : broken, time_text(Clock::now() - start));
    return broken.empty();
}

}  // namespace

taiyen::TransactionalHeap opened(const Settings& settings) {
    taiyen::PersistentOptions options;
    options.durability = settings.asynchronous ? taiyen::Durability::async : taiyen::Durability::sync;
    options.log_capacity = settings.log_mebibytes << 20U;
    const bool is_new = !std::filesystem::exists(settings.file);
    const auto start = Clock::now();
    taiyen::TransactionalHeap heap(taiyen::open_or_create, settings.file, options);
    const auto took = Clock::now() - start;
    const taiyen::Restoration restored = heap.restoration();
    fmt::print("{} {} in {}: {}\n", is_new ? "created" : "opened", settings.file, time_text(took),
               is_new           ? std::string("it is empty")
               : restored.clean ? std::string("it was closed properly")
                                : counted(restored.transactions_replayed, "transaction") + " replayed after a crash");
    return heap;
}

Auditor prepared(const Settings& settings) {
    taiyen::TransactionalHeap heap = opened(settings);
    const Auditor auditor(find_or_open(heap, settings.accounts));
    heap.close();
    return auditor;
}

int run(const Settings& settings) {
    taiyen::TransactionalHeap heap = opened(settings);
    const Ledger& ledger = find_or_open(heap, settings.accounts);
    fmt::print("{} accounts; {} for {} s, seed {}, commits {}\n\n", grouped(ledger.last_account), counted(settings.threads, "thread"),
               settings.seconds, settings.seed, settings.asynchronous ? "asynchronous" : "durable when they return");
    Tally tally;
    Server server(heap, settings.threads, [&](const Answer& answer) { tally.count(answer); });
    Load load(settings.seed, ledger.last_account);
    const auto start = Clock::now();
    const auto end = start + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(settings.seconds));
    while (Clock::now() < end && server.submit(load.next())) {}
    server.finish();
    heap.wait_durable(taiyen::Serial{tally.newest});
    print(tally, std::chrono::duration<double>(Clock::now() - start).count());
    const bool whole = holds(ledger);
    const auto closing = Clock::now();
    heap.close();
    fmt::print("closed in {}\n", time_text(Clock::now() - closing));
    return whole ? 0 : 1;
}

int check(const Settings& settings) {
    const auto start = Clock::now();
    const taiyen::TransactionalHeap heap(taiyen::open_read_only, settings.file);
    fmt::print(
        "opened {} for reading in {}{}\n", settings.file, time_text(Clock::now() - start),
        heap.restoration().clean ? "" : ", with " + counted(heap.restoration().transactions_replayed, "transaction") + " replayed after a crash");
    const Ledger* const ledger = heap.find<Ledger>(ledger_name);
    if (ledger == nullptr) {
        fmt::print("there is no ledger in it; 'taiyen_bank run' makes one\n");
        return 1;
    }
    const bool whole = holds(*ledger);
    const taiyen::Report report = heap.verify();
    fmt::print("the heap: {}\n", report.ok() ? "whole" : "damaged");
    return whole && report.ok() ? 0 : 1;
}

}  // namespace bank::command
