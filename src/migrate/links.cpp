#include "migrate/links.hpp"

#include "base/text.hpp"
#include "inspect/view_budget.hpp"

namespace taiyen::migrate {

using inspect::ViewAccess;

bool Links::may_hold_pointers(const ShapeNode& node) {
    const bool is_unknown = node.kind == ShapeKind::opaque || node.kind == ShapeKind::other_container;
    return node.kind == ShapeKind::pointer || (is_unknown && node.bytes >= sizeof(std::uint64_t));
}

void Links::look(const std::string& name, const ViewValue& value) {
    name_ = name;
    waiting_.push_back(value);
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
    switch (value.kind()) {
        case ShapeKind::pointer: return look_at_pointer(value);
        case ShapeKind::opaque: return look_at_words(value);
        case ShapeKind::optional:
        case ShapeKind::variant:
            if (const auto held = value.target()) look_at(*held, depth + 1);
            return;
        default: break;
    }
    if (value.kind() < ShapeKind::string)
        for (std::size_t i = 0; i != value.parts(); ++i) look_at(value.part(i), depth + 1);
    else if (value.has_elements())
        for (const ViewValue& element : value.elements()) look_at(element, depth + 1);
    else
        look_at_words(value);
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
        if (!now) throw_led_astray(pointer, *place, type);
        patches_.push_back({pointer.offset(), *now, node.distances});
        leads_to = *now;
    }
    const std::uint64_t bytes = memory.shape->nodes[target].bytes;
    if (bytes == 0 || !memory.holds(leads_to, bytes) || !with_pointers_(*memory.shape, target)) return;
    if (seen_.emplace(memory.shape.get(), target, leads_to).second) waiting_.push_back(ViewAccess::inner(pointer, target, leads_to));
}

void Links::look_at_words(const ViewValue& unknown) const {
    const inspect::ViewMemory& memory = ViewAccess::memory(unknown);
    const bool is_distance = memory.file.links() == heap::Links::distances;
    for (std::uint64_t at = 0; at + sizeof(std::uint64_t) <= unknown.bytes(); at += sizeof(std::uint64_t)) {
        const std::uint64_t word = unknown.offset() + at;
        const auto place = memory.place(word, memory.word<std::uint64_t>(word), is_distance);
        if (place && old_.hold(*place)) throw_led_astray(unknown, *place, "something in it");
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
