#include "migrate/links.hpp"

#include "base/text.hpp"
#include "inspect/view_budget.hpp"
#include "inspect/view_inner.hpp"
#include "shape/hidden_words.hpp"

namespace taiyen::migrate {

using inspect::ViewAccess;

bool Links::may_hold_pointers(const ShapeNode& node) {
    const bool is_unknown = node.kind == ShapeKind::opaque || node.kind == ShapeKind::other_container;
    return node.kind == ShapeKind::pointer || (is_unknown && node.bytes >= sizeof(std::uint64_t));
}

void Links::look(const std::string& name, const ViewValue& value) {
    name_ = name;
    roots_.push_back(value);
    waiting_.push_back(value);
    budget_.emplace(value);
    while (!waiting_.empty()) {
        const ViewValue next = waiting_.back();
        waiting_.pop_back();
        look_at(next, 0);
    }
}

void Links::look_at(const ViewValue& value, unsigned depth) {
    const inspect::ViewMemory& memory = ViewAccess::memory(value);
    if (ViewAccess::is_bit(value) || !with_pointers_(*memory.shape, ViewAccess::number(value))) return;
    if (depth > inspect::view_depth_max) memory.throw_corrupt(value.offset(), "values lie too deep within each other");
    budget_->take(value, depth);
    const bool is_closed = inspect::is_closed(value);
    if (is_closed || shape::has_hidden_words(*memory.shape, ViewAccess::number(value)))
        unknown_.insert(joined({"a ", value.type(), " in '", name_, "'"}));
    if (value.kind() == ShapeKind::pointer)
        look_at_pointer(value);
    else if (is_closed)
        look_at_words(value, value.offset(), value.bytes());
    else
        inspect::for_each_inner(value, [&](const ViewValue& inner) { look_at(inner, depth + 1); });
}

void Links::look_at_pointer(const ViewValue& pointer) {
    const inspect::ViewMemory& memory = ViewAccess::memory(pointer);
    const ShapeNode& node = ViewAccess::node(pointer);
    const auto place = memory.place(pointer.offset(), memory.word<std::uint64_t>(pointer.offset()), node.distances);
    if (!place || !memory.holds(*place, 1)) return;
    const std::uint32_t target = node.parts.front().node;
    std::uint64_t leads_to = *place;
    if (old_.hold(*place)) {
        const std::string type = memory.shape->type(target);
        const auto now = moves_.find(*place, type);
        if (!now || !is_of_shape(*memory.shape, target, *now->type)) throw_led_astray(pointer, *place, type);
        patches_.push_back({pointer.offset(), now->now, node.distances});
        leads_to = now->now;
    }
    const std::uint64_t bytes = memory.shape->nodes[target].bytes;
    if (bytes == 0 && leads_to == *place) {
        unknown_.insert(joined({"a ", memory.shape->type(target), " that '", name_, "' leads to"}));
        look_at_block(pointer, *place);
    }
    if (bytes == 0 || !memory.holds(leads_to, bytes) || !with_pointers_(*memory.shape, target)) return;
    if (seen_.emplace(memory.shape.get(), target, leads_to).second) waiting_.push_back(ViewAccess::inner(pointer, target, leads_to));
}

bool Links::is_of_shape(const Shape& shape, std::uint32_t target, const TypeInfo& type) {
    const auto [at, is_new] = same_.try_emplace({&shape, target, &type}, true);
    // What a value lies in has the type as it is now; of the value itself it is told.
    if (is_new && shape.type(target) == type.text) at->second = changes(part_of(shape, target), *type.shape).empty();
    return at->second;
}

/// Of what nothing but the name is known.
void Links::look_at_block(const ViewValue& pointer, std::uint64_t block) const {
    const inspect::ViewMemory& memory = ViewAccess::memory(pointer);
    look_at_words(pointer, block, memory.file.engine().usable_size(reinterpret_cast<const void*>(memory.file.ranges().durable + block)));
}

void Links::look_at_words(const ViewValue& holder, std::uint64_t begin, std::uint64_t bytes) const {
    const inspect::ViewMemory& memory = ViewAccess::memory(holder);
    const bool is_distance = memory.file.links() == heap::Links::distances;
    for (std::uint64_t word = round_up(begin, 8); word + sizeof(std::uint64_t) <= begin + bytes; word += sizeof(std::uint64_t)) {
        const auto place = memory.place(word, memory.word<std::uint64_t>(word), is_distance);
        if (place && old_.hold(*place)) throw_led_astray(holder, *place, "something in it");
    }
}

void Links::throw_led_astray(const ViewValue& holder, std::uint64_t target, const std::string& type) const {
    const inspect::ViewMemory& memory = ViewAccess::memory(holder);
    throw Error(errc::invalid_argument, memory.file.path(), holder.offset(),
                joined({"in '", name_, "' a ", holder.type(), " leads to byte ", std::to_string(target), ", ", type,
                        ", which is rebuilt or goes, and nobody knows where to now: let the object that holds it be migrated, too "
                        "(Migration::object), or set it to null before"}));
}

}  // namespace taiyen::migrate
