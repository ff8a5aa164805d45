/// The books against a simple bank, and every way in which they can be wrong.

#include "ledger.hpp"

#include <functional>

#include "bank_heap.hpp"

namespace {

using namespace bank;
using namespace bank::test;

/// Breaks something within a transaction, and takes it back.
std::string fault_after(BankInHeap& bank, const std::function<void(Ledger&)>& change) {
    const taiyen::Transaction transaction(bank.heap);
    change(bank.ledger);
    return broken_invariant(bank.ledger);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(ledger)

BOOST_AUTO_TEST_CASE(a_new_ledger_has_accounts_with_money_in_them) {
    BankInHeap bank(20);
    BOOST_TEST(broken_invariant(bank.ledger) == "");
    BOOST_TEST(difference(bank.ledger, Model(20)) == "");
    BOOST_TEST(holdings_of(bank.ledger, Load::owner_name(0)).accounts == 3U);
    BOOST_TEST(holdings_of(bank.ledger, "nobody").accounts == 0U);
}

BOOST_AUTO_TEST_CASE(accounts_that_are_missing_are_opened_and_others_left_alone) {
    BankInHeap bank(5);
    BOOST_TEST(&find_or_open(bank.heap, 3) == &bank.ledger);
    BOOST_TEST(bank.ledger.last_account == 5U);
    find_or_open(bank.heap, 8);
    BOOST_TEST(difference(bank.ledger, Model(8)) == "");
}

BOOST_AUTO_TEST_CASE(what_cannot_be_done_changes_nothing) {
    BankInHeap bank(2);
    taiyen::transact(bank.heap, [&] {
        const auto refused = [&](const Change& change, Outcome why) {
            BOOST_TEST((change.outcome == why), name_of(change.outcome));
            BOOST_TEST(difference(bank.ledger, Model(2)) == "");
        };
        refused(transfer(bank.ledger, 1, 2, 100'001), Outcome::not_enough_money);
        refused(transfer(bank.ledger, 1, 3, 1), Outcome::no_such_account);
        refused(transfer(bank.ledger, 3, 1, 1), Outcome::no_such_account);
        refused(transfer(bank.ledger, 3, 4, 1), Outcome::no_such_account);
        refused(transfer(bank.ledger, outside, 1, 1), Outcome::no_such_account);
        refused(transfer(bank.ledger, 1, outside, 1), Outcome::no_such_account);
        refused(transfer(bank.ledger, 1, 1, 1), Outcome::wrong_amount);
        refused(transfer(bank.ledger, 1, 2, 0), Outcome::wrong_amount);
        refused(transfer(bank.ledger, 1, 2, -5), Outcome::wrong_amount);
        refused(deposit(bank.ledger, 3, 1), Outcome::no_such_account);
        refused(deposit(bank.ledger, outside, 1), Outcome::wrong_amount);
        BOOST_TEST((transfer(bank.ledger, 1, 2, 100'000).outcome == Outcome::done));
    });
    BOOST_TEST(statement_of(bank.ledger, 1, 1)->balance == 0);
}

BOOST_AUTO_TEST_CASE(a_statement_lists_the_newest_first_and_no_more_than_wanted) {
    BankInHeap bank(2);
    taiyen::transact(bank.heap, [&] {
        transfer(bank.ledger, 1, 2, 300);
        transfer(bank.ledger, 2, 1, 200);
    });
    const Statement statement = statement_of(bank.ledger, 1, 2).value();
    BOOST_TEST(statement.balance == 99'900);
    BOOST_REQUIRE(statement.lines.size() == 2U);
    BOOST_TEST((statement.lines[0] == StatementLine{4, 2, 200, 99'900}));
    BOOST_TEST((statement.lines[1] == StatementLine{3, 2, -300, 99'700}));
    BOOST_TEST(!statement_of(bank.ledger, 3, 2));
}

BOOST_AUTO_TEST_CASE(random_changes_do_what_a_simple_bank_does_committed_or_rolled_back) {
    const std::uint64_t start = taiyen::test::seed_of_run();
    BankInHeap bank(20);
    Model model(20);
    Load load(start, 20);
    std::mt19937_64 random(start);
    for (int i = 0; i < 400; ++i) {
        const bool keep = random() % 3 != 0;
        taiyen::Transaction transaction(bank.heap);
        Model after = model;
        for (std::uint64_t changes_left = 1 + random() % 10; changes_left > 0; --changes_left) {
            const Request request = load.next();
            if (const auto* const open = std::get_if<OpenAccount>(&request))
                BOOST_TEST(open_account(bank.ledger, open->owner).number == after.change(request).number);
            else if (const auto* const given = std::get_if<Deposit>(&request))
                BOOST_TEST((deposit(bank.ledger, given->to, given->amount).outcome == after.change(request).outcome));
            else if (const auto* const moved = std::get_if<Transfer>(&request))
                BOOST_TEST((transfer(bank.ledger, moved->from, moved->to, moved->amount).outcome == after.change(request).outcome));
        }
        if (keep) {
            transaction.commit();
            model = after;
        } else {
            transaction.rollback();
        }
        BOOST_TEST(difference(bank.ledger, model) == "");
    }
    BOOST_TEST(broken_invariant(bank.ledger) == "");
    bank.heap.close();
    const taiyen::TransactionalHeap heap(taiyen::open_read_only, bank.file);
    BOOST_TEST(difference(*heap.find<Ledger>(ledger_name), model) == "");
    BOOST_TEST(heap.verify().ok());
}

BOOST_AUTO_TEST_CASE(each_broken_invariant_is_found) {
    BankInHeap bank(4);
    taiyen::transact(bank.heap, [&] { transfer(bank.ledger, 1, 2, 300); });
    const auto breaks = [&](std::string_view fault, const std::function<void(Ledger&)>& change) {
        const std::string found = fault_after(bank, change);
        BOOST_TEST(found.find(fault) != std::string::npos, "\"" << found << "\" should say " << fault);
    };
    breaks("sum up to 1", [](Ledger& l) { ++l.accounts.at(1).balance; });
    breaks("below zero", [](Ledger& l) { l.accounts.at(1).balance = -1; });
    breaks("without gaps", [](Ledger& l) { ++l.last_account; });
    breaks("was never opened", [](Ledger& l) {
        l.by_owner.clear();
        l.accounts.erase(4);
        l.accounts.try_emplace(7);
    });
    breaks("is not what the journal says", [](Ledger& l) {
        ++l.accounts.at(1).balance;
        --l.accounts.at(2).balance;
    });
    breaks("is not what the journal says", [](Ledger& l) { l.accounts.at(1).last = nullptr; });
    breaks("does not fit", [](Ledger& l) { ++l.journal.back().amount; });
    breaks("does not fit", [](Ledger& l) { l.journal.back().to.before = nullptr; });
    breaks("another number", [](Ledger& l) { l.journal.front().number = 2; });
    breaks("does not move money", [](Ledger& l) { l.journal.back().from.account = nullptr; });
    breaks("does not move money", [](Ledger& l) { l.journal.back().from.account = l.journal.back().to.account; });
    breaks("is not there", [](Ledger& l) { l.by_owner.emplace("somebody", nullptr); });
    breaks("wrongly or twice", [](Ledger& l) { l.by_owner.emplace("somebody", &*l.accounts.find(1)); });
    breaks("does not list every account", [](Ledger& l) { l.by_owner.erase(l.by_owner.begin()); });
    BOOST_TEST(broken_invariant(bank.ledger) == "");
}

BOOST_AUTO_TEST_SUITE_END()
