#include <cstdlib>
#include <utility>

#include <taiyen/base/report.hpp>
#include <taiyen/stl/allocator.hpp>

#include "heap/core.hpp"

namespace taiyen::stl {

std::uint64_t Home::word(Kind kind, const heap::HeapCore& core) noexcept {
    const std::uint64_t scope = kind == lent ? core.scope_serial() : 0;
    return kind | std::uint64_t{heap::slot_of(core)} << 16U | scope << 32U;
}

heap::HeapCore* Home::core() const noexcept { return heap::core_of_slot(static_cast<std::uint32_t>(word_ >> 16U) & 0xffffU); }

std::uint64_t Home::word_given(std::uintptr_t self, heap::HeapCore* core) {
    if (core == nullptr) heap::throw_closed();
    return heap::place_of(reinterpret_cast<const void*>(self)).core == nullptr ? word(given, *core) : 0;
}

std::uint64_t Home::word_at(std::uintptr_t place, std::uintptr_t self) const noexcept {
    const heap::Place at = heap::place_of(reinterpret_cast<const void*>(place));
    return at.durable || at.scratch ? (at.durable ? word(lent, *at.core) | on_its_way : word(given, *at.core)) : word_seen_from(self);
}

std::uint64_t Home::word_seen_from(std::uintptr_t place) const noexcept {
    const heap::Place target = heap::place_of(reinterpret_cast<const void*>(place));
    const bool outside = !target.durable && !target.scratch;
    if (word_ != 0) return outside ? word_ : 0;
    // Inside a heap, or undecided.
    const heap::Place own = heap::place_of(this);
    if (!outside || (!own.durable && !own.scratch)) return 0;
    if (own.durable) own.core->lend(reinterpret_cast<std::uintptr_t>(this), place);
    return word(own.durable ? lent : given, *own.core);
}

Home::Effective Home::effective() const noexcept {
    if (const heap::Place own = heap::place_of(this); own.durable || own.scratch) return {own.core, own.durable};
    switch (kind()) {
        case given: return {core(), false};
        case lent: return {core(), true};
        case undecided: return {heap::current_core(), false};
        case last_resort: break;
    }
    heap::HeapCore* const current = heap::current_core();
    return {current != nullptr ? current : core(), false};
}

Home Home::for_copy() const noexcept {
    Home copy;
    heap::HeapCore* const source = effective().core;
    if (source != nullptr && heap::place_of(&copy).core == nullptr) copy.word_ = word(last_resort, *source);
    return copy;
}

void* Home::allocate(std::size_t bytes, std::size_t alignment, Pointers pointers) {
    const Effective home = effective();
    if (home.core == nullptr) {
        if (kind() == given || kind() == lent) heap::throw_closed();
        heap::throw_no_current_heap();
    }
    if (home.durable) {
        if (pointers == Pointers::addresses && home.core->links() == heap::Links::distances) [[unlikely]]
            heap::check_addresses_allowed(*home.core);
        void* const block = heap::allocate_durable(*home.core, bytes, alignment);
        if (borrows()) home.core->lend_block(block, reinterpret_cast<std::uintptr_t>(this));
        return block;
    }
    void* const block = heap::allocate_scratch(*home.core, bytes, alignment);
    // Decided now. An object within scratch memory keeps its zero: its address says it.
    if ((kind() == undecided || kind() == last_resort) && heap::place_of(this).core == nullptr) word_ = word(given, *home.core);
    return block;
}

bool Home::operator==(const Home& other) const noexcept {
    const Effective left = effective();
    const Effective right = other.effective();
    if (left.core != right.core || left.durable != right.durable) return false;
    // Containers ask before one of them takes over what the other has.
    if (left.durable && borrows() != other.borrows() && (word_ == 0 || other.word_ == 0)) lend_between(*this, other, *left.core);
    return true;
}

void Home::lend_between(const Home& left, const Home& right, heap::HeapCore& core) noexcept {
    const bool left_lends = !left.borrows();
    core.lend(reinterpret_cast<std::uintptr_t>(left_lends ? &left : &right), reinterpret_cast<std::uintptr_t>(left_lends ? &right : &left));
}

void Home::swap(Home& other) noexcept {
    if (this == &other) return;
    const bool left_outside = heap::place_of(this).core == nullptr;
    const bool right_outside = heap::place_of(&other).core == nullptr;
    const auto open = [](const Home& home) { return home.kind() == undecided || home.kind() == last_resort; };
    const Effective left = effective();
    const Effective right = other.effective();
    const bool same = left.core == right.core && left.durable == right.durable;
    // Two volatile containers outside, one of them undecided: neither holds what the other must not have.
    const bool undecided_outside = left_outside && right_outside && !left.durable && !right.durable && (open(*this) || open(other));
    if (!same && !undecided_outside) {
        report(
            {errc::foreign_pointer, &other,
             "two containers with different homes were swapped, which would leave each with the other's memory; copy or move-assign them instead"});
        std::abort();
    }
    if (same && left.durable && left_outside != right_outside) lend_between(*this, other, *left.core);
    if (left_outside && right_outside) std::swap(word_, other.word_);
}

bool Home::differs(std::uintptr_t place, const void* source) noexcept {
    const heap::Place target = heap::place_of(reinterpret_cast<const void*>(place));
    if (!target.durable && !target.scratch) return false;  // outside: whatever comes along may stay
    const heap::Place from = heap::place_of(source);
    return from.core != target.core || from.durable != target.durable;
}

}  // namespace taiyen::stl
