#pragma once
/// TypesWith: which types of a shape have something of a kind in them, in place or in their elements. Thread rule: one thread.

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include <taiyen/shape/shape.hpp>

namespace taiyen::shape {

class TypesWith {
public:
    /// `has`: whether a node has it by itself.
    explicit TypesWith(bool (*has)(const ShapeNode&)) : has_(has) {}

    /// What pointers lead to doesn't count. Complexity: constant, but for the first time of a shape, which stays where it is.
    bool operator()(const Shape& shape, std::uint32_t node) {
        std::vector<bool>& with = known_[&shape];
        if (with.empty()) with = look_at(shape);
        return with[node];
    }

private:
    std::vector<bool> look_at(const Shape& shape) const {
        std::vector<bool> with(shape.nodes.size());
        for (std::size_t i = 0; i != with.size(); ++i) with[i] = has_(shape.nodes[i]);
        // Until nothing is added: types lead back to themselves.
        for (bool is_more = true; is_more;) {
            is_more = false;
            for (std::size_t i = 0; i != with.size(); ++i) {
                const ShapeNode& type = shape.nodes[i];
                if (with[i] || type.kind == ShapeKind::pointer) continue;
                with[i] = std::ranges::any_of(type.parts, [&](const ShapePart& part) { return with[part.node]; });
                is_more |= with[i];
            }
        }
        return with;
    }

    bool (*has_)(const ShapeNode&);
    std::map<const Shape*, std::vector<bool>> known_;
};

}  // namespace taiyen::shape
