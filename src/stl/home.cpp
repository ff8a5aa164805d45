#include <cstdlib>
#include <utility>

#include <taiyen/base/report.hpp>
#include <taiyen/heap/scratch.hpp>
#include <taiyen/stl/allocator.hpp>

#include "heap/core.hpp"
#include "heap/held_blocks.hpp"

namespace taiyen::stl {
namespace {

heap::HeapCore* heap_at(std::uintptr_t address) noexcept { return heap::core_at(reinterpret_cast<const void*>(address)); }

constexpr unsigned slot_shift = 16;
constexpr unsigned scope_shift = 32;

}  // namespace

std::uint64_t Home::word(Kind kind, const heap::HeapCore& core) noexcept {
    const std::uint64_t scope = kind == lent ? core.scope_serial() : 0;
    return kind | std::uint64_t{heap::slot_of(core)} << slot_shift | scope << scope_shift;
}

std::uint32_t Home::slot() const noexcept {
    if (const heap::HeapCore* const own = heap::core_at(this); own != nullptr) return heap::slot_of(*own);
    return static_cast<std::uint32_t>(word_ >> slot_shift) & 0xffffU;
}

std::uint64_t Home::word_given(std::uintptr_t self, heap::HeapCore* core) {
    if (core == nullptr) heap::throw_closed();
    return core->is_volatile() && heap_at(self) == nullptr ? word(given, *core) : 0;
}

std::uint64_t Home::word_at(std::uintptr_t place, std::uintptr_t self) const noexcept {
    const heap::HeapCore* const core = heap_at(place);
    return core != nullptr ? word(lent, *core) | on_its_way : word_seen_from(self);
}

std::uint64_t Home::word_seen_from(std::uintptr_t place) const noexcept {
    const auto self = reinterpret_cast<std::uintptr_t>(this);
    if (const heap::HeapCore* const core = heap_at(place); core != nullptr) {
        if (core->lender() != nullptr) core->lender()->watch(place);
        return 0;  // its address says it
    }
    if (word_ != 0) return word_;
    const heap::HeapCore* const own = heap_at(self);
    if (own == nullptr) return 0;
    if (own->lender() != nullptr) own->lender()->lend(self);
    return word(lent, *own);
}

Home Home::for_copy() const noexcept {
    Home copy;
    const heap::HeapCore* const source = heap::core_of_slot(slot());
    if (source != nullptr && source->is_volatile() && heap::core_at(&copy) == nullptr) copy.word_ = word(given, *source);
    return copy;
}

void* Home::allocate(std::size_t bytes, std::size_t alignment, Pointers pointers, heap::Content content) {
    heap::HeapCore* core = heap::core_at(this);
    if (core == nullptr) {
        if (word_ == 0) return heap::allocate_scratch(bytes, alignment);
        core = heap::core_of_slot(slot());
        if (core == nullptr) heap::throw_closed();
    }
    if (pointers == Pointers::addresses && core->links() == heap::Links::distances) [[unlikely]]
        heap::check_addresses_allowed(*core);
    void* const block = heap::allocate_durable(*core, bytes, alignment, content);
    if (borrows() && core->lender() != nullptr) core->lender()->lend_block(block);
    return block;
}

bool Home::operator==(const Home& other) const noexcept {
    const std::uint32_t home = slot();
    if (home != other.slot()) return false;
    // Containers ask before one of them takes over what the other has.
    if (home != 0 && (word_ == 0 || other.word_ == 0)) exchange_between(*this, other);
    return true;
}

void Home::exchange_between(const Home& left, const Home& right) noexcept {
    const heap::HeapCore* const core = heap::core_of_slot(left.slot());
    if (core == nullptr || core->lender() == nullptr) return;
    heap::HeldBlocks& lender = *core->lender();
    for (const auto& [home, other] : {std::pair(&left, &right), std::pair(&right, &left)}) {
        if (home->borrows()) continue;
        if (other->borrows()) lender.lend(reinterpret_cast<std::uintptr_t>(home));
        lender.watch(reinterpret_cast<std::uintptr_t>(home));
    }
}

void Home::swap(Home& other) noexcept {
    if (this == &other) return;
    const bool left_outside = heap::core_at(this) == nullptr;
    const bool right_outside = heap::core_at(&other) == nullptr;
    if (left_outside && right_outside) {  // each takes the other's memory along
        std::swap(word_, other.word_);
        return;
    }
    if (slot() != other.slot()) {
        report({errc::foreign_pointer, &other,
                "two containers with different homes were swapped by swap() or std::swap(), which would leave each with the other's memory; assign "
                "them, or call swap(a, b) without std::, which copies"});
        std::abort();
    }
    exchange_between(*this, other);
}

bool Home::differs(std::uintptr_t place, const void* source) noexcept { return heap_at(place) != heap::core_at(source); }

}  // namespace taiyen::stl
