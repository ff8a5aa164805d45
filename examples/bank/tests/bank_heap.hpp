#pragma once
/// A ledger in a heap in a folder that goes away, and a bank that is as simple as can be to compare with.

#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "seed.hpp"
#include "server.hpp"

namespace bank::test {

namespace fs = std::filesystem;

class TemporaryFolder {
public:
    TemporaryFolder() {
        std::string name = (fs::temp_directory_path() / "taiyen_bank_XXXXXX").string();
        BOOST_REQUIRE(mkdtemp(name.data()) != nullptr);
        path_ = name;
    }
    ~TemporaryFolder() {
        std::error_code ignored;
        fs::remove_all(path_, ignored);
    }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    const fs::path& path() const { return path_; }

private:
    fs::path path_;
};

/// A log so small that it goes round within a test.
inline taiyen::PersistentOptions small_log() {
    taiyen::PersistentOptions options;
    options.log_capacity = std::size_t{1} << 20U;
    return options;
}

struct BankInHeap {
    TemporaryFolder folder;
    fs::path file = folder.path() / "bank.tyn";
    taiyen::TransactionalHeap heap{taiyen::create_only, file, small_log()};
    Ledger& ledger;

    explicit BankInHeap(AccountNumber accounts = 20) : ledger(find_or_open(heap, accounts)) {}
};

/// What the ledger should do, without containers in heaps, pointers or an index.
class Model {
public:
    explicit Model(AccountNumber accounts) {
        for (AccountNumber i = 0; i < accounts; ++i) {
            change(OpenAccount{Load::owner_name(i / 3)});
            change(Deposit{i + 1, 100'000});
        }
    }

    Change change(const Request& request) {
        if (const auto* const open = std::get_if<OpenAccount>(&request)) {
            accounts_.push_back({open->owner, 0, {}});
            return {Outcome::done, accounts_.size()};
        }
        if (const auto* const deposit = std::get_if<Deposit>(&request)) return post(outside, deposit->to, deposit->amount);
        const auto& transfer = std::get<Transfer>(request);
        return transfer.from == outside || transfer.to == outside ? Change{Outcome::no_such_account}
                                                                  : post(transfer.from, transfer.to, transfer.amount);
    }

    std::optional<Statement> statement(AccountNumber number, std::size_t lines_max) const {
        if (number > accounts_.size()) return std::nullopt;
        const ModelAccount& account = number == outside ? world_ : accounts_[number - 1];
        Statement result{number, account.owner, account.balance, {}};
        for (auto line = account.lines.rbegin(); line != account.lines.rend() && result.lines.size() < lines_max; ++line)
            result.lines.push_back(*line);
        return result;
    }

    Holdings holdings(const std::string& owner) const {
        Holdings result;
        for (const ModelAccount& account : accounts_) {
            if (account.owner == owner) {
                ++result.accounts;
                result.balance += account.balance;
            }
        }
        return result;
    }

    AccountNumber accounts() const { return accounts_.size(); }
    PostingNumber postings() const { return postings_; }

private:
    struct ModelAccount {
        std::string owner;
        Money balance = 0;
        std::vector<StatementLine> lines;
    };

    Change post(AccountNumber from, AccountNumber to, Money amount) {
        if (from > accounts_.size() || to > accounts_.size()) return {Outcome::no_such_account};
        if (amount <= 0 || from == to) return {Outcome::wrong_amount};
        ModelAccount& giver = from == outside ? world_ : accounts_[from - 1];
        ModelAccount& taker = accounts_[to - 1];
        if (from != outside && giver.balance < amount) return {Outcome::not_enough_money};
        ++postings_;
        giver.balance -= amount;
        giver.lines.push_back({postings_, to, -amount, giver.balance});
        taker.balance += amount;
        taker.lines.push_back({postings_, from, amount, taker.balance});
        return {Outcome::done, postings_};
    }

    ModelAccount world_{"the world outside", 0, {}};
    std::vector<ModelAccount> accounts_;
    PostingNumber postings_ = 0;
};

/// The first account whose whole statement differs; empty if none does.
inline std::string difference(const Ledger& ledger, const Model& model) {
    constexpr std::size_t all = ~std::size_t{0};
    if (ledger.last_account != model.accounts() || ledger.journal.size() != model.postings()) return "the numbers of accounts or postings differ";
    for (AccountNumber number = 0; number <= model.accounts(); ++number)
        if (statement_of(ledger, number, all) != model.statement(number, all)) return "account " + std::to_string(number) + " differs";
    return {};
}

}  // namespace bank::test
