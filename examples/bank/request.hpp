#pragma once
/// What clients ask of the bank, and a stream of it that depends on a seed alone.
///
/// Thread rule: values; a Load belongs to one thread.

#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <variant>

#include "ledger.hpp"

namespace bank {

struct OpenAccount {
    std::string owner;
};
struct Deposit {
    AccountNumber to = 0;
    Money amount = 0;
};
struct Transfer {
    AccountNumber from = 0;
    AccountNumber to = 0;
    Money amount = 0;
};
struct AskStatement {
    AccountNumber account = 0;
};
struct AskHoldings {
    std::string owner;
};
using Request = std::variant<OpenAccount, Deposit, Transfer, AskStatement, AskHoldings>;

/// Plural, for tables.
inline constexpr std::string_view request_names[] = {"accounts opened", "deposits", "transfers", "statements", "holdings"};
inline bool changes(const Request& request) { return request.index() < 3; }

/// Random but repeatable: mostly transfers, some of them of more than is there.
class Load {
public:
    /// `accounts` there are already.
    Load(std::uint64_t seed, AccountNumber accounts) : random_(seed), accounts_(accounts) {}
    Request next();
    /// Owners have a few accounts each.
    static std::string owner_name(std::uint64_t number) { return "owner number " + std::to_string(number); }

private:
    std::uint64_t below(std::uint64_t limit) { return random_() % limit; }
    AccountNumber any_account() { return 1 + below(accounts_); }

    std::mt19937_64 random_;
    AccountNumber accounts_;
};

}  // namespace bank
