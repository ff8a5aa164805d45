#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <random>
#include <vector>

#include "acknowledgement.hpp"
#include "command/bank_process.hpp"
#include "command/commands.hpp"
#include "command/figures.hpp"

namespace bank::command {
namespace {

struct Weather {
    std::uint64_t acknowledged = 0;
    std::uint64_t unacknowledged = 0;
    std::uint64_t replayed = 0;
    std::uint64_t torn = 0;
    std::uint64_t silent = 0;  ///< lives that ended before they acknowledged anything
    std::vector<std::chrono::nanoseconds> reopenings;
};

/// One life and what is left of it. Empty if all is well.
std::string one_life(const Settings& settings, std::uint64_t seed, std::chrono::microseconds length, Auditor& auditor, Weather& weather) {
    std::vector<Acknowledgement> told;
    BankProcess bank({"live", settings.file, "--threads", std::to_string(settings.threads), "--seed", std::to_string(seed)});
    const auto end = Clock::now() + length;
    while (Clock::now() < end && bank.hear(end, told)) {}
    const int status = bank.kill_and_wait();
    while (bank.hear(Clock::now(), told)) {}
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL) return "the bank ended before it was killed";
    // Reading writes nothing, so that the next life recovers for itself, and may be killed while it does.
    const auto start = Clock::now();
    const taiyen::TransactionalHeap heap(taiyen::open_read_only, settings.file);
    weather.reopenings.push_back(Clock::now() - start);
    weather.acknowledged += told.size();
    weather.silent += told.empty() ? 1 : 0;
    weather.replayed += heap.restoration().transactions_replayed;
    weather.torn += heap.restoration().records_cut;
    if (std::string broken = auditor.audit(*heap.find<Ledger>(ledger_name), told, settings.threads); !broken.empty()) return broken;
    weather.unacknowledged += auditor.unacknowledged();
    for (const Acknowledgement& acknowledged : told)
        if (taiyen::Serial{acknowledged.serial} > heap.last_durable())
            return "the heap says that serial " + std::to_string(acknowledged.serial) + ", which was acknowledged, is not durable";
    return heap.verify().ok() ? "" : "the heap is damaged";
}

void print(const Weather& weather, std::uint64_t kills) {
    auto times = weather.reopenings;
    std::ranges::sort(times);
    fmt::print("{}: {} acknowledged, all there; {} were durable and not acknowledged yet\n", counted(kills, "kill"),
               counted(weather.acknowledged, "transaction"), grouped(weather.unacknowledged));
    fmt::print("reopening: median {}, slowest {}; {} replayed in all, {} torn\n", time_text(times[times.size() / 2]), time_text(times.back()),
               counted(weather.replayed, "transaction"), counted(weather.torn, "record"));
    if (weather.silent > 0) {
        fmt::print("{} ended before the first acknowledgement, while opening or recovering\n",
                   weather.silent == 1 ? "1 life" : grouped(weather.silent) + " lives");
    }
}

}  // namespace

int storm(const Settings& settings) {
    Auditor auditor = prepared(settings);
    fmt::print("{} to come, each within {} ms; {}, seed {}\n", counted(settings.kills, "kill"), settings.longest_life,
               counted(settings.threads, "thread"), settings.seed);
    std::mt19937_64 random(settings.seed);
    Weather weather;
    for (std::uint64_t i = 0; i < settings.kills; ++i) {
        const std::chrono::microseconds length(random() % (std::uint64_t{settings.longest_life} * 1000 + 1));
        if (const std::string broken = one_life(settings, random(), length, auditor, weather); !broken.empty()) {
            fmt::print("after kill {}: {}; the heap stays as it is: {}\n", i + 1, broken, settings.file);
            return 1;
        }
        if (isatty(STDERR_FILENO) == 1) {
            fmt::print(stderr, "\r\033[K{}",
                       i + 1 == settings.kills ? "" : fmt::format("kill {}, {} acknowledged", i + 1, grouped(weather.acknowledged)));
        }
    }
    print(weather, settings.kills);
    return check(settings);
}

int live(const Settings& settings) {
    taiyen::TransactionalHeap heap(taiyen::open_only, settings.file);
    Server server(heap, settings.threads, tell);
    Load load(settings.seed, heap.find<Ledger>(ledger_name)->last_account);
    while (server.submit(load.next())) {}
    server.finish();
    return 1;
}

}  // namespace bank::command
