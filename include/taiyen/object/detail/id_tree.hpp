#pragma once
/// The directory of an object_id_set: a B+ tree (Bayer, McCreight, "Organization and maintenance of large ordered indices", 1972) from chunks to their ids.
///
/// (I1) Entries ascend, within a leaf and from leaf to leaf, and never cover the same chunk. All chunks that a leaf covers lie at or above the separator in front of it and below the one behind it.
/// (I2) An inner node knows how many ids lie below each child; the tree knows how many there are.
/// (I3) A leaf is never empty. Only the root may be a leaf of fewer than `leaf_entries` places.
/// (I4) Chunks with all their ids that follow one another in a leaf share one entry.
///
/// Everything that stores is a member of a template over the allocator: that keeps functions of instrumented programs apart from those of others.
/// Thread rule: external lock; concurrent reads are fine.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include <taiyen/base/check.hpp>
#include <taiyen/object/detail/id_chunk.hpp>

namespace taiyen::object {

/// How an entry keeps its ids. No kind is small: a word of them never looks like an address.
enum class Kind : std::uint8_t {
    few = 9,  ///< up to four values in the entry itself
    brief,    ///< up to two runs in the entry itself
    values,   ///< sorted values in a block
    runs,     ///< sorted runs in a block
    bitmap,   ///< a block of 8 KiB
    full      ///< all ids of one or more chunks, no memory
};

template <class Allocator>
class IdTree {
public:
    using WordAllocator = typename std::allocator_traits<Allocator>::template rebind_alloc<std::uint64_t>;
    using Traits = std::allocator_traits<WordAllocator>;
    using Pointer = typename Traits::pointer;

    static constexpr std::uint32_t leaf_entries = 50;
    static constexpr std::uint32_t inner_children = 42;
    static constexpr std::uint32_t depth_max = 16;
    static constexpr std::uint64_t no_values = ~0ULL;  ///< unused places within an entry: larger than any address

    /// An entry on its way.
    struct Entry {
        std::uint64_t key = 0;  ///< chunk << 16 | ids - 1
        Kind kind = Kind::few;
        std::uint32_t words = 0;  ///< size of the block
        std::uint32_t runs = 0;
        std::uint64_t word = 0;  ///< what lies in the entry itself; of `full`: the number of chunks
        Pointer block = nullptr;

        std::uint64_t chunk() const noexcept { return key >> 16U; }
        std::uint64_t ids() const noexcept { return kind == Kind::full ? word << 16U : (key & 0xffffU) + 1U; }
    };
    static Entry span(std::uint64_t chunk, std::uint64_t chunks) noexcept { return {chunk << 16U | 0xffffU, Kind::full, 0, 0, chunks, nullptr}; }

    /// A node at the bottom. Behind it lie `capacity` keys, slots and descriptions.
    struct Leaf {
        Pointer previous;
        Pointer next;
        std::uint32_t count;
        std::uint32_t capacity;

        std::uint64_t* keys() noexcept { return reinterpret_cast<std::uint64_t*>(this + 1); }
        const std::uint64_t* keys() const noexcept { return reinterpret_cast<const std::uint64_t*>(this + 1); }
        std::uint64_t* slot(std::uint32_t i) noexcept { return keys() + capacity + std::size_t{i} * slot_words; }
        const std::uint64_t* slot(std::uint32_t i) const noexcept { return keys() + capacity + std::size_t{i} * slot_words; }
        std::uint32_t* about() noexcept { return reinterpret_cast<std::uint32_t*>(slot(capacity)); }
        const std::uint32_t* about() const noexcept { return reinterpret_cast<const std::uint32_t*>(slot(capacity)); }

        std::uint64_t chunk(std::uint32_t i) const noexcept { return keys()[i] >> 16U; }
        Kind kind(std::uint32_t i) const noexcept { return static_cast<Kind>(about()[i] & 15U); }
        std::uint32_t words(std::uint32_t i) const noexcept { return about()[i] >> 4U & 0xfffU; }
        std::uint32_t runs(std::uint32_t i) const noexcept { return about()[i] >> 16U; }
        std::uint32_t ids_in_chunk(std::uint32_t i) const noexcept { return static_cast<std::uint32_t>(keys()[i] & 0xffffU) + 1U; }
        std::uint64_t chunks(std::uint32_t i) const noexcept { return kind(i) == Kind::full ? *slot(i) : 1; }
        std::uint64_t ids(std::uint32_t i) const noexcept { return kind(i) == Kind::full ? *slot(i) << 16U : ids_in_chunk(i); }
        bool covers(std::uint32_t i, std::uint64_t wanted) const noexcept { return wanted - chunk(i) < chunks(i); }
        bool has_block(std::uint32_t i) const noexcept {
            const Kind what = kind(i);
            return what == Kind::values || what == Kind::runs || what == Kind::bitmap;
        }
        const Pointer& block(std::uint32_t i) const noexcept { return *std::launder(reinterpret_cast<const Pointer*>(slot(i))); }
        void* data(std::uint32_t i) noexcept { return has_block(i) ? static_cast<void*>(std::to_address(block(i))) : slot(i); }
        const void* data(std::uint32_t i) const noexcept { return has_block(i) ? static_cast<const void*>(std::to_address(block(i))) : slot(i); }
        /// The ids of its first chunk.
        ChunkView view(std::uint32_t i) const noexcept {
            switch (kind(i)) {
                case Kind::few:
                case Kind::values: return {Shape::values, ids_in_chunk(i), ids_in_chunk(i), data(i)};
                case Kind::brief:
                case Kind::runs: return {Shape::runs, runs(i), ids_in_chunk(i), data(i)};
                case Kind::bitmap: return {Shape::bitmap, 0, ids_in_chunk(i), data(i)};
                default: return full_view();
            }
        }
    };

    struct Inner {
        std::uint32_t count;
        std::uint32_t spare;
        std::uint64_t firsts[inner_children];  ///< no chunk of the child lies below; the first one counts as 0
        std::uint64_t totals[inner_children];
        Pointer children[inner_children];
    };

    /// From the root to a place between entries.
    struct Path {
        struct Step {
            Inner* node;
            std::uint32_t index;
        };
        Leaf* leaf = nullptr;  ///< null in an empty tree only
        std::uint32_t index = 0;
        std::uint32_t depth = 0;
        Step steps[depth_max];
    };

    IdTree() noexcept(std::is_nothrow_default_constructible_v<WordAllocator>) = default;
    explicit IdTree(const WordAllocator& allocator) noexcept : allocator_(allocator) {}
    IdTree(IdTree&& other) noexcept : allocator_(std::move(other.allocator_)) { take(other); }
    IdTree(const IdTree&) = delete;
    IdTree& operator=(const IdTree&) = delete;
    ~IdTree() { clear(); }

    const WordAllocator& allocator() const noexcept { return allocator_; }
    std::uint64_t size() const noexcept { return size_; }
    bool empty() const noexcept { return root_ == nullptr; }

    /// Takes everything over; this tree is empty.
    void take(IdTree& other) noexcept {
        root_ = other.root_;
        size_ = other.size_;
        height_ = other.height_;
        other.root_ = nullptr;
        other.size_ = 0;
        other.height_ = 0;
    }
    void swap(IdTree& other) noexcept {
        if constexpr (Traits::propagate_on_container_swap::value) {
            using std::swap;
            swap(allocator_, other.allocator_);
        }
        const Pointer root = root_;
        const std::uint64_t size = size_;
        const std::uint32_t height = height_;
        root_ = other.root_;
        size_ = other.size_;
        height_ = other.height_;
        other.root_ = root;
        other.size_ = size;
        other.height_ = height;
    }
    void assign_allocator(const WordAllocator& allocator) noexcept { allocator_ = allocator; }

    void clear() noexcept {
        if (root_ != nullptr) free_below(root_, height_);
        root_ = nullptr;
        size_ = 0;
        height_ = 0;
    }

    /// Calls `visit(pointer)` with each word of the tree that is a pointer, for moving it: the one to a node before those in the node. Null ones, too.
    template <class Visit>
    void for_each_pointer(Visit&& visit) const {
        visit(root_);
        if (root_ != nullptr) pointers_below(root_, height_, visit);
    }

    const Leaf* first_leaf() const noexcept {
        if (root_ == nullptr) return nullptr;
        Pointer node = root_;
        for (std::uint32_t level = height_; level != 0; --level) node = inner_at(node)->children[0];
        return leaf_at(node);
    }
    const Leaf* last_leaf() const noexcept {
        if (root_ == nullptr) return nullptr;
        Pointer node = root_;
        for (std::uint32_t level = height_; level != 0; --level) {
            const Inner* const inner = inner_at(node);
            node = inner->children[inner->count - 1];
        }
        return leaf_at(node);
    }
    static Leaf* leaf_at(const Pointer& pointer) noexcept { return reinterpret_cast<Leaf*>(std::to_address(pointer)); }
    static Inner* inner_at(const Pointer& pointer) noexcept { return reinterpret_cast<Inner*>(std::to_address(pointer)); }
    static const Leaf* leaf_or_null(const Pointer& pointer) noexcept { return pointer == nullptr ? nullptr : leaf_at(pointer); }

    /// How many entries of the leaf begin at or before `chunk`.
    static std::uint32_t entries_not_above(const Leaf& leaf, std::uint64_t chunk) noexcept {
        const std::uint64_t* const keys = leaf.keys();
        // Chunks that all exist lie at their distance from the first one.
        const std::uint64_t guess = chunk - (keys[0] >> 16U);
        if (guess < leaf.count && keys[guess] >> 16U == chunk) return static_cast<std::uint32_t>(guess) + 1;
        return count_not_above(keys, leaf.count, chunk << 16U | 0xffffU);
    }

    struct Place {
        const Leaf* leaf;
        std::uint32_t index;  ///< entries that begin at or before the chunk
    };
    /// For readers. The tree isn't empty.
    Place find(std::uint64_t chunk) const noexcept {
        Pointer node = root_;
        for (std::uint32_t level = height_; level != 0; --level) {
            const Inner* const inner = inner_at(node);
            node = inner->children[count_not_above(inner->firsts + 1, inner->count - 1, chunk)];
        }
        const Leaf* const leaf = leaf_at(node);
        return {leaf, entries_not_above(*leaf, chunk)};
    }
    /// The same with the ids in front of the leaf.
    Place find(std::uint64_t chunk, std::uint64_t& ids_before) const noexcept {
        Pointer node = root_;
        for (std::uint32_t level = height_; level != 0; --level) {
            const Inner* const inner = inner_at(node);
            const std::uint32_t index = count_not_above(inner->firsts + 1, inner->count - 1, chunk);
            for (std::uint32_t i = 0; i < index; ++i) ids_before += inner->totals[i];
            node = inner->children[index];
        }
        const Leaf* const leaf = leaf_at(node);
        return {leaf, entries_not_above(*leaf, chunk)};
    }
    /// The leaf with the id that has `n` smaller ones; `n` becomes its number within the leaf.
    const Leaf* leaf_of_number(std::uint64_t& n) const noexcept {
        Pointer node = root_;
        for (std::uint32_t level = height_; level != 0; --level) {
            const Inner* const inner = inner_at(node);
            std::uint32_t index = 0;
            while (n >= inner->totals[index]) n -= inner->totals[index++];
            node = inner->children[index];
        }
        return leaf_at(node);
    }
    /// For writers: the place behind the entries that begin at or before `chunk`.
    void locate(Path& path, std::uint64_t chunk) const noexcept {
        path.depth = 0;
        if (root_ == nullptr) {
            path.leaf = nullptr;
            path.index = 0;
            return;
        }
        Pointer node = root_;
        for (std::uint32_t level = height_; level != 0; --level) {
            Inner* const inner = inner_at(node);
            const std::uint32_t index = count_not_above(inner->firsts + 1, inner->count - 1, chunk);
            path.steps[path.depth++] = {inner, index};
            node = inner->children[index];
        }
        path.leaf = leaf_at(node);
        path.index = entries_not_above(*path.leaf, chunk);
    }
    /// The beginning of the next leaf. False: there is none, the path is what it was.
    static bool to_next_leaf(Path& path) noexcept {
        if (path.leaf == nullptr || path.leaf->next == nullptr) return false;
        path.leaf = leaf_at(path.leaf->next);
        path.index = 0;
        std::uint32_t d = path.depth;
        while (path.steps[d - 1].index + 1 == path.steps[d - 1].node->count) --d;
        ++path.steps[d - 1].index;
        for (; d < path.depth; ++d) path.steps[d] = {inner_at(path.steps[d - 1].node->children[path.steps[d - 1].index]), 0};
        return true;
    }

    /// More (or, modulo 2^64, fewer) ids below the path.
    void add(const Path& path, std::uint64_t ids) noexcept {
        for (std::uint32_t d = 0; d < path.depth; ++d) path.steps[d].node->totals[path.steps[d].index] += ids;
        size_ += ids;
    }

    Pointer allocate(std::uint32_t words) { return Traits::allocate(allocator_, words); }
    void deallocate(const Pointer& block, std::uint32_t words) noexcept { Traits::deallocate(allocator_, block, words); }
    void release(const Leaf& leaf, std::uint32_t i) noexcept {
        if (leaf.has_block(i)) deallocate(leaf.block(i), leaf.words(i));
    }
    void release(const Entry& entry) noexcept {
        if (entry.block != nullptr) deallocate(entry.block, entry.words);
    }

    static void put(Leaf& leaf, std::uint32_t i, const Entry& entry) noexcept {
        leaf.keys()[i] = entry.key;
        describe(leaf, i, entry.kind, entry.words, entry.runs);
        if (entry.block != nullptr)
            ::new (static_cast<void*>(leaf.slot(i))) Pointer(entry.block);
        else
            *leaf.slot(i) = entry.word;
    }
    static void describe(Leaf& leaf, std::uint32_t i, Kind kind, std::uint32_t words, std::uint32_t runs) noexcept {
        leaf.about()[i] = static_cast<std::uint32_t>(kind) | words << 4U | runs << 16U;
    }

    /// Room for `count` (1 or 2) more entries in the leaf of `chunk`; the path leads there again. Strong: throws what the allocator throws.
    void make_room(Path& path, std::uint64_t chunk, std::uint32_t count) {
        if (path.leaf != nullptr && path.leaf->count + count <= path.leaf->capacity) return;
        if (path.leaf == nullptr) {
            root_ = new_leaf(root_places);
            path.leaf = leaf_at(root_);
            return;
        }
        if (path.leaf->capacity < leaf_entries)
            grow_root(path.leaf->capacity * 4 <= leaf_entries ? path.leaf->capacity * 4 : leaf_entries);
        else
            split(path, path.leaf->count / 2, path.leaf->chunk(path.leaf->count / 2));
        locate(path, chunk);
    }
    /// Puts an entry for a chunk that has none at its place, to which the path leads, also afterwards. Strong: throws what the allocator throws.
    void insert(Path& path, const Entry& entry) {
        if (path.leaf != nullptr && path.leaf->count == leaf_entries && path.index == leaf_entries && path.leaf->next == nullptr) {
            split(path, leaf_entries, entry.chunk());  // ascending ids leave full leaves behind
            path.leaf = leaf_at(path.leaf->next);
            put(*path.leaf, 0, entry);
            path.leaf->count = 1;
            locate(path, entry.chunk());
            --path.index;
            add(path, entry.ids());
            return;
        }
        make_room(path, entry.chunk(), 1);
        insert_here(path, entry);
    }
    /// The same where there is room.
    void insert_here(Path& path, const Entry& entry) noexcept {
        Leaf& leaf = *path.leaf;
        move_entries(leaf, path.index + 1, leaf, path.index, leaf.count - path.index);
        put(leaf, path.index, entry);
        ++leaf.count;
        add(path, entry.ids());
    }
    /// Takes entries of the path's leaf away, with their memory. Invalidates: the path.
    void remove(Path& path, std::uint32_t from, std::uint32_t count) noexcept {
        Leaf& leaf = *path.leaf;
        std::uint64_t ids = 0;
        for (std::uint32_t i = from; i < from + count; ++i) {
            ids += leaf.ids(i);
            release(leaf, i);
        }
        close_gap(leaf, from, count);
        add(path, 0 - ids);
        rebalance(path);
    }
    /// Joins the entry with full neighbours in its leaf. Invalidates: the path.
    void join_full(Path& path, std::uint32_t i) noexcept {
        Leaf& leaf = *path.leaf;
        bool joined = i + 1 < leaf.count && join(leaf, i);
        joined = (i != 0 && join(leaf, i - 1)) || joined;
        if (joined) rebalance(path);
    }
    /// What lies behind a leaf that now covers chunks up to `last` begins behind that.
    static void raise_next_separator(const Path& path, std::uint64_t last) noexcept {
        for (std::uint32_t d = path.depth; d-- != 0;) {
            const auto [node, index] = path.steps[d];
            if (index + 1 == node->count) continue;
            if (node->firsts[index + 1] <= last) node->firsts[index + 1] = last + 1;
            return;
        }
    }

    /// Whether the invariants hold; for tests.
    bool is_sound() const {
        const Leaf* last = nullptr;
        std::uint64_t end = 0;
        return root_ == nullptr ? size_ == 0 && height_ == 0
                                : is_sound(root_, height_, 0, ~0ULL, size_, last, end) && (last == nullptr || last->next == nullptr);
    }

    /// Bytes taken from the allocator.
    std::uint64_t memory_bytes() const noexcept { return root_ == nullptr ? 0 : words_below(root_, height_) * 8; }

private:
    static constexpr std::uint32_t slot_words = sizeof(Pointer) > 8 ? sizeof(Pointer) / 8 : 1;
    static constexpr std::uint32_t root_places = 3;
    static_assert(alignof(Pointer) <= 8 && sizeof(Pointer) % 8 == 0 && sizeof(Leaf) % 8 == 0);
    static constexpr std::uint32_t leaf_words(std::uint32_t capacity) noexcept {
        return static_cast<std::uint32_t>(sizeof(Leaf) / 8) + capacity * (1 + slot_words) + (capacity + 1) / 2;
    }
    static constexpr std::uint32_t inner_words = sizeof(Inner) / 8;

    static Pointer pointer_to(Leaf* leaf) noexcept { return std::pointer_traits<Pointer>::pointer_to(*reinterpret_cast<std::uint64_t*>(leaf)); }

    Pointer new_leaf(std::uint32_t capacity) {
        const Pointer memory = allocate(leaf_words(capacity));
        ::new (static_cast<void*>(std::to_address(memory))) Leaf{nullptr, nullptr, 0, capacity};
        return memory;
    }
    Pointer new_inner() {
        const Pointer memory = allocate(inner_words);
        Inner* const node = ::new (static_cast<void*>(std::to_address(memory))) Inner;
        node->count = 0;
        node->spare = 0;
        return memory;
    }

    static void move_entries(Leaf& to, std::uint32_t at, Leaf& from, std::uint32_t first, std::uint32_t count) noexcept {
        if (count == 0) return;
        std::memmove(to.keys() + at, from.keys() + first, count * sizeof(std::uint64_t));
        if constexpr (std::is_pointer_v<Pointer>) {
            std::memmove(to.slot(at), from.slot(first), count * sizeof(std::uint64_t));
        } else {
            const bool backward = &to == &from && at > first;
            for (std::uint32_t k = 0; k < count; ++k) {
                const std::uint32_t i = backward ? count - 1 - k : k;
                if (from.has_block(first + i)) {
                    const Pointer block = from.block(first + i);
                    ::new (static_cast<void*>(to.slot(at + i))) Pointer(block);
                } else {
                    *to.slot(at + i) = *from.slot(first + i);
                }
            }
        }
        std::memmove(to.about() + at, from.about() + first, count * sizeof(std::uint32_t));
    }
    static void close_gap(Leaf& leaf, std::uint32_t from, std::uint32_t count) noexcept {
        move_entries(leaf, from, leaf, from + count, leaf.count - from - count);
        leaf.count -= count;
    }
    /// Joins entry i with the next one if both are full and nothing lies between.
    static bool join(Leaf& leaf, std::uint32_t i) noexcept {
        if (leaf.kind(i) != Kind::full || leaf.kind(i + 1) != Kind::full || leaf.chunk(i) + leaf.chunks(i) != leaf.chunk(i + 1)) return false;
        *leaf.slot(i) += *leaf.slot(i + 1);
        close_gap(leaf, i + 1, 1);
        return true;
    }

    void grow_root(std::uint32_t capacity) {
        const Pointer made = new_leaf(capacity);
        Leaf& from = *leaf_at(root_);
        Leaf& to = *leaf_at(made);
        move_entries(to, 0, from, 0, from.count);
        to.count = from.count;
        deallocate(root_, leaf_words(from.capacity));
        root_ = made;
    }

    /// Memory for all nodes that a split needs, taken before anything changes.
    struct Reserve {
        IdTree& tree;
        Pointer leaf = nullptr;
        Pointer inner[depth_max + 1] = {};
        std::uint32_t count = 0;

        explicit Reserve(IdTree& owner) noexcept : tree(owner) {}
        Reserve(const Reserve&) = delete;
        Reserve& operator=(const Reserve&) = delete;
        ~Reserve() {
            if (leaf != nullptr) tree.deallocate(leaf, leaf_words(leaf_entries));
            while (count != 0) tree.deallocate(inner[--count], inner_words);
        }
    };

    /// Entries from `keep` on move to a new leaf behind this one, before which `separator` stands. Invalidates: the steps of the path.
    void split(Path& path, std::uint32_t keep, std::uint64_t separator) {
        Reserve reserve(*this);
        std::uint32_t d = path.depth;
        while (d != 0 && path.steps[d - 1].node->count == inner_children) --d;
        const std::uint32_t wanted = path.depth - d + (d == 0 ? 1 : 0);
        TAIYEN_CHECK(height_ + 1 < depth_max);
        while (reserve.count < wanted) {
            reserve.inner[reserve.count] = new_inner();
            ++reserve.count;
        }
        reserve.leaf = new_leaf(leaf_entries);
        // From here on nothing throws.
        Leaf& left = *path.leaf;
        const Pointer added = reserve.leaf;
        reserve.leaf = nullptr;
        Leaf& right = *leaf_at(added);
        move_entries(right, 0, left, keep, left.count - keep);
        right.count = left.count - keep;
        left.count = keep;
        right.previous = pointer_to(&left);
        right.next = left.next;
        if (left.next != nullptr) leaf_at(left.next)->previous = added;
        left.next = added;
        std::uint64_t moved = 0;
        for (std::uint32_t i = 0; i < right.count; ++i) moved += right.ids(i);
        add_child(path, path.depth, separator, moved, added, reserve, keep == leaf_entries);
    }

    /// A new child behind the one that the path takes at depth d - 1, of which it takes `ids` over.
    void add_child(Path& path, std::uint32_t d, std::uint64_t separator, std::uint64_t ids, Pointer child, Reserve& reserve,
                   bool ascending) noexcept {
        if (d == 0) {
            const Pointer made = reserve.inner[--reserve.count];
            Inner& top = *inner_at(made);
            top.count = 2;
            top.firsts[0] = 0;
            top.firsts[1] = separator;
            top.totals[0] = size_ - ids;
            top.totals[1] = ids;
            top.children[0] = root_;
            top.children[1] = child;
            root_ = made;
            ++height_;
            return;
        }
        Inner* node = path.steps[d - 1].node;
        std::uint32_t index = path.steps[d - 1].index;
        node->totals[index] -= ids;
        if (node->count < inner_children) {
            insert_child(*node, index + 1, separator, ids, child);
            return;
        }
        const Pointer made = reserve.inner[--reserve.count];
        Inner& right = *inner_at(made);
        const std::uint32_t keep = ascending && index + 1 == node->count ? inner_children : inner_children / 2;
        if (keep == inner_children) {
            right.count = 1;
            right.firsts[0] = separator;
            right.totals[0] = ids;
            right.children[0] = child;
        } else {
            move_children(right, 0, *node, keep, inner_children - keep);
            right.count = inner_children - keep;
            node->count = keep;
            if (index < keep)
                insert_child(*node, index + 1, separator, ids, child);
            else
                insert_child(right, index + 1 - keep, separator, ids, child);
        }
        std::uint64_t moved = 0;
        for (std::uint32_t i = 0; i < right.count; ++i) moved += right.totals[i];
        // What the node's parent counts below it still has the child's ids in it: they only moved within.
        add_child(path, d - 1, right.firsts[0], moved, made, reserve, ascending);
    }
    static void move_children(Inner& to, std::uint32_t at, Inner& from, std::uint32_t first, std::uint32_t count) noexcept {
        if (count == 0) return;
        std::memmove(to.firsts + at, from.firsts + first, count * sizeof(std::uint64_t));
        std::memmove(to.totals + at, from.totals + first, count * sizeof(std::uint64_t));
        if constexpr (std::is_pointer_v<Pointer>) {
            std::memmove(to.children + at, from.children + first, count * sizeof(Pointer));
        } else {
            const bool backward = &to == &from && at > first;
            for (std::uint32_t k = 0; k < count; ++k) {
                const std::uint32_t i = backward ? count - 1 - k : k;
                to.children[at + i] = from.children[first + i];
            }
        }
    }
    static void insert_child(Inner& node, std::uint32_t at, std::uint64_t first, std::uint64_t ids, const Pointer& child) noexcept {
        move_children(node, at + 1, node, at, node.count - at);
        node.firsts[at] = first;
        node.totals[at] = ids;
        node.children[at] = child;
        ++node.count;
    }

    /// After entries went: no empty nodes, and neighbours that together leave room become one.
    void rebalance(Path& path) noexcept {
        Leaf& leaf = *path.leaf;
        if (leaf.count == 0) {
            if (leaf.previous != nullptr) leaf_at(leaf.previous)->next = leaf.next;
            if (leaf.next != nullptr) leaf_at(leaf.next)->previous = leaf.previous;
            deallocate(pointer_to(&leaf), leaf_words(leaf.capacity));
            remove_child(path, path.depth, path.depth == 0 ? 0 : path.steps[path.depth - 1].index);
        } else if (path.depth != 0 && leaf.count < leaf_entries / 4) {
            Inner& parent = *path.steps[path.depth - 1].node;
            const std::uint32_t index = path.steps[path.depth - 1].index;
            if (!merge_leaves(path, parent, index) && index != 0) merge_leaves(path, parent, index - 1);
        }
    }
    bool merge_leaves(Path& path, Inner& parent, std::uint32_t left_index) noexcept {
        if (left_index + 1 >= parent.count) return false;
        Leaf& left = *leaf_at(parent.children[left_index]);
        Leaf& right = *leaf_at(parent.children[left_index + 1]);
        if (left.count + right.count > leaf_entries * 3 / 4) return false;
        const std::uint32_t seam = left.count;
        move_entries(left, seam, right, 0, right.count);
        left.count += right.count;
        join(left, seam - 1);
        left.next = right.next;
        if (right.next != nullptr) leaf_at(right.next)->previous = pointer_to(&left);
        deallocate(parent.children[left_index + 1], leaf_words(right.capacity));
        parent.totals[left_index] += parent.totals[left_index + 1];
        remove_child(path, path.depth, left_index + 1);
        return true;
    }
    /// Forgets a child of the node at depth d - 1 of the path, whose memory is free already and whose ids are counted elsewhere or gone.
    void remove_child(Path& path, std::uint32_t d, std::uint32_t index) noexcept {
        if (d == 0) {
            root_ = nullptr;
            height_ = 0;
            return;
        }
        Inner& node = *path.steps[d - 1].node;
        move_children(node, index, node, index + 1, node.count - index - 1);
        --node.count;
        const std::uint32_t own = d == 1 ? 0 : path.steps[d - 2].index;
        if (node.count == 0) {
            const Pointer gone = d == 1 ? root_ : path.steps[d - 2].node->children[own];
            deallocate(gone, inner_words);
            remove_child(path, d - 1, own);
        } else if (d == 1) {
            if (node.count == 1) {
                const Pointer gone = root_;
                root_ = node.children[0];
                deallocate(gone, inner_words);
                --height_;
            }
        } else if (node.count < inner_children / 4) {
            Inner& parent = *path.steps[d - 2].node;
            if (!merge_inner(path, d - 1, parent, own) && own != 0) merge_inner(path, d - 1, parent, own - 1);
        }
    }
    bool merge_inner(Path& path, std::uint32_t d, Inner& parent, std::uint32_t left_index) noexcept {
        if (left_index + 1 >= parent.count) return false;
        Inner& left = *inner_at(parent.children[left_index]);
        Inner& right = *inner_at(parent.children[left_index + 1]);
        if (left.count + right.count > inner_children * 3 / 4) return false;
        right.firsts[0] = parent.firsts[left_index + 1];
        move_children(left, left.count, right, 0, right.count);
        left.count += right.count;
        deallocate(parent.children[left_index + 1], inner_words);
        parent.totals[left_index] += parent.totals[left_index + 1];
        remove_child(path, d, left_index + 1);
        return true;
    }

    template <class Visit>
    static void pointers_below(const Pointer& node, std::uint32_t level, Visit& visit) {
        if (level == 0) {
            const Leaf& leaf = *leaf_at(node);
            visit(leaf.previous);
            visit(leaf.next);
            for (std::uint32_t i = 0; i < leaf.count; ++i)
                if (leaf.has_block(i)) visit(leaf.block(i));
            return;
        }
        const Inner& inner = *inner_at(node);
        for (std::uint32_t i = 0; i < inner.count; ++i) {
            visit(inner.children[i]);
            pointers_below(inner.children[i], level - 1, visit);
        }
    }
    void free_below(const Pointer& node, std::uint32_t level) noexcept {
        if (level == 0) {
            const Leaf& leaf = *leaf_at(node);
            for (std::uint32_t i = 0; i < leaf.count; ++i) release(leaf, i);
            deallocate(node, leaf_words(leaf.capacity));
            return;
        }
        const Inner& inner = *inner_at(node);
        for (std::uint32_t i = 0; i < inner.count; ++i) free_below(inner.children[i], level - 1);
        deallocate(node, inner_words);
    }
    std::uint64_t words_below(const Pointer& node, std::uint32_t level) const noexcept {
        std::uint64_t words = 0;
        if (level == 0) {
            const Leaf& leaf = *leaf_at(node);
            words = leaf_words(leaf.capacity);
            for (std::uint32_t i = 0; i < leaf.count; ++i) words += leaf.has_block(i) ? leaf.words(i) : 0;
            return words;
        }
        const Inner& inner = *inner_at(node);
        for (std::uint32_t i = 0; i < inner.count; ++i) words += words_below(inner.children[i], level - 1);
        return words + inner_words;
    }
    bool is_sound(const Pointer& node, std::uint32_t level, std::uint64_t low, std::uint64_t high, std::uint64_t ids, const Leaf*& last,
                  std::uint64_t& end) const {
        std::uint64_t found = 0;
        if (level != 0) {
            const Inner& inner = *inner_at(node);
            if (inner.count == 0 || inner.count > inner_children) return false;
            for (std::uint32_t i = 0; i < inner.count; ++i) {
                const std::uint64_t from = i == 0 ? low : inner.firsts[i];
                const std::uint64_t to = i + 1 == inner.count ? high : inner.firsts[i + 1];
                if (from < low || from > to || !is_sound(inner.children[i], level - 1, from, to, inner.totals[i], last, end)) return false;
                found += inner.totals[i];
            }
            return found == ids;
        }
        const Leaf& leaf = *leaf_at(node);
        if (leaf.count == 0 || leaf.count > leaf.capacity || leaf_or_null(leaf.previous) != last ||
            (last != nullptr && leaf_or_null(last->next) != &leaf)) {
            return false;
        }
        for (std::uint32_t i = 0; i < leaf.count; ++i) {
            if (leaf.chunk(i) < end || leaf.chunk(i) < low || leaf.chunks(i) == 0) return false;
            end = leaf.chunk(i) + leaf.chunks(i);
            if (end > high || end > std::uint64_t{1} << 48U) return false;
            if (!is_well_formed(leaf.view(i)) || (leaf.ids_in_chunk(i) == chunk_ids) != (leaf.kind(i) == Kind::full)) return false;
            if (i != 0 && leaf.kind(i) == Kind::full && leaf.kind(i - 1) == Kind::full && leaf.chunk(i) == leaf.chunk(i - 1) + leaf.chunks(i - 1))
                return false;
            found += leaf.ids(i);
        }
        last = &leaf;
        return found == ids;
    }

    [[no_unique_address]] WordAllocator allocator_;
    Pointer root_ = nullptr;
    std::uint64_t size_ = 0;
    std::uint32_t height_ = 0;
};

}  // namespace taiyen::object
