#pragma once
/// TypeWalk: which type holds each block of a heap, and how many values there are of each.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <taiyen/inspect/objects.hpp>
#include <taiyen/inspect/type_histogram.hpp>

#include "inspect/block_walk.hpp"
#include "inspect/view_budget.hpp"
#include "shape/types_with.hpp"

namespace taiyen::inspect {

class TypeWalk {
public:
    /// Called with each block, once, and the number of its type in `uses()`.
    using TakeBlock = std::function<void(const heap::Block&, std::uint32_t type)>;

    TypeWalk(store::HeapFile& file, TakeBlock take_block) : file_(file), take_block_(std::move(take_block)) {}
    /// Requires: of that heap. Throws: Error{corrupt}.
    void run(std::vector<StoredObject> objects);

    /// In the order in which they were met.
    const std::vector<TypeUse>& uses() const { return uses_; }
    /// Whether a type holds it.
    bool is_known(HeapOffset block) const { return counted_.contains(id_of(block)); }
    const std::set<std::string>& opaque() const { return opaque_; }

private:
    /// Containers' own blocks are known before values are counted: a pointer to the first element of a vector leads to no value of its own.
    enum class Pass { containers, counts };

    void walk(const StoredObject& object);
    void look_at(const ViewValue& value, unsigned depth);
    void follow(const ViewValue& pointer);
    void count_plain(const Shape& shape, std::uint32_t node, std::uint64_t values);
    void count_parts(const Shape& shape, std::vector<std::uint64_t>& values);
    void count_block(const ViewValue& holder, std::uint64_t block);
    bool is_plain(const ViewValue& value);
    TypeUse& use_of(const Shape& shape, std::uint32_t node);
    std::uint32_t number_of(const Shape& shape, std::uint32_t node);
    static bool leads_on(const ShapeNode& node);

    store::HeapFile& file_;
    TakeBlock take_block_;
    Pass pass_ = Pass::containers;
    std::vector<ViewValue> waiting_;  ///< what pointers lead to
    std::unique_ptr<ViewBudget> budget_;
    BlockSet of_containers_;
    BlockSet seen_;  ///< blocks that a pointer of this pass leads to
    BlockSet counted_;
    std::vector<TypeUse> uses_;
    std::map<std::string, std::uint32_t> numbers_;
    std::map<const Shape*, std::vector<std::uint32_t>> numbers_of_nodes_;  ///< no_number: not asked for yet
    std::map<const Shape*, std::vector<std::uint64_t>> plain_;  ///< how many values of each node were met of which no one has to be looked at
    std::set<std::string> opaque_;
    shape::TypesWith with_more_{&leads_on};  ///< where each value has to be looked at
};

}  // namespace taiyen::inspect
