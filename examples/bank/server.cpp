#include "server.hpp"

#include <algorithm>
#include <utility>

namespace bank {
namespace {

constexpr std::size_t queue_requests_max = 256;

/// A change within its transaction; requests that only look are none.
struct Changer {
    Ledger& ledger;
    Change operator()(const OpenAccount& request) const { return open_account(ledger, request.owner); }
    Change operator()(const Deposit& request) const { return deposit(ledger, request.to, request.amount); }
    Change operator()(const Transfer& request) const { return transfer(ledger, request.from, request.to, request.amount); }
    Change operator()(const AskStatement&) const { return {}; }
    Change operator()(const AskHoldings&) const { return {}; }
};

void look(const Ledger& ledger, Answer& answer) {
    if (const auto* const statement = std::get_if<AskStatement>(&answer.request)) {
        answer.statement = statement_of(ledger, statement->account, Server::statement_lines);
        answer.outcome = answer.statement ? Outcome::done : Outcome::no_such_account;
    } else if (const auto* const holdings = std::get_if<AskHoldings>(&answer.request)) {
        answer.holdings = holdings_of(ledger, holdings->owner);
    }
}

}  // namespace

Ledger& find_or_open(taiyen::TransactionalHeap& heap, AccountNumber accounts) {
    constexpr AccountNumber per_transaction = 2000;
    constexpr Money first_deposit = 100'000;
    taiyen::transact(heap, [&] {
        if (heap.find<Ledger>(ledger_name) == nullptr) set_up(heap.construct<Ledger>(ledger_name), accounts);
    });
    Ledger& ledger = *heap.find<Ledger>(ledger_name);
    while (ledger.last_account < accounts) {
        const AccountNumber end = std::min(accounts, ledger.last_account + per_transaction);
        taiyen::transact(heap, [&] {
            while (ledger.last_account < end) deposit(ledger, open_account(ledger, Load::owner_name(ledger.last_account / 3)).number, first_deposit);
        });
    }
    return ledger;
}

Server::Server(taiyen::TransactionalHeap& heap, unsigned threads, Handler handler)
    : heap_(&heap), ledger_(heap.find<Ledger>(ledger_name)), handler_(std::move(handler)), queue_(queue_requests_max) {
    TAIYEN_CHECK(ledger_ != nullptr);
    for (unsigned i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
}

Server::~Server() {
    queue_.close(true);
    for (std::thread& thread : threads_) thread.join();
}

void Server::finish() {
    queue_.close();
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void Server::work() noexcept {
    try {
        while (std::optional<Request> request = queue_.pop()) handler_(answer(std::move(*request)));
    } catch (...) {
        const std::lock_guard lock(mutex_);
        failure_ = failure_ ? failure_ : std::current_exception();
        queue_.close(true);
    }
}

Answer Server::answer(Request request) {
    const auto start = std::chrono::steady_clock::now();
    Answer answer;
    answer.request = std::move(request);
    if (changes(answer.request)) {
        taiyen::Transaction transaction(*heap_);
        const Change change = std::visit(Changer{*ledger_}, answer.request);
        answer.outcome = change.outcome;
        answer.number = change.number;
        try {
            answer.serial = transaction.commit();
        } catch (const taiyen::Error& error) {
            if (error.code() != taiyen::errc::unconfirmed) throw;
            answer.is_confirmed = false;
        }
    } else {
        const taiyen::ReadLock lock(*heap_);
        look(*ledger_, answer);
        answer.serial = lock.serial();
    }
    answer.took = std::chrono::steady_clock::now() - start;
    return answer;
}

}  // namespace bank
