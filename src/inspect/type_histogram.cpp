#include <taiyen/inspect/type_histogram.hpp>

#include <algorithm>
#include <functional>
#include <ranges>
#include <tuple>

#include "inspect/type_walk.hpp"
#include "inspect/view_inner.hpp"
#include "inspect/view_memory.hpp"
#include "store/heap_access.hpp"
#include "txn/transaction_service.hpp"

namespace taiyen {
namespace inspect {
namespace {

constexpr std::uint32_t no_number = 0xffff'ffff;

}  // namespace

bool TypeWalk::leads_on(const ShapeNode& node) {
    return is_container(node.kind) || node.kind == ShapeKind::pointer || node.kind == ShapeKind::optional || node.kind == ShapeKind::variant ||
           node.kind == ShapeKind::opaque;
}

bool TypeWalk::is_plain(const ViewValue& value) { return !with_more_(*ViewAccess::memory(value).shape, ViewAccess::number(value)); }

std::uint32_t TypeWalk::number_of(const Shape& shape, std::uint32_t node) {
    std::vector<std::uint32_t>& numbers = numbers_of_nodes_[&shape];
    if (numbers.empty()) numbers.resize(shape.nodes.size(), no_number);
    if (numbers[node] != no_number) return numbers[node];
    const auto [found, is_new] = numbers_.try_emplace(shape.type(node), static_cast<std::uint32_t>(uses_.size()));
    if (is_new) uses_.push_back({found->first});
    return numbers[node] = found->second;
}

TypeUse& TypeWalk::use_of(const Shape& shape, std::uint32_t node) { return uses_[number_of(shape, node)]; }

void TypeWalk::run(std::vector<StoredObject> objects) {
    for (const Pass pass : {Pass::containers, Pass::counts}) {
        pass_ = pass;
        seen_.clear();
        for (const StoredObject& object : objects) walk(object);
    }
    for (auto& [shape, values] : plain_) count_parts(*shape, values);
}

void TypeWalk::walk(const StoredObject& object) {
    if (!object.shape) {
        opaque_.insert(object.type);
        return;
    }
    const ViewValue whole = ViewAccess::object(file_, object.shape, object.offset, object.count);
    budget_ = std::make_unique<ViewBudget>(whole);
    if (pass_ == Pass::counts) count_block(whole, object.offset);
    look_at(whole, 0);
    while (!waiting_.empty()) {
        const ViewValue next = waiting_.back();
        waiting_.pop_back();
        if (pass_ == Pass::counts) count_block(next, next.offset());
        look_at(next, 0);
    }
}

void TypeWalk::look_at(const ViewValue& value, unsigned depth) {
    const ViewMemory& memory = ViewAccess::memory(value);
    if (depth > view_depth_max) memory.throw_corrupt(value.offset(), "values lie too deep within each other");
    budget_->take(value, depth);
    if (is_plain(value)) {
        if (pass_ == Pass::counts) count_plain(*memory.shape, ViewAccess::number(value), 1);
        return;
    }
    if (pass_ == Pass::counts) {
        TypeUse& use = use_of(*memory.shape, ViewAccess::number(value));
        ++use.values;
        use.value_bytes += value.bytes();
        if (is_closed(value)) opaque_.insert(value.type());
    }
    if (value.kind() == ShapeKind::pointer) return follow(value);
    const auto look_within = [&](const ViewValue& inner) { look_at(inner, depth + 1); };
    if (is_container(value.kind()) && value.has_elements()) {
        budget_->take_search(value, depth);
        const auto take = [&](std::uint64_t block) {
            if (pass_ == Pass::containers)
                of_containers_.insert(id_of({block}));
            else
                count_block(value, block);
        };
        ViewWalk::of(value)->for_each_block(take, look_within);
        const ShapeNode& node = ViewAccess::node(value);
        if (value.kind() == ShapeKind::string || value.kind() == ShapeKind::bit_vector) return;
        if (const std::uint32_t element = node.parts.front().node; !with_more_(*memory.shape, element)) {
            if (pass_ == Pass::counts) count_plain(*memory.shape, element, value.size());
            return;
        }
    }
    for_each_inner(value, look_within);
}

void TypeWalk::follow(const ViewValue& pointer) {
    const ViewMemory& memory = ViewAccess::memory(pointer);
    const ShapeNode& node = ViewAccess::node(pointer);
    const auto place = memory.place(pointer.offset(), memory.word<std::uint64_t>(pointer.offset()), node.distances);
    const std::uint32_t target = node.parts.front().node;
    const std::uint64_t bytes = memory.shape->nodes[target].bytes;
    if (!place || !memory.holds(*place, bytes)) return;
    if (bytes == 0) opaque_.insert(memory.shape->type(target));
    if (bytes == 0) return;
    const void* const block = reinterpret_cast<const void*>(file_.ranges().durable + *place);
    if (!file_.engine().is_block(block) || file_.engine().usable_size(block) < bytes) return;
    const std::int64_t id = id_of({*place});
    if (pass_ == Pass::counts && (of_containers_.contains(id) || counted_.contains(id))) return;
    if (seen_.insert(id)) waiting_.push_back(ViewAccess::inner(pointer, target, *place));
}

void TypeWalk::count_plain(const Shape& shape, std::uint32_t node, std::uint64_t values) {
    std::vector<std::uint64_t>& plain = plain_[&shape];
    if (plain.empty()) plain.resize(shape.nodes.size());
    plain[node] += values;
}

/// What plain values consist of, once for all of them: each type after those that it is part of.
void TypeWalk::count_parts(const Shape& shape, std::vector<std::uint64_t>& values) {
    std::vector<std::uint32_t> order;
    std::vector<bool> is_met(values.size());
    const std::function<void(std::uint32_t)> meet = [&](std::uint32_t node) {
        if (is_met[node]) return;
        is_met[node] = true;
        if (shape.nodes[node].kind != ShapeKind::enumeration)
            for (const ShapePart& part : shape.nodes[node].parts) meet(part.node);
        order.push_back(node);
    };
    for (std::uint32_t node = 0; node != values.size(); ++node)
        if (values[node] != 0) meet(node);
    for (const std::uint32_t node : order | std::views::reverse) {
        const ShapeNode& type = shape.nodes[node];
        if (values[node] == 0) continue;
        TypeUse& use = use_of(shape, node);
        use.values += values[node];
        use.value_bytes += values[node] * type.bytes;
        if (type.kind == ShapeKind::enumeration) continue;
        for (const ShapePart& part : type.parts) values[part.node] += values[node] * (type.kind == ShapeKind::array ? type.count : 1);
    }
}

void TypeWalk::count_block(const ViewValue& holder, std::uint64_t offset) {
    const auto block = file_.engine().find_block(reinterpret_cast<const void*>(file_.ranges().durable + offset));
    if (!block || block->offset.value != offset || !counted_.insert(id_of(block->offset))) return;
    const std::uint32_t number = number_of(*ViewAccess::memory(holder).shape, ViewAccess::number(holder));
    ++uses_[number].blocks;
    uses_[number].block_bytes += block->usable_bytes;
    if (take_block_) take_block_(*block, number);
}

}  // namespace inspect

TypeHistogram type_histogram(const ArchiveHeap& heap, const Progress& progress) {
    store::HeapFile& file = HeapAccess::file(heap);
    file.check_usable(true);
    const txn::Reading reading(file);
    std::uint64_t live_bytes = 0;
    file.engine().for_each_block([&](const heap::Block& block) {
        live_bytes += block.usable_bytes;
        return true;
    });
    std::uint64_t done = 0;
    std::uint64_t told = 0;
    const auto take_block = [&](const heap::Block& block, std::uint32_t) {
        done += block.usable_bytes;
        if (!progress || done - told < 1_MiB) return;
        told = done;
        progress(done, live_bytes);
    };
    inspect::TypeWalk walk(file, take_block);
    walk.run(stored_objects(heap));
    TypeHistogram histogram;
    histogram.types = walk.uses();
    histogram.opaque.assign(walk.opaque().begin(), walk.opaque().end());
    std::ranges::sort(histogram.types, [](const TypeUse& a, const TypeUse& b) {
        return std::tie(b.block_bytes, b.value_bytes, a.type) < std::tie(a.block_bytes, a.value_bytes, b.type);
    });
    file.engine().for_each_block([&](const heap::Block& block) {
        if (walk.is_known(block.offset)) return true;
        ++histogram.other_blocks;
        histogram.other_bytes += block.usable_bytes;
        return true;
    });
    return histogram;
}

}  // namespace taiyen
