#pragma once
/// The B+ tree behind btree_map, btree_set and their like (Bayer, McCreight, "Organization and maintenance of large ordered indices", 1972; leaves linked as in Comer, "The ubiquitous
/// B-tree", 1979).
///
/// Nodes, and what holds of them: btree_nodes.hpp. Looking up: btree_search.hpp.
/// Exceptions: an insertion makes its element, and all nodes that it needs, before it changes anything.
/// Everything that stores is a member of a template over the allocator: that keeps functions of instrumented programs apart from those of others.
/// Thread rule: external lock; concurrent reads are fine.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <type_traits>
#include <utility>

#include <taiyen/base/check.hpp>
#include <taiyen/base/detail/instrumented.hpp>
#include <taiyen/ordered/detail/btree_nodes.hpp>
#include <taiyen/ordered/detail/btree_search.hpp>

namespace taiyen::ordered {

/// `V` is Nothing for sets.
template <class K, class V, class Compare, class Allocator, bool IsUnique>
class BTree : public BTreeSearch<K, V, Compare, Allocator, IsUnique> {
public:
    using Search = BTreeSearch<K, V, Compare, Allocator, IsUnique>;
    using Search::address_of;
    using Search::before;
    using Search::begin;
    using Search::depth_max;
    using Search::digests;
    using Search::end;
    using Search::fence_of;
    using Search::first_slots;
    using Search::has_heads;
    using Search::has_values;
    using Search::in_common;
    using Search::inner_at;
    using Search::inner_lines;
    using Search::inner_separators;
    using Search::is_apart;
    using Search::is_last;
    using Search::is_ranked;
    using Search::key_at;
    using Search::leaf_at;
    using Search::leaf_bytes;
    using Search::leaf_or_null;
    using Search::leaf_slots;
    using Search::lines_of;
    using Search::lower_bound;
    using Search::next;
    using Search::pointer_to;
    using Search::separators_inline;
    using Search::settled;
    using Search::slots_growth;
    using typename Search::Digest;
    using typename Search::Digester;
    using typename Search::Fence;
    using typename Search::Inner;
    using typename Search::KeyAllocator;
    using typename Search::KeyTraits;
    using typename Search::Leaf;
    using typename Search::LineAllocator;
    using typename Search::Path;
    using typename Search::Place;
    using typename Search::Pointer;
    using typename Search::Traits;

    BTree() = default;
    BTree(const Compare& compare, const LineAllocator& allocator) : Search(compare, allocator) {}
    BTree(BTree&& other) noexcept : Search(other.compare_, std::move(other.allocator_)) { take(other); }
    BTree(const BTree&) = delete;
    BTree& operator=(const BTree&) = delete;
    ~BTree() { clear(); }

    void assign_allocator(const LineAllocator& allocator) noexcept { allocator_ = allocator; }
    void assign_compare(const Compare& compare) { compare_ = compare; }

    /// Takes everything over; this tree is empty.
    void take(BTree& other) noexcept {
        root_ = other.root_;
        first_ = other.first_;
        last_ = other.last_;
        size_ = other.size_;
        height_ = other.height_;
        other.forget();
    }
    void swap(BTree& other) noexcept {
        if constexpr (Traits::propagate_on_container_swap::value) {
            using std::swap;
            swap(allocator_, other.allocator_);
        }
        if constexpr (!std::is_empty_v<Compare>) {
            const Compare compare = compare_;
            compare_ = other.compare_;
            other.compare_ = compare;
        }
        const Pointer root = root_;
        const Pointer first = first_;
        const Pointer last = last_;
        const std::size_t size = size_;
        const std::uint32_t height = height_;
        take(other);
        other.root_ = root;
        other.first_ = first;
        other.last_ = last;
        other.size_ = size;
        other.height_ = height;
    }
    void clear() noexcept {
        if (root_ != nullptr) free_below(root_, height_);
        forget();
    }

    // Changes.
    struct Inserted {
        Place at;
        bool is_new;
    };
    /// `make(leaf, slot)` makes the element there (make_element) unless a unique key is there already. Throws: what `make` does, HeapFull or std::bad_alloc; nothing has changed then.
    template <class Q, class Make>
    Inserted insert(const Q& key, Make&& make) {
        if (root_ == nullptr) return {insert_first(make), true};
        const Query<Q> query(key);
        Path path;
        this->template locate<true>(path, query);
        const std::uint32_t index = this->template rank<!IsUnique>(*path.leaf, query);
        if constexpr (IsUnique) {
            const Place at{path.leaf, index};
            if (index < path.leaf->count && is_equal(at, query)) return {at, false};
        }
        return {insert_at(path, index, make, std::addressof(key)), true};
    }
    /// The same in front of `hint` if it belongs there, at an end without a search. Equal keys: as near to the hint as the order allows.
    template <class Q, class Make>
    Inserted insert(const Place& hint, const Q& key, Make&& make) {
        if (root_ == nullptr) return {insert_first(make), true};
        const bool is_end = hint == end();
        if (is_end && is_before(key_at(last_place()), key)) return {append(make, std::addressof(key)), true};
        if constexpr (!IsUnique) {
            const bool follows = hint == begin() || !is_before(key, key_at(before(hint)));
            const bool precedes = is_end || !is_before(key_at(hint), key);
            if (!follows) return insert(key, make);  // the last place for it is the nearest
            const Place at = precedes ? hint : lower_bound(key);
            Path path;
            if (at.index == 0 && at.leaf->previous != nullptr) {
                // Behind the last one of the leaf in front, if the key is less than the separator between the two.
                this->template locate<true>(path, Query<Q>(key));
                if (path.leaf == leaf_at(at.leaf->previous)) return {insert_at(path, path.leaf->count, make, std::addressof(key)), true};
            }
            path_to(path, at);
            return {insert_at(path, at.index, make, std::addressof(key)), true};
        } else {
            return insert(key, make);
        }
    }
    /// Behind the last element, unchecked.
    template <class Make, class Q = K>
    Place append(Make&& make, const Q* key = nullptr) {
        if (root_ == nullptr) return insert_first(make);
        Leaf& last = *leaf_at(last_);
        if (!is_ranked && last.count != last.slots) {
            make(last, last.order()[last.count]);
            put(last, last.count);
            return {&last, last.count - 1U};
        }
        Path path;
        locate_last(path);
        return insert_at(path, last.count, make, key);
    }
    /// Makes an element in a free slot. `make_value(V*)` makes the mapped value.
    template <class Key, class MakeValue>
    void make_element(Leaf& leaf, std::uint32_t slot, Key&& key, MakeValue&& make_value) {
        construct_element(leaf, slot, std::forward<Key>(key), make_value);
        if constexpr (has_heads) {
            if (leaf.skip != 0) keep_in_common(leaf, leaf.keys()[slot]);
            leaf.digest()[slot] = head_in(leaf, leaf.keys()[slot]);
        } else if constexpr (digests == Digests::heads) {
            leaf.digest()[slot] = Digester::of(leaf.keys()[slot]);
        }
    }

private:
    /// All but the head.
    template <class Key, class MakeValue>
    void construct_element(Leaf& leaf, std::uint32_t slot, Key&& key, MakeValue&& make_value) {
        if constexpr (has_values) make_value(leaf.values() + slot);
        if constexpr (digests == Digests::keys) {
            leaf.digest()[slot] = static_cast<K>(std::forward<Key>(key));
        } else if constexpr (is_apart) {
            ::new (leaf.keys() + slot) K{key};
        } else {
            Undo undo([&] { destroy_value(leaf, slot); });
            Traits::construct(allocator_, leaf.keys() + slot, std::forward<Key>(key));
            undo.is_needed = false;
        }
    }

public:
    /// The place behind. Throws what the comparison throws; nothing has changed then.
    Place erase(const Place& at) {
        Path path;
        path_to(path, at);
        return erase_in_leaf(path, at.index, 1);
    }
    /// The same, and whoever calls has the element that lies apart.
    Place take_out(const Place& at) {
        Path path;
        path_to(path, at);
        return erase_in_leaf<false>(path, at.index, 1);
    }
    /// Lets `enter(held)` put the element into another tree, if it will; the place behind. Throws what the comparison and `enter` throw; nothing has changed here then.
    template <bool Disposes, class Enter>
    Place hand_over(Place at, Enter&& enter) {
        Path path;
        path_to(path, at);
        if (enter(key_at(at))) return erase_in_leaf<Disposes>(path, at.index, 1);
        next(at);
        return at;
    }
    /// `count` elements from there on.
    Place erase(Place at, std::size_t count) {
        if (count == size_) {
            clear();
            return {};
        }
        while (count != 0) {
            Path path;
            path_to(path, at);
            const auto here = static_cast<std::uint32_t>(std::min<std::size_t>(count, at.leaf->count - at.index));
            count -= here;
            at = erase_in_leaf(path, at.index, here);
        }
        return at;
    }
    /// What lies from there on goes to `other`, which is empty and has an equal allocator. Throws: HeapFull, std::bad_alloc, what copying throws; nothing has changed then.
    /// Complexity: logarithmic, and linear in the leaves that go.
    void split_off(const Place& at, BTree& other) {
        if (at == end()) return;
        if (at == begin()) return other.take(*this);
        Path path;
        path_to(path, at);
        std::size_t count = 0;
        if constexpr (is_ranked)
            count = size_ - Search::count_before(path) - at.index;
        else
            count = Search::distance(at, end());
        cut(path, at.index, other);
        size_ -= count;
        other.size_ = count;
    }

private:
    using Search::allocator_;
    using Search::compare_;
    using Search::elements_below;
    using Search::first_;
    using Search::height_;
    using Search::is_before;
    using Search::is_equal;
    using Search::last_;
    using Search::last_place;
    using Search::locate_last;
    using Search::path_to;
    using Search::root_;
    using Search::size_;
    template <class Q>
    using Query = typename Search::template Query<Q>;

    /// Calls its function unless all went well.
    template <class F>
    struct Undo {
        explicit Undo(F what) : function(std::move(what)) {}
        Undo(const Undo&) = delete;
        Undo& operator=(const Undo&) = delete;
        ~Undo() {
            if (is_needed) function();
        }
        F function;
        bool is_needed = true;
    };

    void forget() noexcept {
        root_ = nullptr;
        first_ = nullptr;
        last_ = nullptr;
        size_ = 0;
        height_ = 0;
    }

    // Counts (N3), if there are any.
    /// Counts child number `index` anew; `level`: the child's.
    void recount([[maybe_unused]] Inner& inner, [[maybe_unused]] std::uint32_t index, [[maybe_unused]] std::uint32_t level) noexcept {
        if constexpr (is_ranked) inner.counts.of[index] = elements_below(inner.children[index], level);
    }
    /// So many more, or less, below the first `depth` nodes of the path.
    void add_to_counts([[maybe_unused]] const Path& path, [[maybe_unused]] std::uint32_t depth, [[maybe_unused]] std::int64_t more) noexcept {
        if constexpr (is_ranked)
            while (depth-- != 0) path.steps[depth].node->counts.of[path.steps[depth].index] += static_cast<std::uint64_t>(more);
    }
    /// What lay below one child lies below another.
    void move_count([[maybe_unused]] Inner& inner, [[maybe_unused]] std::uint32_t from, [[maybe_unused]] std::uint32_t to) noexcept {
        if constexpr (is_ranked) {
            inner.counts.of[to] += inner.counts.of[from];
            inner.counts.of[from] = 0;
        }
    }
    void set_child(Inner& inner, std::uint32_t index, const Inner& from, std::uint32_t from_index) noexcept {
        inner.children[index] = from.children[from_index];
        if constexpr (is_ranked) inner.counts.of[index] = from.counts.of[from_index];
    }

    // Elements in slots.
    void destroy_value(Leaf& leaf, std::uint32_t slot) noexcept {
        if constexpr (has_values) Traits::destroy(allocator_, leaf.values() + slot);
    }
    void destroy_element(Leaf& leaf, std::uint32_t slot) noexcept {
        destroy_value(leaf, slot);
        if constexpr (digests != Digests::keys) Traits::destroy(allocator_, leaf.keys() + slot);
        if constexpr (digests != Digests::none) leaf.digest()[slot] = Digester::none;
    }
    /// An element that is no more, wherever it lies.
    void dispose_of_element(Leaf& leaf, std::uint32_t slot) noexcept {
        if constexpr (is_apart) {
            const K held = leaf.keys()[slot];
            destroy_element(leaf, slot);
            free_apart(held);
        } else {
            destroy_element(leaf, slot);
        }
    }
    void free_apart(const K& held) noexcept {
        auto elements = typename K::Allocator(allocator_);
        using ElementTraits = std::allocator_traits<typename K::Allocator>;
        ElementTraits::destroy(elements, std::to_address(held.element));
        ElementTraits::deallocate(elements, held.element, 1);
    }
    /// Makes a copy, or what a move leaves of it if that doesn't throw. The source is to be destroyed then.
    void carry(Leaf& from, std::uint32_t slot, Leaf& to, std::uint32_t to_slot) {
        construct_element(to, to_slot, std::move_if_noexcept(from.keys()[slot]), [&]([[maybe_unused]] V* place) {
            if constexpr (has_values) Traits::construct(allocator_, place, std::move_if_noexcept(from.values()[slot]));
        });
        if constexpr (has_heads)
            to.digest()[to_slot] = from.skip == to.skip ? from.digest()[slot] : Digester::of(to.keys()[to_slot], to.skip);
        else if constexpr (digests == Digests::heads)
            to.digest()[to_slot] = from.digest()[slot];
    }
    // What keys have in common (P1).
    static Digest head_in(const Leaf& leaf, const K& key) noexcept { return leaf.skip == 0 ? Digester::of(key) : Digester::of(key, leaf.skip); }
    static void set_skip(Leaf& leaf, std::uint32_t skip) noexcept {
        leaf.skip = static_cast<std::uint16_t>(skip);
        for (std::uint32_t i = 0; i != leaf.count; ++i) leaf.digest()[leaf.order()[i]] = Digester::of(leaf.key(i), skip);
    }
    /// `hole`: a separator that isn't there yet, or no more.
    static void set_skip(Inner& inner, std::uint32_t skip, std::uint32_t count, std::uint32_t hole) noexcept {
        inner.skip = skip;
        for (std::uint32_t i = 0; i != count; ++i)
            if (i != hole) inner.digest[i] = Digester::of(inner.key(i), skip);
    }
    /// Another key comes.
    static void keep_in_common(Leaf& leaf, const K& key) noexcept {
        const std::uint32_t same = leaf.count == 0 ? 0 : in_common(key, leaf.key(0), leaf.skip);
        if (same < leaf.skip) set_skip(leaf, same);
    }
    static void keep_in_common(Inner& inner, const K& key, std::uint32_t count, std::uint32_t hole) noexcept {
        const std::uint32_t same = count < 2 ? 0 : in_common(key, inner.key(hole == 0 ? 1 : 0), inner.skip);
        if (same < inner.skip) set_skip(inner, same, count, hole);
    }
    /// A leaf that is given elements of another one, and has an element of its own, which isn't counted yet.
    static void take_skip([[maybe_unused]] Leaf& from, [[maybe_unused]] Leaf& to, [[maybe_unused]] std::uint32_t slot) noexcept {
        if constexpr (has_heads) {
            if (from.skip == 0) return;
            keep_in_common(from, to.keys()[slot]);
            to.skip = from.skip;
            to.digest()[slot] = head_in(to, to.keys()[slot]);
        }
    }
    /// Where six of eight bytes are the same in all heads, heads begin further behind.
    static bool is_worn(std::uint64_t first, std::uint64_t last) noexcept { return (first ^ last) >> 16U == 0; }
    static void choose_skip([[maybe_unused]] Leaf& leaf) noexcept {
        if constexpr (has_heads) {
            const std::uint32_t last = leaf.count - 1U;
            if (leaf.count < 2 || !is_worn(leaf.digest()[leaf.order()[0]], leaf.digest()[leaf.order()[last]])) return;
            const std::uint32_t same = in_common(leaf.key(0), leaf.key(last), 0xffff);
            if (same > leaf.skip) set_skip(leaf, same);
        }
    }
    static void choose_skip([[maybe_unused]] Inner& inner) noexcept {
        if constexpr (has_heads) {
            if (inner.count < 2 || !is_worn(inner.digest[0], inner.digest[inner.count - 1])) return;
            const std::uint32_t same = in_common(inner.key(0), inner.key(inner.count - 1), 0xffff);
            if (same > inner.skip) set_skip(inner, same, inner.count, inner.count);
        }
    }

    /// The elements from `first` on, to the free places of `to` that `slot_of(i)` gives. Throws what copying throws; all is as it was then.
    template <class SlotOf>
    void carry_all(Leaf& from, std::uint32_t first, Leaf& to, const SlotOf& slot_of) {
        const std::uint32_t count = from.count - first;
        const std::uint8_t* const order = from.order();
        std::uint32_t done = 0;
        Undo undo([&] {
            while (done != 0) destroy_element(to, slot_of(--done));
        });
        for (; done != count; ++done) carry(from, order[first + done], to, slot_of(done));
        undo.is_needed = false;
        for (std::uint32_t i = first; i != from.count; ++i) destroy_element(from, order[i]);
    }
    /// The first free slot, which has its element, becomes number `index`.
    void put(Leaf& leaf, std::uint32_t index) noexcept {
        std::uint8_t* const order = leaf.order();
        const std::uint8_t slot = order[leaf.count];
        leaf.run = is_newest(leaf, index - 1) || is_newest(leaf, index) ? static_cast<std::uint8_t>(std::min(leaf.run + 1, 255)) : std::uint8_t{0};
        leaf.newest = slot;
        if (const std::uint32_t behind = leaf.count - index; behind != 0) {
            std::memmove(order + index + 1, order + index, behind);
            order[index] = slot;
        }
        ++leaf.count;
        ++size_;
    }
    /// The same for any free slot.
    void put(Leaf& leaf, std::uint32_t index, std::uint32_t slot) noexcept {
        std::uint8_t* const order = leaf.order();
        std::uint32_t at = leaf.count;
        while (order[at] != slot) ++at;
        order[at] = order[leaf.count];
        order[leaf.count] = static_cast<std::uint8_t>(slot);
        put(leaf, index);
    }

    // Nodes.
    Pointer new_leaf(std::uint32_t slots) {
        const Pointer memory = Traits::allocate(allocator_, lines_of(leaf_bytes(slots)));
        Leaf& leaf = *::new (address_of(memory)) Leaf{};
        leaf.slots = static_cast<std::uint16_t>(slots);
        std::uint8_t* const order = leaf.order();
        for (std::uint32_t i = 0; i != slots; ++i) order[i] = static_cast<std::uint8_t>(i);
        if constexpr (digests != Digests::none) {
            Digest* const digest = leaf.digest();
            for (std::uint32_t i = 0; i != slots; ++i) digest[i] = Digester::none;
        }
        return memory;
    }
    void free_leaf(const Pointer& leaf) noexcept { Traits::deallocate(allocator_, leaf, lines_of(leaf_bytes(leaf_at(leaf)->slots))); }
    Pointer new_inner() {
        const Pointer memory = Traits::allocate(allocator_, inner_lines);
        ::new (address_of(memory)) Inner;
        inner_at(memory)->count = 0;
        inner_at(memory)->skip = 0;
        return memory;
    }
    void free_inner(const Pointer& inner) noexcept { Traits::deallocate(allocator_, inner, inner_lines); }

    Fence new_fence(const K& key) {
        Fence fence;
        if constexpr (digests != Digests::none) fence.digest = Digester::of(key);
        if constexpr (separators_inline) {
            fence.separator = key;
        } else if constexpr (digests != Digests::keys) {
            KeyAllocator keys(allocator_);
            fence.separator = KeyTraits::allocate(keys, 1);
            Undo undo([&] { KeyTraits::deallocate(keys, fence.separator, 1); });
            KeyTraits::construct(keys, std::to_address(fence.separator), key);
            undo.is_needed = false;
        }
        return fence;
    }
    void free_separator([[maybe_unused]] const auto& separator) noexcept {
        if constexpr (digests != Digests::keys && !separators_inline) {
            KeyAllocator keys(allocator_);
            KeyTraits::destroy(keys, std::to_address(separator));
            KeyTraits::deallocate(keys, separator, 1);
        }
    }
    void free_fence(const Fence& fence) noexcept { free_separator(fence.separator); }
    void free_fence([[maybe_unused]] const Inner& inner, [[maybe_unused]] std::uint32_t i) noexcept {
        if constexpr (digests != Digests::keys) free_separator(inner.separator[i]);
    }
    /// `count`: how many separators there are then.
    void set_fence(Inner& inner, std::uint32_t i, const Fence& fence, std::uint32_t count) noexcept {
        if constexpr (digests != Digests::keys) inner.separator[i] = fence.separator;
        if constexpr (digests != Digests::none) inner.digest[i] = fence.digest;
        if constexpr (has_heads) {
            if (inner.skip == 0) return;
            keep_in_common(inner, inner.key(i), count, i);
            inner.digest[i] = Digester::of(inner.key(i), inner.skip);
        }
    }
    /// Moves words within an array or between two; to the right, from behind.
    template <class T>
    void move_words(T* from, std::uint32_t count, T* to) noexcept {
        if constexpr (std::is_trivially_copyable_v<T>)
            std::memmove(to, from, count * sizeof(T));
        else if (to < from || to >= from + count)
            for (std::uint32_t i = 0; i != count; ++i) to[i] = from[i];
        else
            while (count-- != 0) to[count] = from[count];
    }
    /// `count` separators and as many children, those of the separators' right sides.
    void move_entries(Inner& from, std::uint32_t first, std::uint32_t count, Inner& to, std::uint32_t at) noexcept {
        if constexpr (digests != Digests::none) move_words(from.digest.of + first, count, to.digest.of + at);
        if constexpr (digests != Digests::keys) move_words(from.separator.of + first, count, to.separator.of + at);
        move_words(from.children + first + 1, count, to.children + at + 1);
        if constexpr (is_ranked) move_words(from.counts.of + first + 1, count, to.counts.of + at + 1);
    }

    /// What a split needs, until it is used.
    class Spare {
    public:
        explicit Spare(BTree& tree) noexcept : tree_(tree) {}
        Spare(const Spare&) = delete;
        Spare& operator=(const Spare&) = delete;
        ~Spare() {
            if (has_fence) tree_.free_fence(fence);
            if (leaf != nullptr) tree_.free_leaf(leaf);
            while (inner_count_ != 0) tree_.free_inner(inner_[--inner_count_]);
        }
        void reserve(const Path& path) {
            leaf = tree_.new_leaf(leaf_slots);
            std::uint32_t level = path.depth;
            while (level != 0 && path.steps[level - 1].node->count == inner_separators) {
                reserve_inner();
                --level;
            }
            if (level == 0) {
                TAIYEN_CHECK(path.depth < depth_max);
                reserve_inner();
            }
        }
        void reserve(bool with_leaf, std::uint32_t inner_count) {
            if (with_leaf) leaf = tree_.new_leaf(leaf_slots);
            while (inner_count-- != 0) reserve_inner();
        }
        Pointer take_leaf() noexcept {
            const Pointer taken = leaf;
            leaf = nullptr;
            return taken;
        }
        Pointer take_inner() noexcept { return inner_[--inner_count_]; }

        Pointer leaf = nullptr;
        Fence fence;
        bool has_fence = false;

    private:
        void reserve_inner() {
            inner_[inner_count_] = tree_.new_inner();
            ++inner_count_;
        }
        BTree& tree_;
        Pointer inner_[depth_max + 1];
        std::uint32_t inner_count_ = 0;
    };

    /// Cuts the tree in front of element `index` of the path's leaf, which isn't the first. The right part is `other`'s but for its size.
    void cut(Path& path, std::uint32_t index, BTree& other) {
        Leaf& left = *path.leaf;
        bool is_whole = index == 0;  // what lies below this level goes as it is
        std::uint32_t shared = path.depth;
        while (is_whole && shared != 0 && path.steps[shared - 1].index == 0) --shared;
        Spare spare(*this);
        spare.reserve(!is_whole, shared);
        Pointer child = pointer_to(&left);
        Leaf* before_cut = &left;
        if (is_whole) {
            before_cut = leaf_at(left.previous);
        } else {
            Leaf& right = *leaf_at(spare.leaf);
            right.skip = left.skip;
            carry_all(left, index, right, [](std::uint32_t i) { return i; });
            right.count = static_cast<std::uint16_t>(left.count - index);
            left.count = static_cast<std::uint16_t>(index);
            right.next = left.next;
            child = spare.take_leaf();
            if (right.next != nullptr) leaf_at(right.next)->previous = child;
        }
        other.first_ = child;
        other.last_ = leaf_at(child)->next == nullptr ? child : last_;
        other.height_ = height_;
        leaf_at(child)->previous = nullptr;
        before_cut->next = nullptr;
        last_ = pointer_to(before_cut);
        for (std::uint32_t level = path.depth; level != 0; --level) {
            Inner& inner = *path.steps[level - 1].node;
            const std::uint32_t from = path.steps[level - 1].index;
            if (is_whole && from == 0) {
                child = pointer_to(&inner);
                continue;
            }
            const Pointer right_pointer = spare.take_inner();
            Inner& right = *inner_at(right_pointer);
            right.skip = inner.skip;
            right.children[0] = child;
            recount(right, 0, path.depth - level);
            move_entries(inner, from, inner.count - from, right, 0);
            right.count = inner.count - from;
            inner.count = from;
            if (is_whole)
                free_fence(inner, --inner.count);
            else
                recount(inner, from, path.depth - level);
            is_whole = false;
            child = right_pointer;
        }
        other.root_ = child;
        drop_empty_roots();
        other.drop_empty_roots();
    }
    /// A root with one child isn't left standing.
    void drop_empty_roots() noexcept {
        while (height_ != 0 && inner_at(root_)->count == 0) {
            const Pointer gone = root_;
            root_ = inner_at(gone)->children[0];
            free_inner(gone);
            --height_;
        }
    }

    // Insertion.
    template <class Make>
    Place insert_first(Make& make) {
        const Pointer memory = new_leaf(first_slots);
        Leaf& leaf = *leaf_at(memory);
        Undo undo([&] { free_leaf(memory); });
        make(leaf, 0);
        undo.is_needed = false;
        root_ = memory;
        first_ = memory;
        last_ = memory;
        put(leaf, 0);
        return {&leaf, 0};
    }
    /// `key`: what the element will have, if that is known before it is made.
    template <class Make, class Q>
    Place insert_at(Path& path, std::uint32_t index, Make& make, const Q* key) {
        Leaf& leaf = *path.leaf;
        if (leaf.count != leaf.slots) {
            make(leaf, leaf.order()[leaf.count]);
            put(leaf, index);
            add_to_counts(path, path.depth, 1);
            if (index == 0) renew_fence(path, leaf.key(0));
            return {&leaf, index};
        }
        return leaf.slots == leaf_slots ? split(path, index, make, key) : grow(index, make);
    }
    /// The root, a leaf, becomes a larger one. The new element comes first: what it is made of may lie in the old leaf.
    template <class Make>
    Place grow(std::uint32_t index, Make& make) {
        Leaf& old = *leaf_at(root_);
        const Pointer memory = new_leaf(std::min(old.slots * slots_growth, leaf_slots));
        Leaf& leaf = *leaf_at(memory);
        Undo undo([&] { free_leaf(memory); });
        make(leaf, old.count);
        Undo undo_element([&] { destroy_element(leaf, old.count); });
        take_skip(old, leaf, old.count);
        carry_all(old, 0, leaf, [](std::uint32_t i) { return i; });
        undo_element.is_needed = false;
        undo.is_needed = false;
        leaf.count = old.count;
        put(leaf, index);
        choose_skip(leaf);
        free_leaf(root_);
        root_ = memory;
        first_ = memory;
        last_ = memory;
        return {&leaf, index};
    }
    /// How many elements of a full leaf stay in it when one is inserted at `index`: half, but a run of keys, rising or falling, leaves a full leaf behind it.
    /// Then one element goes along, or stays, so that a run which turns around doesn't split at each step.
    static std::uint32_t staying(const Leaf& leaf, std::uint32_t index) noexcept {
        if (index == leaf.count && leaf.next == nullptr) return leaf.count;
        if (leaf.run < 2) return leaf.count / 2U;
        if (is_newest(leaf, index - 1)) return std::min(index + 1, leaf.count - 1U);
        if (is_newest(leaf, index)) return std::max(index, 2U) - 1;
        return leaf.count / 2U;
    }
    static bool is_newest(const Leaf& leaf, std::uint32_t index) noexcept { return index < leaf.count && leaf.order()[index] == leaf.newest; }
    /// A full leaf becomes two.
    template <class Make, class Q>
    Place split(Path& path, std::uint32_t index, Make& make, [[maybe_unused]] const Q* key) {
        Leaf& left = *path.leaf;
        const std::uint32_t stay = staying(left, index);
        const bool goes_right = index >= stay;
        constexpr std::uint32_t slot = leaf_slots - 1;
        Spare spare(*this);
        spare.reserve(path);
        Leaf& right = *leaf_at(spare.leaf);
        // A separator with memory of its own comes first: what `make` moves would be lost if that failed.
        if constexpr (digests != Digests::keys && !separators_inline && std::is_same_v<Q, K>) {
            if (index != stay || key != nullptr) {
                spare.fence = new_fence(index == stay ? *key : left.key(stay));
                spare.has_fence = true;
            }
        }
        make(right, slot);
        Undo undo([&] { destroy_element(right, slot); });
        take_skip(left, right, slot);
        if (!spare.has_fence) {
            spare.fence = new_fence(index == stay ? right.keys()[slot] : left.key(stay));
            spare.has_fence = true;
        }
        carry_all(left, stay, right, [](std::uint32_t i) { return i; });
        if (goes_right) undo.is_needed = false;

        right.count = static_cast<std::uint16_t>(left.count - stay);
        left.count = static_cast<std::uint16_t>(stay);
        const Pointer right_pointer = spare.take_leaf();
        right.previous = pointer_to(&left);
        right.next = left.next;
        if (left.next == nullptr)
            last_ = right_pointer;
        else
            leaf_at(left.next)->previous = right_pointer;
        left.next = right_pointer;
        spare.has_fence = false;
        if (goes_right) {
            put(right, index - stay, slot);
            choose_skip(left);
            choose_skip(right);
            add_child(path, spare.fence, right_pointer, spare, 1);
            return {&right, index - stay};
        }
        // Should copying it throw, the leaf has been split and the element isn't there.
        Undo enter_right([&] { add_child(path, spare.fence, right_pointer, spare, 0); });
        carry(right, slot, left, left.order()[left.count]);
        enter_right.is_needed = false;
        put(left, index);
        if (index == 0) renew_fence(path, left.key(0));
        choose_skip(left);
        choose_skip(right);
        add_child(path, spare.fence, right_pointer, spare, 1);
        return {&left, index};
    }
    /// (N2): the separator in front of a leaf, wherever it is.
    void renew_fence([[maybe_unused]] Path& path, [[maybe_unused]] const K& first) noexcept {
        if constexpr (separators_inline) {
            std::uint32_t level = path.depth;
            while (level != 0 && path.steps[level - 1].index == 0) --level;
            if (level == 0) return;
            auto& [node, index] = path.steps[level - 1];
            Fence fence;
            fence.separator = first;
            if constexpr (digests != Digests::none) fence.digest = Digester::of(first);
            set_fence(*node, index - 1, fence, node->count);
        }
    }
    /// Enters what was split off the path's leaf into the nodes above; `added` elements are new in the two.
    void add_child(Path& path, Fence fence, Pointer child, Spare& spare, std::int64_t added) noexcept {
        std::uint32_t level = 0;
        for (std::uint32_t depth = path.depth; depth != 0; --depth, ++level) {
            Inner& inner = *path.steps[depth - 1].node;
            const std::uint32_t index = path.steps[depth - 1].index;
            if (inner.count != inner_separators) {
                enter(inner, index, fence, child, level);
                add_to_counts(path, depth - 1, added);
                return;
            }
            const Pointer right_pointer = spare.take_inner();
            Inner& right = *inner_at(right_pointer);
            right.skip = inner.skip;
            // At the end of the level the left node stays full: its new neighbour begins with the new child.
            const bool is_end = index == inner.count && is_last(path, depth - 1);
            const std::uint32_t stay = is_end ? inner.count : inner.count / 2U;
            if (index == stay) {
                right.children[0] = child;
                recount(right, 0, level);
                recount(inner, index, level);
                move_entries(inner, stay, inner.count - stay, right, 0);
                right.count = inner.count - stay;
                inner.count = stay;
            } else {
                const std::uint32_t up = index < stay ? stay - 1 : stay;
                const Fence above = fence_of(inner, up);
                set_child(right, 0, inner, up + 1);
                move_entries(inner, up + 1, inner.count - up - 1, right, 0);
                right.count = inner.count - up - 1;
                inner.count = up;
                if (index < stay)
                    enter(inner, index, fence, child, level);
                else
                    enter(right, index - up - 1, fence, child, level);
                fence = above;
            }
            choose_skip(inner);
            choose_skip(right);
            child = right_pointer;
        }
        const Pointer root = spare.take_inner();
        Inner& inner = *inner_at(root);
        inner.children[0] = root_;
        enter(inner, 0, fence, child, level);
        root_ = root;
        ++height_;
    }
    /// A separator and the child on its right side, of the level.
    void enter(Inner& inner, std::uint32_t index, const Fence& fence, const Pointer& child, std::uint32_t level) noexcept {
        move_entries(inner, index, inner.count - index, inner, index + 1);
        set_fence(inner, index, fence, inner.count + 1);
        inner.children[index + 1] = child;
        ++inner.count;
        choose_skip(inner);
        recount(inner, index, level);
        recount(inner, index + 1, level);
    }

    // Erasure.
    template <bool Disposes = true>
    Place erase_in_leaf(Path& path, std::uint32_t index, std::uint32_t count) noexcept {
        Leaf& leaf = *path.leaf;
        std::uint8_t* const order = leaf.order();
        std::uint8_t gone[256];
        for (std::uint32_t i = 0; i != count; ++i) {
            gone[i] = order[index + i];
            if constexpr (Disposes)
                dispose_of_element(leaf, gone[i]);
            else
                destroy_element(leaf, gone[i]);
        }
        std::memmove(order + index, order + index + count, leaf.count - index - count);
        leaf.count = static_cast<std::uint16_t>(leaf.count - count);
        std::memcpy(order + leaf.count, gone, count);
        size_ -= count;
        add_to_counts(path, path.depth, -static_cast<std::int64_t>(count));
        if (leaf.count == 0) return drop_leaf(path);
        if (index == 0) renew_fence(path, leaf.key(0));
        if (path.depth != 0 && leaf.count < leaf_slots / 3) return join(path, index);
        return settled(&leaf, index);
    }
    Place drop_leaf(Path& path) noexcept {
        Leaf& leaf = *path.leaf;
        Leaf* const next = leaf_or_null(leaf.next);
        Leaf* const previous = leaf_or_null(leaf.previous);
        if (path.depth == 0) {
            free_leaf(root_);
            forget();
            return {};
        }
        // If the leaf was the first of more than one below a separator, the next one is now.
        for (std::uint32_t level = path.depth; level != 0 && path.steps[level - 1].index == 0; --level) {
            if (path.steps[level - 1].node->count == 0) continue;
            renew_fence(path, next->key(0));
            break;
        }
        const Pointer gone = pointer_to(&leaf);
        unlink(leaf);
        free_leaf(gone);
        remove_child(path, path.depth - 1, true);
        if (next != nullptr) return {next, 0};
        return {previous, previous->count};
    }
    void unlink(Leaf& leaf) noexcept {
        if (leaf.next == nullptr)
            last_ = leaf.previous;
        else
            leaf_at(leaf.next)->previous = leaf.previous;
        if (leaf.previous == nullptr)
            first_ = leaf.next;
        else
            leaf_at(leaf.previous)->next = leaf.next;
    }
    /// A leaf with few elements joins a neighbour that has room for them. The place of element `index`.
    Place join(Path& path, std::uint32_t index) noexcept {
        constexpr std::uint32_t full_enough = leaf_slots - leaf_slots / 8;
        auto& step = path.steps[path.depth - 1];
        Leaf& leaf = *path.leaf;
        Leaf* left = step.index == 0 ? nullptr : leaf_at(step.node->children[step.index - 1]);
        Leaf* right = &leaf;
        if (left == nullptr || left->count + leaf.count > full_enough) {
            if (step.index == step.node->count) return settled(&leaf, index);
            left = &leaf;
            right = leaf_at(step.node->children[step.index + 1]);
            if (left->count + right->count > full_enough) return settled(&leaf, index);
        }
        if constexpr (has_heads) {
            const std::uint32_t same = in_common(left->key(0), right->key(right->count - 1U), left->skip);
            if (same < left->skip) set_skip(*left, same);
        }
        try {
            const std::uint8_t* const free_slots = left->order() + left->count;
            carry_all(*right, 0, *left, [free_slots](std::uint32_t i) -> std::uint32_t { return free_slots[i]; });
        } catch (...) {
            return settled(&leaf, index);  // nothing was carried; the leaves stay as they are
        }
        if (right == &leaf)
            index += left->count;
        else
            ++step.index;
        move_count(*step.node, step.index, step.index - 1);
        left->count = static_cast<std::uint16_t>(left->count + right->count);
        const Pointer gone = pointer_to(right);
        unlink(*right);
        free_leaf(gone);
        remove_child(path, path.depth - 1, true);
        return settled(left, index);
    }
    /// Child number `path.steps[depth].index`, which is free, leaves its node, and with it a separator beside it.
    void remove_child(Path& path, std::uint32_t depth, bool frees_fence) noexcept {
        Inner& inner = *path.steps[depth].node;
        const std::uint32_t index = path.steps[depth].index;
        if (inner.count == 0) {  // it was the only one
            const Pointer gone = pointer_to(&inner);
            free_inner(gone);
            remove_child(path, depth - 1, true);  // a root with one child isn't left standing
            return;
        }
        const std::uint32_t separator = index == 0 ? 0 : index - 1;
        if (frees_fence) free_fence(inner, separator);
        if (index == 0) set_child(inner, 0, inner, 1);
        move_entries(inner, separator + 1, inner.count - separator - 1, inner, separator);
        --inner.count;
        if (depth == 0)
            drop_empty_roots();
        else if (inner.count < inner_separators / 4)
            join_inner(path, depth);
    }
    void join_inner(Path& path, std::uint32_t depth) noexcept {
        constexpr std::uint32_t full_enough = inner_separators - inner_separators / 8;
        Inner& inner = *path.steps[depth].node;
        auto& step = path.steps[depth - 1];
        std::uint32_t between = step.index;  // the separator between the two
        if (step.index != 0 && inner_at(step.node->children[step.index - 1])->count + inner.count < full_enough)
            --between;
        else if (step.index == step.node->count || inner.count + inner_at(step.node->children[step.index + 1])->count >= full_enough)
            return;
        Inner& left = *inner_at(step.node->children[between]);
        const Pointer gone = step.node->children[between + 1];
        Inner& right = *inner_at(gone);
        if constexpr (has_heads) {
            if (left.skip != 0) set_skip(left, 0, left.count, left.count);
            if (right.skip != 0) set_skip(right, 0, right.count, right.count);
        }
        set_fence(left, left.count, fence_of(*step.node, between), left.count + 1);
        set_child(left, left.count + 1, right, 0);
        move_count(*step.node, between + 1, between);
        move_entries(right, 0, right.count, left, left.count + 1);
        left.count += right.count + 1;
        choose_skip(left);
        free_inner(gone);
        step.index = between + 1;
        remove_child(path, depth - 1, false);
    }
    void free_below(const Pointer& node, std::uint32_t level) noexcept {
        if (level == 0) {
            Leaf& leaf = *leaf_at(node);
            if constexpr (is_apart || !std::is_trivially_destructible_v<K> || !std::is_trivially_destructible_v<V>)
                for (std::uint32_t i = 0; i != leaf.count; ++i) dispose_of_element(leaf, leaf.order()[i]);
            free_leaf(node);
            return;
        }
        Inner& inner = *inner_at(node);
        for (std::uint32_t i = 0; i <= inner.count; ++i) free_below(inner.children[i], level - 1);
        for (std::uint32_t i = 0; i != inner.count; ++i) free_fence(inner, i);
        free_inner(node);
    }
};

}  // namespace taiyen::ordered
