#pragma once
/// The foreign-pointer scan: finds words of a heap that point where a saved heap must not point: at volatile memory, or into another heap.
///
/// The allocator keeps such words out wherever the language gives it a say; implicit moves (`optional` and `variant` assignment, node handles, by-value
/// parameters moved into members) pass it by. A word counts if it lies 8-byte aligned in a live block and
/// (a) equals the start of a live scratch block, or
/// (b) equals the start of a live block of another open heap. A number that merely lies in a heap is a number: two ints side by side may.
/// (c) and no shape says that it is a number (HeapCore::uses_of), where the heap refuses such words.
/// Words in free memory, in pointer-free blocks and in the engine's metadata don't count; pages of pointer-free blocks aren't read. Cost: one range test per word where no other heap is open; exact look-ups on a hit only.
/// Where it is asked for, pointers to the program's own memory are found with them (program_audit.hpp).
/// Thread rule: external lock on the scanned heap; the other heaps may be in use and may be closed meanwhile.

#include <cstdint>
#include <optional>
#include <vector>

#include <taiyen/base/error.hpp>
#include <taiyen/base/units.hpp>

#include "heap/core.hpp"
#include "heap/program_audit.hpp"

namespace taiyen::heap {

struct ForeignPointer {
    HeapOffset where;       ///< of the word
    std::uintptr_t target;  ///< its value
};

class ForeignPointerScan {
public:
    /// Of a save that reports what it finds: so many words at most.
    static constexpr unsigned told_max = 16;
    /// So many words at most are looked up in shapes; what is found behind them counts as a pointer.
    static constexpr std::size_t looked_up_max = std::size_t{1} << 16U;

    /// Looks once at which heaps are open; make a new one for each save. `program`: which pointers to the program's memory count as well, in this save.
    explicit ForeignPointerScan(HeapCore& core, ProgramPointers program = ProgramPointers::unsearched);
    /// Whether there is nothing to search for: nothing else is open, there is no scratch memory, and the program's memory doesn't count.
    bool is_idle() const { return below_.bytes == 0 && above_.bytes == 0 && !program_; }
    /// Searches [offset, offset + length) of the heap, whose bytes must be readable. Both are multiples of 8.
    void examine(HeapOffset offset, ByteCount length);
    /// After all of it was examined. Throws: Error{foreign_pointer}, unless the heap reports what leads out of it. Complexity: constant, unless words were found: then as HeapCore::uses_of.
    void finish();
    /// The first word in [offset, offset + length) of the heap that (a) or (b) holds of. Both are multiples of 8, and the bytes must be readable.
    std::optional<ForeignPointer> find(HeapOffset offset, ByteCount length) const;
    /// Error{foreign_pointer} that names the block, the named object if the block is one, and the target.
    Error refusal(const ForeignPointer& found, const WordUse& use) const;

private:
    struct Range {
        std::uintptr_t begin = 0;
        std::uintptr_t bytes = 0;  ///< 0: empty, no address passes
        bool holds(std::uintptr_t value) const { return value - begin < bytes; }
        void include(std::uintptr_t first, std::uintptr_t last);
    };
    void search(HeapOffset offset, ByteCount length);
    bool is_foreign(HeapOffset where, std::uintptr_t value) const;
    void refuse_or_report(HeapOffset where, const Error& refusal);

    HeapCore& core_;
    std::optional<ProgramAudit> program_;
    std::vector<ForeignPointer> found_;
    unsigned told_ = 0;
    Engine::Stretch stretch_{};  ///< looked at last
    Range below_;  ///< all targets under the heap's own span; together with `above_` it leaves the heap's own pointers out of the exact look-up
    Range above_;
};

}  // namespace taiyen::heap
