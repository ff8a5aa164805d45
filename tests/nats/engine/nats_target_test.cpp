// Frames in streams of real servers, and heaps that are replicated into them.

#include <sys/wait.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <nats/nats.h>

#include <taiyen/nats/nats_target.hpp>
#include <taiyen/taiyen.hpp>

#include "nats/engine/cutting_proxy.hpp"
#include "nats/engine/replicated_numbers.hpp"
#include "scratch_directory.hpp"
#include "throws.hpp"

using namespace taiyen;
using namespace taiyen::nats::test;
using std::chrono::milliseconds;
using std::chrono::seconds;
using taiyen::test::throws;

namespace {

/// The names of what must be there to make certificates.
bool has_openssl() { return std::system("openssl version > /dev/null 2>&1") == 0; }

}  // namespace

BOOST_AUTO_TEST_SUITE(nats_target)

BOOST_AUTO_TEST_CASE(frames_of_any_size_come_back_from_a_server) {
    if (server_program().empty()) return;
    const NatsServers server;
    NatsTarget target(options_for(server));
    BOOST_TEST(target.name() == server.url() + "/bank");
    BOOST_TEST(target.range().empty());
    BOOST_TEST(throws(errc::not_found, [&] { (void)target.read(1); }));
    BOOST_TEST(!target.append(2, frame_of(2, 10)));
    const auto size_of = [](std::uint64_t number) { return number % 10 == 0 ? (std::size_t{2} << 20U) + 77 : number * 997 % 5000; };
    for (std::uint64_t number = 1; number <= 60; ++number) BOOST_TEST(target.append(number, frame_of(number, size_of(number))));
    BOOST_TEST(target.append(60, frame_of(60, size_of(60))));
    BOOST_TEST(!target.append(59, frame_of(60, size_of(60))));
    BOOST_TEST(!target.append(62, frame_of(62, 10)));
    NatsTarget other(options_for(server));
    BOOST_TEST(other.range().first == 1U);
    BOOST_TEST(other.range().last == 60U);
    for (std::uint64_t number = 1; number <= 60; ++number) BOOST_TEST((other.read(number) == frame_of(number, size_of(number))));
    for (const std::uint64_t number : {60U, 7U, 30U, 31U, 1U}) BOOST_TEST((other.read(number) == frame_of(number, size_of(number))));
    target.trim(25);
    BOOST_TEST(other.range().first == 25U);
    BOOST_TEST(throws(errc::not_found, [&] { (void)other.read(24); }));
    BOOST_TEST((other.read(25) == frame_of(25, size_of(25))));
    BOOST_TEST(other.append(61, frame_of(61, 5)));
    BOOST_TEST((target.read(61) == frame_of(61, 5)));
}

BOOST_AUTO_TEST_CASE(of_many_that_append_at_once_exactly_one_succeeds) {
    if (server_program().empty()) return;
    const NatsServers server;
    constexpr unsigned writers = 4;
    constexpr std::uint64_t rounds = 100;
    std::vector<std::unique_ptr<NatsTarget>> targets;
    for (unsigned i = 0; i < writers; ++i) targets.push_back(std::make_unique<NatsTarget>(options_for(server)));
    for (std::uint64_t number = 1; number <= rounds; ++number) {
        std::atomic<unsigned> won{0};
        std::atomic<unsigned> winner{0};
        std::vector<std::jthread> threads;
        for (unsigned i = 0; i < writers; ++i) {
            threads.emplace_back([&, i] {
                if (!targets[i]->append(number, frame_of(i + 1, 300))) return;
                ++won;
                winner = i;
            });
        }
        threads.clear();
        BOOST_TEST_REQUIRE(won == 1U);
        BOOST_TEST_REQUIRE((targets[0]->read(number) == frame_of(winner + 1, 300)));
    }
}

BOOST_AUTO_TEST_CASE(a_heap_is_replicated_followed_restored_and_promoted) {
    if (server_program().empty()) return;
    const NatsServers server;
    const ScratchDirectory directory;
    PersistentOptions options;
    options.position_independent = true;
    const auto target = std::make_shared<NatsTarget>(options_for(server));
    std::optional<TransactionalHeap> heap(std::in_place, create_only, directory / "bank.tyn", options);
    struct Counter {
        std::uint64_t value;
    };
    const auto count = [](TransactionalHeap& to, std::uint64_t value) {
        Transaction transaction(to);
        to.find_or_construct<Counter>("counter").value = value;
        return transaction.commit();
    };
    const auto counted = [](const TransactionalHeap& in) {
        const ReadLock lock(in);
        return in.find<Counter>("counter")->value;
    };
    std::optional<Replication> replication(std::in_place, *heap, target, quick());
    Serial newest;
    for (std::uint64_t i = 1; i <= 200; ++i) newest = count(*heap, i);
    BOOST_TEST(replication->wait_replicated(newest, seconds(120)));
    std::optional<Follower> follower(std::in_place, std::make_shared<NatsTarget>(options_for(server)), directory / "follower.tyn");
    for (std::uint64_t i = 201; i <= 300; ++i) newest = count(*heap, i);
    BOOST_TEST(follower->wait_for(newest, seconds(120)));
    BOOST_TEST(counted(follower->heap()) == 300U);
    const Restored restored = restore(*target, directory / "restored.tyn", {.serial = Serial{newest.value - 50}});
    BOOST_TEST(restored.serial.value == newest.value - 50);
    BOOST_TEST(counted(TransactionalHeap(open_read_only, directory / "restored.tyn")) == 250U);
    TransactionalHeap promoted = std::move(*follower).promote();
    count(promoted, 1000);
    const Replication goes_on(promoted, std::make_shared<NatsTarget>(options_for(server)), quick());
    BOOST_TEST(throws(errc::fenced, [&] {
        for (;;) replication->wait_replicated(count(*heap, 7), milliseconds(100));
    }));
    BOOST_TEST(counted(promoted) == 1000U);
}

BOOST_AUTO_TEST_CASE(a_server_that_is_killed_and_comes_back_loses_nothing) {
    if (server_program().empty()) return;
    NatsServers server;
    const ScratchDirectory directory;
    const auto target = std::make_shared<NatsTarget>(options_for(server));
    TransactionalHeap heap(create_only, directory / "bank.tyn");
    Replication replication(heap, target, quick());
    std::uint64_t key = 0;
    for (unsigned round = 0; round < 3; ++round) {
        for (unsigned i = 0; i < 50; ++i) put(heap, ++key);
        if (round == 1) BOOST_TEST(replication.wait_replicated(heap.last_durable(), seconds(120)));
        server.kill();
        for (unsigned i = 0; i < 50; ++i) put(heap, ++key);
        wait_until(
            [&] {
                put(heap, ++key);
                return replication.status().state == ReplicationState::away;
            },
            "it is noticed that the server is away");
        server.start();
        BOOST_TEST(replication.wait_replicated(heap.last_durable(), seconds(120)));
        BOOST_TEST((replication.status().state == ReplicationState::streaming));
    }
    replication.stop();
    heap.close();
    once_it_answers([&] { restore(*target, directory / "restored.tyn"); });
    once_it_answers([&] { BOOST_TEST(replica_info(*target, true).has_value()); });
    const TransactionalHeap restored(open_read_only, directory / "restored.tyn");
    BOOST_TEST(model_of(restored).size() == key);
}

BOOST_AUTO_TEST_CASE(what_is_no_such_stream_or_server_is_told_and_nothing_is_appended) {
    if (server_program().empty()) return;
    {
        NatsOptions nobody;
        nobody.url = "nats://127.0.0.1:1";
        nobody.name = "bank";
        BOOST_TEST(throws(errc::unreachable, [&] { const NatsTarget target(nobody); }));
    }
    {
        const NatsServers server(1, {}, false);
        NatsTarget target(options_for(server));
        BOOST_TEST(throws(errc::unreachable, [&] { target.append(1, frame_of(1, 10)); }));
    }
    {
        const NatsServers server(1, "authorization { user: somebody, password: secret }");
        BOOST_TEST(throws(errc::permission, [&] { const NatsTarget target(options_for(server)); }));
        NatsOptions known = options_for(server);
        known.url.insert(known.url.find("://") + 3, "somebody:secret@");
        NatsTarget target(known);
        BOOST_TEST(target.name().find("secret") == std::string::npos);
        BOOST_TEST(target.append(1, frame_of(1, 10)));
    }
    const NatsServers server;
    natsConnection* connection = nullptr;
    jsCtx* context = nullptr;
    wait_until([&] { return natsConnection_ConnectTo(&connection, server.url().c_str()) == NATS_OK; }, "a server that answers");
    BOOST_TEST_REQUIRE(natsConnection_JetStream(&context, connection, nullptr) == NATS_OK);
    const auto make = [&](const std::string& name, auto&& change) {
        jsStreamConfig config;
        jsStreamConfig_Init(&config);
        const std::string stream = "TAIYEN_" + name;
        const std::string subject = "taiyen." + name;
        const char* subjects[] = {subject.c_str()};
        config.Name = stream.c_str();
        config.Subjects = subjects;
        config.SubjectsLen = 1;
        config.Discard = js_DiscardNew;
        change(config);
        jsOptions patient;
        jsOptions_Init(&patient);
        patient.Wait = 60'000;  // ms
        BOOST_TEST_REQUIRE(js_AddStream(nullptr, context, &config, &patient, nullptr) == NATS_OK);
    };
    make("memory", [](jsStreamConfig& config) { config.Storage = js_MemoryStorage; });
    make("aging", [](jsStreamConfig& config) { config.MaxAge = std::chrono::nanoseconds(std::chrono::hours(1)).count(); });
    make("old", [](jsStreamConfig& config) {
        config.Discard = js_DiscardOld;
        config.MaxBytes = 1 << 20;
    });
    make("each", [](jsStreamConfig& config) { config.MaxMsgsPerSubject = 3; });
    make("tiny", [](jsStreamConfig& config) { config.MaxMsgSize = 1000; });
    make("elsewhere", [](jsStreamConfig& config) {
        static const char* subjects[] = {"somebody.elses"};
        config.Subjects = subjects;
    });
    for (const char* const name : {"memory", "aging", "old", "each", "tiny", "elsewhere"}) {
        NatsTarget target(options_for(server, name));
        BOOST_TEST(throws(errc::mismatch, [&] { target.append(1, frame_of(1, 10)); }), name);
    }
    // Smaller messages than the server would take.
    make("small", [](jsStreamConfig& config) { config.MaxMsgSize = 10'000; });
    {
        NatsTarget target(options_for(server, "small"));
        BOOST_TEST(target.append(1, frame_of(1, 100'000)));
        BOOST_TEST((target.read(1) == frame_of(1, 100'000)));
    }
    // Full: nothing is dropped, and it goes on once there is room.
    make("full", [](jsStreamConfig& config) { config.MaxBytes = 100'000; });
    NatsTarget target(options_for(server, "full"));
    std::uint64_t number = 0;
    while (number < 100 && !throws(errc::no_space, [&] { BOOST_TEST(target.append(number + 1, frame_of(number + 1, 9'000))); })) ++number;
    BOOST_TEST(number == 10U);
    target.trim(4);
    BOOST_TEST(target.append(number + 1, frame_of(number + 1, 9'000)));
    BOOST_TEST(target.range().first == 4U);
    jsCtx_Destroy(context);
    natsConnection_Destroy(connection);
}

BOOST_AUTO_TEST_CASE(a_server_that_is_too_old_gets_nothing_until_there_is_a_newer_one) {
    if (server_program().empty()) return;
    const NatsServers server;
    CuttingProxy proxy(server.port());
    NatsOptions how = options_for(server);
    how.url = proxy.url();
    NatsTarget target(how);
    proxy.hide_version(true);
    BOOST_TEST(throws(errc::mismatch, [&] { target.append(1, frame_of(1, 10)); }));
    BOOST_TEST(NatsTarget(options_for(server)).range().empty());
    proxy.hide_version(false);
    BOOST_TEST(target.append(1, frame_of(1, 10)));
    BOOST_TEST((NatsTarget(options_for(server)).read(1) == frame_of(1, 10)));
}

BOOST_AUTO_TEST_CASE(a_server_that_has_refused_the_program_for_a_while_is_used_again) {
    if (server_program().empty()) return;
    NatsServers server;
    NatsTarget target(options_for(server));
    BOOST_TEST(target.append(1, frame_of(1, 10)));
    server.kill();
    server.start(0, "authorization { user: somebody, password: secret }");
    wait_until([&] { return throws(errc::permission, [&] { (void)target.range(); }); }, "it is told that the server refuses the program");
    server.kill();
    server.start();
    wait_until(
        [&] {
            try {
                return target.range().last == 1;
            } catch (const Error&) {
                return false;
            }
        },
        "the server is used again");
    BOOST_TEST(target.append(2, frame_of(2, 10)));
}

BOOST_AUTO_TEST_CASE(a_forked_child_leaves_its_parents_connection_alone) {
    if (server_program().empty()) return;
    const NatsServers server;
    auto target = std::make_unique<NatsTarget>(options_for(server));
    BOOST_TEST(target->append(1, frame_of(1, 10)));
    const pid_t child = ::fork();
    if (child == 0) {
        const bool is_refused = throws(errc::forked, [&] { (void)target->range(); });
        target.reset();
        ::_exit(is_refused ? 0 : 1);
    }
    int status = 0;
    BOOST_TEST(::waitpid(child, &status, 0) == child);
    BOOST_TEST(status == 0);
    BOOST_TEST(target->append(2, frame_of(2, 10)));
}

BOOST_AUTO_TEST_CASE(options_that_can_not_be_meant_are_refused) {
    BOOST_TEST(nats_options("nats://h:4222/bank").url == "nats://h:4222");
    BOOST_TEST(nats_options("tls://h/bank").name == "bank");
    try {
        (void)nats_options("nats://alice:s3/cret@h:4222/bank");
        BOOST_ERROR("an address with a password is taken");
    } catch (const Error& error) {
        BOOST_TEST((error.code() == errc::invalid_argument));
        BOOST_TEST(std::string(error.what()).find("cret") == std::string::npos);
    }
    for (const char* const address : {"bank", "nats://h:4222", "nats://h/", "nats:///bank", ""})
        BOOST_TEST(throws(errc::invalid_argument, [&] { (void)nats_options(address); }), address);
    const auto is_refused = [](auto&& change) {
        NatsOptions options;
        options.url = "nats://127.0.0.1:1";
        options.name = "bank";
        change(options);
        return throws(errc::invalid_argument, [&] { const NatsTarget target(options); });
    };
    BOOST_TEST(is_refused([](NatsOptions& options) { options.name = ""; }));
    BOOST_TEST(is_refused([](NatsOptions& options) { options.name = "a.b"; }));
    BOOST_TEST(is_refused([](NatsOptions& options) { options.name = std::string(65, 'a'); }));
    BOOST_TEST(is_refused([](NatsOptions& options) { options.replicas = 0; }));
    BOOST_TEST(is_refused([](NatsOptions& options) { options.certificate = "/a"; }));
    BOOST_TEST(is_refused([](NatsOptions& options) { options.url = "http://127.0.0.1:1"; }));
    BOOST_TEST(is_refused([](NatsOptions& options) { options.url = ","; }));
    for (const char* const far : {"nats://10.0.0.1:4222", "nats://127.0.0.1:1,nats://example.org", "nats://localhost.example.org:1",
                                  "nats://user:word@example.org", "nats://127.example.org:1", "nats://a@127.0.0.1@example.org"})
        BOOST_TEST(is_refused([&](NatsOptions& options) { options.url = far; }), far);
}

BOOST_AUTO_TEST_CASE(a_server_is_known_by_its_certificate_and_so_is_the_program) {
    if (server_program().empty()) return;
    if (!has_openssl()) {
        BOOST_TEST_MESSAGE("skipped: there is no openssl to make certificates with");
        return;
    }
    const ScratchDirectory keys;
    const auto run = [&](const std::string& command) {
        BOOST_TEST_REQUIRE(std::system(("cd '" + keys.path().string() + "' && openssl " + command + " > openssl.out 2>&1").c_str()) == 0, command);
    };
    std::ofstream(keys / "names") << "subjectAltName=DNS:localhost,IP:127.0.0.1\n";
    for (const char* const authority : {"ca", "other"})
        run(std::string("req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=") + authority + " -keyout " +
            authority + ".key -out " + authority + ".pem");
    for (const char* const who : {"server", "client"}) {
        run(std::string("req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=localhost -keyout ") + who + ".key -out " + who +
            ".csr");
        run(std::string("x509 -req -days 2 -CA ca.pem -CAkey ca.key -CAcreateserial -extfile names -in ") + who + ".csr -out " + who + ".pem");
    }
    const auto at = [&](const char* file) { return (keys / file).string(); };
    const NatsServers server(1, "tls { cert_file: \"" + at("server.pem") + "\", key_file: \"" + at("server.key") + "\", ca_file: \"" + at("ca.pem") +
                                    "\", verify: true }");
    NatsOptions options = options_for(server);
    options.authority = at("ca.pem");
    options.certificate = at("client.pem");
    options.key = at("client.key");
    {
        NatsTarget target(options);
        BOOST_TEST(target.append(1, frame_of(1, 300)));
        BOOST_TEST((target.read(1) == frame_of(1, 300)));
    }
    const auto is_refused = [&](auto&& change) {
        NatsOptions changed = options;
        change(changed);
        return throws(errc::permission, [&] { const NatsTarget target(changed); }) ||
               throws(errc::unreachable, [&] { const NatsTarget target(changed); });
    };
    BOOST_TEST(is_refused([&](NatsOptions& changed) { changed.authority = at("other.pem"); }));
    BOOST_TEST(is_refused([&](NatsOptions& changed) { changed.server_name = "elsewhere.example.org"; }));
    BOOST_TEST(is_refused([&](NatsOptions& changed) { changed.certificate = changed.key = ""; }));
}

BOOST_AUTO_TEST_SUITE_END()
