#pragma once
/// TypeWalk: which type holds each block of a heap, and how many values there are of each.
///
/// (W1) A block counts once. What named objects begin with is theirs, then what containers hold; what is left belongs to the first pointer that leads to its beginning.
/// (W2) So all containers' blocks are known before anything is counted: a pointer to the first element of a vector leads to no value of its own.
/// (W3) What lies behind a pointer may be no such value, as a pointer may lead to what was freed: then its type is told as opaque. What is wrong within a named object is Error{corrupt}.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
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

    /// `progress`: may be empty; what it is told is a share of the walk.
    TypeWalk(store::HeapFile& file, TakeBlock take_block, Progress progress)
        : file_(file), take_block_(std::move(take_block)), progress_(std::move(progress)) {}
    /// Requires: of that heap. Throws: Error{corrupt}, and what `progress` throws.
    void run(const std::vector<StoredObject>& objects);

    /// In the order in which they were met.
    const std::vector<TypeUse>& uses() const { return uses_; }
    /// Whether a type holds it.
    bool is_known(HeapOffset block) const { return counted_.contains(id_of(block)); }
    const std::set<std::string>& opaque() const { return opaque_; }

private:
    enum class Pass { containers, counts };
    /// What pointers lead to that was not looked at yet.
    struct Targets {
        ViewValue one;  ///< of their type
        BlockSet places;
    };

    void walk(Pass pass);
    void look_at(const ViewValue& value, unsigned depth);
    void look_within(const ViewValue& value, unsigned depth);
    void follow(const ViewValue& pointer);
    void look_at_waiting();
    void look_at_targets(const ViewValue& one, const BlockSet& places);
    bool is_plain(const ViewValue& value);
    bool counts() const { return pass_ == Pass::counts && !is_copy_; }
    void count_plain(const Shape& shape, std::uint32_t node, std::uint64_t values);
    void count_parts(const Shape& shape, std::vector<std::uint64_t>& values);
    void count_block(const ViewValue& holder, std::uint64_t block);
    void add(std::uint64_t& sum, std::uint64_t factor, std::uint64_t other) const;
    void tell();
    std::uint32_t number_of(const Shape& shape, std::uint32_t node);
    static bool leads_on(const ShapeNode& node);

    store::HeapFile& file_;
    TakeBlock take_block_;
    Progress progress_;
    std::uint64_t done_ = 0;  ///< blocks of both passes
    std::uint64_t of_ = 0;
    Pass pass_ = Pass::containers;
    bool is_copy_ = false;           ///< of a key, in an inner node of a B-tree: its blocks count, and it is no value
    std::vector<ViewValue> wholes_;  ///< the named objects; all else goes by the addresses of their shapes
    std::optional<ViewBudget> budget_;
    std::vector<Targets> waiting_;  ///< by type, in the order in which they were met
    std::map<std::pair<const Shape*, std::uint32_t>, std::size_t> waiting_of_;
    BlockSet of_containers_;
    BlockSet seen_;  ///< blocks that named objects begin with, or a pointer of this pass leads to
    BlockSet counted_;
    std::vector<TypeUse> uses_;
    std::map<std::string, std::uint32_t> numbers_;
    std::map<const Shape*, std::vector<std::uint32_t>> numbers_of_nodes_;
    std::map<const Shape*, std::vector<std::uint64_t>> plain_;  ///< how many values of each node were met of which no one has to be looked at
    std::set<std::string> opaque_;
    shape::TypesWith with_more_{&leads_on};  ///< where each value has to be looked at
};

}  // namespace taiyen::inspect
