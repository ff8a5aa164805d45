#include "ledger.hpp"

#include <unordered_map>
#include <unordered_set>

namespace bank {
namespace {

NumberedAccount* find(Ledger& ledger, AccountNumber number) {
    const auto at = ledger.accounts.find(number);
    return at == ledger.accounts.end() ? nullptr : &*at;
}

/// Books one side of a posting that is in the journal already.
void book(Entry& entry, const Posting& posting, NumberedAccount& account, Money change) {
    account.second.balance += change;
    entry = {&account, account.second.balance, account.second.last};
    account.second.last = &posting;
    ++account.second.postings;
}

Change post(Ledger& ledger, NumberedAccount* from, NumberedAccount* to, Money amount) {
    if (from == nullptr || to == nullptr) return {Outcome::no_such_account};
    if (amount <= 0 || from == to) return {Outcome::wrong_amount};
    if (from->first != outside && from->second.balance < amount) return {Outcome::not_enough_money};
    Posting& posting = ledger.journal.emplace_back();
    posting.number = ledger.journal.size();
    posting.amount = amount;
    book(posting.from, posting, *from, -amount);
    book(posting.to, posting, *to, amount);
    return {Outcome::done, posting.number};
}

std::string text_of(AccountNumber account) { return "account " + std::to_string(account); }

/// What an account should be, by the journal.
struct Played {
    Money balance = 0;
    std::uint64_t postings = 0;
    const Posting* last = nullptr;
};

bool play(const Entry& entry, const Posting& posting, Money change, Played& account) {
    account.balance += change;
    const bool as_played = entry.after == account.balance && entry.before == account.last;
    account.last = &posting;
    ++account.postings;
    return as_played;
}

std::string broken_journal(const Ledger& ledger) {
    std::unordered_map<const NumberedAccount*, Played> played;
    played.reserve(ledger.accounts.size());
    for (const NumberedAccount& account : ledger.accounts) played.try_emplace(&account);
    PostingNumber number = 0;
    for (const Posting& posting : ledger.journal) {
        const std::string name = "posting " + std::to_string(++number);
        const auto from = played.find(posting.from.account);
        const auto to = played.find(posting.to.account);
        if (posting.number != number) return name + " has another number";
        if (from == played.end() || to == played.end() || from == to || posting.amount <= 0)
            return name + " does not move money from one account to another";
        if (!play(posting.from, posting, -posting.amount, from->second) || !play(posting.to, posting, posting.amount, to->second))
            return name + " does not fit what was posted before";
    }
    for (const auto& [account, should] : played) {
        const Account& is = account->second;
        if (is.balance != should.balance || is.postings != should.postings || is.last != should.last)
            return text_of(account->first) + " is not what the journal says";
    }
    return {};
}

std::string broken_index(const Ledger& ledger) {
    std::unordered_set<const NumberedAccount*> listed;
    for (const auto& [owner, account] : ledger.by_owner) {
        const auto at = account == nullptr ? ledger.accounts.end() : ledger.accounts.find(account->first);
        if (at == ledger.accounts.end() || &*at != account) return "the index lists an account that is not there";
        if (account->second.owner != owner || !listed.insert(account).second)
            return "the index lists " + text_of(account->first) + " wrongly or twice";
    }
    return listed.size() == ledger.accounts.size() ? "" : "the index does not list every account";
}

}  // namespace

std::string_view name_of(Outcome outcome) {
    switch (outcome) {
        case Outcome::done: return "done";
        case Outcome::no_such_account: return "no such account";
        case Outcome::not_enough_money: return "not enough money";
        case Outcome::wrong_amount: return "wrong amount";
    }
    return "";
}

void set_up(Ledger& ledger, std::size_t accounts) {
    ledger.accounts.reserve(accounts + 1);
    NumberedAccount& world = *ledger.accounts.try_emplace(outside).first;
    world.second.owner = "the world outside";
    ledger.by_owner.emplace(world.second.owner, &world);
}

Change open_account(Ledger& ledger, std::string_view owner) {
    NumberedAccount& account = *ledger.accounts.try_emplace(ledger.last_account + 1).first;
    account.second.owner = owner;
    ledger.by_owner.emplace(account.second.owner, &account);
    ++ledger.last_account;
    return {Outcome::done, account.first};
}

Change deposit(Ledger& ledger, AccountNumber to, Money amount) { return post(ledger, find(ledger, outside), find(ledger, to), amount); }

Change transfer(Ledger& ledger, AccountNumber from, AccountNumber to, Money amount) {
    const bool withdrawn = from == outside || to == outside;
    return withdrawn ? Change{Outcome::no_such_account} : post(ledger, find(ledger, from), find(ledger, to), amount);
}

std::optional<Statement> statement_of(const Ledger& ledger, AccountNumber number, std::size_t lines_max) {
    const auto at = ledger.accounts.find(number);
    if (at == ledger.accounts.end()) return std::nullopt;
    const Account& account = at->second;
    Statement statement{number, std::string(account.owner), account.balance, {}};
    for (const Posting* posting = account.last; posting != nullptr && statement.lines.size() < lines_max;) {
        const bool given = posting->from.account == &*at;
        const Entry& own = given ? posting->from : posting->to;
        const Entry& other = given ? posting->to : posting->from;
        statement.lines.push_back({posting->number, other.account->first, given ? -posting->amount : posting->amount, own.after});
        posting = own.before;
    }
    return statement;
}

Holdings holdings_of(const Ledger& ledger, std::string_view owner) {
    Holdings holdings;
    const auto [first, last] = ledger.by_owner.equal_range(owner);
    for (auto at = first; at != last; ++at) {
        ++holdings.accounts;
        holdings.balance += at->second->second.balance;
    }
    return holdings;
}

std::string broken_invariant(const Ledger& ledger) {
    if (ledger.accounts.size() != ledger.last_account + 1) return "the accounts are not numbered without gaps";
    Money sum = 0;
    for (const auto& [number, account] : ledger.accounts) {
        sum += account.balance;
        if (number > ledger.last_account) return text_of(number) + " was never opened";
        if (number != outside && account.balance < 0) return text_of(number) + " is below zero";
    }
    if (sum != 0) return "the balances sum up to " + std::to_string(sum);
    if (std::string broken = broken_journal(ledger); !broken.empty()) return broken;
    return broken_index(ledger);
}

}  // namespace bank
