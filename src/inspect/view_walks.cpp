/// Where the elements of containers lie: as libstdc++ 12 lays its own out, as far as their sizes confirm it, and as taiyen does.

#include <algorithm>

#include "inspect/view_memory.hpp"
#include "shape/btree_form.hpp"
#include "shape/container_bytes.hpp"

namespace taiyen::inspect {
namespace {

/// Trees and lists of a sane heap stay far below.
constexpr unsigned tree_depth_max = 192;
constexpr std::uint64_t control_bytes_min = 16;

/// With the container's words at its end, behind the allocator and whatever else is empty.
class ContainerWalk : public ViewWalk {
public:
    explicit ContainerWalk(const ViewValue& container)
        : container_(container), element_(ViewAccess::node(container).parts.empty() ? 0 : ViewAccess::node(container).parts.front().node),
          element_bytes_(memory().shape->nodes[element_].bytes), alignment_(memory().shape->nodes[element_].alignment) {}

protected:
    const ViewMemory& memory() const { return ViewAccess::memory(container_); }
    /// Of the container's word that many bytes before its end.
    std::uint64_t at(std::uint64_t before_end) const { return container_.offset() + container_.bytes() - before_end; }
    std::uint64_t word(std::uint64_t before_end) const { return memory().word<std::uint64_t>(at(before_end)); }
    std::optional<std::uint64_t> target(std::uint64_t offset) const { return memory().target(offset, ViewAccess::node(container_).distances); }
    std::uint64_t target_of(std::uint64_t offset) const {
        const auto to = target(offset);
        if (!to) memory().throw_corrupt(offset, "a container's link leads nowhere");
        return *to;
    }
    ViewValue element(std::uint64_t offset) const {
        memory().require(offset, element_bytes_);
        return ViewAccess::inner(container_, element_, offset);
    }
    std::uint64_t element_bytes() const { return element_bytes_; }
    std::uint64_t alignment() const { return alignment_; }
    const ViewValue& container() const { return container_; }
    /// Each element lies in a block of its own, so many bytes behind its beginning.
    void for_each_node(std::uint64_t head_bytes, const TakeBlock& take) {
        const std::uint64_t before_element = round_up(head_bytes, alignment_);
        while (const auto element = next()) take(element->offset() - before_element);
    }

    /// Each element has its own memory, of so many bytes at least.
    std::uint64_t claimed(std::uint64_t before_end) const { return claimed(before_end, element_bytes_); }
    std::uint64_t claimed(std::uint64_t before_end, std::uint64_t bytes_of_each) const {
        const std::uint64_t count = word(before_end);
        if (count > memory().end() / bytes_of_each)
            memory().throw_corrupt(at(before_end), "a container says that it has more elements than the heap has room for");
        return count;
    }
    /// How many elements lie between two addresses.
    std::uint64_t between(std::uint64_t begin, std::uint64_t end) const {
        if (end < begin || (end - begin) % element_bytes_ != 0) memory().throw_corrupt(container_.offset(), "a container ends before it begins");
        memory().require(begin, end - begin);
        return (end - begin) / element_bytes_;
    }

private:
    const ViewValue container_;
    const std::uint32_t element_;
    const std::uint64_t element_bytes_;
    const std::uint64_t alignment_;
};

/// Side by side in memory.
class Row final : public ContainerWalk {
public:
    explicit Row(const ViewValue& container) : ContainerWalk(container) {
        const ShapeKind kind = container.kind();
        if (kind == ShapeKind::array) {
            at_ = container.offset();
            left_ = ViewAccess::node(container).count;
        } else if (kind == ShapeKind::string) {
            left_ = word(24);
            at_ = target_of(at(32));
            if (left_ > memory().end() / element_bytes()) memory().throw_corrupt(at(24), "a string is longer than the heap");
        } else if (const auto begin = target(at(24))) {
            at_ = *begin;
            left_ = between(at_, target_of(at(16)));
        }
        memory().require(at_, left_ * element_bytes());
    }
    std::optional<std::uint64_t> left() const override { return left_; }
    std::optional<ViewValue> next() override {
        if (left_ == 0) return std::nullopt;
        --left_;
        const std::uint64_t here = at_;
        at_ += element_bytes();
        return element(here);
    }
    void for_each_block(const TakeBlock& take, const TakeValue& /*take_value*/) override {
        if (container().kind() == ShapeKind::array) return;
        const bool is_string = container().kind() == ShapeKind::string;
        const auto begin = target(is_string ? at(32) : at(24));
        // Short strings lie within themselves.
        if (begin && !(is_string && *begin == at(16))) take(*begin);
    }

private:
    std::uint64_t at_ = 0;
    std::uint64_t left_ = 0;
};

/// Words of 64 bits, the lowest first: {address, bit} of the first one, and of the one behind the last.
class Bits final : public ContainerWalk {
public:
    explicit Bits(const ViewValue& container) : ContainerWalk(container) {
        const auto begin = target(at(40));
        if (!begin) return;
        const std::uint64_t end = target_of(at(24));
        const auto first = memory().word<std::uint32_t>(at(32));
        const auto last = memory().word<std::uint32_t>(at(16));
        if (end < *begin || (end - *begin) % 8 != 0 || first > 63 || last > 63 || (end == *begin && last < first))
            memory().throw_corrupt(container.offset(), "a container ends before it begins");
        memory().require(*begin, end - *begin + (last + 7) / 8);
        begin_ = *begin;
        bit_ = first;
        left_ = (end - *begin) * 8 + last - first;
    }
    std::optional<std::uint64_t> left() const override { return left_; }
    std::optional<ViewValue> next() override {
        if (left_ == 0) return std::nullopt;
        --left_;
        const std::uint64_t bit = bit_++;
        return ViewAccess::bit(container(), begin_ + bit / 8, static_cast<unsigned>(bit % 8));
    }
    void for_each_block(const TakeBlock& take, const TakeValue& /*take_value*/) override {
        if (const auto begin = target(at(40))) take(*begin);
    }

private:
    std::uint64_t begin_ = 0;
    std::uint64_t bit_ = 0;
    std::uint64_t left_ = 0;
};

/// In blocks, to which a row of pointers leads. An iterator is {element, begin of its block, end of its block, pointer in that row}.
class Deque final : public ContainerWalk {
public:
    explicit Deque(const ViewValue& container)
        : ContainerWalk(container), each_(element_bytes() < 512 ? 512 / element_bytes() : 1), row_(target_of(at(40))), at_(target_of(at(64))) {
        const std::uint64_t first_end = target_of(at(48));
        const std::uint64_t last_row = target_of(at(8));
        const std::uint64_t last_begin = target_of(at(24));
        const std::uint64_t last = target_of(at(32));
        if (last_row < row_ || (last_row - row_) % 8 != 0) memory().throw_corrupt(container.offset(), "a deque ends before it begins");
        const std::uint64_t blocks = (last_row - row_) / 8;
        memory().require(row_, last_row - row_ + 8);
        in_block_ = blocks == 0 ? between(at_, last) : between(at_, first_end);
        left_ = in_block_ + (blocks == 0 ? 0 : (blocks - 1) * each_ + between(last_begin, last));
        if (in_block_ > each_) memory().throw_corrupt(container.offset(), "a block of a deque is too long");
    }
    std::optional<std::uint64_t> left() const override { return left_; }
    std::optional<ViewValue> next() override {
        if (left_ == 0) return std::nullopt;
        while (in_block_ == 0) {
            row_ += 8;
            at_ = target_of(row_);
            in_block_ = each_;
        }
        --left_;
        --in_block_;
        const std::uint64_t here = at_;
        at_ += element_bytes();
        return element(here);
    }

    void for_each_block(const TakeBlock& take, const TakeValue& /*take_value*/) override {
        const std::uint64_t last_row = target_of(at(8));
        for (std::uint64_t row = row_; row <= last_row; row += 8) take(target_of(row));
        take(target_of(at(80)));
    }

private:
    const std::uint64_t each_;
    std::uint64_t row_;
    std::uint64_t at_;
    std::uint64_t in_block_ = 0;
    std::uint64_t left_ = 0;
};

/// Linked both ways, in a ring with the list itself.
class List final : public ContainerWalk {
public:
    explicit List(const ViewValue& container) : ContainerWalk(container), left_(claimed(8)), node_(at(24)) {}
    std::optional<std::uint64_t> left() const override { return left_; }
    std::optional<ViewValue> next() override {
        if (left_ == 0) return std::nullopt;
        --left_;
        node_ = target_of(node_);
        if (node_ == at(24)) memory().throw_corrupt(container().offset(), "a list has fewer elements than it says");
        return element(node_ + round_up(16, alignment()));
    }
    void for_each_block(const TakeBlock& take, const TakeValue& /*take_value*/) override { for_each_node(16, take); }

private:
    std::uint64_t left_;
    std::uint64_t node_;
};

/// Linked to the next one: `forward_list`, and hash tables, which count.
class Chain final : public ContainerWalk {
public:
    explicit Chain(const ViewValue& container)
        : ContainerWalk(container), counts_(container.kind() != ShapeKind::forward_list), node_(counts_ ? at(40) : at(8)),
          left_(counts_ ? claimed(32) : memory().end() / (8 + element_bytes())) {}
    std::optional<std::uint64_t> left() const override { return counts_ ? std::optional(left_) : std::nullopt; }
    std::optional<ViewValue> next() override {
        if (left_ == 0 && counts_) return std::nullopt;
        const auto to = target(node_);
        if (!to && !counts_) return std::nullopt;
        if (!to || left_ == 0) memory().throw_corrupt(container().offset(), "a chain of elements has another length than it can have");
        --left_;
        node_ = *to;
        return element(node_ + round_up(8, alignment()));
    }
    void for_each_block(const TakeBlock& take, const TakeValue& /*take_value*/) override {
        for_each_node(8, take);
        if (!counts_) return;
        // A table of one bucket lies within itself.
        const auto buckets = target(at(56));
        if (buckets && *buckets != at(8)) take(*buckets);
    }

private:
    const bool counts_;
    std::uint64_t node_;
    std::uint64_t left_;
};

/// A red-black tree: nodes are {colour, parent, left, right}, and so is the one in the container, whose left one is the first.
class Tree final : public ContainerWalk {
public:
    explicit Tree(const ViewValue& container) : ContainerWalk(container), left_(claimed(8)) {}
    std::optional<std::uint64_t> left() const override { return left_; }
    std::optional<ViewValue> next() override {
        if (left_ == 0) return std::nullopt;
        --left_;
        node_ = node_ == 0 ? target_of(at(40) + 16) : successor(node_);
        if (node_ == at(40)) memory().throw_corrupt(container().offset(), "a tree has fewer elements than it says");
        return element(node_ + round_up(32, alignment()));
    }
    void for_each_block(const TakeBlock& take, const TakeValue& /*take_value*/) override { for_each_node(32, take); }

private:
    std::uint64_t successor(std::uint64_t node) const {
        if (auto below = target(node + 24)) {
            for (unsigned depth = 0; depth != tree_depth_max; ++depth) {
                const auto left = target(*below + 16);
                if (!left) return *below;
                below = left;
            }
        } else {
            for (unsigned depth = 0; depth != tree_depth_max; ++depth) {
                const std::uint64_t above = target_of(node + 8);
                if (target(above + 24) != node) return above;
                node = above;
            }
        }
        memory().throw_corrupt(node, "a tree is deeper than any");
    }

    std::uint64_t left_;
    std::uint64_t node_ = 0;
};

/// Leaves, each linked to the next, and nodes above them (shape/btree_form.hpp).
class BTree final : public ContainerWalk {
public:
    explicit BTree(const ViewValue& container) : ContainerWalk(container), form_(*memory().shape, ViewAccess::node(container)) {
        left_ = claimed(16, form_.key_bytes + form_.value_bytes + 1);  // keys and values lie apart, without what pads a pair
        if (left_ != 0) enter(target_of(at(32)));
    }
    std::optional<std::uint64_t> left() const override { return left_; }
    std::optional<ViewValue> next() override {
        if (left_ == 0) return std::nullopt;
        while (index_ == count_) enter(target_of(leaf_ + 8));
        --left_;
        const std::uint64_t slot = memory().word<std::uint8_t>(leaf_ + parts_.order + index_++);
        if (slot >= slots_) memory().throw_corrupt(leaf_, "a leaf of a tree has an element in no slot");
        const std::uint64_t key = leaf_ + parts_.keys + slot * form_.key_bytes;
        if (form_.is_apart) return element(target_of(key));
        if (!form_.has_values) return element(key);
        const std::uint64_t value = leaf_ + parts_.values + slot * form_.value_bytes;
        memory().require(key, form_.key_bytes);
        memory().require(value, form_.value_bytes);
        return ViewAccess::pair(container(), ViewAccess::node(container()).parts.front().node, key, value);
    }
    void for_each_block(const TakeBlock& take, const TakeValue& take_value) override {
        if (left_ == 0) return;
        std::vector<std::uint64_t> leaves{leaf_};
        while (left_ != 0) {
            if (index_ == count_) {
                enter(target_of(leaf_ + 8));
                leaves.push_back(leaf_);
            }
            if (form_.is_apart) {
                take(next()->offset());
            } else {
                const std::uint64_t here = std::min(left_, count_ - index_);
                left_ -= here;
                index_ += here;
            }
        }
        for (const std::uint64_t leaf : leaves) take(leaf);
        const auto height = memory().word<std::uint32_t>(at(8));
        if (height == 0) return;
        const Pointers pointers{memory(), ViewAccess::node(container()).distances};
        const auto inner = shape::BTreeInnerWalk(form_, pointers, leaves).find(target_of(at(40)), height);
        if (!inner) memory().throw_corrupt(container().offset(), "the inner nodes of a tree don't lead to its leaves");
        for (const std::uint64_t node : inner->nodes) take(node);
        for (const std::uint64_t key : inner->copies) {
            take(key);
            take_value(ViewAccess::inner(container(), form_.key, key));
        }
    }

private:
    /// What BTreeInnerWalk asks.
    struct Pointers {
        const ViewMemory& memory;
        bool are_distances;

        bool holds(std::uint64_t offset, std::uint64_t bytes) const { return memory.holds(offset, bytes); }
        std::uint32_t count(std::uint64_t node) const { return memory.word<std::uint32_t>(node); }
        std::optional<std::uint64_t> target(std::uint64_t pointer) const {
            const auto to = memory.place(pointer, memory.word<std::uint64_t>(pointer), are_distances);
            return to && *to < memory.end() ? to : std::nullopt;
        }
    };

    void enter(std::uint64_t leaf) {
        leaf_ = leaf;
        index_ = 0;
        count_ = memory().word<std::uint16_t>(leaf + 16);
        slots_ = memory().word<std::uint16_t>(leaf + 18);
        if (count_ == 0 || count_ > slots_ || slots_ > 255) memory().throw_corrupt(leaf, "a leaf of a tree has more elements than slots, or none");
        parts_ = form_.leaf(slots_);
    }

    const shape::BTreeForm form_;
    std::uint64_t left_ = 0;
    std::uint64_t leaf_ = 0;
    std::uint64_t index_ = 0;
    std::uint64_t count_ = 0;
    std::uint64_t slots_ = 0;
    shape::BTreeForm::Leaf parts_{};
};

/// One block: a byte for each slot, not negative where it holds something, then the slots.
class HashTable final : public ContainerWalk {
public:
    explicit HashTable(const ViewValue& container) : ContainerWalk(container), slots_(word(24)), left_(word(16)) {
        if (left_ > slots_ || slots_ > memory().end())
            memory().throw_corrupt(container.offset(), "a hash table has more elements than there is room for");
        if (slots_ == 0) return;
        block_ = target_of(at(32));
        const std::uint64_t unit = std::max(control_bytes_min, alignment());
        first_ = block_ + round_up(std::max(slots_, control_bytes_min), unit);
        memory().require(block_, first_ - block_);
        if (slots_ > memory().end() / element_bytes()) memory().throw_corrupt(container.offset(), "a hash table is larger than the heap");
        memory().require(first_, slots_ * element_bytes());
    }
    std::optional<std::uint64_t> left() const override { return left_; }
    std::optional<ViewValue> next() override {
        if (left_ == 0) return std::nullopt;
        for (; slot_ != slots_; ++slot_) {
            if (memory().word<std::int8_t>(block_ + slot_) < 0) continue;
            --left_;
            return element(first_ + element_bytes() * slot_++);
        }
        memory().throw_corrupt(container().offset(), "a hash table has fewer elements than it says");
    }
    void for_each_block(const TakeBlock& take, const TakeValue& /*take_value*/) override {
        if (slots_ != 0) take(block_);
    }

private:
    const std::uint64_t slots_;
    std::uint64_t left_;
    std::uint64_t block_ = 0;
    std::uint64_t first_ = 0;
    std::uint64_t slot_ = 0;
};

}  // namespace

bool ViewWalk::is_known(const Shape& shape, std::uint32_t number) noexcept {
    const ShapeNode& node = shape.nodes[number];
    if (node.kind == ShapeKind::array) return node.parts.size() == 1 && shape.nodes[node.parts.front().node].bytes != 0;
    return shape::is_known_container(shape, number);
}

std::unique_ptr<ViewWalk> ViewWalk::of(const ViewValue& container) {
    if (!container.has_elements()) return nullptr;
    switch (container.kind()) {
        case ShapeKind::bit_vector: return std::make_unique<Bits>(container);
        case ShapeKind::array:
        case ShapeKind::string:
        case ShapeKind::vector: return std::make_unique<Row>(container);
        case ShapeKind::deque: return std::make_unique<Deque>(container);
        case ShapeKind::list: return std::make_unique<List>(container);
        case ShapeKind::map:
        case ShapeKind::multimap:
        case ShapeKind::set:
        case ShapeKind::multiset: return std::make_unique<Tree>(container);
        case ShapeKind::btree_map:
        case ShapeKind::btree_multimap:
        case ShapeKind::btree_set:
        case ShapeKind::btree_multiset:
        case ShapeKind::ordered_map:
        case ShapeKind::ordered_multimap:
        case ShapeKind::ordered_set:
        case ShapeKind::ordered_multiset: return std::make_unique<BTree>(container);
        case ShapeKind::flat_hash_map:
        case ShapeKind::flat_hash_set: return std::make_unique<HashTable>(container);
        default: return std::make_unique<Chain>(container);
    }
}

}  // namespace taiyen::inspect
