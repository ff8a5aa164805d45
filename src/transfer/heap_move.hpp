#pragma once
/// HeapMove: the pages of a heap as they have to be at another address, with another capacity, or with its blocks laid close together.
///
/// (I1) The heap that is moved is only read. What is decided here (which words are pointers, where blocks go) follows from it alone.
/// Memory: as that of who finds the pointers, and of NewPlaces. Thread rule: one thread.

#include <optional>
#include <stop_token>

#include <taiyen/base/progress.hpp>

#include "transfer/new_places.hpp"
#include "transfer/page_target.hpp"
#include "transfer/pointer_finder.hpp"

namespace taiyen::transfer {

/// Where a heap goes.
struct MovePlan {
    ByteCount capacity = 0;
    std::uintptr_t base = 0;
    Defragment defragment = Defragment::no;
    bool in_one_go = false;  ///< no pointer changes: pages stay as they come
};

/// The heap that is moved, as far as the plan goes by it.
struct MovedHeap {
    std::uintptr_t base;
    bool position_independent;
    ByteCount capacity;
    ByteCount extent;
    const std::filesystem::path& name;  ///< that errors name
};

/// Without a place if that is `anywhere`. `capacity`: 0: as it was. Throws: Error{invalid_argument | type_mismatch} for what can't be had.
MovePlan plan_move(const MovedHeap& heap, ByteCount capacity, std::optional<std::uintptr_t> base, Defragment defragment,
                   const PointerOptions& pointers);

class HeapMove {
public:
    /// Finds pointers and places. `old`: metadata that was checked, and referred to; by declared types or shapes, it lies at its own address.
    /// Throws: Error{type_mismatch | foreign_pointer} as the options say; Error{invalid_argument}: what is live doesn't fit; Error{corrupt}.
    /// `is_volatile`: as HeapShape has it. What moves by shapes then has no blocks of which nobody knows what is in them.
    HeapMove(const HeapView& old, const MovePlan& plan, const PointerOptions& pointers, bool is_volatile);
    HeapMove(const HeapMove&) = delete;
    HeapMove& operator=(const HeapMove&) = delete;

    ByteCount extent() const { return places_ ? places_->engine().extent() : old_.engine.extent(); }
    /// `progress`: bytes of the new heap. Throws: as the target; Error{cancelled}, and what `progress` throws.
    void write(PageTarget& target, const std::stop_token& cancel, const Progress& progress = {}) const;
    /// What was done; with it, nothing but the report is left.
    RebaseReport take_report();

private:
    class Writer;
    void write_in_place(Writer& writer) const;
    void write_laid_out(Writer& writer) const;
    std::uintptr_t new_value(std::uint64_t value, bool is_end) const;

    const HeapView& old_;
    const MovePlan plan_;
    RebaseReport report_;
    FoundPointers found_;
    std::optional<NewPlaces> places_;
};

}  // namespace taiyen::transfer
