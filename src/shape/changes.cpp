#include <algorithm>
#include <cstdint>
#include <deque>
#include <ranges>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <taiyen/shape/shape.hpp>

#include "base/json.hpp"
#include "base/text.hpp"
#include "shape/encoding.hpp"

namespace taiyen {
namespace {

constexpr std::size_t changes_max = 100;
/// Of types that lead to each other in every way there are as many pairs as the product of their numbers.
constexpr std::size_t pairs_max = 20'000;

class Changes {
public:
    Changes(const Shape& before, const Shape& after) : before_(before), after_(after) { lead(after.type(), 0, 0, true); }

    std::vector<ShapeChange> all() {
        while (!waiting_.empty() && changes_.size() < changes_max) {
            const Pair pair = std::move(waiting_.front());
            waiting_.pop_front();
            compare(pair);
        }
        return std::move(changes_);
    }

private:
    struct Pair {
        std::string label;  ///< what the values are called
        std::uint32_t before;
        std::uint32_t after;
        bool is_certain;  ///< that one has become the other
    };

    static std::string of_field(const std::string& owner, const ShapePart& field) {
        std::string label = joined({owner, "."});
        append_escaped(label, field.name, false);
        return label;
    }
    void lead(std::string label, std::uint32_t before, std::uint32_t after, bool is_certain) {
        if (seen_.size() < pairs_max && seen_.emplace(before, after).second) waiting_.push_back({std::move(label), before, after, is_certain});
    }
    /// An enumeration is as good as its integer.
    static const ShapeNode& number_of(const Shape& shape, const ShapeNode& node) {
        return node.kind == ShapeKind::enumeration ? shape.nodes[node.parts.front().node] : node;
    }
    static bool is_integer(ShapeKind kind) { return kind == ShapeKind::signed_integer || kind == ShapeKind::unsigned_integer; }
    void add(bool is_certain, std::initializer_list<std::string_view> text) { changes_.push_back({joined(text), is_certain}); }

    void compare(const Pair& pair) {
        const ShapeNode& a = before_.nodes[pair.before];
        const ShapeNode& b = after_.nodes[pair.after];
        if (a.kind == ShapeKind::enumeration || b.kind == ShapeKind::enumeration) {
            const ShapeNode& one = number_of(before_, a);
            const ShapeNode& other = number_of(after_, b);
            if (is_integer(one.kind) && is_integer(other.kind) && one.bytes == other.bytes) return;
        }
        if (const bool is_unknown = a.kind == ShapeKind::opaque || b.kind == ShapeKind::opaque; is_unknown || a.kind != b.kind) {
            const bool is_known_less = a.kind == ShapeKind::other_container || b.kind == ShapeKind::other_container;
            if (is_unknown || is_known_less) return compare_bytes(pair);
            return add_types(pair);
        }
        if (a.kind == ShapeKind::structure) return compare_fields(pair);
        const bool is_alike = a.count == b.count && a.distances == b.distances && a.keeps_hashes == b.keeps_hashes && a.bytes == b.bytes &&
                              std::ranges::equal(a.parts, b.parts, {}, &ShapePart::offset, &ShapePart::offset);
        if (!is_alike) return add_types(pair);
        for (std::size_t i = 0; i != a.parts.size(); ++i) lead(label_of_part(pair.label, b, i), a.parts[i].node, b.parts[i].node, pair.is_certain);
    }

    static std::string label_of_part(const std::string& label, const ShapeNode& node, std::size_t part) {
        switch (node.kind) {
            case ShapeKind::enumeration:
            case ShapeKind::optional: return label;
            case ShapeKind::pointer: return joined({"*", label});
            case ShapeKind::pair: return joined({label, part == 0 ? ".first" : ".second"});
            case ShapeKind::tuple: return joined({label, "[", std::to_string(part), "]"});
            case ShapeKind::variant: return joined({label, " (alternative ", std::to_string(part), ")"});
            default: return joined({label, "[*]"});
        }
    }

    void compare_bytes(const Pair& pair) {
        const std::uint64_t before = before_.nodes[pair.before].bytes;
        const std::uint64_t after = after_.nodes[pair.after].bytes;
        if (before != 0 && after != 0 && before != after)
            add(pair.is_certain, {pair.label, " took ", std::to_string(before), " bytes, takes ", std::to_string(after)});
    }
    void add_types(const Pair& pair) {
        const std::string before = before_.type(pair.before);
        const std::string after = after_.type(pair.after);
        if (before != after)
            add(pair.is_certain, {pair.label, " was ", before, ", is ", after});
        else
            add(pair.is_certain, {pair.label, ", ", after, ", lies otherwise in memory"});
    }

    /// A field is known again by its name, or, if no field has that name any more, by its place.
    void compare_fields(const Pair& pair) {
        const ShapeNode& a = before_.nodes[pair.before];
        const ShapeNode& b = after_.nodes[pair.after];
        const std::string owner = after_.type(pair.after);
        // Bases may have fields of the same name, and not all have one.
        const auto find = [](const ShapeNode& in, const std::string& name) -> const ShapePart* {
            const auto found = std::ranges::find(in.parts, name, &ShapePart::name);
            return name.empty() || found == in.parts.end() || std::ranges::count(in.parts, name, &ShapePart::name) != 1 ? nullptr : &*found;
        };
        const auto renamed = [&](const ShapePart& field) -> const ShapePart* {
            const auto is_there = [&](const ShapePart& other) { return other.offset == field.offset; };
            const auto found = std::ranges::find_if(b.parts, is_there);
            // Empty ones lie where others do.
            if (found == b.parts.end() || std::ranges::count_if(b.parts, is_there) != 1 || std::ranges::count_if(a.parts, is_there) != 1)
                return nullptr;
            const bool is_known_by_name = find(a, found->name) != nullptr && find(b, found->name) != nullptr;
            return is_known_by_name ? nullptr : &*found;
        };
        const std::size_t told = changes_.size();
        std::vector<Moved> moved;
        std::set<const ShapePart*> known;  ///< of the second one
        for (const ShapePart& field : a.parts) {
            if (changes_.size() >= changes_max) return;
            const ShapePart* const same = find(a, field.name) != nullptr ? find(b, field.name) : nullptr;
            const ShapePart* const other = same != nullptr ? same : renamed(field);
            const std::string label = of_field(owner, other != nullptr ? *other : field);
            if (other == nullptr) {
                add(false, {label, " (", before_.type(field.node), ") is gone"});
            } else {
                known.insert(other);
                moved.push_back({label, field.offset, other->offset});
                lead(label, field.node, other->node, pair.is_certain && same != nullptr);
            }
        }
        for (const ShapePart& field : b.parts) {
            if (changes_.size() >= changes_max) return;
            if (!known.contains(&field)) add(false, {of_field(owner, field), " (", after_.type(field.node), ") is new"});
        }
        add_moved(std::move(moved), a.bytes != b.bytes, pair.is_certain);
        compare_bytes({told == changes_.size() ? pair.label : owner, pair.before, pair.after, pair.is_certain});
    }

    /// That the fields behind another one moved with it goes without saying.
    struct Moved {
        std::string label;
        std::uint64_t before;
        std::uint64_t after;
    };
    void add_moved(std::vector<Moved> fields, bool has_other_size, bool is_certain) {
        std::ranges::sort(fields, {}, &Moved::before);
        if (has_other_size && std::ranges::is_sorted(fields, {}, &Moved::after)) return;
        for (const Moved& field : fields)
            if (field.before != field.after)
                add(is_certain, {field.label, " lay at byte ", std::to_string(field.before), ", lies at ", std::to_string(field.after)});
    }

    const Shape& before_;
    const Shape& after_;
    std::set<std::pair<std::uint32_t, std::uint32_t>> seen_;
    std::deque<Pair> waiting_;
    std::vector<ShapeChange> changes_;
};

}  // namespace

std::vector<ShapeChange> changes(const Shape& before, const Shape& after) { return Changes(before, after).all(); }

bool shape::contradict(const Shape& before, const Shape& after) { return std::ranges::any_of(changes(before, after), &ShapeChange::is_certain); }

}  // namespace taiyen
