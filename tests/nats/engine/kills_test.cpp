// kill -9, of the program that has the heap and of servers: every transaction that was confirmed is restored, and none that never was.

#include <boost/test/unit_test.hpp>

#include <filesystem>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <taiyen/nats/nats_target.hpp>
#include <taiyen/taiyen.hpp>

#include "campaign_factor.hpp"
#include "nats/engine/chain.hpp"
#include "nats/engine/replicated_numbers.hpp"
#include "scratch_directory.hpp"
#include "seed.hpp"

using namespace taiyen;
using namespace taiyen::nats::test;
using chain::length_of;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

/// A process of taiyen_nats_primary. What it writes is the length of the chain that it knows to be in the target.
class Primary {
public:
    Primary(const NatsServers& servers, const std::filesystem::path& file, std::uint64_t seed) {
        const std::string url = servers.url();
        const std::string number = std::to_string(seed);
        int ends[2];
        BOOST_REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
        process_ = ::fork();
        if (process_ == 0) {
            ::prctl(PR_SET_PDEATHSIG, SIGKILL);
            ::dup2(ends[1], STDOUT_FILENO);
            ::execl(TAIYEN_NATS_PRIMARY, TAIYEN_NATS_PRIMARY, url.c_str(), "bank", file.c_str(), number.c_str(), nullptr);
            ::_exit(127);
        }
        ::close(ends[1]);
        lengths_ = ends[0];
    }
    Primary(const Primary&) = delete;
    Primary& operator=(const Primary&) = delete;
    ~Primary() {
        if (process_ > 0) kill();
        ::close(lengths_);
    }

    /// Until so many more are confirmed. False: it has ended by itself.
    bool wait_for(unsigned more) {
        while (more != 0 && read_one()) --more;
        return more == 0;
    }
    /// Returns the newest length that was confirmed; 0: none.
    std::uint64_t kill() {
        ::kill(process_, SIGKILL);
        ::waitpid(process_, nullptr, 0);
        process_ = -1;
        while (read_one()) {}
        return confirmed_;
    }

private:
    bool read_one() { return ::read(lengths_, &confirmed_, sizeof confirmed_) == sizeof confirmed_; }

    pid_t process_ = -1;
    int lengths_ = -1;
    std::uint64_t confirmed_ = 0;
};

void remove_heap(const std::filesystem::path& path) {
    for (const char* const suffix : {"", ".log", ".journal"}) std::filesystem::remove(path.string() + suffix);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(kills)

BOOST_AUTO_TEST_CASE(whenever_the_program_is_killed_what_was_confirmed_is_restored) {
    if (server_program().empty()) return;
    std::mt19937_64 random(taiyen::test::seed_of_run());
    const NatsServers server;
    const ScratchDirectory directory;
    const std::filesystem::path path = directory / "bank.tyn";
    const std::filesystem::path restored_path = directory / "restored.tyn";
    {
        NatsTarget probe(options_for(server, "probe"));
        wait_for_leader(probe);
    }
    const auto target = std::make_shared<NatsTarget>(options_for(server));
    std::uint64_t confirmed = 0;
    const int rounds = 10 * taiyen::test::campaign_factor();
    for (int round = 0; round < rounds; ++round) {
        BOOST_TEST_CONTEXT("round " << round) {
            Primary primary(server, path, random());
            // At least one the first time: before there is a base nothing is restored.
            BOOST_TEST_REQUIRE(primary.wait_for(static_cast<unsigned>(random() % 40) + (round == 0 ? 1 : 0)));
            std::this_thread::sleep_for(microseconds(random() % (std::uint64_t{1} << random() % 16)));
            confirmed = std::max(confirmed, primary.kill());
            const std::uint64_t length = [&] {
                restore(*target, restored_path);
                return length_of(TransactionalHeap(open_read_only, restored_path));
            }();
            remove_heap(restored_path);
            BOOST_TEST_REQUIRE(length >= confirmed);
            if (random() % 4 != 0) continue;
            // Its machine is lost: another file goes on.
            remove_heap(path);
            Follower follower(target, directory / "follower.tyn");
            TransactionalHeap promoted = std::move(follower).promote();
            confirmed = length_of(promoted);
            BOOST_TEST_REQUIRE(confirmed >= length);  // frames of the one that was killed may have been on their way
            promoted.close();
            for (const char* const suffix : {"", ".log", ".journal"})
                if (const auto from = (directory / "follower.tyn").string() + suffix; std::filesystem::exists(from))
                    std::filesystem::rename(from, path.string() + suffix);
        }
    }
}

BOOST_AUTO_TEST_CASE(a_cluster_of_three_goes_on_while_its_servers_die) {
    if (server_program().empty()) return;
    std::mt19937_64 random(taiyen::test::seed_of_run());
    NatsServers cluster(3);
    const ScratchDirectory directory;
    NatsOptions how = options_for(cluster);
    how.timeout = seconds(2);
    {
        NatsTarget probe(options_for(cluster, "probe"));
        wait_for_leader(probe);
    }
    const auto target = std::make_shared<NatsTarget>(how);
    TransactionalHeap heap(create_only, directory / "bank.tyn");
    std::optional<Replication> replication;
    once_it_answers([&] { replication.emplace(heap, target, quick()); });
    BOOST_TEST_REQUIRE(replication.has_value());
    std::jthread program([&](const std::stop_token& stop) {
        std::mt19937_64 own(1);
        while (!stop.stop_requested()) {
            {
                Transaction transaction(heap);
                chain::lengthen(heap, own, 500);  // as many bytes as three servers on one disk take
                transaction.commit();
            }
            std::this_thread::sleep_for(milliseconds(1));
        }
    });
    // Each in turn, then whichever.
    const unsigned deaths = 3 * static_cast<unsigned>(taiyen::test::campaign_factor());
    for (unsigned death = 0; death < deaths; ++death) {
        const unsigned which = death < cluster.count() ? death : static_cast<unsigned>(random() % cluster.count());
        cluster.kill(which);
        const Serial meanwhile = heap.last_durable();
        BOOST_TEST(replication->wait_replicated(meanwhile, seconds(120)));
        cluster.start(which);
        std::this_thread::sleep_for(
            milliseconds(2'000 + random() % 1'000));  // what it lacks it gets from the others; a second one gone before that is one too many
    }
    program.request_stop();
    program.join();
    BOOST_TEST(replication->wait_replicated(heap.last_durable(), seconds(120)));
    once_it_answers([&] { BOOST_TEST(replica_info(*target, true).has_value()); });
    replication->stop();
    const std::uint64_t length = length_of(heap);
    heap.close();
    once_it_answers([&] { restore(*target, directory / "restored.tyn"); });
    BOOST_TEST(length_of(TransactionalHeap(open_read_only, directory / "restored.tyn")) == length);
}

BOOST_AUTO_TEST_SUITE_END()
