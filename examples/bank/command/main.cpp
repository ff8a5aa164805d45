/// taiyen_bank: a bank's books in a transactional heap, served by threads, killed at will. See --help.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <functional>

#include "command/commands.hpp"

namespace {

using namespace bank::command;

using Task = std::function<int()>;

CLI::App& declare(CLI::App& app, Settings& settings, Task& chosen, const char* name, const char* what, int (*task)(const Settings&)) {
    CLI::App* const sub = app.add_subcommand(name, what);
    sub->add_option("file", settings.file, "the heap")->capture_default_str();
    sub->callback([&chosen, &settings, task] { chosen = [&settings, task] { return task(settings); }; });
    return *sub;
}

void take_load(CLI::App& sub, Settings& settings) {
    sub.add_option("--threads", settings.threads, "threads that serve")->check(CLI::Range(1U, 256U))->capture_default_str();
    sub.add_option("--seed", settings.seed, "of the requests and of the moments of killing")->capture_default_str();
}

void take_creation(CLI::App& sub, Settings& settings) {
    sub.add_option("--log", settings.log_mebibytes, "MiB of log, if the heap is made now; a small one goes round sooner")
        ->check(CLI::Range(1, 65'536))
        ->capture_default_str();
    sub.add_option("--accounts", settings.accounts, "accounts that there are at least")->check(CLI::Range(2, 100'000'000))->capture_default_str();
}

#ifdef TAIYEN_BANK_CLUSTER
void take_servers(CLI::App& sub, Settings& settings) {
    sub.add_option("--servers", settings.servers, "NATS servers; of three one may be lost")
        ->check(CLI::IsMember({1U, 3U, 5U}))
        ->capture_default_str();
    sub.add_flag("--local,!--no-local", settings.promises_locally)->group("");
}

void declare_cluster(CLI::App& app, Settings& settings, Task& chosen) {
    settings.threads = 4;
    settings.seconds = 6;
    CLI::App& replicating = declare(app, settings, chosen, "cluster",
                                    "Replicates the bank into NATS servers, kills one and then the bank, and goes on at a follower", cluster);
    take_load(replicating, settings);
    take_creation(replicating, settings);
    take_servers(replicating, settings);
    replicating.add_option("--seconds", settings.seconds, "how long the primary serves")->check(CLI::Range(0.1, 1e6))->capture_default_str();
    replicating.add_option("--nats-server", settings.nats_server, "the program, 2.11 or newer; else TAIYEN_NATS_SERVER, else the one in PATH");
    replicating.add_flag("--freeze", settings.freezes)->group("");

    CLI::App& serving = declare(app, settings, chosen, "primary", "", primary);
    serving.group("");  // for clusters; not in the help
    take_load(serving, settings);
    take_servers(serving, settings);
    serving.add_option("--url", settings.url);
}
#endif

}  // namespace

int main(int count, char** words) {
    CLI::App app("A bank's books in a transactional heap: accounts, a journal, an index by owner; served by threads.", "taiyen_bank");
    app.footer("Exit status: 0; 1 if something failed or is not as it should be; 2 for a wrong command line.");
    app.require_subcommand(1);
    Settings settings;
    Task chosen;

    CLI::App& running = declare(app, settings, chosen, "run", "Serves random requests for a while, and prints rates and latencies", run);
    take_load(running, settings);
    take_creation(running, settings);
    running.add_option("--seconds", settings.seconds, "how long")->check(CLI::Range(0.0, 1e6))->capture_default_str();
    running.add_flag("--async", settings.asynchronous, "commits return before they are durable");

    declare(app, settings, chosen, "check", "Whether every invariant of the books and the heap holds", check);

    CLI::App& killing =
        declare(app, settings, chosen, "storm", "Kills the bank again and again, and checks that nothing it acknowledged is lost", storm);
    take_load(killing, settings);
    take_creation(killing, settings);
    killing.add_option("--kills", settings.kills, "how often")->check(CLI::Range(1, 1'000'000))->capture_default_str();
    killing.add_option("--longest-life", settings.longest_life, "milliseconds that a life lasts at most")
        ->check(CLI::Range(1U, 600'000U))
        ->capture_default_str();

    CLI::App& living = declare(app, settings, chosen, "live", "", live);
    living.group("");  // for storms; not in the help
    take_load(living, settings);
#ifdef TAIYEN_BANK_CLUSTER
    Settings in_cluster;
    declare_cluster(app, in_cluster, chosen);
#endif
    try {
        app.parse(count, words);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : 2;
    }
    try {
        return chosen();
    } catch (const std::exception& error) {
        std::fflush(stdout);
        fmt::print(stderr, "taiyen_bank: {}\n", error.what());
        return 1;
    }
}
