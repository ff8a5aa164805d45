// A wire that is cut anywhere, goes dead or is slow, and two that want the same place: nothing is lost, repeated or reordered, and one has it.

#include <boost/test/unit_test.hpp>

#include <array>
#include <atomic>
#include <filesystem>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>

#include <taiyen/nats/nats_target.hpp>
#include <taiyen/taiyen.hpp>

#include "campaign_factor.hpp"
#include "nats/engine/chain.hpp"
#include "nats/engine/cutting_proxy.hpp"
#include "nats/engine/replicated_numbers.hpp"
#include "scratch_directory.hpp"
#include "seed.hpp"

using namespace taiyen;
using namespace taiyen::nats::test;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

using chain::length_of;

Serial add(TransactionalHeap& heap, std::mt19937_64& random) {
    Transaction transaction(heap);
    chain::lengthen(heap, random);
    return transaction.commit();
}

CuttingProxy::Fate random_fate(std::mt19937_64& random) {
    CuttingProxy::Fate fate;
    const auto up_to = [&](std::uint64_t most) { return random() % (std::uint64_t{1} << random() % 20) % most + 1; };
    if (random() % 2 == 0)
        fate.up_bytes = up_to(800'000);
    else
        fate.down_bytes = up_to(4'000);
    if (random() % 4 == 0) fate.delay = milliseconds(random() % 3);
    fate.goes_dead = random() % 10 == 0;
    return fate;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(cut_connections_to_servers)

BOOST_AUTO_TEST_CASE(a_wire_that_is_cut_anywhere_loses_repeats_and_reorders_nothing) {
    if (server_program().empty()) return;
    std::mt19937_64 random(taiyen::test::seed_of_run());
    const NatsServers server;
    CuttingProxy proxy(server.port());
    CuttingProxy read_proxy(server.port());
    const ScratchDirectory directory;
    NatsOptions how = options_for(server);
    how.url = proxy.url();
    how.timeout = seconds(2);  // what is dead is noticed
    NatsOptions how_read = how;
    how_read.url = read_proxy.url();
    PersistentOptions options;
    options.position_independent = true;
    TransactionalHeap heap(create_only, directory / "bank.tyn", options);
    std::optional<Replication> attached;
    once_it_answers([&] { attached.emplace(heap, std::make_shared<NatsTarget>(how), quick()); });
    Replication& replication = *attached;
    BOOST_REQUIRE(replication.wait_replicated(add(heap, random), seconds(120)));
    FollowerOptions following;
    following.retry = milliseconds(50);
    std::optional<Follower> made;
    once_it_answers([&] { made.emplace(std::make_shared<NatsTarget>(how_read), directory / "follower.tyn", following); });
    Follower& follower = *made;
    std::uint64_t length = 1;
    const int rounds = 24 * taiyen::test::campaign_factor();
    for (int round = 0; round < rounds; ++round) {
        proxy.set_fate(random_fate(random));
        if (round % 3 == 0) read_proxy.set_fate(random_fate(random));
        Serial newest;
        for (std::uint64_t i = random() % 40 + 1; i != 0; --i, ++length) newest = add(heap, random);
        BOOST_REQUIRE(replication.wait_replicated(newest, seconds(120)));
        BOOST_REQUIRE(follower.wait_for(newest, seconds(120)));
        BOOST_TEST_REQUIRE(length_of(follower.heap()) == length);
    }
    BOOST_TEST(proxy.cuts() > 0U);
    proxy.set_fate({});
    read_proxy.set_fate({});
    replication.stop();
    NatsTarget target(options_for(server));
    BOOST_TEST(replica_info(target, true).has_value());
    restore(target, directory / "restored.tyn");
    BOOST_TEST(length_of(TransactionalHeap(open_read_only, directory / "restored.tyn")) == length);
}

BOOST_AUTO_TEST_CASE(of_two_files_that_attach_at_once_exactly_one_goes_on) {
    if (server_program().empty()) return;
    const NatsServers server;
    const ScratchDirectory directory;
    std::mt19937_64 random(1);
    PersistentOptions options;
    options.position_independent = true;
    {
        TransactionalHeap heap(create_only, directory / "0.tyn", options);
        add(heap, random);
    }
    std::array<std::shared_ptr<NatsTarget>, 2> targets;
    const ReportHandler before = set_report_handler(+[](const Incident&) noexcept {});
    const int rounds = 100 * taiyen::test::campaign_factor();
    std::uint64_t length = 1;
    for (int round = 0; round < rounds; ++round) {
        if (round % 10 == 0)  // another stream, where nothing is yet
            for (auto& target : targets) target = std::make_shared<NatsTarget>(options_for(server, "bank" + std::to_string(round)));
        for (const char* const suffix : {"", ".log", ".journal"})
            if (const auto from = (directory / "0.tyn").string() + suffix; std::filesystem::exists(from))
                std::filesystem::copy_file(from, (directory / "1.tyn").string() + suffix);
        std::array<std::optional<TransactionalHeap>, 2> heaps;
        std::array<std::optional<Replication>, 2> replications;
        for (std::size_t i = 0; i < 2; ++i) heaps[i].emplace(open_only, directory / (std::to_string(i) + ".tyn"), options);
        std::atomic<unsigned> refused{0};
        std::atomic<bool> go{false};
        {
            std::array<std::jthread, 2> threads;
            for (std::size_t i = 0; i < 2; ++i)
                threads[i] = std::jthread([&, i] {
                    while (!go) {}
                    try {
                        replications[i].emplace(*heaps[i], targets[i], quick());
                    } catch (const Error& error) {
                        if (error.code() != errc::fenced && error.code() != errc::diverged) throw;
                        ++refused;
                    }
                });
            go = true;
        }
        BOOST_TEST_REQUIRE(refused == 1U);
        const std::size_t winner = replications[0] ? 0 : 1;
        BOOST_TEST_REQUIRE(replications[winner]->wait_replicated(add(*heaps[winner], random), seconds(120)));
        ++length;
        replications = {};
        heaps = {};
        // The winner's file goes on.
        for (const char* const suffix : {"", ".log", ".journal"}) {
            const std::string own = (directory / (std::to_string(winner) + ".tyn")).string() + suffix;
            std::filesystem::remove((directory / (std::to_string(1 - winner) + ".tyn")).string() + suffix);
            if (winner == 1 && std::filesystem::exists(own)) std::filesystem::rename(own, (directory / "0.tyn").string() + suffix);
        }
    }
    set_report_handler(before);
    restore(*targets[0], directory / "restored.tyn");
    BOOST_TEST(length_of(TransactionalHeap(open_read_only, directory / "restored.tyn")) == length);
}

BOOST_AUTO_TEST_SUITE_END()
