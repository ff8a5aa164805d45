#pragma once
/// A bank's books: plain structs and standard containers, without a word about storage or threads.
///
/// Accounts by number, a journal of postings, an index of accounts by owner. A posting points at its two accounts and at the posting before it of each of them, an account at
/// its last posting: raw pointers, good as long as the containers live, in the next process too. Every posting takes from one account what it gives to another;
/// deposits come from account 0, the world outside, the only one that may owe.
///
/// (B1) the balances sum up to zero; (B2) no account but 0 is below zero; (B3) the journal, played from its start, gives every balance and every `after` on the way, and each
/// account's postings are chained in its order; (B4) the index lists each account once, under its owner; (B5) postings are numbered from 1 in the journal's order, accounts
/// from 1 to `last_account` without gaps.
/// Thread rule: as any container.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <taiyen/taiyen.hpp>

namespace bank {

/// Cents.
using Money = std::int64_t;
using AccountNumber = std::uint64_t;
using PostingNumber = std::uint64_t;

inline constexpr AccountNumber outside = 0;

struct Account;
struct Posting;
using NumberedAccount = std::pair<const AccountNumber, Account>;

struct Account {
    taiyen::string owner;
    Money balance = 0;
    std::uint64_t postings = 0;
    const Posting* last = nullptr;
};

/// One side of a posting.
struct Entry {
    NumberedAccount* account = nullptr;
    Money after = 0;                  ///< the account's balance
    const Posting* before = nullptr;  ///< the account's posting before this one
};

struct Posting {
    PostingNumber number = 0;
    Money amount = 0;
    Entry from;
    Entry to;
};

struct Ledger {
    taiyen::unordered_map<AccountNumber, Account> accounts;
    taiyen::deque<Posting> journal;
    taiyen::btree_multimap<taiyen::string, NumberedAccount*> by_owner;
    AccountNumber last_account = 0;
};

enum class Outcome { done, no_such_account, not_enough_money, wrong_amount };
std::string_view name_of(Outcome outcome);

/// What came of a change: the number of the posting (deposit, transfer) or of the account that it made.
struct Change {
    Outcome outcome = Outcome::done;
    std::uint64_t number = 0;
};

/// Opens the world outside; room for so many accounts without moving any. Throws: HeapFull.
void set_up(Ledger& ledger, std::size_t accounts);
Change open_account(Ledger& ledger, std::string_view owner);
/// Anything but `done` leaves the ledger as it was.
Change deposit(Ledger& ledger, AccountNumber to, Money amount);
Change transfer(Ledger& ledger, AccountNumber from, AccountNumber to, Money amount);

struct StatementLine {
    PostingNumber posting = 0;
    AccountNumber other = 0;
    Money change = 0;
    Money after = 0;
    bool operator==(const StatementLine&) const = default;
};
struct Statement {
    AccountNumber account = 0;
    std::string owner;
    Money balance = 0;
    std::vector<StatementLine> lines;  ///< the newest first
    bool operator==(const Statement&) const = default;
};
/// An account's newest postings, at most `lines_max`; nothing if there is no such account.
std::optional<Statement> statement_of(const Ledger& ledger, AccountNumber account, std::size_t lines_max);

struct Holdings {
    std::size_t accounts = 0;
    Money balance = 0;
    bool operator==(const Holdings&) const = default;
};
/// All accounts of one owner, by the index.
Holdings holdings_of(const Ledger& ledger, std::string_view owner);

/// Whether (B1)–(B5) hold; the text says what is wrong first, empty if nothing is.
std::string broken_invariant(const Ledger& ledger);

}  // namespace bank
