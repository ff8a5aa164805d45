#pragma once
/// GiveBack: what makes holes of a heap's free pages when its files are closed.
///
/// (G1) A page loses its disk blocks only behind a checkpoint that says it is zero: a crash before leaves blocks that hold nothing, never a hole where bytes are.
/// (G2) A page counts as free only by metadata that is as it was saved, and never where a history is, whose steps remember what free pages hold.
/// The order of the durable steps: FORMAT.md, "Giving space back". Thread rule: external lock, the heap's.

#include <cstdint>
#include <functional>
#include <vector>

#include "heap/engine.hpp"
#include "store/healing.hpp"

namespace taiyen::store {

class GiveBack {
public:
    /// All must outlive it.
    GiveBack(heap::HeapCore& core, Condition& condition, HeapFiles& files, Image& image, Proofs& proofs, Saves& saves)
        : core_(core), condition_(condition), files_(files), image_(image), proofs_(proofs), saves_(saves) {}

    /// Closing takes each free page, also those that an interrupted close left with their disk blocks. Without a call: runs of 64 KiB and more.
    void take_all(TellBytes tell = {});
    bool takes_all() const { return takes_all_; }
    /// Makes the holes. Requires: all that is in memory is what the files hold. Durability: on return. Throws: Error{no_space | io_error | …}; what was saved is still whole.
    void run();

private:
    using Runs = std::vector<heap::FreeRun>;

    /// Marks free runs as without disk blocks, in the span.
    Runs release();
    /// All free pages that the engine takes for such without disk blocks.
    Runs released() const;
    void punch(const Runs& runs);

    heap::HeapCore& core_;
    Condition& condition_;
    HeapFiles& files_;
    Image& image_;
    Proofs& proofs_;
    Saves& saves_;
    bool takes_all_ = false;
    TellBytes tell_;
};

}  // namespace taiyen::store
