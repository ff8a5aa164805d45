#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <utility>

#include "acknowledgement.hpp"
#include "command/bank_process.hpp"
#include "command/bank_stream.hpp"
#include "command/commands.hpp"
#include "command/figures.hpp"
#include "command/nats_servers.hpp"
#include "command/primary_watch.hpp"
#include "command/statement_desk.hpp"
#include "server.hpp"

namespace bank::command {
namespace {

namespace fs = std::filesystem;
using Target = std::shared_ptr<taiyen::NatsTarget>;

/// A line that is seen at once, also in a pipe.
template <class... Arguments>
void say(fmt::format_string<Arguments...> text, Arguments&&... arguments) {
    fmt::print("{}\n", fmt::format(text, std::forward<Arguments>(arguments)...));
    std::fflush(stdout);
}

/// Removes what an earlier run has left.
void clear(const fs::path& folder) {
    if (fs::exists(folder) && !fs::exists(folder / "n1.conf")) throw std::runtime_error(folder.string() + " is there, and was not made by a cluster");
    fs::remove_all(folder);
}

Clock::time_point soon() { return Clock::now() + cluster_patience; }

/// Lets it serve for that part of the time, and says how much it has promised meanwhile.
void serve(const Settings& settings, PrimaryWatch& primary) {
    const auto start = Clock::now();
    const std::uint64_t before = primary.count();
    const double seconds = settings.freezes ? settings.seconds : settings.seconds / 2;
    primary.wait_for(~std::uint64_t{0}, start + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds)));
    const std::uint64_t acknowledged = primary.count() - before;
    const auto took = Clock::now() - start;
    say("{} acknowledged in {}, {} a second", counted(acknowledged, "transaction"), time_text(took),
        grouped(static_cast<std::uint64_t>(static_cast<double>(acknowledged) / std::chrono::duration<double>(took).count())));
}

/// Kills the server that leads the stream. Commits are to go on, and then it comes back; with one server it comes back first.
void lose_a_server(NatsServers& servers, PrimaryWatch& primary, unsigned threads) {
    const std::optional<unsigned> leader = servers.leader_of(stream_of_servers);
    const unsigned which = leader.value_or(0);
    const std::string name = NatsServers::name_of(which);
    primary.forget_pauses();
    say("server {}{} is killed", name, leader ? ", the stream's leader," : "");
    servers.kill(which);
    if (servers.count() == 1) servers.start(which);
    // What the servers had before is acknowledged meanwhile.
    primary.wait_for(~std::uint64_t{0}, Clock::now() + std::chrono::milliseconds(200));
    if (!primary.wait_for(primary.count() + 10 * threads, soon())) throw std::runtime_error("no commit has returned for a minute");
    say("commits pause for {}, and go on {}", time_text(primary.longest_pause()), servers.count() == 1 ? "as it is back" : "without it");
    if (servers.count() == 1) return;
    servers.start(which);
    say("server {} is back", name);
}

/// Stops all servers until the primary is dead: what it promises meanwhile is nowhere else.
void kill_among_frozen(const Settings& settings, NatsServers& servers, BankProcess& process, PrimaryWatch& primary) {
    servers.signal_all(SIGSTOP);
    primary.wait_for(~std::uint64_t{0}, Clock::now() + std::chrono::seconds(1));
    if (settings.promises_locally && !primary.wait_for(primary.count() + 200, soon()))
        throw std::runtime_error("the primary does not promise locally");
    process.kill_and_wait();
    servers.signal_all(SIGCONT);
}

void follow(std::optional<taiyen::Follower>& follower, const Target& target, const fs::path& file) {
    taiyen::FollowerOptions how;
    how.retry = std::chrono::milliseconds(100);
    once_they_answer([&] { follower.emplace(target, file, how); });
}

/// Where the target can't be reached, promoting is tried again with the follower's file.
taiyen::TransactionalHeap promoted(std::optional<taiyen::Follower>& follower, const Target& target, const fs::path& file) {
    return once_they_answer([&] {
        if (!follower) follow(follower, target, file);
        taiyen::Follower chosen = std::move(*follower);
        follower.reset();
        return std::move(chosen).promote();
    });
}

taiyen::Replication replicated(taiyen::TransactionalHeap& heap, const Target& target) {
    taiyen::ReplicationOptions how;
    how.acknowledge = taiyen::Acknowledge::replicated;
    how.confirm_timeout = cluster_patience;
    how.retry = std::chrono::milliseconds(100);
    return once_they_answer([&] { return taiyen::Replication(heap, target, how); });
}

Acknowledgement first_posting(taiyen::TransactionalHeap& heap) {
    Answer answer;
    answer.request = Deposit{1, 1};
    taiyen::Transaction transaction(heap);
    answer.number = deposit(*heap.find<Ledger>(ledger_name), 1, 1).number;
    answer.serial = transaction.commit();
    return acknowledgement_of(answer);
}

/// Why the former primary's file isn't let in; empty: it is.
std::string refusal(const fs::path& file, const Target& target) {
    taiyen::TransactionalHeap heap(taiyen::open_only, file);
    try {
        once_they_answer([&] { return taiyen::Replication(heap, target); });
    } catch (const taiyen::Error& error) {
        if (error.code() != taiyen::errc::fenced) throw;
        return error.what();
    }
    return {};
}

void move_heap(const fs::path& from, const fs::path& to) {
    for (const char* const suffix : {".log", ""}) fs::rename(from.string() + suffix, to.string() + suffix);
}

}  // namespace

int cluster(const Settings& settings) {
    const ServerProgram program = nats_server_program(settings.nats_server);
    const fs::path folder = settings.file + ".cluster";
    const fs::path follower_file = folder / "follower.tyn";
    const fs::path former_file = folder / "former.tyn";
    Auditor auditor = prepared(settings);
    clear(folder);

    NatsServers servers(program, folder, settings.servers);
    say("{} ({}), a primary and a follower; what they keep beside it: {}", counted(servers.count(), "NATS server"), program.version, folder.string());
    say("{} for {} s, seed {}; a commit returns when {} it, too", counted(settings.threads, "thread"), settings.seconds, settings.seed,
        servers.count() > 1 ? "most servers have" : "the server has");
    BankProcess process({"primary", settings.file, "--threads", std::to_string(settings.threads), "--seed", std::to_string(settings.seed),
                         "--servers", std::to_string(settings.servers), "--url", servers.url(),
                         settings.promises_locally ? "--local" : "--no-local"});
    PrimaryWatch primary(process);
    if (!primary.wait_for(1, soon() + cluster_patience)) throw std::runtime_error("the primary does not begin to serve");
    const Target target = once_they_answer([&] { return bank_stream(servers.url(), settings.servers); });
    std::optional<taiyen::Follower> follower;
    follow(follower, target, follower_file);

    StatementDesk desk(*follower, primary, settings.seed);
    serve(settings, primary);
    if (settings.freezes) {
        kill_among_frozen(settings, servers, process, primary);
    } else {
        lose_a_server(servers, primary, settings.threads);
        serve(settings, primary);
        process.kill_and_wait();
    }
    const auto killed = Clock::now();
    say("the primary is killed");
    std::vector<Acknowledgement> told = primary.all();
    desk.close();
    taiyen::TransactionalHeap heap = promoted(follower, target, follower_file);
    taiyen::Replication replication = replicated(heap, target);
    told.push_back(first_posting(heap));
    say("the follower is promoted: its first posting is acknowledged after {}", time_text(Clock::now() - killed));

    std::string broken = auditor.audit(*heap.find<Ledger>(ledger_name), told, settings.threads);
    if (broken.empty() && !heap.verify().ok()) broken = "the heap is damaged";
    if (!broken.empty()) {
        say("after the takeover: {}; the heaps stay as they are: {} and {}", broken, settings.file, follower_file.string());
        return 1;
    }
    const auto unpromised = static_cast<std::uint64_t>(std::ranges::count(told, 0U, &Acknowledgement::is_promised));
    say("{} acknowledged, 0 lost; {} there, not acknowledged yet", counted(told.size() - unpromised, "transaction"),
        grouped(auditor.unacknowledged()));
    if (unpromised > 0) say("{} told as unconfirmed: the servers had not answered in time", counted(unpromised, "transaction"));
    say("the follower gave {} meanwhile, behind by {} (median), {} at most", counted(desk.statements(), "statement"),
        counted(desk.behind(0.5), "transaction"), grouped(desk.behind(1)));
    replication.stop();
    heap.close();

    const std::string why = refusal(settings.file, target);
    if (why.empty()) {
        say("the former primary is let in again; the heaps stay as they are: {} and {}", settings.file, follower_file.string());
        return 1;
    }
    say("the former primary comes back, and is refused: {}", why);
    move_heap(settings.file, former_file);
    move_heap(follower_file, settings.file);
    say("{} is the promoted heap from now on; the former one is {}", settings.file, former_file.string());
    return check(settings);
}

}  // namespace bank::command
