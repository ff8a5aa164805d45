#include "inspect/block_walk.hpp"

namespace taiyen::inspect {

void BlockWalk::from(HeapOffset place, Listener& listener) {
    const auto first = engine_.find_block(at(place.value));
    if (!first) return;
    push(*first, listener);
    for (heap::Block block; pop(block);) look_at(block, listener);
    visited_ |= here_;
    here_.clear();
}

/// Their own words may be hints again.
void BlockWalk::from_hinted(Listener& listener) {
    for (bool found = true; found;) {
        found = false;
        const BlockSet hinted = hinted_;
        for (const std::int64_t id : hinted) {
            if (visited_.contains(id)) continue;
            found = true;
            from(block_of(id), listener);
        }
    }
}

void BlockWalk::push(const heap::Block& block, Listener& listener) {
    const std::int64_t id = id_of(block.offset);
    if (visited_.contains(id)) {
        listener.met_again(block.offset);
        return;
    }
    if (!here_.insert(id)) return;
    listener.reached(block);
    if (stack_.size() < stack_max)
        stack_.push_back(block);
    else
        waiting_.insert(id);
}

bool BlockWalk::pop(heap::Block& block) {
    if (stack_.empty() && !waiting_.empty()) {
        // The lowest ones, in one go: the set gives up a whole stretch at the price of one.
        std::int64_t last = 0;
        for (auto id = waiting_.begin(); id != waiting_.end() && stack_.size() < stack_max / 2; ++id) {
            last = *id;
            if (const auto found = engine_.find_block(at(block_of(last).value))) stack_.push_back(*found);
        }
        waiting_.erase_interval(0, last);
    }
    if (stack_.empty()) return false;
    block = stack_.back();
    stack_.pop_back();
    return true;
}

void BlockWalk::look_at(const heap::Block& block, Listener& listener) {
    if (block.content == heap::Content::pointer_free) return;
    const std::uint64_t begin = block.offset.value;
    const std::uintptr_t base = base_;  // in registers, whatever a listener does
    const ByteCount extent = extent_;
    heap::for_each_word(heap::WordsFrom{at(0)}, begin, begin + block.usable_bytes, [&](std::uint64_t place, std::uint64_t word) {
        const std::uint64_t address = word - base;
        if (heap::ProgramMemory::may_hold(word) && address >= capacity_) listener.leads_out(block, {place}, word);
        if (links_ == heap::Links::addresses) {
            if (address < extent) follow(block, place, address, listener);
            return;
        }
        // Most small numbers are distances to somewhere in their own block.
        const std::uint64_t target = heap::distance_target(place, word);
        if (target < extent && target - begin >= block.usable_bytes) follow(block, place, target, listener);
        if (address < extent && engine_.find_block(at(address))) listener.dangles({place}, {address});
    });
}

void BlockWalk::follow(const heap::Block& from, std::uint64_t place, std::uint64_t target, Listener& listener) {
    if (const auto found = engine_.find_block(at(target))) {
        // Containers that keep distances keep no ends, but lengths and capacities, which may look like what stands beside an end.
        if (found->offset.value == target && (links_ == heap::Links::distances || !may_be_end(from, place, target)))
            push(*found, listener);
        else
            hinted_.insert(id_of(found->offset));
        return;
    }
    if (target == 0) return;
    if (const auto before = engine_.find_block(at(target - 1)); before && before->offset.value + before->usable_bytes == target) {
        hinted_.insert(id_of(before->offset));
        return;
    }
    // Where distances are pointers, any small number would be one that leads into free space near by.
    if (links_ == heap::Links::addresses && survey_.is_free({target})) listener.dangles({place}, {target});
}

bool BlockWalk::may_be_end(const heap::Block& from, std::uint64_t place, std::uint64_t target) const {
    // A vector keeps {begin, end, end of capacity}, a deque's iterator {current, first, last}: an end stands beside words that lead into the same block, one of them to its beginning.
    const std::uint64_t end = from.offset.value + from.usable_bytes / 8 * 8;
    const auto beside = [&](std::int64_t words) -> std::uint64_t {
        const std::uint64_t there = place + static_cast<std::uint64_t>(words * 8);
        return there >= from.offset.value && there + 8 <= end ? heap::word_at(at(there)) - base_ : extent_;
    };
    const std::uint64_t before = beside(-1);
    if (before > target) return false;
    const std::uint64_t further = beside(-2);
    const std::uint64_t behind = beside(1);
    if (further > target && behind != target) return false;
    const auto owner = target == 0 ? std::nullopt : engine_.find_block(at(target - 1));
    if (!owner || owner->offset.value + owner->usable_bytes != target) return false;
    const std::uint64_t begin = owner->offset.value;
    const auto inside = [&](std::uint64_t value) { return value >= begin && value <= target; };
    return (before == begin && (behind == target || inside(further))) || (further == begin && inside(before));
}

}  // namespace taiyen::inspect
