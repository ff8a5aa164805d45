#include "migrate/old_blocks.hpp"

#include <algorithm>
#include <functional>

#include <taiyen/base/error.hpp>

#include "base/text.hpp"
#include "heap/core.hpp"
#include "inspect/view_budget.hpp"
#include "inspect/view_inner.hpp"
#include "inspect/view_memory.hpp"
#include "shape/hidden_words.hpp"

namespace taiyen::migrate {

using inspect::ViewAccess;

bool OldBlocks::may_hold_blocks(const ShapeNode& node) {
    return (node.kind == ShapeKind::opaque && node.bytes >= sizeof(std::uint64_t)) || inspect::is_container(node.kind);
}

namespace {

/// Calls `take` with each block that the value holds, at any depth, and `left` with each value in it that may hold some which nobody knows.
class HeldBlocks {
public:
    HeldBlocks(shape::TypesWith& with_blocks, const ViewValue& whole, const std::function<void(std::uint64_t)>& take,
               const std::function<bool(const ViewValue&)>& leave)
        : with_blocks_(with_blocks), budget_(whole), take_(take), leave_(leave) {}

    void look_at(const ViewValue& value, unsigned depth = 0) {
        const inspect::ViewMemory& memory = ViewAccess::memory(value);
        if (ViewAccess::is_bit(value) || !with_blocks_(*memory.shape, ViewAccess::number(value))) return;
        if (depth > inspect::view_depth_max) memory.throw_corrupt(value.offset(), "values lie too deep within each other");
        budget_.take(value, depth);
        if (leave_(value)) return;
        const auto look_within = [&](const ViewValue& inner) { look_at(inner, depth + 1); };
        if (inspect::is_container(value.kind())) {
            budget_.take_search(value, depth);
            inspect::ViewWalk::of(value)->for_each_block(take_, look_within);
            const ShapeNode& node = ViewAccess::node(value);
            if (node.parts.empty() || !with_blocks_(*memory.shape, node.parts.front().node)) return;
        }
        inspect::for_each_inner(value, look_within);
    }

private:
    shape::TypesWith& with_blocks_;
    inspect::ViewBudget budget_;
    const std::function<void(std::uint64_t)>& take_;
    const std::function<bool(const ViewValue&)>& leave_;
};

std::tuple<std::uint64_t, const Shape*, std::uint32_t> identity_of(const ViewValue& value) {
    return {value.offset(), ViewAccess::memory(value).shape.get(), ViewAccess::number(value)};
}

}  // namespace

void OldBlocks::know(const ViewValue& value) { known_.insert(identity_of(value)); }

void OldBlocks::add(const ViewValue& in_block) {
    blocks_.push_back(in_block.offset());
    const std::function<void(std::uint64_t)> take = [&](std::uint64_t block) { blocks_.push_back(block); };
    const std::function<bool(const ViewValue&)> leave = [&](const ViewValue& value) {
        if (known_.contains(identity_of(value))) return true;
        const bool hides = shape::has_hidden_words(*ViewAccess::memory(value).shape, ViewAccess::number(value));
        if (hides || inspect::is_closed(value)) left_.insert(value.type());
        return inspect::is_closed(value);
    };
    HeldBlocks(with_blocks_, in_block, take, leave).look_at(in_block);
}

void OldBlocks::refuse_others(const std::string& name, const ViewValue& value) const {
    const std::function<void(std::uint64_t)> take = [&](std::uint64_t block) {
        if (std::ranges::binary_search(blocks_, block))
            throw Error(
                errc::invalid_argument, ViewAccess::memory(value).file.path(), block,
                joined({"a pointer leads to what is part of '", name, "', and is to be made anew: let that be migrated, too (Migration::object)"}));
    };
    const std::function<bool(const ViewValue&)> leave = &inspect::is_closed;
    HeldBlocks(with_blocks_, value, take, leave).look_at(value);
}

void OldBlocks::close(const heap::HeapCore& core) {
    std::ranges::sort(blocks_);
    const auto twice = std::ranges::adjacent_find(blocks_);
    if (twice != blocks_.end())
        throw Error(errc::corrupt, core.path(), *twice, "two values hold the same block: 'taiyen verify' tells what else is damaged");
    ends_.reserve(blocks_.size());
    for (const std::uint64_t block : blocks_) {
        const std::size_t bytes = heap::usable_size(core, reinterpret_cast<const void*>(core.ranges().durable + block));
        if (bytes == 0 || (!ends_.empty() && ends_.back() > block))
            throw Error(errc::corrupt, core.path(), block, "a value holds something that is no block: 'taiyen verify' tells what else is damaged");
        ends_.push_back(block + bytes);
        bytes_ += bytes;
    }
}

bool OldBlocks::hold(std::uint64_t offset) const {
    const auto next = std::ranges::upper_bound(blocks_, offset);
    return next != blocks_.begin() && offset < ends_[static_cast<std::size_t>(next - blocks_.begin()) - 1];
}

}  // namespace taiyen::migrate
