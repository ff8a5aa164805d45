#pragma once
/// The last resort of a heap whose journal or log is lost or damaged: what is left of it, and how the heap goes on with that.
///
/// (I1) Nothing is accepted before every page of the last save is proven (RingUse).
/// (I2) The old files are copied, durably and with names, before the first byte of the heap changes. A crash leaves the heap as it was, or as it is to be; the ordinary recovery does the rest.
/// (I3) The heap goes on in a new epoch, or with another ring: no record of the old one can come back to life.
/// Thread rule: external lock.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "store/heap_file.hpp"

namespace taiyen::store {

/// Numbers are serials of a heap with a log, generations of one with a journal.
struct RingRemains {
    bool is_log = false;
    bool readable = false;                ///< the ring is there, and it is the heap's
    std::optional<std::uint64_t> cut_at;  ///< of a journal with whole saves in front of damage: the position behind them
    std::uint64_t last_save = 0;          ///< what giving the ring up leaves
    std::uint64_t intact_upto = 0;        ///< newest number in front of the damage
    std::uint64_t seen_upto = 0;          ///< newest number that is known to have been written
    std::string damage;                   ///< in words; empty: the ring ends as it should
};

/// Proves the last save and looks at the ring; writes nothing. Throws: Error{corrupt}: the last save isn't whole; as opening for reading.
RingRemains look_at_remains(io::Storage& storage, const std::filesystem::path& path, const PersistentOptions& options, const Tuning& tuning = {});

struct KeptCopy {
    std::filesystem::path file;
    std::filesystem::path kept;
};

/// Keeps copies of the heap's files, brings the heap to `upto` (its last save, or a number up to which its log is intact), and closes it. Returns the copies.
/// Durability: on return. Throws: Error{no_space | …}: nothing changed.
std::vector<KeptCopy> go_on_with_remains(io::Storage& storage, const std::filesystem::path& path, const PersistentOptions& options,
                                         const RingRemains& remains, std::uint64_t upto, const Tuning& tuning = {});

}  // namespace taiyen::store
