/// An audit passes what is as it was told, and finds each kind of lie.

#include "acknowledgement.hpp"

#include <functional>

#include "bank_heap.hpp"

namespace {

using namespace bank;
using namespace bank::test;

/// A bank that has told of one posting and one account.
struct ToldBank : BankInHeap {
    Auditor auditor{ledger};
    std::vector<Acknowledgement> told;

    ToldBank() : BankInHeap(4) {
        taiyen::transact(heap, [&] {
            Answer answer;
            answer.request = Transfer{1, 2, 300};
            answer.number = transfer(ledger, 1, 2, 300).number;
            told.push_back(acknowledgement_of(answer));
            answer.request = OpenAccount{"a newcomer"};
            answer.number = open_account(ledger, "a newcomer").number;
            told.push_back(acknowledgement_of(answer));
        });
    }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(acknowledgement)

BOOST_AUTO_TEST_CASE(what_is_as_it_was_told_passes_and_is_what_the_next_audit_starts_from) {
    ToldBank bank;
    BOOST_TEST(bank.auditor.audit(bank.ledger, bank.told, 1) == "");
    BOOST_TEST(bank.auditor.unacknowledged() == 0U);
    BOOST_TEST(bank.auditor.audit(bank.ledger, {}, 1) == "");
    BOOST_TEST(bank.auditor.audit(bank.ledger, bank.told, 1) != "");  // nothing new is there now
}

BOOST_AUTO_TEST_CASE(as_many_untold_changes_as_threads_are_no_fault) {
    ToldBank bank;
    bank.told.pop_back();
    BOOST_TEST(bank.auditor.audit(bank.ledger, bank.told, 1) == "");
    BOOST_TEST(bank.auditor.unacknowledged() == 1U);
    taiyen::transact(bank.heap, [&] {
        deposit(bank.ledger, 1, 1);
        deposit(bank.ledger, 1, 1);
    });
    BOOST_TEST(bank.auditor.audit(bank.ledger, {}, 1).find("2 changes are there, but 0") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(what_was_told_without_a_promise_may_be_there_or_not) {
    ToldBank bank;
    bank.told[0].is_promised = bank.told[1].is_promised = 0;
    Auditor as_before = bank.auditor;
    BOOST_TEST(bank.auditor.audit(bank.ledger, bank.told, 0) == "");
    BOOST_TEST(bank.auditor.unacknowledged() == 2U);
    BOOST_TEST(bank.auditor.audit(bank.ledger, bank.told, 0) == "");  // nothing new is there now
    bank.told.pop_back();
    BOOST_TEST(as_before.audit(bank.ledger, bank.told, 0).find("2 changes are there, but 0") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(each_lost_acknowledgement_is_found) {
    const auto lies = [](std::string_view fault, const std::function<void(std::vector<Acknowledgement>&)>& change) {
        ToldBank bank;
        change(bank.told);
        const std::string found = bank.auditor.audit(bank.ledger, bank.told, 8);
        BOOST_TEST(found.find(fault) != std::string::npos, "\"" << found << "\" should say " << fault);
    };
    lies("posting 9 was acknowledged", [](auto& told) { told[0].number = 9; });
    lies("posting 0 was acknowledged", [](auto& told) { told[0].number = 0; });
    lies("posting 5 was acknowledged", [](auto& told) { ++told[0].amount; });
    lies("posting 5 was acknowledged", [](auto& told) { told[0].to = 3; });
    lies("posting 5 was acknowledged", [](auto& told) { told[0].from = 3; });
    lies("account 6 was acknowledged", [](auto& told) { told[1].number = 6; });
    lies("account 5 was acknowledged", [](auto& told) { told[1].owner[0] = 'b'; });
    lies("2 changes are there, but 3", [](auto& told) { told.push_back(told[0]); });
}

BOOST_AUTO_TEST_CASE(a_rewritten_past_is_found) {
    ToldBank bank;
    // Two deposits that would change places and leave every balance as it is at the end.
    taiyen::transact(bank.heap, [&] {
        deposit(bank.ledger, 3, 10);
        deposit(bank.ledger, 3, 20);
    });
    Auditor auditor(bank.ledger);
    BOOST_TEST(auditor.audit(bank.ledger, {}, 0) == "");
    taiyen::transact(bank.heap, [&] {
        Posting& first = bank.ledger.journal[bank.ledger.journal.size() - 2];
        Posting& second = bank.ledger.journal.back();
        std::swap(first.amount, second.amount);
        first.from.after -= 10;
        first.to.after += 10;
    });
    BOOST_TEST(broken_invariant(bank.ledger) == "");
    BOOST_TEST(auditor.audit(bank.ledger, {}, 0) == "the journal is not what it was before");
}

BOOST_AUTO_TEST_SUITE_END()
