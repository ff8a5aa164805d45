#pragma once
/// What judges a transactional heap's disk after a crash: the newest state must be there that was told durable, or a later one that was begun, whole, and life must go on from it.

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "crash/explorer.hpp"
#include "crash/txn_life.hpp"

namespace taiyen::crash {

/// A transactional heap on the disk.
class TxnSubject final : public Subject {
public:
    TxnSubject(const TxnSetup& setup, TxnHistory history, std::optional<LostFile> lost = std::nullopt)
        : setup_(setup), history_(std::move(history)), lost_(std::move(lost)) {}

    std::uint64_t check(io::SimulatedStorage& disk, std::uint64_t state) override;
    std::unique_ptr<Subject> live_on(io::RecordingStorage& disk, std::uint64_t number, std::uint64_t state) override;

private:
    std::uint64_t check_missing(io::SimulatedStorage& disk, std::uint64_t state) const;
    /// Whether the heap must be told to go on without its data file. In some states that file comes back instead.
    bool misses_data(io::SimulatedStorage& disk, std::uint64_t state) const;

    TxnSetup setup_;
    TxnHistory history_;
    std::optional<LostFile> lost_;
};

}  // namespace taiyen::crash
