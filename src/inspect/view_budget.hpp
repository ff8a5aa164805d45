#pragma once
/// ViewBudget: how many values a sound heap may show.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "inspect/view_memory.hpp"

namespace taiyen::inspect {

/// How deep values may lie within each other.
inline constexpr unsigned view_depth_max = 1000;

/// Of values that lie equally deep each has memory of its own (pairs of B-trees have half of what they would take at least). Without a bound a few that lie within each other would be looked at for ever.
class ViewBudget {
public:
    explicit ViewBudget(const ViewValue& whole) : bits_(16 * (ViewAccess::memory(whole).end() + whole.bytes())) {}
    /// Throws: Error{corrupt}: so much can't lie in the heap.
    void take(const ViewValue& value, unsigned depth) {
        take_bits(value, depth,
                  ViewAccess::is_bit(value) ? 1 : 8 * std::max({std::uint64_t{1}, value.bytes(), bytes_of_text(value), slots_of(value)}));
    }
    /// For looking at each element of a container, if it is one.
    void take_search(const ViewValue& container, unsigned depth) {
        if (!container.has_elements()) return;
        const std::uint64_t size = container.size();
        take_bits(container, depth, container.kind() == ShapeKind::bit_vector ? size : 8 * std::max(slots_of(container), size));
    }
    /// For counting elements, each of which has to be looked at.
    std::uint64_t take_size(const ViewValue& container, unsigned depth) {
        const std::uint64_t size = container.size();
        if (container.kind() == ShapeKind::forward_list) take_bits(container, depth, 8 * size);
        return size;
    }

private:
    void take_bits(const ViewValue& value, unsigned depth, std::uint64_t bits) {
        while (left_.size() <= depth) left_.push_back(bits_);
        if (bits > left_[depth]) ViewAccess::memory(value).throw_corrupt(value.offset(), "values lie within each other");
        left_[depth] -= bits;
    }
    static std::uint64_t bytes_of_text(const ViewValue& value) { return value.kind() == ShapeKind::string && value.is_text() ? value.size() : 0; }

    /// Of a hash table, a byte each: who looks for the elements looks at all of them.
    static std::uint64_t slots_of(const ViewValue& value) {
        if ((value.kind() != ShapeKind::flat_hash_map && value.kind() != ShapeKind::flat_hash_set) || !value.has_elements()) return 0;
        const std::uint64_t at = value.offset() + value.bytes() - 24;
        const auto slots = ViewAccess::memory(value).word<std::uint64_t>(at);
        if (slots > ViewAccess::memory(value).end()) ViewAccess::memory(value).throw_corrupt(at, "a hash table is larger than the heap");
        return slots;
    }

    std::uint64_t bits_;  ///< of each depth
    std::vector<std::uint64_t> left_;
};

}  // namespace taiyen::inspect
