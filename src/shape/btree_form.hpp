#pragma once
/// BTreeForm: where the parts of a B-tree's nodes lie, as the node of its type tells (FORMAT.md; taiyen/ordered/detail/btree_nodes.hpp makes them).
///
/// What the shape doesn't tell of inner nodes, which separators they have and whether they count, is found out: of the few possible forms only the right one leads to all leaves in their order.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include <taiyen/base/units.hpp>
#include <taiyen/shape/shape.hpp>

namespace taiyen::shape {

struct BTreeForm {
    /// The shape outlives it.
    BTreeForm(const Shape& of, const ShapeNode& tree) : shape(of) {
        const std::uint64_t form = tree.count - 256;
        is_apart = form % 2 != 0;
        are_digests_keys = form / 2 % 2 != 0;
        digest_bytes = form / 4;
        key = tree.parts.front().node;
        const ShapeNode& element = shape.nodes[key];
        const bool is_map = taiyen::is_map(tree.kind);
        if (is_map) key = element.parts[0].node;
        if (is_apart) {
            key_bytes = key_alignment = sizeof(std::uint64_t);
            return;
        }
        is_key_plain =
            shape.nodes[key].kind <= ShapeKind::enumeration || (shape.nodes[key].kind == ShapeKind::pointer && !shape.nodes[key].distances);
        if (shape.nodes[key].kind == ShapeKind::opaque) is_key_plain = false;
        key_bytes = shape.nodes[key].bytes;
        key_alignment = shape.nodes[key].alignment;
        if (!is_map) return;
        has_values = true;
        value = element.parts[1].node;
        value_bytes = shape.nodes[value].bytes;
        value_alignment = shape.nodes[value].alignment;
    }

    /// Keys that are digests are numbers of that size.
    bool is_sound() const { return !are_digests_keys || (is_key_plain && key_bytes == digest_bytes); }

    /// Whether a key may look like what leads to a key.
    bool holds_key_pointers() const {
        std::vector<bool> seen(shape.nodes.size());
        std::vector<std::uint32_t> waiting{key};
        while (!waiting.empty()) {
            const std::uint32_t number = waiting.back();
            waiting.pop_back();
            if (seen[number]) continue;
            seen[number] = true;
            const ShapeNode& node = shape.nodes[number];
            if (node.kind == ShapeKind::pointer || node.kind == ShapeKind::opaque || node.kind >= ShapeKind::string) return true;
            for (const ShapePart& part : node.parts) waiting.push_back(part.node);
        }
        return false;
    }

    /// {previous, next, u16 elements, u16 slots, 4 bytes}, digests, the slot of each element in a byte, keys, values.
    struct Leaf {
        std::uint64_t order;
        std::uint64_t keys;
        std::uint64_t values;
        std::uint64_t end;
    };
    Leaf leaf(std::uint64_t slots) const {
        Leaf leaf{};
        leaf.order = leaf_head + slots * digest_bytes;
        const std::uint64_t order_end = leaf.order + slots;
        leaf.keys = are_digests_keys ? leaf_head : round_up(order_end, key_alignment);
        leaf.values = round_up(are_digests_keys ? order_end : leaf.keys + slots * key_bytes, value_alignment);
        leaf.end = leaf.values + slots * value_bytes;
        return leaf;
    }

    /// {u32 separators, 4 bytes}, digests, separators, children, counts.
    struct InnerForm {
        std::uint64_t separator_bytes;
        bool separates_by_copies;  ///< each separator leads to a key of its own
        bool is_ranked;
    };
    struct Inner {
        std::uint64_t separators;
        std::uint64_t children;
        std::uint64_t most;  ///< separators
        std::uint64_t end;
    };
    Inner inner(const InnerForm& form) const {
        Inner inner{};
        const std::uint64_t child_bytes = form.is_ranked ? 16 : 8;
        inner.most = std::max<std::uint64_t>((inner_bytes - 32 - child_bytes) / (digest_bytes + form.separator_bytes + child_bytes), 8);
        const std::uint64_t digests = round_up(8, are_digests_keys ? key_alignment : std::max<std::uint64_t>(digest_bytes, 1));
        const bool are_keys = form.separator_bytes != 8 || key_alignment > 8;
        inner.separators = round_up(digests + inner.most * digest_bytes, form.separator_bytes == 0 ? 1 : are_keys ? key_alignment : 8);
        inner.children = round_up(inner.separators + inner.most * form.separator_bytes, 8);
        inner.end = inner.children + (inner.most + 1) * child_bytes;
        return inner;
    }
    std::vector<InnerForm> inner_forms() const {
        std::vector<InnerForm> forms;
        for (const bool is_ranked : {false, true}) {
            if (are_digests_keys) {
                forms.push_back({0, false, is_ranked});
                continue;
            }
            const bool may_be_inline = !is_apart && digest_bytes == 0 && key_bytes <= 32;
            // Keys that are pointers look like what leads to keys.
            if (!(may_be_inline && is_key_plain)) forms.push_back({8, !is_apart, is_ranked});
            if (may_be_inline) forms.push_back({key_bytes, false, is_ranked});
        }
        return forms;
    }

    static constexpr std::uint64_t leaf_head = 24;
    static constexpr std::uint64_t inner_bytes = 2048;
    static constexpr std::uint32_t depth_max = 20;

    const Shape& shape;
    bool is_apart = false;  ///< leaves have pointers to elements
    bool are_digests_keys = false;
    bool has_values = false;
    bool is_key_plain = false;  ///< surely trivially copyable
    std::uint32_t key = 0;      ///< node of the shape
    std::uint32_t value = 0;
    std::uint64_t digest_bytes = 0;
    std::uint64_t key_bytes = 0;
    std::uint64_t key_alignment = 1;
    std::uint64_t value_bytes = 0;
    std::uint64_t value_alignment = 1;
};

/// All inner nodes of a tree.
struct BTreeInnerNodes {
    std::vector<std::uint64_t> nodes;
    std::uint64_t node_bytes = 0;
    std::vector<std::uint64_t> pointers;  ///< where they stand: to children, and to keys that separate
    std::vector<std::uint64_t> copies;    ///< keys of their own
    std::vector<std::uint64_t> inline_keys;

    bool operator==(const BTreeInnerNodes&) const = default;
};

/// `Memory` has `holds(offset, bytes)`, `count(offset)`, a u32, and `target(offset)`, where the pointer there leads to, if that is somewhere. Nothing: no form leads to the leaves, or more than one.
template <class Memory>
class BTreeInnerWalk {
public:
    BTreeInnerWalk(const BTreeForm& form, const Memory& memory, const std::vector<std::uint64_t>& leaves)
        : form_(form), memory_(memory), leaves_(leaves) {}

    std::optional<BTreeInnerNodes> find(std::uint64_t root, std::uint32_t height) {
        if (height > BTreeForm::depth_max) return std::nullopt;
        if (height == 0) return leaves_.size() == 1 && leaves_.front() == root ? std::optional(BTreeInnerNodes()) : std::nullopt;
        std::optional<BTreeInnerNodes> right;
        for (const BTreeForm::InnerForm& inner : form_.inner_forms()) {
            found_ = {};
            found_.node_bytes = form_.inner(inner).end;
            met_ = 0;
            if (!leads_on(inner, form_.inner(inner), root, height) || met_ != leaves_.size()) continue;
            // Keys that lead somewhere, or what leads to keys; keys of numbers alone don't lead to places by chance, all of them.
            if (right && *right != found_ && form_.holds_key_pointers()) return std::nullopt;
            if (!right) right = std::move(found_);
        }
        return right;
    }

private:
    bool leads_on(const BTreeForm::InnerForm& form, const BTreeForm::Inner& inner, std::uint64_t node, std::uint32_t height) {
        if (height == 0) return met_ != leaves_.size() && leaves_[met_++] == node;
        if (node % 8 != 0 || !memory_.holds(node, inner.end)) return false;
        const std::uint64_t count = memory_.count(node);
        if (count > inner.most) return false;
        found_.nodes.push_back(node);
        for (std::uint64_t i = 0; i <= count; ++i) {
            const std::uint64_t pointer = node + inner.children + 8 * i;
            const std::optional<std::uint64_t> child = memory_.target(pointer);
            found_.pointers.push_back(pointer);
            if (!child || !leads_on(form, inner, *child, height - 1)) return false;
            if (i != count && !separates(form, node + inner.separators + i * form.separator_bytes)) return false;
        }
        return true;
    }
    bool separates(const BTreeForm::InnerForm& form, std::uint64_t separator) {
        if (form.separator_bytes == 0) return true;
        if (!form.separates_by_copies && !form_.is_apart) {
            found_.inline_keys.push_back(separator);
            return true;
        }
        const std::optional<std::uint64_t> key = memory_.target(separator);
        if (!key || !memory_.holds(*key, form_.is_apart ? 1 : form_.key_bytes)) return false;
        found_.pointers.push_back(separator);
        if (form.separates_by_copies) found_.copies.push_back(*key);
        return true;
    }

    const BTreeForm& form_;
    const Memory& memory_;
    const std::vector<std::uint64_t>& leaves_;
    std::size_t met_ = 0;
    BTreeInnerNodes found_;
};

}  // namespace taiyen::shape
