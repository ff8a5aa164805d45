#pragma once
/// What the command line can ask for. Each returns the exit status.

#include <cstdint>
#include <filesystem>
#include <string>

#include "acknowledgement.hpp"

namespace bank::command {

struct Settings {
    std::string file = "bank.tyn";
    AccountNumber accounts = 10'000;
    unsigned threads = 8;
    double seconds = 5;
    std::uint64_t seed = 1;
    std::uint64_t kills = 20;
    unsigned longest_life = 400;  ///< milliseconds
    std::size_t log_mebibytes = 64;
    bool asynchronous = false;
    // Of a cluster.
    unsigned servers = 3;
    std::filesystem::path nats_server;
    std::string url;                ///< of the servers
    bool promises_locally = false;  ///< clients are told before the servers have it
    bool freezes = false;           ///< the servers stand still while the primary is killed; else one of them is killed before
};

/// Opens the heap, creating it if need be, and says what that took.
taiyen::TransactionalHeap opened(const Settings& settings);
/// Opens the heap, creating it if need be, and closes it with the accounts in it: what the next audit starts from.
Auditor prepared(const Settings& settings);

int run(const Settings& settings);
int check(const Settings& settings);
int storm(const Settings& settings);
/// A life of the bank in a storm: runs until it is killed, and tells standard output what it has done.
int live(const Settings& settings);
#ifdef TAIYEN_BANK_CLUSTER
/// Replicates the bank into servers, kills one of them and then the bank, and goes on where a follower is.
int cluster(const Settings& settings);
/// The bank in a cluster: as `live`, and its commits wait for the servers.
int primary(const Settings& settings);
#endif

}  // namespace bank::command
