#pragma once
/// LogReplay: what the groups of a transaction log do to a heap whose last user crashed, without store knowing what a transaction is.
///
/// Opening reads the log once: each group is checked and applied in the private view, which is given up, with nothing written, if one turns out wrong. Only where recovery has to write
/// something else before there is a view, all groups are checked in a pass of its own. One object per pass; groups come in the order of the log. Thread rule: external lock.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>

#include <taiyen/base/units.hpp>

#include "log/ring.hpp"

namespace taiyen::store {

class HeapFile;

/// Kind of the ring records that hold transactions; their number is the first serial in them.
inline constexpr std::uint32_t record_transactions = 3;

class LogReplay {
public:
    virtual ~LogReplay() = default;

    /// Throws: Error{corrupt | mismatch | missing_procedure}.
    virtual void check(const log::Record& group) = 0;
    /// Checks the group and applies it in the private view; calls heap.extend() for the extent of each transaction first. Throws: as check; the view is worth nothing then.
    virtual void apply(const log::Record& group, HeapFile& heap) = 0;
    /// Newest serial seen; before the first group what the files contain.
    virtual Serial last() const = 0;
    /// How many were seen.
    virtual std::uint64_t transactions() const = 0;
    /// Whether nothing behind is wanted: what the log has there isn't looked at.
    virtual bool is_done() const { return false; }
};

using LogReplayMaker = std::function<std::unique_ptr<LogReplay>(const std::filesystem::path& log, ByteCount capacity, Serial contained)>;

/// The same up to a serial, which may lie within a group, or before the log.
LogReplayMaker replay_up_to(LogReplayMaker make, Serial last);

/// `log`: the file that errors name. `contained`: newest serial that the files hold; the first transaction must be the next one. Defined in room txn.
std::unique_ptr<LogReplay> make_log_replay(const std::filesystem::path& log, ByteCount capacity, Serial contained);

}  // namespace taiyen::store
