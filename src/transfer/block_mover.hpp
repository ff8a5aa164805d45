#pragma once
/// BlockMover: makes a part of a CompactionPlan come true, under the capture of the heap.
///
/// In this order: `copy` takes the new places and copies blocks there, `relocation` says so, `find_names` looks for names of them, `rewrite` corrects pointers and names, `free_old` gives the old places up.
/// (B1) Until `rewrite` nothing refers to a new place: `free_new` takes everything back, in heaps without capture too. From then on nothing throws but for damage.
/// (B2) Each byte is announced to the heap's observer before it is written.
/// (B3) No page is copied from, or into, that was damaged in the backing file: a moved byte gets a fresh checksum.
/// Thread rule: one thread, that of the heap's open scope or transaction if it has them.

#include <chrono>
#include <string>
#include <vector>

#include <taiyen/transfer/compact.hpp>

#include "store/heap_file.hpp"
#include "transfer/compaction_plan.hpp"
#include "transfer/pointer_places.hpp"

namespace taiyen::transfer {

class BlockMover {
public:
    /// What it refers to must outlive it. Counts in the report what it does.
    BlockMover(store::HeapFile& file, const HeapView& heap, const CompactionPlan& plan, CompactReport& report);

    /// Groups of blocks from the plan's beginning, as many as the budget allows, at least one. Throws: std::bad_alloc, Error{corrupt}; what was copied is still to be freed.
    void copy(const CompactOptions& options, std::chrono::steady_clock::time_point began);
    bool has_moved() const { return !moved_.empty(); }
    bool has_done_all() const { return groups_done_ == plan_.groups().size(); }
    /// Blocks beside those that moved stand in it as themselves: an address that ends one and begins the other is told apart by that.
    Relocation relocation() const;
    void find_names(const Relocation& relocation);
    void rewrite(const PointerPlaces& places, const Relocation& relocation);
    void free_old();
    void free_new() noexcept;
    /// What the plan has beside what was done.
    void count_left();

private:
    /// Of an object that has moved.
    struct Name {
        std::string text;
        HeapOffset object;
    };

    bool copy_group(const CompactionPlan::Group& group);
    bool take_places(const CompactionPlan::Group& group);
    /// Throws: Error{corrupt}.
    void prove(std::uint64_t place, ByteCount bytes);
    void count(const CompactionPlan::Group& group);
    void announce(std::uint64_t offset, ByteCount length);
    /// Whether a block that moved lies in that page, or ends at the place.
    bool is_near(std::uint64_t place) const;

    store::HeapFile& file_;
    const HeapView& heap_;
    const CompactionPlan& plan_;
    CompactReport& report_;
    std::byte* const span_;
    heap::WriteObserver* const observer_;  ///< null: nobody captures
    std::vector<CompactionPlan::Move> moved_;
    std::vector<Name> names_;
    std::vector<bool> left_pages_;    ///< that blocks have left
    std::vector<bool> proven_pages_;  ///< that are in the backing file as they were saved
    std::vector<std::uint16_t> segments_;
    std::size_t groups_done_ = 0;
};

}  // namespace taiyen::transfer
