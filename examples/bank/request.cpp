#include "request.hpp"

namespace bank {

Request Load::next() {
    const std::uint64_t dice = below(100);
    if (dice < 1 || accounts_ < 2) return OpenAccount{owner_name(below(++accounts_))};
    if (dice < 10) return Deposit{any_account(), static_cast<Money>(1 + below(100'000))};
    if (dice < 80) {
        const AccountNumber from = any_account();
        AccountNumber to = any_account();
        if (to == from) to = from == accounts_ ? 1 : from + 1;
        return Transfer{from, to, static_cast<Money>(1 + below(100'000))};
    }
    if (dice < 97) return AskStatement{any_account()};
    return AskHoldings{owner_name(below(accounts_))};
}

}  // namespace bank
