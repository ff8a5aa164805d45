/// Threads answer as if one after the other: played again in the order of their serials, a simple bank answers the same.

#include "server.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <span>

#include "acknowledgement.hpp"
#include "bank_heap.hpp"

namespace {

using namespace bank;
using namespace bank::test;

std::vector<Answer> answers_to(BankInHeap& bank, std::uint64_t seed, unsigned threads, int requests) {
    std::mutex mutex;
    std::vector<Answer> answers;
    Server server(bank.heap, threads, [&](const Answer& answer) {
        const std::lock_guard lock(mutex);
        answers.push_back(answer);
    });
    Load load(seed, bank.ledger.last_account);
    for (int i = 0; i < requests; ++i) BOOST_TEST(server.submit(load.next()));
    server.finish();
    BOOST_TEST(answers.size() == static_cast<std::size_t>(requests));
    return answers;
}

/// A transaction before everything that saw it, and what saw the same in any order.
void sort_by_serial(std::vector<Answer>& answers) {
    std::ranges::sort(answers, {}, [](const Answer& answer) {
        const bool made_it = changes(answer.request) && answer.outcome == Outcome::done;
        return std::pair(answer.serial, made_it ? 0 : 1);
    });
}

/// A directory that can be out of reach.
class DistantTarget final : public taiyen::ReplicationTarget {
public:
    explicit DistantTarget(const fs::path& directory) : directory_(directory) {}
    std::atomic<bool> is_away{false};

    std::string name() const override { return directory_.name(); }
    Range range() override { return directory_.range(); }
    bool append(std::uint64_t number, std::span<const std::byte> frame) override {
        if (is_away) throw taiyen::Error(taiyen::errc::unreachable, name(), "it is away");
        return directory_.append(number, frame);
    }
    std::vector<std::byte> read(std::uint64_t number) override { return directory_.read(number); }
    void trim(std::uint64_t first) override { directory_.trim(first); }

private:
    taiyen::DirectoryTarget directory_;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(server)

BOOST_AUTO_TEST_CASE(every_answer_is_that_of_a_simple_bank_in_the_order_of_serials) {
    BankInHeap bank(20);
    std::vector<Answer> answers = answers_to(bank, taiyen::test::seed_of_run(), 4, 2000);
    sort_by_serial(answers);
    Model model(20);
    taiyen::Serial last;
    for (const Answer& answer : answers) {
        if (const auto* const asked = std::get_if<AskStatement>(&answer.request)) {
            BOOST_TEST((answer.statement == model.statement(asked->account, Server::statement_lines)), "statement at serial " << answer.serial.value);
        } else if (const auto* const owned = std::get_if<AskHoldings>(&answer.request)) {
            BOOST_TEST((answer.holdings == model.holdings(owned->owner)), "holdings at serial " << answer.serial.value);
        } else {
            const Change change = model.change(answer.request);
            BOOST_TEST((change.outcome == answer.outcome), "outcome at serial " << answer.serial.value);
            BOOST_TEST(change.number == answer.number);
            BOOST_TEST((answer.outcome != Outcome::done || answer.serial > last), "serial " << answer.serial.value << " was given twice");
            last = answer.serial;
        }
    }
    BOOST_TEST(difference(bank.ledger, model) == "");
    BOOST_TEST(broken_invariant(bank.ledger) == "");
}

BOOST_AUTO_TEST_CASE(what_was_answered_is_there_when_the_bank_opens_again) {
    BankInHeap bank(20);
    const std::vector<Answer> answers = answers_to(bank, taiyen::test::seed_of_run(), 3, 300);
    const auto newest = std::ranges::max(answers, {}, &Answer::serial).serial;
    BOOST_TEST((bank.heap.last_durable() >= newest));
    const std::size_t postings = bank.ledger.journal.size();
    bank.heap.close();
    const taiyen::TransactionalHeap heap(taiyen::open_read_only, bank.file);
    BOOST_TEST(heap.find<Ledger>(ledger_name)->journal.size() == postings);
    BOOST_TEST(broken_invariant(*heap.find<Ledger>(ledger_name)) == "");
}

BOOST_AUTO_TEST_CASE(what_the_other_machine_does_not_confirm_is_done_and_told_as_that) {
    BankInHeap bank(2);
    fs::create_directory(bank.folder.path() / "backup");
    const auto target = std::make_shared<DistantTarget>(bank.folder.path() / "backup");
    taiyen::ReplicationOptions how;
    how.acknowledge = taiyen::Acknowledge::replicated;
    how.confirm_timeout = std::chrono::milliseconds(20);
    how.retry = std::chrono::milliseconds(5);
    const taiyen::Replication replication(bank.heap, target, how);
    target->is_away = true;
    std::vector<Answer> answers;
    Server server(bank.heap, 1, [&](const Answer& answer) { answers.push_back(answer); });
    server.submit(Deposit{1, 10});
    server.submit(Deposit{2, 20});
    server.finish();
    BOOST_TEST_REQUIRE(answers.size() == 2U);
    for (const Answer& answer : answers) {
        BOOST_TEST((answer.outcome == Outcome::done));
        BOOST_TEST(!answer.is_confirmed);
        BOOST_TEST(bank.ledger.journal.at(answer.number - 1).amount == std::get<Deposit>(answer.request).amount);
        BOOST_TEST(acknowledgement_of(answer).is_promised == 0U);
    }
    target->is_away = false;
    BOOST_TEST(replication.wait_replicated(bank.heap.last_durable(), std::chrono::minutes(1)));
}

BOOST_AUTO_TEST_CASE(a_thread_that_fails_stops_the_server_and_finish_says_why) {
    BankInHeap bank(20);
    Server server(bank.heap, 2, [](const Answer&) { throw std::runtime_error("the client is gone"); });
    Load load(1, 20);
    while (server.submit(load.next())) {}
    BOOST_CHECK_EXCEPTION(server.finish(), std::runtime_error,
                          [](const std::runtime_error& error) { return error.what() == std::string("the client is gone"); });
    BOOST_TEST(broken_invariant(bank.ledger) == "");
}

BOOST_AUTO_TEST_CASE(a_server_that_is_not_finished_drops_what_waits) {
    BankInHeap bank(20);
    {
        Server server(bank.heap, 2, [](const Answer&) {});
        Load load(1, 20);
        for (int i = 0; i < 50; ++i) server.submit(load.next());
    }
    BOOST_TEST(broken_invariant(bank.ledger) == "");
}

BOOST_AUTO_TEST_SUITE_END()
