#include "migrate/old_blocks.hpp"

#include <algorithm>

#include <taiyen/base/error.hpp>

#include "heap/core.hpp"
#include "inspect/view_budget.hpp"
#include "inspect/view_memory.hpp"

namespace taiyen::migrate {

using inspect::ViewAccess;

bool TypesWith::operator()(const Shape& shape, std::uint32_t node) {
    std::vector<bool>& with = known_[&shape];
    if (with.empty()) {
        with.resize(shape.nodes.size());
        for (std::size_t i = 0; i != with.size(); ++i) with[i] = has_(shape.nodes[i]);
        // Until nothing is added: types lead back to themselves.
        for (bool is_more = true; is_more;) {
            is_more = false;
            for (std::size_t i = 0; i != with.size(); ++i) {
                const ShapeNode& type = shape.nodes[i];
                if (with[i] || type.kind == ShapeKind::pointer) continue;
                const bool has = std::ranges::any_of(type.parts, [&](const ShapePart& part) { return with[part.node]; });
                with[i] = has;
                is_more |= has;
            }
        }
    }
    return with[node];
}

bool OldBlocks::may_hold_blocks(const ShapeNode& node) {
    return (node.kind == ShapeKind::opaque && node.bytes >= sizeof(std::uint64_t)) || (node.kind >= ShapeKind::string);
}

void OldBlocks::add(const ViewValue& in_block) {
    blocks_.push_back(in_block.offset());
    add_held(in_block, 0);
}

void OldBlocks::add_held(const ViewValue& value, unsigned depth) {
    if (ViewAccess::is_bit(value) || !with_blocks_(*ViewAccess::memory(value).shape, ViewAccess::number(value))) return;
    if (depth > inspect::view_depth_max) ViewAccess::memory(value).throw_corrupt(value.offset(), "values lie too deep within each other");
    const ShapeKind kind = value.kind();
    if (kind == ShapeKind::opaque || (kind >= ShapeKind::string && !value.has_elements())) {
        if (!known_.contains(value.offset())) left_.insert(value.type());
        return;
    }
    if (kind == ShapeKind::optional || kind == ShapeKind::variant) {
        if (const auto held = value.target()) add_held(*held, depth + 1);
        return;
    }
    if (kind >= ShapeKind::string) {
        inspect::ViewWalk::of(value)->for_each_block([&](std::uint64_t block) { blocks_.push_back(block); },
                                                     [&](const ViewValue& inner) { add_held(inner, depth + 1); });
        const ShapeNode& node = ViewAccess::node(value);
        if (node.parts.empty() || !with_blocks_(*ViewAccess::memory(value).shape, node.parts.front().node)) return;
        for (const ViewValue& element : value.elements()) add_held(element, depth + 1);
        return;
    }
    for (std::size_t i = 0; i != value.parts(); ++i) add_held(value.part(i), depth + 1);
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
