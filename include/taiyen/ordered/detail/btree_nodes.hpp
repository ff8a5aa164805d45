#pragma once
/// What B+ trees are made of: the layout of leaves and inner nodes, places in them and paths to them.
///
/// A leaf keeps its elements in slots, keys apart from mapped values, and their order in one byte each: an insertion writes its slot and the bytes behind its place, nothing else moves.
/// (L1) The first `count` order bytes name the slots of the elements, in the order of keys; the others name the free slots.
/// (L2) Numbers and heads of free slots are not less than any: so a search counts over all slots.
/// (L3) No leaf is empty. Only the root may be a leaf of fewer than `leaf_slots`.
/// (P1) All keys of a leaf, and all separators of an inner node, have their first `skip` bytes in common; heads begin behind those.
/// (N1) An inner node of `count` separators has `count + 1` children. What lies below child i is not less than separator i - 1 and, if keys are unique, less than separator i; else not greater.
/// (N2) A separator that is a key's bytes is that of the first element to its right: where keys are pointers, it leads to something as long as theirs do.
/// (N3) If the tree is ranked, beside each child stands how many elements lie below it.
///
/// Thread rule: as the tree's.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>

#include <taiyen/ordered/detail/key_search.hpp>

namespace taiyen::ordered {

/// What nodes are made of: cache lines.
struct alignas(64) Line {
    std::byte bytes[64];
};

/// Stands for the mapped value of a set.
struct Nothing {};

/// `V` is Nothing for sets.
template <class K, class V, class Compare, class Allocator>
struct BTreeNodes {
    using LineAllocator = typename std::allocator_traits<Allocator>::template rebind_alloc<Line>;
    using Traits = std::allocator_traits<LineAllocator>;
    using Pointer = typename Traits::pointer;
    using KeyAllocator = typename std::allocator_traits<Allocator>::template rebind_alloc<K>;
    using KeyTraits = std::allocator_traits<KeyAllocator>;

    static constexpr bool has_values = !std::is_same_v<V, Nothing>;
    static constexpr bool is_apart = ordered::is_apart<K>;
    static constexpr Digests digests = digests_in_slots<K, Compare>();
    static constexpr bool is_ranked = ordered::is_ranked<Compare>;
    using Digester = DigestOf<K, digests>;
    using Digest = typename Digester::type;
    static constexpr bool has_heads = digests == Digests::heads && !Digester::is_whole;
    /// How an inner node keeps a separator whose digest is not all of it.
    static constexpr bool separators_inline = is_apart || (digests == Digests::none && std::is_trivially_copyable_v<K> && sizeof(K) <= 32);
    using Separator = std::conditional_t<separators_inline, K, typename KeyTraits::pointer>;

    static_assert(alignof(K) <= alignof(Line) && alignof(V) <= alignof(Line), "taiyen: keys and values of a B-tree may be aligned to 64 bytes");

    struct Leaf {
        Pointer previous;
        Pointer next;
        std::uint16_t count;
        std::uint16_t slots;
        std::uint8_t newest;  ///< slot of the element that was inserted last, which may be gone
        std::uint8_t run;     ///< so many times in a row, up to 255, an insertion went beside the one before it
        std::uint16_t skip;   ///< of heads (P1)

        Digest* digest() noexcept { return reinterpret_cast<Digest*>(this + 1); }
        const Digest* digest() const noexcept { return reinterpret_cast<const Digest*>(this + 1); }
        std::uint8_t* order() noexcept { return reinterpret_cast<std::uint8_t*>(this) + order_at(slots); }
        const std::uint8_t* order() const noexcept { return reinterpret_cast<const std::uint8_t*>(this) + order_at(slots); }
        K* keys() noexcept { return reinterpret_cast<K*>(reinterpret_cast<std::byte*>(this) + keys_at(slots)); }
        const K* keys() const noexcept { return reinterpret_cast<const K*>(reinterpret_cast<const std::byte*>(this) + keys_at(slots)); }
        V* values() noexcept { return reinterpret_cast<V*>(reinterpret_cast<std::byte*>(this) + values_at(slots)); }

        // Of the element with that number.
        const K& key(std::uint32_t i) const noexcept { return keys()[order()[i]]; }
        V& value(std::uint32_t i) noexcept { return values()[order()[i]]; }
    };

    // Where the parts of a leaf lie, in bytes from its beginning.
    static constexpr std::size_t aligned(std::size_t bytes, std::size_t alignment) noexcept {
        return (bytes + alignment - 1) / alignment * alignment;
    }
    static constexpr std::size_t order_at(std::size_t slots) noexcept {
        return sizeof(Leaf) + (digests == Digests::none ? 0 : slots * sizeof(Digest));
    }
    static constexpr std::size_t keys_at(std::size_t slots) noexcept {
        return digests == Digests::keys ? sizeof(Leaf) : aligned(order_at(slots) + slots, alignof(K));
    }
    static constexpr std::size_t values_at(std::size_t slots) noexcept {
        return aligned(digests == Digests::keys ? order_at(slots) + slots : keys_at(slots) + slots * sizeof(K), alignof(V));
    }
    static constexpr std::size_t leaf_bytes(std::size_t slots) noexcept { return values_at(slots) + (has_values ? slots * sizeof(V) : 0); }
    static constexpr std::size_t lines_of(std::size_t bytes) noexcept { return (bytes + sizeof(Line) - 1) / sizeof(Line); }

    static constexpr std::size_t slots_in(std::size_t bytes) noexcept {
        std::size_t slots = 0;
        while (slots < 255 && leaf_bytes(slots + 1) <= bytes) ++slots;
        return slots;
    }
    /// 2 KiB hold enough small elements; for others 4 KiB. Counting is for at most a KiB of digests.
    static constexpr std::size_t slots_wanted() noexcept {
        if constexpr (leaf_bytes_of<Compare> != 0) return std::max<std::size_t>(slots_in(leaf_bytes_of<Compare>), 8);
        constexpr std::size_t many = 96;
        constexpr std::size_t few = 8;
        std::size_t slots = slots_in(2048) >= many ? slots_in(2048) : slots_in(4096);
        if (digests != Digests::none) slots = std::min(slots, 1024 / sizeof(Digest));
        return std::max(slots, few);
    }
    /// How leaves hold elements, for who reads them without the types (src/shape/FORMAT.md).
    static constexpr std::uint64_t leaf_form =
        256 + (digests == Digests::none ? 0 : 4 * sizeof(Digest)) + (digests == Digests::keys ? 2 : 0) + (is_apart ? 1 : 0);
    static constexpr std::uint32_t leaf_slots = slots_wanted();
    static constexpr std::uint32_t first_slots = std::clamp<std::uint32_t>(slots_in(256), 2, leaf_slots);
    static constexpr std::uint32_t slots_growth = 4;

    static constexpr std::size_t separator_bytes() noexcept {
        return (digests == Digests::none ? 0 : sizeof(Digest)) + (digests == Digests::keys ? 0 : sizeof(Separator));
    }
    static constexpr std::size_t child_bytes = sizeof(Pointer) + (is_ranked ? sizeof(std::uint64_t) : 0);
    static constexpr std::uint32_t inner_separators = std::max<std::size_t>((2048 - 32 - child_bytes) / (separator_bytes() + child_bytes), 8);
    static constexpr std::uint32_t depth_max = 20;

    template <class T, bool Exists>
    struct Array {
        T of[inner_separators];
        T& operator[](std::uint32_t i) noexcept { return of[i]; }
        const T& operator[](std::uint32_t i) const noexcept { return of[i]; }
    };
    template <class T>
    struct Array<T, false> {};
    /// How many elements lie below each child.
    struct Counts {
        std::uint64_t of[inner_separators + 1];
    };
    struct NoCounts {};

    struct Inner {
        std::uint32_t count;
        std::uint32_t skip;  ///< of heads (P1)
        [[no_unique_address]] Array<Digest, digests != Digests::none> digest;
        [[no_unique_address]] Array<Separator, digests != Digests::keys> separator;
        Pointer children[inner_separators + 1];
        [[no_unique_address]] std::conditional_t<is_ranked, Counts, NoCounts> counts;

        const K& key(std::uint32_t i) const noexcept {
            if constexpr (digests == Digests::keys)
                return digest[i];
            else if constexpr (separators_inline)
                return separator[i];
            else
                return *separator[i];
        }
    };
    static constexpr std::size_t inner_lines = lines_of(sizeof(Inner));

    /// From the root to a leaf.
    struct Path {
        struct Step {
            Inner* node;
            std::uint32_t index;
        };
        Leaf* leaf = nullptr;  ///< null in an empty tree only
        std::uint32_t depth = 0;
        Step steps[depth_max];
    };
    /// An element, or the end: behind the last one of the last leaf.
    struct Place {
        Leaf* leaf = nullptr;
        std::uint32_t index = 0;
        bool operator==(const Place&) const = default;
    };

    /// A separator on its way. Its digest leaves nothing out.
    struct Fence {
        Digest digest{};
        [[no_unique_address]] std::conditional_t<digests == Digests::keys, Nothing, Separator> separator{};
    };
    static void* address_of(const Pointer& pointer) noexcept { return std::to_address(pointer); }
    static Leaf* leaf_at(const Pointer& pointer) noexcept { return reinterpret_cast<Leaf*>(std::to_address(pointer)); }
    static Inner* inner_at(const Pointer& pointer) noexcept { return reinterpret_cast<Inner*>(std::to_address(pointer)); }
    static Leaf* leaf_or_null(const Pointer& pointer) noexcept { return pointer == nullptr ? nullptr : leaf_at(pointer); }
    static Pointer pointer_to(void* node) noexcept { return std::pointer_traits<Pointer>::pointer_to(*static_cast<Line*>(node)); }
    static const void* address_or_null(const Pointer& pointer) noexcept { return pointer == nullptr ? nullptr : address_of(pointer); }

    // Places.
    static void next(Place& at) noexcept {
        if (++at.index == at.leaf->count && at.leaf->next != nullptr) at = {leaf_at(at.leaf->next), 0};
    }
    static void previous(Place& at) noexcept {
        if (at.index == 0) {
            at.leaf = leaf_at(at.leaf->previous);
            at.index = at.leaf->count;
        }
        --at.index;
    }
    /// The element at a place that may lie behind its leaf.
    static Place settled(Leaf* leaf, std::uint32_t index) noexcept {
        if (leaf != nullptr && index == leaf->count && leaf->next != nullptr) return {leaf_at(leaf->next), 0};
        return {leaf, index};
    }
    static const K& key_at(const Place& at) noexcept { return at.leaf->key(at.index); }
    static Place before(Place at) noexcept {
        previous(at);
        return at;
    }
    /// How many elements lie from `from` to `to`. Complexity: linear in leaves.
    static std::size_t distance(const Place& from, const Place& to) noexcept {
        std::size_t count = 0;
        Place at = from;
        while (at.leaf != to.leaf) {
            count += at.leaf->count - at.index;
            at = {leaf_at(at.leaf->next), 0};
        }
        return count + to.index - at.index;
    }

    // Paths.
    /// To the next leaf, which is there.
    static void to_next_leaf(Path& path) noexcept {
        std::uint32_t level = path.depth;
        do --level;
        while (path.steps[level].index == path.steps[level].node->count);
        ++path.steps[level].index;
        for (void* node = address_of(path.steps[level].node->children[path.steps[level].index]);;
             node = address_of(path.steps[level].node->children[0])) {
            if (++level == path.depth) {
                path.leaf = static_cast<Leaf*>(node);
                return;
            }
            path.steps[level] = {static_cast<Inner*>(node), 0};
        }
    }
    static bool is_last(const Path& path, std::uint32_t depth) noexcept {
        while (depth-- != 0)
            if (path.steps[depth].index != path.steps[depth].node->count) return false;
        return true;
    }

    // Nodes.
    static Fence fence_of(const Inner& inner, std::uint32_t i) noexcept {
        Fence fence;
        if constexpr (digests != Digests::none) fence.digest = inner.digest[i];
        if constexpr (has_heads) {
            if (inner.skip != 0) fence.digest = Digester::of(inner.key(i));
        }
        if constexpr (digests != Digests::keys) fence.separator = inner.separator[i];
        return fence;
    }
    /// How many bytes the keys begin with alike, up to `limit`.
    static std::uint32_t in_common(const K& a, const K& b, std::size_t limit) noexcept {
        const auto x = Digester::text_of(a);
        const auto y = Digester::text_of(b);
        limit = std::min({limit, x.size(), y.size()});
        std::uint32_t same = 0;
        while (same != limit && x[same] == y[same]) ++same;
        return same;
    }
    static const K& first_key_below(Pointer node, std::uint32_t level) noexcept {
        for (; level != 0; --level) node = Pointer(inner_at(node)->children[0]);
        return leaf_at(node)->key(0);
    }
    static std::size_t bytes_below(const Pointer& node, std::uint32_t level) noexcept {
        if (level == 0) return lines_of(leaf_bytes(leaf_at(node)->slots)) * sizeof(Line);
        const Inner& inner = *inner_at(node);
        std::size_t bytes = inner_lines * sizeof(Line);
        if constexpr (digests != Digests::keys && !separators_inline) bytes += inner.count * sizeof(K);
        for (std::uint32_t i = 0; i <= inner.count; ++i) bytes += bytes_below(inner.children[i], level - 1);
        return bytes;
    }
    /// The order bytes: they are read only when the digests have been.
    static void prefetch_leaf(const void* leaf) noexcept {
        const auto* const bytes = static_cast<const std::byte*>(leaf);
        __builtin_prefetch(bytes);
        for (std::size_t at = order_at(leaf_slots); at < order_at(leaf_slots) + leaf_slots; at += sizeof(Line)) __builtin_prefetch(bytes + at);
    }
    static void prefetch_node(const void* node, bool is_leaf) noexcept {
        const auto* const bytes = static_cast<const std::byte*>(node);
        const std::size_t searched = is_leaf ? order_at(leaf_slots) + leaf_slots : sizeof(Inner) - (inner_separators + 1) * child_bytes;
        for (std::size_t at = 0; at < searched; at += sizeof(Line)) __builtin_prefetch(bytes + at);
    }
};

}  // namespace taiyen::ordered
