#include "command/statement_desk.hpp"

#include <algorithm>
#include <chrono>
#include <random>
#include <stdexcept>
#include <utility>

#include "server.hpp"

namespace bank::command {

StatementDesk::StatementDesk(const taiyen::Follower& follower, const PrimaryWatch& primary, std::uint64_t seed)
    : thread_([this, &follower, &primary, seed](const std::stop_token& stop) {
          try {
              serve(follower.heap(), primary, seed, stop);
          } catch (...) {
              failure_ = std::current_exception();
          }
      }) {}

void StatementDesk::close() {
    thread_.request_stop();
    thread_.join();
    std::ranges::sort(behind_);
    if (failure_) std::rethrow_exception(failure_);
}

std::uint64_t StatementDesk::behind(double share) const {
    if (behind_.empty()) return 0;
    return behind_[static_cast<std::size_t>(share * static_cast<double>(behind_.size() - 1))];
}

void StatementDesk::serve(const taiyen::TransactionalHeap& heap, const PrimaryWatch& primary, std::uint64_t seed, const std::stop_token& stop) {
    std::mt19937_64 random(seed);
    std::uint64_t looked_at = 0;
    while (!stop.stop_requested()) {
        {
            const std::uint64_t acknowledged = primary.newest();
            const taiyen::ReadLock lock(heap);
            const Ledger& ledger = *heap.find<Ledger>(ledger_name);
            const auto statement = statement_of(ledger, 1 + random() % ledger.last_account, Server::statement_lines);
            if (!statement || (!statement->lines.empty() && statement->lines.front().after != statement->balance))
                throw std::runtime_error("a statement of the follower does not fit its account");
            const std::uint64_t shown = lock.serial().value;
            ++statements_;
            if (acknowledged != std::exchange(looked_at, acknowledged)) behind_.push_back(acknowledged > shown ? acknowledged - shown : 0);
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(1));  // the follower goes on between two statements
    }
}

}  // namespace bank::command
