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

private:
    void look_at(const ViewValue& value, unsigned depth);
    void look_at_pointer(const ViewValue& pointer);
    void look_at_words(const ViewValue& unknown) const;
    [[noreturn]] void throw_led_astray(const ViewValue& holder, std::uint64_t target, const std::string& type) const;
    static bool may_hold_pointers(const ShapeNode& node);

    const OldBlocks& old_;
    const Moves& moves_;
    std::string name_;
    std::vector<ViewValue> waiting_;
    std::set<std::tuple<const Shape*, std::uint32_t, std::uint64_t>> seen_;
    std::vector<Patch> patches_;
    TypesWith with_pointers_{&may_hold_pointers};
};

}  // namespace taiyen::migrate
