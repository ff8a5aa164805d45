#pragma once
/// TwinPool: where the copies of open pages lie, and which page each belongs to.
///
/// Slots of a page each, in an arena with as many of them as the span has pages. The lowest free slot is taken first, so the memory of closed pages is used again while it is warm, and
/// few open pages lie close together wherever the pages themselves lie.
/// Taking and putting back allocate nothing; a signal handler may do both. No huge pages: where the host of a virtual machine takes free memory away,
/// one costs several times what the small ones cost that the system still has.
/// Thread rule: external lock.

#include <cstdint>

#include <taiyen/base/units.hpp>

#include "change/page_set.hpp"
#include "change/side_memory.hpp"

namespace taiyen::change {

class TwinPool {
public:
    using Slot = std::uint32_t;
    /// A taken slot's page, and a word of the recorder's.
    struct Owner {
        std::uint64_t page;
        std::uint32_t use;
        std::uint32_t unused;
    };

    /// Throws: HeapFull{address_space}, std::bad_alloc.
    explicit TwinPool(std::uint64_t pages) : arena_(pages * page_bytes), owners_(pages * sizeof(Owner)), taken_(pages) {}
    /// Room for that many pages. Throws: HeapFull{address_space}.
    void grow(std::uint64_t pages) {
        owners_.grow(pages * sizeof(Owner));
        taken_.grow(pages);
        arena_.grow(pages * page_bytes);
    }

    std::byte* at(Slot slot) const { return arena_.data() + slot * page_bytes; }
    Owner& owner(Slot slot) const { return owners_.as<Owner>()[slot]; }

    /// Requires: fewer slots are taken than there is room for.
    Slot take(const Owner& owner) noexcept {
        const auto slot = taken_.next_absent(lowest_free_, ~std::uint64_t{0});
        lowest_free_ = slot + 1;
        used_end_ = std::max(used_end_, slot + 1);
        taken_.add(slot, slot + 1);
        owners_.as<Owner>()[slot] = owner;
        idle_ -= std::min<std::uint64_t>(idle_, 1);
        return static_cast<Slot>(slot);
    }
    void put_back(Slot slot) noexcept {
        taken_.remove(slot, slot + 1);
        lowest_free_ = std::min<std::uint64_t>(lowest_free_, slot);
        ++idle_;
    }
    /// Brings the memory of slots that will be filled in at once.
    void populate(Slot first, std::uint64_t count) const noexcept { arena_.populate(first * page_bytes, (first + count) * page_bytes); }
    /// Gives the memory of taken slots back to the system: what they held is lost, and they can be filled again.
    void discard(Slot first, std::uint64_t count) noexcept { arena_.release(first * page_bytes, (first + count) * page_bytes); }
    /// Calls `visit(const Owner&)` for each taken slot, in the order of slots.
    template <class F>
    void for_each_owner(F&& visit) const {
        taken_.for_each_run([&](std::uint64_t first, std::uint64_t end) {
            for (std::uint64_t slot = first; slot < end; ++slot) visit(owners_.as<Owner>()[slot]);
        });
    }
    /// Gives memory of free slots back to the system if it is more than `idle_max` pages.
    void give_back(std::uint64_t idle_max) noexcept {
        if (idle_ <= idle_max) return;
        std::uint64_t from = 0;
        taken_.for_each_run([&](std::uint64_t first, std::uint64_t end) {
            if (from < first) arena_.release(from * page_bytes, first * page_bytes);
            from = end;
        });
        if (from < used_end_) arena_.release(from * page_bytes, used_end_ * page_bytes);
        used_end_ = from;
        idle_ = 0;
    }

private:
    SideMemory arena_;
    SideMemory owners_;
    PageSet taken_;
    std::uint64_t lowest_free_ = 0;  ///< no slot below is free
    std::uint64_t used_end_ = 0;     ///< no slot from here on has memory
    std::uint64_t idle_ = 0;         ///< free slots that may still have memory
};

}  // namespace taiyen::change
