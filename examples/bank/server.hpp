#pragma once
/// Server: threads that take requests from a queue and answer them from a ledger in a transactional heap.
///
/// A change is one transaction, answered when its commit has returned; what only looks takes a ReadLock, so it sees a state between transactions and never waits for the disk.
/// Thread rule: `submit` is safe; the rest belongs to the thread that made the server. The handler is called by the server's threads, several at a time.

#include <chrono>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>
#include <vector>

#include "ledger.hpp"
#include "request.hpp"
#include "request_queue.hpp"

namespace bank {

inline constexpr std::string_view ledger_name = "ledger";

/// The heap's ledger, with at least so many accounts: what is missing is opened, with some money, in transactions of a few thousand accounts. Throws: as a transaction.
Ledger& find_or_open(taiyen::TransactionalHeap& heap, AccountNumber accounts);

/// A request that was answered.
struct Answer {
    Request request;
    Outcome outcome = Outcome::done;
    std::uint64_t number = 0;  ///< of the posting or the account that was made
    taiyen::Serial serial;     ///< of the transaction; for what only looked or was refused, of the newest one it saw; of what isn't confirmed, 0
    bool is_confirmed = true;  ///< false: committed here, and commits wait for another machine, which has not said in time that it has it, too
    std::optional<Statement> statement;
    std::optional<Holdings> holdings;
    std::chrono::nanoseconds took{};  ///< from the queue to the answer
};

class Server {
public:
    using Handler = std::function<void(const Answer&)>;

    Server(taiyen::TransactionalHeap& heap, unsigned threads, Handler handler);
    /// Drops what was not answered yet.
    ~Server();
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;

    /// Waits while the queue is full. False: the server has stopped; `finish` says why.
    bool submit(Request request) { return queue_.push(std::move(request)); }
    /// Answers what was submitted, then stops. Throws what stopped a thread, if anything did: taiyen::Error, taiyen::HeapFull, …
    void finish();

    static constexpr std::size_t statement_lines = 20;

private:
    void work() noexcept;
    Answer answer(Request request);

    taiyen::TransactionalHeap* heap_;
    Ledger* ledger_;
    Handler handler_;
    RequestQueue queue_;
    std::mutex mutex_;
    std::exception_ptr failure_;  ///< the first one
    std::vector<std::thread> threads_;
};

}  // namespace bank
