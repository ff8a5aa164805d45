#pragma once
/// What the command line can ask for. Each returns the exit status.

#include <cstdint>
#include <string>

#include "ledger.hpp"

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
};

/// Opens the heap, creating it if need be, and says what that took.
taiyen::TransactionalHeap opened(const Settings& settings);

int run(const Settings& settings);
int check(const Settings& settings);
int storm(const Settings& settings);
/// A life of the bank in a storm: runs until it is killed, and tells standard output what it has done.
int live(const Settings& settings);

}  // namespace bank::command
