#pragma once
/// Reading transactions in the log: every byte is checked before anybody acts on it.
/// Thread rule: values.

#include <filesystem>
#include <optional>
#include <span>

#include <taiyen/base/units.hpp>

#include "change/redo.hpp"
#include "log/group.hpp"
#include "store/geometry.hpp"

namespace taiyen::txn {

/// What stands in front of a transaction's entries; a view into its group.
struct LoggedTransaction {
    Serial serial;
    ByteCount extent = 0;
    bool needs_heap = false;
    std::span<const std::byte> redo;          ///< not looked at yet
    std::optional<store::AnnexHead> annex{};  ///< as of this transaction, if it changes the annex
    std::span<const std::byte> annex_redo{};  ///< not looked at yet; offsets from the annex's begin
};

/// Nothing: the bytes are no transaction of that serial of a heap of that capacity.
std::optional<LoggedTransaction> read_record(std::span<const std::byte> bytes, Serial serial, ByteCount capacity);

/// Whether redoing the entry takes the whole heap.
constexpr bool needs_heap(change::EntryKind kind) { return kind == change::EntryKind::procedure || kind == change::EntryKind::pages_moved; }

/// Walks the transactions of the groups of one log: consecutive serials from `contained` on.
class LogWalk {
public:
    LogWalk(std::filesystem::path log, ByteCount capacity, Serial contained) : log_(std::move(log)), capacity_(capacity), last_(contained) {}

    /// For each transaction of the group `begin(const LoggedTransaction&)`, then `visit(const Entry&)` for each of its entries, those of the annex behind `store::annex_start`; an entry is
    /// checked right before it is visited, so that the log is decoded once. Throws: Error{corrupt | mismatch}, and what they throw; what was visited until then is to be forgotten.
    template <class Begin, class Visit>
    void walk(const log::Record& group, Begin&& begin, Visit&& visit) {
        require_follows(group);
        const bool whole = log::for_each_in_group(group, [&](Serial serial, std::span<const std::byte> bytes) {
            const std::optional<LoggedTransaction> found = read_record(bytes, serial, capacity_);
            if (!found) throw_corrupt(group);
            begin(*found);
            bool needs = false;
            const bool right = change::RedoView::check_and_visit(found->redo, found->extent, [&](const change::Entry& entry) {
                if (needs_heap(entry.kind)) {
                    if (!found->needs_heap) throw_corrupt(group);
                    needs = true;
                }
                visit(entry);
            });
            if (!right || needs != found->needs_heap) throw_corrupt(group);
            if (found->annex) visit_annex(group, *found, visit);
            last_ = serial;
            ++transactions_;
        });
        if (!whole) throw_corrupt(group);
    }
    /// Newest serial seen.
    Serial last() const { return last_; }
    std::uint64_t transactions() const { return transactions_; }
    const std::filesystem::path& log() const { return log_; }

private:
    template <class Visit>
    void visit_annex(const log::Record& group, const LoggedTransaction& transaction, Visit& visit) {
        const bool right = change::RedoView::check_and_visit(transaction.annex_redo, transaction.annex->used, [&](const change::Entry& entry) {
            if (needs_heap(entry.kind)) throw_corrupt(group);
            change::Entry placed = entry;
            placed.where.value += store::annex_start.value;
            visit(static_cast<const change::Entry&>(placed));
        });
        if (!right) throw_corrupt(group);
    }
    void require_follows(const log::Record& group) const;
    [[noreturn]] void throw_corrupt(const log::Record& group) const;

    std::filesystem::path log_;
    ByteCount capacity_;
    Serial last_;
    std::uint64_t transactions_ = 0;
};

}  // namespace taiyen::txn
