#pragma once
/// What the bank told somebody that it has done, and whether a ledger found later still has all of it.
///
/// (A1) what was promised is in the ledger, exactly so; (A2) what was in the journal when it was last looked at is there unchanged; (A3) of changes that nobody was told
/// about there are at most as many as there were threads: each thread tells of one before it begins the next. What was told without a promise may be there.
/// Thread rule: one thread.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "server.hpp"

namespace bank {

/// One acknowledged change. Smaller than PIPE_BUF: through a pipe it arrives whole or not at all.
struct Acknowledgement {
    enum class Kind : std::uint64_t { account, posting };
    Kind kind = Kind::posting;
    std::uint64_t number = 0;
    AccountNumber from = 0;
    AccountNumber to = 0;
    Money amount = 0;
    std::uint64_t serial = 0;
    std::uint64_t is_promised = 1;  ///< 0: it was done there, and may be lost with that machine
    std::array<char, 32> owner{};
};
static_assert(std::is_trivially_copyable_v<Acknowledgement>);

/// Precondition: the answer is to a change that was done.
Acknowledgement acknowledgement_of(const Answer& answer);

class Auditor {
public:
    /// Takes the ledger's state for granted.
    explicit Auditor(const Ledger& ledger) { remember(ledger); }

    /// Whether the invariants and (A1)–(A3) hold after a life of the bank; the text says what is wrong first, empty if nothing is. Then this state is the one to compare with.
    std::string audit(const Ledger& ledger, const std::vector<Acknowledgement>& acknowledged, unsigned threads);
    /// Changes that the last life had made durable and not yet promised.
    std::uint64_t unacknowledged() const { return unacknowledged_; }

private:
    void remember(const Ledger& ledger);

    std::uint64_t postings_ = 0;
    AccountNumber accounts_ = 0;
    std::uint64_t digest_ = 0;  ///< of the journal up to `postings_`
    std::uint64_t unacknowledged_ = 0;
};

}  // namespace bank
