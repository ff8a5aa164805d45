#pragma once
/// The B+ tree as it is read: keys looked up, elements counted, its nodes checked. What changes it: btree.hpp.
///
/// Thread rule: as the tree's.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

#include <taiyen/ordered/detail/btree_nodes.hpp>
#include <taiyen/ordered/detail/key_search.hpp>

namespace taiyen::ordered {

/// `V` is Nothing for sets.
template <class K, class V, class Compare, class Allocator, bool IsUnique>
class BTreeSearch : public BTreeNodes<K, V, Compare, Allocator> {
public:
    using Nodes = BTreeNodes<K, V, Compare, Allocator>;
    using Nodes::address_of;
    using Nodes::address_or_null;
    using Nodes::before;
    using Nodes::digests;
    using Nodes::first_key_below;
    using Nodes::has_heads;
    using Nodes::has_values;
    using Nodes::in_common;
    using Nodes::inner_at;
    using Nodes::inner_separators;
    using Nodes::is_apart;
    using Nodes::is_ranked;
    using Nodes::key_at;
    using Nodes::leaf_at;
    using Nodes::leaf_or_null;
    using Nodes::leaf_slots;
    using Nodes::prefetch_leaf;
    using Nodes::prefetch_node;
    using Nodes::separators_inline;
    using Nodes::settled;
    using Nodes::to_next_leaf;
    using typename Nodes::Digest;
    using typename Nodes::Digester;
    using typename Nodes::Inner;
    using typename Nodes::Leaf;
    using typename Nodes::LineAllocator;
    using typename Nodes::Path;
    using typename Nodes::Place;
    using typename Nodes::Pointer;

    const LineAllocator& allocator() const noexcept { return allocator_; }
    const Compare& compare() const noexcept { return compare_; }
    std::size_t size() const noexcept { return size_; }
    std::uint32_t height() const noexcept { return height_; }

    // Places.
    Place begin() const noexcept { return {leaf_or_null(first_), 0}; }
    Place end() const noexcept {
        Leaf* const last = leaf_or_null(last_);
        return {last, last == nullptr ? 0U : last->count};
    }
    /// Whether no two elements equal such a query: a transparent comparison may say of many keys that one does.
    template <class Q>
    static consteval bool finds_one() {
        if constexpr (!IsUnique)
            return false;
        else if constexpr (std::is_same_v<Q, K> || Digester::template takes<Q>)
            return true;
        else if constexpr (is_apart)
            return std::is_same_v<Q, std::remove_cvref_t<decltype(std::declval<const K&>().key())>>;
        else
            return false;
    }
    // Look-up. Complexity: logarithmic; a node costs the cache lines of its digests, fetched at once, and one line of its order.
    template <class Q>
    Place lower_bound(const Q& key) const {
        if (root_ == nullptr) return {};
        const Query<Q> query(key);
        Leaf* const leaf = descend<finds_one<Q>()>(query);
        return settled(leaf, rank<false>(*leaf, query));
    }
    template <class Q>
    Place upper_bound(const Q& key) const {
        if (root_ == nullptr) return {};
        const Query<Q> query(key);
        Leaf* const leaf = descend<true>(query);
        return settled(leaf, rank<true>(*leaf, query));
    }
    template <class Q>
    Place find(const Q& key) const {
        if (root_ == nullptr) return {};
        const Query<Q> query(key);
        Leaf* const leaf = descend<finds_one<Q>()>(query);
        const Place at = settled(leaf, rank<false>(*leaf, query));
        return at.index < at.leaf->count && is_equal(at, query) ? at : end();
    }
    /// Finds keys in groups whose cache misses overlap (as in Kocberber, Falsafi, Grot, "Asynchronous memory access chaining", VLDB 2015): `found(number, place)` for each key, in their order.
    template <class Q, class Found>
    void find_many(std::span<const Q> keys, Found&& found) const {
        constexpr std::size_t group = 16;
        for (std::size_t first = 0; first < keys.size(); first += group) {
            const std::size_t count = std::min(group, keys.size() - first);
            if (root_ == nullptr) {
                for (std::size_t i = 0; i != count; ++i) found(first + i, Place());
                continue;
            }
            void* nodes[group];
            std::fill_n(nodes, count, address_of(root_));
            for (std::uint32_t level = height_; level != 0; --level) {
                for (std::size_t i = 0; i != count; ++i) {
                    const Inner& inner = *static_cast<const Inner*>(nodes[i]);
                    nodes[i] = address_of(inner.children[rank<finds_one<Q>()>(inner, Query<Q>(keys[first + i]))]);
                    prefetch_node(nodes[i], level == 1);
                }
            }
            Place places[group];
            for (std::size_t i = 0; i != count; ++i) {
                Leaf* const leaf = static_cast<Leaf*>(nodes[i]);
                const Query<Q> query(keys[first + i]);
                const Place at = settled(leaf, rank<false>(*leaf, query));
                places[i] = at.index < at.leaf->count && is_equal(at, query) ? at : end();
                if constexpr (is_apart) {
                    if (places[i].index < places[i].leaf->count) __builtin_prefetch(std::to_address(key_at(places[i]).element));
                } else if constexpr (has_values) {
                    if (places[i].index < places[i].leaf->count) __builtin_prefetch(&places[i].leaf->value(places[i].index));
                }
            }
            for (std::size_t i = 0; i != count; ++i) found(first + i, places[i]);
        }
    }

    // Order statistics, of ranked trees. Complexity: logarithmic.
    /// How many elements are less than the key; with Upper: not greater.
    template <bool Upper, class Q>
    std::size_t count_before(const Q& key) const
        requires is_ranked
    {
        if (root_ == nullptr) return 0;
        const Query<Q> query(key);
        Path path;
        locate<Upper || finds_one<Q>()>(path, query);
        return count_before(path) + rank<Upper>(*path.leaf, query);
    }
    /// How many elements are in front of a place. Where many leaves hold its key, linear in them.
    std::size_t count_before(const Place& at) const
        requires is_ranked
    {
        if (at.leaf == nullptr) return 0;
        Path path;
        path_to(path, at);
        return count_before(path) + at.index;
    }
    /// The place that many elements are in front of; the end, if there are no more.
    Place place_behind(std::size_t count) const noexcept
        requires is_ranked
    {
        if (count >= size_) return end();
        void* node = address_of(root_);
        for (std::uint32_t level = height_; level != 0; --level) {
            const Inner& inner = *static_cast<const Inner*>(node);
            std::uint32_t i = 0;
            for (; count >= inner.counts.of[i]; ++i) count -= inner.counts.of[i];
            node = address_of(inner.children[i]);
        }
        return {static_cast<Leaf*>(node), static_cast<std::uint32_t>(count)};
    }

    /// Whether everything is where it should be, for tests.
    bool is_sound() const {
        if (root_ == nullptr) return size_ == 0 && height_ == 0 && first_ == nullptr && last_ == nullptr;
        Walk walk;
        if (!is_sound_below(root_, height_, walk)) return false;
        return walk.size == size_ && walk.last == address_of(last_) && leaf_at(last_)->next == nullptr;
    }
    /// Bytes of its nodes and separators.
    std::size_t node_bytes() const noexcept { return root_ == nullptr ? 0 : Nodes::bytes_below(root_, height_); }

    const Pointer& root() const noexcept { return root_; }
    const Pointer& first() const noexcept { return first_; }
    const Pointer& last() const noexcept { return last_; }

protected:
    BTreeSearch() noexcept(std::is_nothrow_default_constructible_v<LineAllocator> && std::is_nothrow_default_constructible_v<Compare>) = default;
    BTreeSearch(const Compare& compare, const LineAllocator& allocator) : compare_(compare), allocator_(allocator) {}
    BTreeSearch(const Compare& compare, LineAllocator&& allocator) : compare_(compare), allocator_(std::move(allocator)) {}
    BTreeSearch(const BTreeSearch&) = delete;
    BTreeSearch& operator=(const BTreeSearch&) = delete;
    ~BTreeSearch() = default;

    /// A key that is looked for.
    template <class Q>
    struct Query {
        static constexpr bool has_digest = Digester::template takes<Q>;
        explicit Query(const Q& wanted) : key(wanted) {
            if constexpr (has_digest) digest = Digester::of(wanted);
        }
        const Q& key;
        Digest digest{};
    };

    template <class A, class B>
    bool is_before(const A& a, const B& b) const {
        return static_cast<bool>(compare_(a, b));
    }
    Place last_place() const noexcept {
        Leaf* const last = leaf_at(last_);
        return {last, last->count - 1U};
    }

    // Searching within a node.

    /// First of the numbers in [from, to) whose key is not less than the query's; with Upper: greater.
    template <bool Upper, class KeyOf, class Q>
    std::uint32_t bisect(std::uint32_t from, std::uint32_t to, const KeyOf& key_of, const Query<Q>& query) const {
        while (from != to) {
            const std::uint32_t middle = (from + to) / 2;
            bool is_left = false;
            if constexpr (Upper)
                is_left = !is_before(query.key, key_of(middle));
            else
                is_left = is_before(key_of(middle), query.key);
            if (is_left)
                from = middle + 1;
            else
                to = middle;
        }
        return from;
    }
    template <bool Upper, class KeyOf, class Q>
    std::uint32_t rank_among(const Digest* of, std::uint32_t places, std::uint32_t count, [[maybe_unused]] std::uint32_t skip, const KeyOf& key_of,
                             const Query<Q>& query) const {
        if constexpr (has_heads && Query<Q>::has_digest) {
            if (skip != 0) return rank_behind<Upper>(of, places, count, skip, key_of, query);
        }
        if constexpr (Digester::is_whole && Query<Q>::has_digest) {
            return std::min(count_below<Upper>(of, places, query.digest), count);
        } else if constexpr (digests == Digests::heads && Query<Q>::has_digest) {
            const std::uint32_t from = count_below<false>(of, places, query.digest);
            const std::uint32_t to = std::min(count_below<true>(of, places, query.digest), count);
            return bisect<Upper>(from, to, key_of, query);
        } else {
            return bisect<Upper>(0, count, key_of, query);
        }
    }
    /// Where heads leave `skip` bytes out. One key, which has to be read in any case if it is there, tells whether the query begins as all of them do.
    template <bool Upper, class KeyOf, class Q>
    std::uint32_t rank_behind(const Digest* of, std::uint32_t places, std::uint32_t count, std::uint32_t skip, const KeyOf& key_of,
                              const Query<Q>& query) const {
        if (count == 0) return 0;
        const Digest digest = Digester::of(query.key, skip);
        const std::uint32_t from = std::min(count_below<false>(of, places, digest), count);
        const std::uint32_t to = std::min(count_below<true>(of, places, digest), count);
        const int begins = Digester::text_of(query.key).substr(0, skip).compare(Digester::text_of(key_of(std::min(from, count - 1))).substr(0, skip));
        if (begins != 0) return begins < 0 ? 0 : count;
        return bisect<Upper>(from, to, key_of, query);
    }
    /// How many elements are less than the query; with Upper: not greater.
    template <bool Upper, class Q>
    std::uint32_t rank(const Leaf& leaf, const Query<Q>& query) const {
        return rank_among<Upper>(
            leaf.digest(), leaf.slots, leaf.count, leaf.skip, [&leaf](std::uint32_t i) -> const K& { return leaf.key(i); }, query);
    }
    template <bool Upper, class Q>
    std::uint32_t rank(const Inner& inner, const Query<Q>& query) const {
        const Digest* of = nullptr;
        if constexpr (digests != Digests::none) of = inner.digest.of;
        return rank_among<Upper>(of, inner.count, inner.count, inner.skip, [&inner](std::uint32_t i) -> const K& { return inner.key(i); }, query);
    }
    /// Whether the first element that is not less than the query equals it.
    template <class Q>
    bool is_equal(const Place& at, const Query<Q>& query) const {
        if constexpr (Digester::is_whole && Query<Q>::has_digest) {
            return at.leaf->digest()[at.leaf->order()[at.index]] == query.digest;
        } else {
            if constexpr (digests == Digests::heads && Query<Q>::has_digest) {
                if (at.leaf->skip == 0 && at.leaf->digest()[at.leaf->order()[at.index]] != query.digest) return false;
            }
            return !is_before(query.key, key_at(at));
        }
    }

    template <bool Upper, class Q>
    Leaf* descend(const Query<Q>& query) const {
        void* node = address_of(root_);
        for (std::uint32_t level = height_; level != 0; --level) {
            const Inner& inner = *static_cast<const Inner*>(node);
            node = address_of(inner.children[rank<Upper>(inner, query)]);
            if (level == 1) prefetch_leaf(node);
        }
        return static_cast<Leaf*>(node);
    }
    template <bool Upper, class Q>
    void locate(Path& path, const Query<Q>& query) const {
        path.depth = 0;
        void* node = address_of(root_);
        for (std::uint32_t level = height_; level != 0; --level) {
            Inner* const inner = static_cast<Inner*>(node);
            const std::uint32_t index = rank<Upper>(*inner, query);
            path.steps[path.depth++] = {inner, index};
            node = address_of(inner->children[index]);
        }
        path.leaf = static_cast<Leaf*>(node);
    }
    void locate_last(Path& path) const noexcept {
        path.depth = 0;
        void* node = address_of(root_);
        for (std::uint32_t level = height_; level != 0; --level) {
            Inner* const inner = static_cast<Inner*>(node);
            path.steps[path.depth++] = {inner, inner->count};
            node = address_of(inner->children[inner->count]);
        }
        path.leaf = static_cast<Leaf*>(node);
    }
    /// The path to a place's leaf. Where many leaves hold one key, it walks over them.
    void path_to(Path& path, const Place& at) const {
        if (at.index == at.leaf->count) {
            locate_last(path);
            return;
        }
        const Query<K> query(key_at(at));
        locate<IsUnique>(path, query);
        while (path.leaf != at.leaf) to_next_leaf(path);
    }

    // Counts (N3), if there are any.
    static std::size_t count_before(const Path& path) noexcept {
        std::size_t count = 0;
        for (std::uint32_t depth = 0; depth != path.depth; ++depth) {
            const auto& [node, index] = path.steps[depth];
            for (std::uint32_t i = 0; i != index; ++i) count += node->counts.of[i];
        }
        return count;
    }
    static std::size_t elements_below(const Pointer& node, std::uint32_t level) noexcept {
        if (level == 0) return leaf_at(node)->count;
        const Inner& inner = *inner_at(node);
        std::size_t count = 0;
        for (std::uint32_t i = 0; i <= inner.count; ++i) count += inner.counts.of[i];
        return count;
    }

    [[no_unique_address]] Compare compare_;
    LineAllocator allocator_;
    Pointer root_ = nullptr;
    Pointer first_ = nullptr;
    Pointer last_ = nullptr;
    std::size_t size_ = 0;
    std::uint32_t height_ = 0;
    std::uint32_t zero_ = 0;

private:
    // For tests.
    struct Walk {
        std::size_t size = 0;
        const void* last = nullptr;
        const K* before = nullptr;
    };
    template <class Node>
    static Digest head_of(const Node& node, const K& key) noexcept {
        if constexpr (has_heads)
            return in_common(key, node.key(0), node.skip) == node.skip ? Digester::of(key, node.skip) : ~Digester::of(key, node.skip);
        return Digester::of(key);
    }
    bool is_sound_leaf(const Leaf& leaf, Walk& walk) const {
        if (leaf.count == 0 || leaf.count > leaf.slots || (height_ != 0 && leaf.slots != leaf_slots)) return false;
        if (address_or_null(leaf.previous) != walk.last || (walk.last == nullptr && &leaf != address_of(first_))) return false;
        bool met[256] = {};
        for (std::uint32_t i = 0; i != leaf.slots; ++i) {
            const std::uint8_t slot = leaf.order()[i];
            if (slot >= leaf.slots || std::exchange(met[slot], true)) return false;
            if (i >= leaf.count) {
                if constexpr (digests != Digests::none) {
                    if (leaf.digest()[slot] != Digester::none) return false;
                }
                continue;
            }
            const K& key = leaf.keys()[slot];
            if constexpr (digests == Digests::heads) {
                if (leaf.digest()[slot] != head_of(leaf, key)) return false;
            }
            if (walk.before != nullptr && (IsUnique ? !is_before(*walk.before, key) : is_before(key, *walk.before))) return false;
            walk.before = &key;
        }
        walk.size += leaf.count;
        walk.last = &leaf;
        return true;
    }
    bool is_sound_below(const Pointer& node, std::uint32_t level, Walk& walk) const {
        if (level == 0) return is_sound_leaf(*leaf_at(node), walk);
        const Inner& inner = *inner_at(node);
        if (inner.count > inner_separators || (level == height_ && inner.count == 0)) return false;
        for (std::uint32_t i = 0; i <= inner.count; ++i) {
            if (i != 0) {
                if constexpr (digests == Digests::heads) {
                    if (inner.digest[i - 1] != head_of(inner, inner.key(i - 1))) return false;
                }
                if (IsUnique ? !is_before(*walk.before, inner.key(i - 1)) : is_before(inner.key(i - 1), *walk.before)) return false;
            }
            const std::size_t size = walk.size;
            const K* const before_child = walk.before;
            if (!is_sound_below(inner.children[i], level - 1, walk)) return false;
            if (walk.size == size || walk.before == before_child) return false;
            if constexpr (is_ranked) {
                if (inner.counts.of[i] != walk.size - size) return false;
            }
            if (i == 0) continue;
            const K& first = first_key_below(inner.children[i], level - 1);
            if (is_before(first, inner.key(i - 1))) return false;
            if constexpr (is_apart) {
                if (first.element != inner.key(i - 1).element) return false;
            } else if constexpr (separators_inline) {
                if (std::memcmp(&first, &inner.key(i - 1), sizeof(K)) != 0) return false;
            }
        }
        return true;
    }
};

}  // namespace taiyen::ordered
