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

/// A transaction in the log, a view into its group.
struct LoggedTransaction {
    Serial serial;
    ByteCount extent = 0;
    bool needs_heap = false;
    change::RedoView redo;
    std::optional<store::AnnexHead> annex{};  ///< as of this transaction, if it changes the annex
    change::RedoView annex_redo{};            ///< offsets from the annex's begin

    /// Calls `visit(const Entry&)` for the entries of span and annex; those of the annex lie behind `store::annex_start`.
    template <class F>
    void for_each(F&& visit) const {
        redo.for_each(visit);
        annex_redo.for_each([&](const change::Entry& entry) {
            change::Entry placed = entry;
            placed.where.value += store::annex_start.value;
            visit(static_cast<const change::Entry&>(placed));
        });
    }
};

/// Nothing: the bytes are no transaction of that serial of a heap of that capacity, or the redo leads out of the transaction's own extent. Complexity: linear in entries.
std::optional<LoggedTransaction> read_record(std::span<const std::byte> bytes, Serial serial, ByteCount capacity);

/// Whether redoing the entry takes the whole heap.
constexpr bool needs_heap(change::EntryKind kind) { return kind == change::EntryKind::procedure || kind == change::EntryKind::pages_moved; }

/// Walks the transactions of the groups of one log: consecutive serials from `contained` on.
class LogWalk {
public:
    LogWalk(std::filesystem::path log, ByteCount capacity, Serial contained) : log_(std::move(log)), capacity_(capacity), last_(contained) {}

    /// Calls `visit(const LoggedTransaction&)` for each of the group's. Throws: Error{corrupt | mismatch}, and what `visit` throws.
    template <class F>
    void walk(const log::Record& group, F&& visit) {
        require_follows(group);
        const bool whole = log::for_each_in_group(group, [&](Serial serial, std::span<const std::byte> bytes) {
            const std::optional<LoggedTransaction> found = read_record(bytes, serial, capacity_);
            if (!found) throw_corrupt(group);
            visit(*found);
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
    void require_follows(const log::Record& group) const;
    [[noreturn]] void throw_corrupt(const log::Record& group) const;

    std::filesystem::path log_;
    ByteCount capacity_;
    Serial last_;
    std::uint64_t transactions_ = 0;
};

}  // namespace taiyen::txn
