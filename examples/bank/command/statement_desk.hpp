#pragma once
/// StatementDesk: gives statements from a follower, one after the other, and notes how far it is behind as often as the primary has acknowledged something new.
///
/// Thread rule: one thread; it has one of its own, which takes ReadLocks until `close`.

#include <cstdint>
#include <exception>
#include <thread>
#include <vector>

#include "command/primary_watch.hpp"

namespace bank::command {

class StatementDesk {
public:
    /// Both outlive it.
    StatementDesk(const taiyen::Follower& follower, const PrimaryWatch& primary, std::uint64_t seed);

    /// No ReadLock is taken any more when it returns. Throws: std::runtime_error: a statement was wrong; as ReadLock.
    void close();
    /// After `close`.
    std::uint64_t statements() const { return statements_; }
    /// After `close`: by how many transactions it was behind at most, that share of the times; 0 if it never looked.
    std::uint64_t behind(double share) const;

private:
    void serve(const taiyen::TransactionalHeap& heap, const PrimaryWatch& primary, std::uint64_t seed, const std::stop_token& stop);

    std::uint64_t statements_ = 0;
    std::vector<std::uint64_t> behind_;
    std::exception_ptr failure_;
    std::jthread thread_;  ///< last: it uses the rest
};

}  // namespace bank::command
