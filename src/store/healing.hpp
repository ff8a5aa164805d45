#pragma once
/// Healing: what one copy of a heap has damaged comes back from the other one: all at once, or by pieces beside the program (a scrub).
///
/// Each page is a durable step of its own, so that a crash leaves it healed or as it was.
/// Thread rule: pieces are safe beside everything; `heal` beside transactions, and else by the heap's user. Saves wait meanwhile.

#include <functional>
#include <optional>
#include <set>
#include <unordered_set>
#include <vector>

#include "store/saves.hpp"
#include "store/visits.hpp"

namespace taiyen::store {

using TellLost = std::function<void(const Error& lost)>;
using TellBytes = std::function<void(std::uint64_t done, std::uint64_t total)>;

/// A page of a file that isn't as the newest save left it. Of the table: the index of the table page.
struct DamagedPage {
    bool in_data = false;
    bool of_table = false;
    std::uint64_t number = 0;
    auto operator<=>(const DamagedPage&) const = default;
};

/// What became of it.
enum class Healed { healed, whole /** meanwhile, by a save */, lost, waits /** for the next save: the program may be changing it */ };

class Healing {
public:
    /// All must outlive it.
    Healing(Condition& condition, HeapFiles& files, Proofs& proofs, Saves& saves, Visits& visits)
        : condition_(condition), files_(files), proofs_(proofs), saves_(saves), visits_(visits) {}

    /// Reads every page of both copies, restores damaged and unreadable ones from the other copy; returns how many. `lost` is told of each that neither has; without it: throws
    /// Error{corrupt} of the first one, after everything else was restored. Throws: Error{io_error}.
    std::uint64_t heal(const TellLost& lost = {}, const TellBytes& tell = {});

    // By pieces.
    /// So many bytes a piece takes at most, of each file.
    static constexpr ByteCount scrubbed_bytes_max = ByteCount{256} << 10U;
    /// Compares up to `bytes` of both copies from `next` on, past the page cache, and moves `next` on; behind the last page it becomes 0, and a round has ended. What stands in the ring alone isn't looked at.
    /// Returns how many bytes were read. `damaged`: those found are added. Throws: Error{closed | poisoned | io_error}, std::bad_alloc.
    ByteCount look_over(PageNumber& next, ByteCount bytes, std::vector<DamagedPage>& damaged);
    /// Restores one page from the other copy, if that is whole. Nothing: a save is at work, and it wasn't waited for. A page of the backing file of a heap without transactions waits for the next save, when nobody stores;
    /// of one with transactions: the caller sees to it that nobody changes the heap meanwhile, and that the log is not behind.
    /// Durability: it is synced. Throws: Error{closed | truncated | …}; Error{io_error | corrupt}: it can't be written, the heap is poisoned.
    std::optional<Healed> heal_one(const DamagedPage& damaged);
    /// A sentence about it, with file and offset, also of a heap that is poisoned meanwhile. Throws: Error{closed}.
    Error describe(const DamagedPage& damaged, const char* what) const;
    /// What the scrub left for a moment when nobody stores. Requires: saves are held.
    void heal_waiting();
    /// A scrub finds anew what is left to heal: a copy has gone. Requires: saves are held.
    void forget_waiting() noexcept { waiting_.clear(); }

private:
    class Walk;
    bool has_table_page(const PageFile& file, std::uint64_t index);

    Condition& condition_;
    HeapFiles& files_;
    Proofs& proofs_;
    Saves& saves_;
    Visits& visits_;
    std::set<DamagedPage> waiting_;  ///< the save mutex guards it
};

}  // namespace taiyen::store
