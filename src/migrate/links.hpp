#pragma once
/// Links: the pointers of a heap, as its shapes tell, and which of them lead to what has moved.

#include <cstdint>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "migrate/old_blocks.hpp"
#include "migrate/run.hpp"

namespace taiyen::migrate {

/// A pointer that is to be set.
struct Patch {
    std::uint64_t pointer;  ///< its offset in the heap
    std::uint64_t target;
    bool is_distance;
};

class Links {
public:
    Links(const OldBlocks& old, const Moves& moves) : old_(old), moves_(moves) {}

    /// Looks at all pointers in the value, and in what they lead to. Throws: Error{invalid_argument}: one of them leads into an old block, and nobody knows where to now; Error{corrupt}.
    void look(const std::string& name, const ViewValue& value);
    std::vector<Patch>& patches() { return patches_; }
    /// Of what nobody knows where all its pointers are.
    const std::set<std::string>& unknown() const { return unknown_; }

private:
    void look_at(const ViewValue& value, unsigned depth);
    void look_at_pointer(const ViewValue& pointer);
    void look_at_block(const ViewValue& pointer, std::uint64_t block) const;
    void look_at_words(const ViewValue& holder, std::uint64_t begin, std::uint64_t bytes) const;
    /// Whether a pointer that was not migrated may lead to a value of that type.
    bool is_of_shape(const Shape& shape, std::uint32_t target, const TypeInfo& type);
    [[noreturn]] void throw_led_astray(const ViewValue& holder, std::uint64_t target, const std::string& type) const;
    static bool may_hold_pointers(const ShapeNode& node);

    const OldBlocks& old_;
    const Moves& moves_;
    std::string name_;
    std::vector<ViewValue> roots_;  ///< their shapes are known by their addresses
    std::vector<ViewValue> waiting_;
    std::optional<inspect::ViewBudget> budget_;
    std::map<std::tuple<const Shape*, std::uint32_t, const TypeInfo*>, bool> same_;
    std::set<std::tuple<const Shape*, std::uint32_t, std::uint64_t>> seen_;
    std::vector<Patch> patches_;
    std::set<std::string> unknown_;
    shape::TypesWith with_pointers_{&may_hold_pointers};
};

}  // namespace taiyen::migrate
