#include "acknowledgement.hpp"

#include <algorithm>

namespace bank {
namespace {

std::uint64_t mixed(std::uint64_t digest, std::uint64_t value) {
    // FNV-1a's prime, eight bytes at a time: enough to notice a change.
    constexpr std::uint64_t prime = 0x100000001b3;
    return (digest ^ value) * prime + (digest >> 47U);
}

std::uint64_t digest_of(const Ledger& ledger, std::uint64_t postings) {
    std::uint64_t digest = 0xcbf29ce484222325;
    for (std::uint64_t i = 0; i < postings; ++i) {
        const Posting& posting = ledger.journal[i];
        for (const std::uint64_t value :
             {posting.number, static_cast<std::uint64_t>(posting.amount), posting.from.account->first, posting.to.account->first,
              static_cast<std::uint64_t>(posting.from.after), static_cast<std::uint64_t>(posting.to.after)}) {
            digest = mixed(digest, value);
        }
    }
    return digest;
}

bool is_there(const Ledger& ledger, const Acknowledgement& told) {
    if (told.kind == Acknowledgement::Kind::account) {
        const auto at = ledger.accounts.find(told.number);
        return at != ledger.accounts.end() && std::string_view(at->second.owner) == std::string_view(told.owner.data());
    }
    if (told.number == 0 || told.number > ledger.journal.size()) return false;
    const Posting& posting = ledger.journal[told.number - 1];
    return posting.from.account->first == told.from && posting.to.account->first == told.to && posting.amount == told.amount;
}

}  // namespace

Acknowledgement acknowledgement_of(const Answer& answer) {
    Acknowledgement told;
    told.number = answer.number;
    told.serial = answer.serial.value;
    told.is_promised = answer.is_confirmed ? 1 : 0;
    if (const auto* const opened = std::get_if<OpenAccount>(&answer.request)) {
        told.kind = Acknowledgement::Kind::account;
        opened->owner.copy(told.owner.data(), told.owner.size() - 1);
    } else if (const auto* const deposited = std::get_if<Deposit>(&answer.request)) {
        told.to = deposited->to;
        told.amount = deposited->amount;
    } else if (const auto* const transferred = std::get_if<Transfer>(&answer.request)) {
        told.from = transferred->from;
        told.to = transferred->to;
        told.amount = transferred->amount;
    }
    return told;
}

std::string Auditor::audit(const Ledger& ledger, const std::vector<Acknowledgement>& acknowledged, unsigned threads) {
    // The invariants first: what follows relies on pointers that lead somewhere.
    if (std::string broken = broken_invariant(ledger); !broken.empty()) return broken;
    std::uint64_t promised = 0;
    for (const Acknowledgement& told : acknowledged) {
        promised += told.is_promised;
        if (told.is_promised != 0 && !is_there(ledger, told)) {
            return (told.kind == Acknowledgement::Kind::account ? "account " : "posting ") + std::to_string(told.number) +
                   " was acknowledged (serial " + std::to_string(told.serial) + ") and is not there as it was";
        }
    }
    if (ledger.journal.size() < postings_ || ledger.last_account < accounts_ || digest_of(ledger, postings_) != digest_)
        return "the journal is not what it was before";
    const std::uint64_t changes = ledger.journal.size() - postings_ + (ledger.last_account - accounts_);
    if (changes < promised || changes > acknowledged.size() + threads)
        return std::to_string(changes) + " changes are there, but " + std::to_string(promised) + " were acknowledged";
    unacknowledged_ = changes - promised;
    remember(ledger);
    return {};
}

void Auditor::remember(const Ledger& ledger) {
    postings_ = ledger.journal.size();
    accounts_ = ledger.last_account;
    digest_ = digest_of(ledger, postings_);
}

}  // namespace bank
