#include <taiyen/inspect/type_histogram.hpp>

#include <algorithm>
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
constexpr std::uint64_t told_blocks = 4096;  ///< of these, progress hears once

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

void TypeWalk::add(std::uint64_t& sum, std::uint64_t factor, std::uint64_t other) const {
    std::uint64_t product = 0;
    if (__builtin_mul_overflow(factor, other, &product) || __builtin_add_overflow(sum, product, &sum))
        throw Error(errc::corrupt, file_.path(), "a shape tells of more values than a heap can hold: 'taiyen verify' tells what else is damaged");
}

void TypeWalk::run(const std::vector<StoredObject>& objects) {
    file_.engine().for_each_block([&](const heap::Block&) {
        of_ += 2;
        return true;
    });
    for (const StoredObject& object : objects)
        if (object.shape)
            wholes_.push_back(ViewAccess::object(file_, object.shape, object.offset, object.count));
        else
            opaque_.insert(object.type);
    if (wholes_.empty()) return;
    for (const Pass pass : {Pass::containers, Pass::counts}) walk(pass);
    for (auto& [shape, values] : plain_) count_parts(*shape, values);
}

void TypeWalk::walk(Pass pass) {
    pass_ = pass;
    budget_.emplace(wholes_.front());
    seen_.clear();
    for (const ViewValue& whole : wholes_) {
        seen_.insert(id_of({whole.offset()}));
        if (counts()) count_block(whole, whole.offset());
    }
    for (const ViewValue& whole : wholes_) look_at(whole, 0);
    look_at_waiting();
    done_ = pass == Pass::containers ? of_ / 2 : of_;
    if (progress_) progress_(done_, of_);
}

void TypeWalk::look_at_waiting() {
    for (bool is_more = true; is_more;) {
        is_more = false;
        for (std::size_t i = 0; i != waiting_.size(); ++i) {
            if (waiting_[i].places.empty()) continue;
            is_more = true;
            BlockSet places;
            places.swap(waiting_[i].places);
            const ViewValue one = waiting_[i].one;
            look_at_targets(one, places);
        }
    }
}

void TypeWalk::look_at_targets(const ViewValue& one, const BlockSet& places) {
    for (const std::int64_t id : places) {
        const std::uint64_t place = block_of(id).value;
        if (of_containers_.contains(id)) continue;
        try {
            const ViewValue target = ViewAccess::inner(one, ViewAccess::number(one), place);
            if (counts()) count_block(target, place);
            look_at(target, 0);
        } catch (const Error& error) {
            if (error.code() != errc::corrupt) throw;
            is_copy_ = false;
            opaque_.insert(one.type());
        }
    }
}

void TypeWalk::look_at(const ViewValue& value, unsigned depth) {
    const ViewMemory& memory = ViewAccess::memory(value);
    if (depth > view_depth_max) memory.throw_corrupt(value.offset(), "values lie too deep within each other");
    budget_->take(value, depth);
    if (is_plain(value)) {
        if (counts()) count_plain(*memory.shape, ViewAccess::number(value), 1);
        return;
    }
    if (counts()) {
        TypeUse& use = uses_[number_of(*memory.shape, ViewAccess::number(value))];
        add(use.values, 1, 1);
        add(use.value_bytes, 1, value.bytes());
        if (is_closed(value)) opaque_.insert(value.type());
    }
    if (value.kind() == ShapeKind::pointer) return follow(value);
    look_within(value, depth);
}

void TypeWalk::look_within(const ViewValue& value, unsigned depth) {
    const auto look = [&](const ViewValue& inner) { look_at(inner, depth + 1); };
    if (is_container(value.kind()) && value.has_elements()) {
        budget_->take_search(value, depth);
        const auto take = [&](std::uint64_t block) {
            if (pass_ == Pass::counts) return count_block(value, block);
            if (of_containers_.insert(id_of({block}))) tell();
        };
        const auto take_copy = [&](const ViewValue& copy) {
            const bool was_copy = std::exchange(is_copy_, true);
            look(copy);
            is_copy_ = was_copy;
        };
        ViewWalk::of(value)->for_each_block(take, take_copy);
        const std::uint32_t element = value.kind() == ShapeKind::bit_vector ? 0 : ViewAccess::node(value).parts.front().node;
        const Shape& shape = *ViewAccess::memory(value).shape;
        if (value.kind() == ShapeKind::bit_vector || value.is_text()) return;
        if (!with_more_(shape, element)) {
            if (counts()) count_plain(shape, element, value.size());
            return;
        }
    }
    for_each_inner(value, look);
}

void TypeWalk::follow(const ViewValue& pointer) {
    const ViewMemory& memory = ViewAccess::memory(pointer);
    const ShapeNode& node = ViewAccess::node(pointer);
    const auto place = memory.place(pointer.offset(), memory.word<std::uint64_t>(pointer.offset()), node.distances);
    const std::uint32_t target = node.parts.front().node;
    const std::uint64_t bytes = memory.shape->nodes[target].bytes;
    if (!place || !memory.holds(*place, bytes)) return;
    if (bytes == 0) {
        opaque_.insert(memory.shape->type(target));
        return;
    }
    const void* const block = reinterpret_cast<const void*>(file_.ranges().durable + *place);
    if (!file_.engine().is_block(block) || file_.engine().usable_size(block) < bytes) return;
    if (!seen_.insert(id_of({*place}))) return;
    const auto [waiting, is_new] = waiting_of_.try_emplace({memory.shape.get(), target}, waiting_.size());
    if (is_new) waiting_.push_back({ViewAccess::inner(pointer, target, *place), {}});
    waiting_[waiting->second].places.insert(id_of({*place}));
}

void TypeWalk::count_plain(const Shape& shape, std::uint32_t node, std::uint64_t values) {
    std::vector<std::uint64_t>& plain = plain_[&shape];
    if (plain.empty()) plain.resize(shape.nodes.size());
    add(plain[node], 1, values);
}

/// What plain values consist of, once for all of them: each type after those that it is part of.
void TypeWalk::count_parts(const Shape& shape, std::vector<std::uint64_t>& values) {
    const auto parts_of = [&](std::uint32_t node) {
        const ShapeNode& type = shape.nodes[node];
        return type.kind == ShapeKind::enumeration ? std::span<const ShapePart>() : std::span(type.parts);
    };
    std::vector<std::uint32_t> order;
    std::vector<bool> is_met(values.size());
    std::vector<std::pair<std::uint32_t, std::size_t>> path;  // nodes, and the next part of each
    const auto meet = [&](std::uint32_t node) {
        if (is_met[node]) return;
        is_met[node] = true;
        path.emplace_back(node, 0);
    };
    for (std::uint32_t root = 0; root != values.size(); ++root) {
        if (values[root] != 0) meet(root);
        while (!path.empty()) {
            auto& [node, next] = path.back();
            if (next != parts_of(node).size()) {
                meet(parts_of(node)[next++].node);
                continue;
            }
            order.push_back(node);
            path.pop_back();
        }
    }
    for (const std::uint32_t node : order | std::views::reverse) {
        const ShapeNode& type = shape.nodes[node];
        if (values[node] == 0) continue;
        TypeUse& use = uses_[number_of(shape, node)];
        add(use.values, 1, values[node]);
        add(use.value_bytes, values[node], type.bytes);
        for (const ShapePart& part : parts_of(node)) add(values[part.node], values[node], type.kind == ShapeKind::array ? type.count : 1);
    }
}

void TypeWalk::count_block(const ViewValue& holder, std::uint64_t offset) {
    const auto block = file_.engine().find_block(reinterpret_cast<const void*>(file_.ranges().durable + offset));
    if (!block || block->offset.value != offset || !counted_.insert(id_of(block->offset))) return;
    const std::uint32_t number = number_of(*ViewAccess::memory(holder).shape, ViewAccess::number(holder));
    ++uses_[number].blocks;
    uses_[number].block_bytes += block->usable_bytes;
    if (take_block_) take_block_(*block, number);
    tell();
}

void TypeWalk::tell() {
    if (progress_ && ++done_ % told_blocks == 0) progress_(std::min(done_, of_), of_);
}

}  // namespace inspect

TypeHistogram type_histogram(const ArchiveHeap& heap, const Progress& progress) {
    store::HeapFile& file = HeapAccess::file(heap);
    file.check_usable(true);
    const txn::Reading reading(file);
    inspect::TypeWalk walk(file, nullptr, progress);
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
