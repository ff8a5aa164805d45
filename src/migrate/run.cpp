#include "migrate/run.hpp"

#include <algorithm>
#include <span>
#include <string_view>

#include "base/json.hpp"
#include "base/text.hpp"
#include "inspect/view_inner.hpp"
#include "shape/hidden_words.hpp"
#include "store/heap_file.hpp"

namespace taiyen::migrate {
namespace {

using inspect::ViewAccess;

/// What can become each other without a function, as far as kinds tell.
enum class Family { other, number, structure, sequence, set, map, tuple, optional, variant, pointer };
Family family_of(ShapeKind kind) {
    if (kind >= ShapeKind::boolean && kind <= ShapeKind::enumeration) return Family::number;
    if (is_map(kind)) return Family::map;
    if (is_set(kind)) return Family::set;
    switch (kind) {
        case ShapeKind::structure: return Family::structure;
        case ShapeKind::pointer: return Family::pointer;
        case ShapeKind::pair:
        case ShapeKind::tuple: return Family::tuple;
        case ShapeKind::optional: return Family::optional;
        case ShapeKind::variant: return Family::variant;
        case ShapeKind::array:
        case ShapeKind::string:
        case ShapeKind::vector:
        case ShapeKind::bit_vector:
        case ShapeKind::deque:
        case ShapeKind::list:
        case ShapeKind::forward_list: return Family::sequence;
        default: return Family::other;
    }
}
bool can_become(ShapeKind before, ShapeKind now) {
    const Family from = family_of(before);
    const Family to = family_of(now);
    return from == to || to == Family::optional || (from == Family::set && to == Family::sequence);
}

const ShapePart* find_field(const ShapeNode& structure, const std::string& name) {
    const auto found = std::ranges::find(structure.parts, name, &ShapePart::name);
    const bool is_unique = !name.empty() && std::ranges::count(structure.parts, name, &ShapePart::name) == 1;
    return is_unique ? &*found : nullptr;
}

/// Whether a value of the type that is called so lies in a node, so many bytes behind its beginning.
bool lies_at(const Shape& shape, std::uint32_t number, std::uint64_t offset, const std::string& type) {
    const ShapeNode& node = shape.nodes[number];
    if (offset >= node.bytes) return false;
    if (offset == 0 && shape.type(number) == type) return true;
    if (!holds_in_place(node.kind)) return false;
    return std::ranges::any_of(node.parts, [&](const ShapePart& part) {
        const std::uint64_t bytes = shape.nodes[part.node].bytes;
        if (node.kind == ShapeKind::array) return bytes != 0 && lies_at(shape, part.node, offset % bytes, type);
        return offset >= part.offset && lies_at(shape, part.node, offset - part.offset, type);
    });
}

bool is_of_chrono(const ShapeNode& node) { return node.name.starts_with("NSt6chrono"); }

/// Of types between which nothing else has changed: whether their fields are called the same, one by one, and times have the same unit.
bool have_same_names(const Shape& before, const Shape& now) {
    std::set<std::pair<std::uint32_t, std::uint32_t>> seen{{0, 0}};
    std::vector<std::pair<std::uint32_t, std::uint32_t>> waiting{{0, 0}};
    while (!waiting.empty()) {
        const auto [a, b] = waiting.back();
        waiting.pop_back();
        const ShapeNode& one = before.nodes[a];
        const ShapeNode& other = now.nodes[b];
        if ((is_of_chrono(one) || is_of_chrono(other)) && one.name != other.name) return false;
        if (one.kind != other.kind || one.parts.size() != other.parts.size()) continue;  // enumerations, what is opaque in one of them
        for (std::size_t i = 0; i != one.parts.size(); ++i) {
            if (one.parts[i].name != other.parts[i].name) return false;
            if (seen.emplace(one.parts[i].node, other.parts[i].node).second) waiting.emplace_back(one.parts[i].node, other.parts[i].node);
        }
    }
    return true;
}

}  // namespace

Shape part_of(const Shape& shape, std::uint32_t node) {
    Shape part;
    std::map<std::uint32_t, std::uint32_t> numbers{{node, 0}};
    std::vector<std::uint32_t> order{node};
    for (std::size_t i = 0; i != order.size(); ++i) {
        ShapeNode copy = shape.nodes[order[i]];
        for (ShapePart& inner : copy.parts) {
            const auto [at, is_new] = numbers.try_emplace(inner.node, static_cast<std::uint32_t>(order.size()));
            if (is_new) order.push_back(inner.node);
            inner.node = at->second;
        }
        part.nodes.push_back(std::move(copy));
    }
    return part;
}

std::optional<Moves::Value> Moves::find(std::uint64_t before, const std::string& type) const {
    const auto [begin, end] = values_.equal_range(before);
    for (auto at = begin; at != end; ++at)
        if (at->second.type->text == type) return at->second;
    const auto next = wholes_.upper_bound(before);
    if (next == wholes_.begin()) return std::nullopt;
    const auto& [begins, whole] = *std::prev(next);
    const bool is_there = lies_at(*whole.type->shape, 0, before - begins, type);
    return is_there ? std::optional(Value{whole.type, whole.now + (before - begins)}) : std::nullopt;
}

namespace {

/// Calls `visit` with the value and all that lie in it, or belong to its containers.
void visit_all(const ViewValue& value, inspect::ViewBudget& budget, unsigned depth, const std::function<void(const ViewValue&)>& visit) {
    if (ViewAccess::is_bit(value)) return;
    if (depth > inspect::view_depth_max) ViewAccess::memory(value).throw_corrupt(value.offset(), "values lie too deep within each other");
    budget.take(value, depth);
    visit(value);
    inspect::for_each_inner(value, [&](const ViewValue& inner) { visit_all(inner, budget, depth + 1, visit); });
}

}  // namespace

void Moves::keep_what_lies_in(const ViewValue& now, std::size_t since) {
    if (log_.size() == since) return;
    std::unordered_multimap<std::uint64_t, std::size_t> wanted;  // by place, which of the log
    for (std::size_t i = since; i != log_.size(); ++i) wanted.emplace(log_[i].value.now, i);
    std::vector<bool> found(log_.size() - since);
    inspect::ViewBudget budget(now);
    visit_all(now, budget, 0, [&](const ViewValue& value) {
        const auto [begin, end] = wanted.equal_range(value.offset());
        for (auto at = begin; at != end; ++at)
            if (log_[at->second].value.type->text == value.type()) found[at->second - since] = true;
    });
    std::size_t kept = since;
    for (std::size_t i = since; i != log_.size(); ++i) {
        const Added added = log_[i];
        if (found[i - since]) {
            log_[kept++] = added;
            continue;
        }
        const auto is_it = [&](const Value& value) { return value.type == added.value.type && value.now == added.value.now; };
        const auto [begin, end] = values_.equal_range(added.before);
        for (auto at = begin; at != end;) at = is_it(at->second) ? values_.erase(at) : std::next(at);
        const auto whole = wholes_.find(added.before);
        if (whole != wholes_.end() && is_it(whole->second)) wholes_.erase(whole);
    }
    log_.resize(kept);
}

// ---- what is known

TypeInfo& Run::State::info(shape::TypeShape& type) {
    std::unique_ptr<TypeInfo>& known = types[&type];
    if (known) return *known;
    known = std::make_unique<TypeInfo>();
    known->shape = std::make_shared<const Shape>(Shape::decode(std::as_bytes(std::span(shape::encoded(type)))));
    const Shape& shape = *known->shape;
    known->text = shape.type();
    const auto rule = rules.find(shape.nodes.front().name);
    if (rule != rules.end()) known->rules = &rule->second;
    known->leads_to_rules = std::ranges::any_of(shape.nodes, [&](const ShapeNode& node) { return rules.contains(node.name); });
    for (std::uint32_t node = 0; node != shape.nodes.size(); ++node) known->holds_target |= targets.contains(shape.type(node));
    known->is_target = targets.contains(known->text);
    return *known;
}

void Run::State::add_targets(const Shape& shape) {
    for (const ShapeNode& node : shape.nodes)
        if (node.kind == ShapeKind::pointer) targets.insert(shape.type(node.parts.front().node));
}

std::uint64_t Run::State::offset_of(const void* address) const { return reinterpret_cast<std::uintptr_t>(address) - file.ranges().durable; }
void* Run::State::address_of(std::uint64_t offset) const { return reinterpret_cast<void*>(file.ranges().durable + offset); }

void Run::State::count(std::uint64_t& what) {
    ++what;
    constexpr std::uint64_t told_each = 4096;
    if (progress && (report.taken + report.rebuilt) % told_each == 0) progress(report.taken + report.rebuilt, 0);
}

heap::HeapCore& Run::core() const { return state_->file; }

bool Run::is_same(const ViewValue& old, shape::TypeShape& type) {
    if (ViewAccess::is_bit(old) || ViewAccess::is_split(old)) return false;
    const Shape& shape = *ViewAccess::memory(old).shape;
    const auto [at, is_new] = state_->same.try_emplace({&shape, ViewAccess::number(old), &type}, false);
    if (is_new) {
        const TypeInfo& info = state_->info(type);
        const Shape before = part_of(shape, ViewAccess::number(old));
        at->second = !info.leads_to_rules && changes(before, *info.shape).empty() && have_same_names(before, *info.shape);
    }
    return at->second;
}

bool Run::is_copying() const noexcept { return state_->copying != 0; }
void* Run::address(const ViewValue& old) const { return state_->address_of(old.offset()); }

const void* Run::typed(const ViewValue& old, shape::TypeShape& type) {
    const TypeInfo& info = state_->info(type);
    const std::vector<ShapeChange> differences = changes(part_of(*ViewAccess::memory(old).shape, ViewAccess::number(old)), *info.shape);
    if (!differences.empty()) throw_unlike(old, type, joined({"a function takes it for that, but ", differences.front().text}));
    return address(old);
}

// ---- what happens

void Run::took(const ViewValue& old, shape::TypeShape& type, const void* now) {
    state_->count(state_->report.taken);
    if (state_->passing == 0 && state_->info(type).holds_target) state_->moves.add_whole(old.offset(), state_->info(type), state_->offset_of(now));
}

void Run::begun(const ViewValue& old, shape::TypeShape& type, const void* now) {
    const TypeInfo& info = state_->info(type);
    if (info.shape->nodes.front().kind >= ShapeKind::structure) state_->count(state_->report.rebuilt);
    if (state_->passing == 0 && info.is_target) state_->moves.add(old.offset(), info, state_->offset_of(now));
}

void Run::destroy_at_end(const ViewValue& old, void (*destroy)(void*)) {
    if (destroy != nullptr) state_->to_destroy.emplace_back(address(old), destroy);
    state_->old_blocks.know(old);
}

void* Run::follow(const ViewValue& pointer, shape::TypeShape& type, shape::TypeShape* target, const Maker* maker) {
    const inspect::ViewMemory& memory = ViewAccess::memory(pointer);
    const ShapeNode& node = ViewAccess::node(pointer);
    if (node.kind != ShapeKind::pointer) throw_unlike(pointer, type);
    const auto place = memory.place(pointer.offset(), memory.word<std::uint64_t>(pointer.offset()), node.distances);
    if (!place) return nullptr;
    void* const address = state_->address_of(*place);
    if (pointer.outside()) return address;
    const std::optional<ViewValue> to = pointer.target();
    if (!to) return address;
    if (target == nullptr || to->bytes() == 0) {
        // It can't be told whether it changed; where it is told of now, that is worth a word.
        if (target != nullptr && state_->info(*target).shape->nodes.front().bytes != 0) state_->unknown.insert(to->type());
        return address;
    }
    if (!is_same(*to, *target) && state_->known.emplace(*place, target).second) state_->waiting.push_back({*to, target, maker, where()});
    return address;
}

bool Run::is_of_family(const ViewValue& old, shape::TypeShape& type) const {
    return can_become(old.kind(), state_->info(type).shape->nodes.front().kind);
}
bool Run::holds_targets(shape::TypeShape& type) { return state_->info(type).holds_target; }

void Run::require_same_unit(const ViewValue& old, shape::TypeShape& type) {
    if (old.kind() == ShapeKind::structure && ViewAccess::node(old).name != state_->info(type).shape->nodes.front().name)
        throw_unlike(old, type, "it may be of another unit");
}

const std::vector<std::optional<std::uint32_t>>& Run::fields(const ViewValue& old, shape::TypeShape& type) {
    const Shape& shape = *ViewAccess::memory(old).shape;
    const State::Pair pair{&shape, ViewAccess::number(old), &type};
    if (const auto known = state_->field_parts.find(pair); known != state_->field_parts.end()) return known->second;
    const TypeInfo& info = state_->info(type);
    const TypeRules none;
    const TypeRules& rules = info.rules != nullptr ? *info.rules : none;
    const ShapeNode& before = ViewAccess::node(old);
    const ShapeNode& now = info.shape->nodes.front();
    std::set<const ShapePart*> used;
    std::vector<const ShapePart*> found(now.parts.size());
    // Names that somebody has given, then those that fields have of themselves.
    for (const bool are_given : {true, false}) {
        for (std::size_t i = 0; i != now.parts.size(); ++i) {
            const std::string& name = now.parts[i].name;
            if (found[i] != nullptr || find_field(now, name) == nullptr) continue;
            const auto renamed = rules.before.find(name);
            if (are_given && renamed == rules.before.end()) continue;
            const ShapePart* const part = find_field(before, are_given ? renamed->second : name);
            if (part == nullptr || rules.dropped.contains(part->name) || (!are_given && used.contains(part))) continue;
            if (!used.insert(part).second)
                throw Error(errc::invalid_argument, state_->file.path(), old.offset(),
                            joined({"two fields of ", info.text, " are to be what was called '", part->name, "'"}));
            found[i] = part;
        }
    }
    std::vector<std::optional<std::uint32_t>> parts;
    for (std::size_t i = 0; i != now.parts.size(); ++i) {
        std::optional<std::uint32_t>& part = parts.emplace_back();
        if (found[i] == nullptr) continue;
        const bool is_left_to_function = rules.function && !can_become(shape.nodes[found[i]->node].kind, info.shape->nodes[now.parts[i].node].kind);
        if (!is_left_to_function) part = static_cast<std::uint32_t>(found[i] - before.parts.data());
    }
    if (shape::has_hidden_words(shape, ViewAccess::number(old)) && !rules.function)
        throw Error(errc::invalid_argument, state_->file.path(), old.offset(),
                    joined({"at ", where(), ": a ", old.type(),
                            " has more than the fields that its shape tells, and nobody knows what becomes of the rest: "
                            "say it (Migration::with)"}));
    for (const ShapePart& field : before.parts) {
        if (used.contains(&field) || rules.dropped.contains(field.name) || rules.function) continue;
        const std::string place = where();
        std::string label = joined({info.text, "."});
        append_escaped(label, field.name, false);
        throw Error(errc::invalid_argument, state_->file.path(), old.offset(),
                    joined({"at ", place, ": ", label, " (", shape.type(field.node),
                            ") is gone, with what it holds: say what it is called now (Migration::renamed), that it is not wanted (dropped), or what "
                            "becomes of it (with)"}));
    }
    return state_->field_parts.emplace(pair, std::move(parts)).first->second;
}

bool Run::has_function(shape::TypeShape& type) const {
    const TypeInfo& info = state_->info(type);
    return info.rules != nullptr && info.rules->function;
}

std::size_t Run::expect_function() { return state_->moves.log(); }

void Run::finish(const ViewValue& old, shape::TypeShape& type, void* now, std::size_t mark) {
    const TypeInfo& info = state_->info(type);
    info.rules->function(*this, old, now);
    if (state_->passing == 0) state_->moves.keep_what_lies_in(ViewAccess::object(state_->file, info.shape, state_->offset_of(now), 1), mark);
}

ViewNumber Run::number(const ViewValue& old) {
    try {
        return old.number();
    } catch (const Error& error) {
        throw Error(static_cast<errc>(error.code().value()), state_->file.path(), old.offset(),
                    joined({"at ", where(), ": a ", old.type(), " is to become a number: give its structure a function (Migration::with)"}));
    }
}

void Run::throw_unlike(const ViewValue& old, shape::TypeShape& type, std::string_view why) {
    const bool is_number = family_of(old.kind()) == Family::number;
    const std::string value = is_number ? joined({", ", old.digits(), ","}) : std::string();
    throw Error(errc::type_mismatch, state_->file.path(), old.offset(),
                joined({"at ", where(), ": a ", old.type(), value, " can't become a ", state_->info(type).text, why.empty() ? "" : ", since ", why,
                        ": give its structure a function (Migration::with), or drop the field"}));
}

// ---- where we are

std::string Run::where() const {
    std::string text = state_->object;
    for (const auto& [type, field] : state_->path) {
        text += '.';
        append_escaped(text, type->shape->nodes.front().parts[field].name, false);
    }
    return text;
}
void Run::enter(shape::TypeShape& type, std::uint32_t field) { state_->path.emplace_back(&state_->info(type), field); }
void Run::leave() noexcept { state_->path.pop_back(); }
void Run::go_down(const ViewValue& old) {
    if (state_->depth > inspect::view_depth_max)
        throw Error(errc::corrupt, state_->file.path(), old.offset(), joined({"at ", where(), ": values lie too deep within each other"}));
    state_->budget->take(old, state_->depth);
    ++state_->depth;
}
void Run::come_up() noexcept { --state_->depth; }
void Run::copy(int more) noexcept { state_->copying += more; }
void Run::pass(int more) noexcept { state_->passing += more; }

}  // namespace taiyen::migrate
