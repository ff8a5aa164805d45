#pragma once
/// OldBlocks: what old values held, block by block, as their shapes tell.

#include <cstdint>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <taiyen/inspect/view.hpp>

#include "shape/types_with.hpp"

namespace taiyen::heap {
class HeapCore;
}

namespace taiyen::migrate {

class OldBlocks {
public:
    /// The value frees what it holds by itself.
    void know(const ViewValue& value);
    /// A block, and what the value that lies in it holds. Throws: Error{corrupt}.
    void add(const ViewValue& in_block);
    /// Blocks that belong to somebody else. Throws: Error{invalid_argument}: one of them was added. Requires: closed.
    void refuse_others(const std::string& name, const ViewValue& value) const;
    /// Those that were added, from now on as one set. Throws: Error{corrupt}: one of them is no live block.
    void close(const heap::HeapCore& core);

    /// Whether a byte lies in one of them. Requires: closed. Complexity: logarithmic.
    bool hold(std::uint64_t offset) const;
    /// Their beginnings, in ascending order.
    const std::vector<std::uint64_t>& all() const { return blocks_; }
    std::uint64_t bytes() const { return bytes_; }
    /// Types of values that may have held blocks, which nobody knows.
    const std::set<std::string>& left() const { return left_; }

private:
    std::set<std::tuple<std::uint64_t, const Shape*, std::uint32_t>> known_;
    std::vector<std::uint64_t> blocks_;
    std::vector<std::uint64_t> ends_;
    std::uint64_t bytes_ = 0;
    std::set<std::string> left_;
    mutable shape::TypesWith with_blocks_{&may_hold_blocks};

    static bool may_hold_blocks(const ShapeNode& node);
};

}  // namespace taiyen::migrate
