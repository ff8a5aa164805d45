#pragma once
/// What btree_map, ordered_map and their like have in common: the members of the standard library's ordered containers, over a B+ tree (btree.hpp). What holds of them: ordered/btree_map.hpp.
///
/// Thread rule: as the standard containers.

#include <algorithm>
#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <memory>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>

#include <taiyen/base/check.hpp>
#include <taiyen/base/detail/export.hpp>
#include <taiyen/ordered/detail/btree.hpp>
#include <taiyen/ordered/detail/btree_iterator.hpp>

namespace taiyen::ordered {

/// Throws: std::out_of_range.
[[noreturn]] TAIYEN_EXPORT void throw_no_such_key();

/// What they have in common. `V` is Nothing for sets. IsApart: each element has a block of its own.
template <class K, class V, class Compare, class Allocator, bool IsUnique, bool IsApart = false>
class BTreeContainer {
protected:
    static constexpr bool is_map = !std::is_same_v<V, Nothing>;
    using Element = std::conditional_t<is_map, std::pair<const K, V>, K>;
    using Held = Apart<K, Element, Allocator>;
    using Tree =
        std::conditional_t<IsApart, BTree<Held, Nothing, Through<Compare, Held>, Allocator, IsUnique>, BTree<K, V, Compare, Allocator, IsUnique>>;
    using Place = typename Tree::Place;
    using Leaf = typename Tree::Leaf;

public:
    using key_type = K;
    using value_type = Element;
    using key_compare = Compare;
    using allocator_type = Allocator;
    using size_type = std::size_t;
    using difference_type = std::ptrdiff_t;
    using const_iterator = Iterator<Tree, K, V, true>;
    using iterator = std::conditional_t<is_map, Iterator<Tree, K, V, false>, const_iterator>;
    using reference = typename iterator::reference;
    using const_reference = typename const_iterator::reference;
    using pointer = typename iterator::pointer;
    using const_pointer = typename const_iterator::pointer;
    using reverse_iterator = std::reverse_iterator<iterator>;
    using const_reverse_iterator = std::reverse_iterator<const_iterator>;
    using node_type = NodeHandle<K, V, Allocator>;
    /// What inserting a node with a unique key gives.
    struct insert_return_type {
        iterator position;
        bool inserted = false;
        node_type node;
    };

    /// What this says of bytes in a heap: another number, another layout. From 2 on heads of text may begin behind its first byte.
    static constexpr std::uint64_t layout_version = !IsApart && digests_of<K, Compare>() == Digests::heads ? 2 : 1;

    static constexpr std::uint64_t leaf_form = Tree::leaf_form;

    static_assert(std::is_same_v<typename std::allocator_traits<Allocator>::value_type, value_type>,
                  "taiyen: the allocator's value_type is the container's: std::pair<const Key, Value>, or Key");
    static_assert(IsApart || std::is_copy_constructible_v<K>, "taiyen: keys of a B-tree can be copied");

    /// Compares elements by their keys.
    class value_compare {
    public:
        template <class A, class B>
        bool operator()(const A& a, const B& b) const {
            return compare_(key_of(a), key_of(b));
        }

    private:
        friend BTreeContainer;
        explicit value_compare(const Compare& compare) : compare_(compare) {}
        [[no_unique_address]] Compare compare_;
    };

    allocator_type get_allocator() const noexcept { return allocator_type(tree_.allocator()); }
    key_compare key_comp() const {
        if constexpr (IsApart)
            return tree_.compare().compare;
        else
            return tree_.compare();
    }
    value_compare value_comp() const { return value_compare(key_comp()); }

    iterator begin() noexcept { return iterator(tree_.begin()); }
    iterator end() noexcept { return iterator(tree_.end()); }
    const_iterator begin() const noexcept { return const_iterator(tree_.begin()); }
    const_iterator end() const noexcept { return const_iterator(tree_.end()); }
    const_iterator cbegin() const noexcept { return begin(); }
    const_iterator cend() const noexcept { return end(); }
    reverse_iterator rbegin() noexcept { return reverse_iterator(end()); }
    reverse_iterator rend() noexcept { return reverse_iterator(begin()); }
    const_reverse_iterator rbegin() const noexcept { return const_reverse_iterator(end()); }
    const_reverse_iterator rend() const noexcept { return const_reverse_iterator(begin()); }
    const_reverse_iterator crbegin() const noexcept { return rbegin(); }
    const_reverse_iterator crend() const noexcept { return rend(); }

    [[nodiscard]] bool empty() const noexcept { return tree_.size() == 0; }
    size_type size() const noexcept { return tree_.size(); }
    size_type max_size() const noexcept { return std::numeric_limits<difference_type>::max() / (sizeof(K) + sizeof(V)); }

    void clear() noexcept { tree_.clear(); }

    // Look-up: by keys, and with a transparent comparison by what compares with them.
    iterator find(const K& key) { return iterator(tree_.find(key)); }
    const_iterator find(const K& key) const { return const_iterator(tree_.find(key)); }
    bool contains(const K& key) const { return has(key); }
    size_type count(const K& key) const { return count_of(key); }
    iterator lower_bound(const K& key) { return iterator(tree_.lower_bound(key)); }
    const_iterator lower_bound(const K& key) const { return const_iterator(tree_.lower_bound(key)); }
    iterator upper_bound(const K& key) { return iterator(tree_.upper_bound(key)); }
    const_iterator upper_bound(const K& key) const { return const_iterator(tree_.upper_bound(key)); }
    std::pair<iterator, iterator> equal_range(const K& key) { return {lower_bound(key), upper_bound(key)}; }
    std::pair<const_iterator, const_iterator> equal_range(const K& key) const { return {lower_bound(key), upper_bound(key)}; }

    template <class Q, class C = Compare, class = typename C::is_transparent>
    iterator find(const Q& key) {
        return iterator(tree_.find(key));
    }
    template <class Q, class C = Compare, class = typename C::is_transparent>
    const_iterator find(const Q& key) const {
        return const_iterator(tree_.find(key));
    }
    template <class Q, class C = Compare, class = typename C::is_transparent>
    bool contains(const Q& key) const {
        return has(key);
    }
    template <class Q, class C = Compare, class = typename C::is_transparent>
    size_type count(const Q& key) const {
        return count_of(key);
    }
    template <class Q, class C = Compare, class = typename C::is_transparent>
    iterator lower_bound(const Q& key) {
        return iterator(tree_.lower_bound(key));
    }
    template <class Q, class C = Compare, class = typename C::is_transparent>
    const_iterator lower_bound(const Q& key) const {
        return const_iterator(tree_.lower_bound(key));
    }
    template <class Q, class C = Compare, class = typename C::is_transparent>
    iterator upper_bound(const Q& key) {
        return iterator(tree_.upper_bound(key));
    }
    template <class Q, class C = Compare, class = typename C::is_transparent>
    const_iterator upper_bound(const Q& key) const {
        return const_iterator(tree_.upper_bound(key));
    }
    template <class Q, class C = Compare, class = typename C::is_transparent>
    std::pair<iterator, iterator> equal_range(const Q& key) {
        return {lower_bound(key), upper_bound(key)};
    }
    template <class Q, class C = Compare, class = typename C::is_transparent>
    std::pair<const_iterator, const_iterator> equal_range(const Q& key) const {
        return {lower_bound(key), upper_bound(key)};
    }

    /// Finds many keys at once: `out[i]` becomes `find(keys[i])`. Their cache misses lie side by side: several times as fast as one by one where the tree is larger than the processor's
    /// caches. `out` is at least as long as `keys`.
    template <class Q>
    void find_many(std::span<const Q> keys, std::span<const_iterator> out) const {
        TAIYEN_CHECK(out.size() >= keys.size());
        tree_.find_many(keys, [&](std::size_t i, const Place& at) { out[i] = const_iterator(at); });
    }
    template <class Q>
    void find_many(std::span<const Q> keys, std::span<iterator> out)
        requires is_map
    {
        TAIYEN_CHECK(out.size() >= keys.size());
        tree_.find_many(keys, [&](std::size_t i, const Place& at) { out[i] = iterator(at); });
    }
    /// The same: `visit(i, element)` for each key that is there, in their order. `visit` doesn't change the container.
    template <class Q, class Visit>
    void for_each_found(std::span<const Q> keys, Visit&& visit) const {
        const Place last = tree_.end();
        tree_.find_many(keys, [&](std::size_t i, const Place& at) {
            if (at != last) visit(i, *const_iterator(at));
        });
    }

    // Order statistics, if the comparison is `ranked`. Complexity: logarithmic.
    /// How many elements are less than the key.
    size_type rank(const K& key) const
        requires Tree::is_ranked
    {
        return tree_.template count_before<false>(key);
    }
    template <class Q, class C = Compare, class = typename C::is_transparent>
    size_type rank(const Q& key) const
        requires Tree::is_ranked
    {
        return tree_.template count_before<false>(key);
    }
    /// The element that `number` others are in front of; `end()` if there are no more.
    iterator select(size_type number) noexcept
        requires Tree::is_ranked
    {
        return iterator(tree_.place_behind(number));
    }
    const_iterator select(size_type number) const noexcept
        requires Tree::is_ranked
    {
        return const_iterator(tree_.place_behind(number));
    }
    /// How many elements are in front of one, or of the end. Where equal keys fill many nodes, linear in those. Throws what the comparison throws.
    size_type index_of(const_iterator at) const
        requires Tree::is_ranked
    {
        return tree_.count_before(at.at_);
    }
    /// How many steps lead from one to the other; negative, if they go back.
    difference_type distance(const_iterator from, const_iterator to) const
        requires Tree::is_ranked
    {
        return static_cast<difference_type>(index_of(to)) - static_cast<difference_type>(index_of(from));
    }

    // Erasure.
    iterator erase(const_iterator at) { return iterator(tree_.erase(at.at_)); }
    iterator erase(iterator at)
        requires is_map
    {
        return iterator(tree_.erase(at.at_));
    }
    /// Complexity: linear in the elements erased and in leaves.
    iterator erase(const_iterator from, const_iterator to) {
        if (from == to) return iterator(to.at_);
        return iterator(tree_.erase(from.at_, Tree::distance(from.at_, to.at_)));
    }
    size_type erase(const K& key) { return erase_all(key); }
    template <class Q, class C = Compare, class = typename C::is_transparent>
        requires(!std::is_convertible_v<Q &&, iterator> && !std::is_convertible_v<Q &&, const_iterator>)
    size_type erase(Q&& key) {
        return erase_all(key);
    }
    /// Erases what `is_gone(element)` says; returns how many. Complexity: linear.
    template <class IsGone>
    size_type erase_if(IsGone is_gone) {
        const size_type before = size();
        for (iterator at = begin(); at != end();) {
            if (!is_gone(*at)) {
                ++at;
                continue;
            }
            iterator to = at;
            std::size_t run = 1;
            while (++to != end() && is_gone(*to)) ++run;
            at = iterator(tree_.erase(at.at_, run));
            if (at != end()) ++at;  // it was asked already
        }
        return before - size();
    }

    // Insertion.
    auto insert(const value_type& element) { return returned(insert_element(nullptr, element)); }
    auto insert(value_type&& element) { return returned(insert_element(nullptr, std::move(element))); }
    template <class P>
        requires(is_map && std::is_constructible_v<value_type, P &&>)
    auto insert(P&& element) {
        return returned(insert_element(nullptr, std::forward<P>(element)));
    }
    iterator insert(const_iterator hint, const value_type& element) { return iterator(insert_element(&hint.at_, element).at); }
    iterator insert(const_iterator hint, value_type&& element) { return iterator(insert_element(&hint.at_, std::move(element)).at); }
    template <class P>
        requires(is_map && std::is_constructible_v<value_type, P &&>)
    iterator insert(const_iterator hint, P&& element) {
        return iterator(insert_element(&hint.at_, std::forward<P>(element)).at);
    }
    /// Complexity: of an ascending range behind the last element linear.
    template <std::input_iterator It>
    void insert(It from, It to) {
        for (; from != to; ++from) {
            const Place end = tree_.end();
            insert_element(&end, *from);
        }
    }
    void insert(std::initializer_list<value_type> elements) { insert(elements.begin(), elements.end()); }
    template <class... A>
    auto emplace(A&&... arguments) {
        return returned(emplace_element(nullptr, std::forward<A>(arguments)...));
    }
    template <class... A>
    iterator emplace_hint(const_iterator hint, A&&... arguments) {
        return iterator(emplace_element(&hint.at_, std::forward<A>(arguments)...).at);
    }
    // Nodes, of containers whose elements lie apart: pointers and references to the element stay.
    node_type extract(const_iterator at)
        requires IsApart
    {
        node_type node(Tree::key_at(at.at_).element, get_allocator());
        // Should the comparison throw, it stays in the tree.
        Kept kept{&node};
        tree_.take_out(at.at_);
        kept.node = nullptr;
        return node;
    }
    /// Nothing if there is none.
    node_type extract(const K& key)
        requires IsApart
    {
        return extract_found(key);
    }
    template <class Q>
    node_type extract(const Q& key)
        requires(IsApart && !std::is_same_v<Q, K> && !std::is_convertible_v<const Q&, const_iterator> &&
                 requires { typename Compare::is_transparent; })
    {
        return extract_found(key);
    }
    /// Of a container with an equal allocator. A unique key that is there already leaves the node to whoever calls.
    auto insert(node_type&& node)
        requires IsApart
    {
        typename Tree::Inserted inserted{tree_.end(), false};
        if (!node.empty()) inserted = insert_node(nullptr, node.element_, node);
        if constexpr (IsUnique)
            return insert_return_type{iterator(inserted.at), inserted.is_new, std::move(node)};
        else
            return iterator(inserted.at);
    }
    iterator insert(const_iterator hint, node_type&& node)
        requires IsApart
    {
        return node.empty() ? end() : iterator(insert_node(&hint.at_, node.element_, node).at);
    }
    /// The place of an element that a program has a reference to. Complexity: logarithmic, and linear in equal keys.
    iterator iterator_to(const value_type& element)
        requires IsApart
    {
        return iterator(place_of(element));
    }
    const_iterator iterator_to(const value_type& element) const
        requires IsApart
    {
        return const_iterator(place_of(element));
    }

    /// Moves the elements of another container here whose keys aren't here yet, or all for a multimap or multiset; the others stay there.
    template <class C2, bool Unique2>
    void merge(BTreeContainer<K, V, C2, Allocator, Unique2, IsApart>& other) {
        if (static_cast<const void*>(this) == &other) return;
        if constexpr (IsApart) {
            if (Traits::is_always_equal::value || tree_.allocator() == other.tree_.allocator()) {
                for (auto at = other.tree_.begin(); at != other.tree_.end();) {
                    at = other.tree_.template hand_over<false>(at, [&](const Held& held) {
                        return tree_.insert(held.key(), [&](Leaf& leaf, std::uint32_t slot) { tree_.make_element(leaf, slot, held, no_value()); })
                            .is_new;
                    });
                }
                return;
            }
        }
        for (auto at = other.tree_.begin(); at != other.tree_.end();) {
            auto& leaf = *at.leaf;
            const std::uint8_t slot = leaf.order()[at.index];
            at = other.tree_.template hand_over<true>(at, [&](const auto&) {  // it finds the way before the key is moved
                const size_type before = size();
                insert_key(nullptr, std::move(key_in(leaf, slot)), moved_value(leaf, slot));
                return size() != before;
            });
        }
    }
    template <class C2, bool Unique2>
    void merge(BTreeContainer<K, V, C2, Allocator, Unique2, IsApart>&& other) {
        merge(other);
    }

    /// Moves the elements from there on to `to`, which is empty. Throws: HeapFull, std::bad_alloc, what copying throws; within one home nothing has changed then.
    /// Complexity: logarithmic, and linear in the leaves that go; between different homes linear, one by one.
    void split(const_iterator from, BTreeContainer& to) {
        TAIYEN_CHECK(to.empty() && this != &to);
        to.tree_.assign_compare(tree_.compare());
        if (Traits::is_always_equal::value || tree_.allocator() == to.tree_.allocator()) {
            tree_.split_off(from.at_, to.tree_);
            return;
        }
        if constexpr (std::is_copy_constructible_v<K>) {
            for (const_iterator at = from; at != end(); ++at) {
                const std::uint8_t slot = at.at_.leaf->order()[at.at_.index];
                to.append_one(std::as_const(key_in(*at.at_.leaf, slot)), std::move(value_in(*at.at_.leaf, slot)));
            }
            erase(from, end());
        } else {
            BTreeContainer taken(key_comp(), get_allocator());
            tree_.split_off(from.at_, taken.tree_);
            to.take(taken);
        }
    }

    /// Whether its nodes are as they should be. For tests.
    bool is_sound() const { return tree_.is_sound(); }
    /// Bytes of its nodes.
    size_type node_bytes() const noexcept { return tree_.node_bytes(); }
    /// For what moves and shows containers.
    const Tree& tree() const noexcept { return tree_; }

protected:
    template <class, class, class, class, bool, bool>
    friend class BTreeContainer;
    using LineAllocator = typename Tree::LineAllocator;
    using Traits = std::allocator_traits<LineAllocator>;
    using ElementTraits = std::allocator_traits<Allocator>;

    BTreeContainer() = default;
    BTreeContainer(const Compare& compare, const Allocator& allocator) : tree_({compare}, LineAllocator(allocator)) {}
    BTreeContainer(const BTreeContainer& other)
        : tree_(other.tree_.compare(), Traits::select_on_container_copy_construction(other.tree_.allocator())) {
        append_all(other);
    }
    BTreeContainer(const BTreeContainer& other, const Allocator& allocator) : tree_(other.tree_.compare(), LineAllocator(allocator)) {
        append_all(other);
    }
    BTreeContainer(BTreeContainer&& other) noexcept = default;
    BTreeContainer(BTreeContainer&& other, const Allocator& allocator) : tree_(other.tree_.compare(), LineAllocator(allocator)) { take(other); }
    BTreeContainer& operator=(const BTreeContainer& other) {
        if (this == &other) return *this;
        if constexpr (Traits::propagate_on_container_copy_assignment::value) {
            if (tree_.allocator() != other.tree_.allocator()) clear();
            tree_.assign_allocator(other.tree_.allocator());
        }
        BTreeContainer copy(other, get_allocator());
        replace_by(copy);
        return *this;
    }
    /// Between different homes elements are moved one by one.
    BTreeContainer& operator=(BTreeContainer&& other) noexcept(Traits::propagate_on_container_move_assignment::value ||
                                                               Traits::is_always_equal::value) {
        if (this == &other) return *this;
        clear();
        if constexpr (Traits::propagate_on_container_move_assignment::value) tree_.assign_allocator(other.tree_.allocator());
        tree_.assign_compare(other.tree_.compare());
        take(other);
        return *this;
    }
    ~BTreeContainer() = default;
    void assign(std::initializer_list<value_type> elements) {
        BTreeContainer made(key_comp(), get_allocator());
        made.insert(elements);
        replace_by(made);
    }
    template <class Q>
    node_type extract_found(const Q& key) {
        const Place at = tree_.lower_bound(key);
        if (at == tree_.end() || tree_.compare()(key, Tree::key_at(at))) return {};
        return extract(const_iterator(at));
    }
    void swap(BTreeContainer& other) noexcept { tree_.swap(other.tree_); }

    static K& key_in(auto& leaf, std::uint32_t slot) noexcept {
        if constexpr (IsApart)
            return const_cast<K&>(leaf.keys()[slot].key());
        else
            return leaf.keys()[slot];
    }
    static auto& value_in(auto& leaf, std::uint32_t slot) noexcept {
        if constexpr (IsApart && is_map)
            return leaf.keys()[slot].element->second;
        else
            return leaf.values()[slot];
    }
    template <class T>
    static const K& key_of(const T& element) noexcept {
        if constexpr (!is_map || std::is_same_v<T, K>)
            return element;
        else
            return element.first;
    }
    auto returned(const typename Tree::Inserted& inserted) {
        if constexpr (IsUnique)
            return std::pair<iterator, bool>(iterator(inserted.at), inserted.is_new);
        else
            return iterator(inserted.at);
    }
    template <class... A>
    auto make_value(A&&... arguments) {
        return [this, &arguments...](V* place) { Traits::construct(allocator_of(), place, std::forward<A>(arguments)...); };
    }
    static auto no_value() {
        return [](Nothing*) {};
    }
    auto moved_value(auto& leaf, std::uint8_t slot) {
        if constexpr (is_map)
            return make_value(std::move(value_in(leaf, slot)));
        else
            return no_value();
    }
    /// A copy of the tree's allocator, for constructing: what it makes has the home of its place.
    LineAllocator& allocator_of() { return const_cast<LineAllocator&>(tree_.allocator()); }

    /// An element on its way into a tree whose elements lie apart.
    struct Made {
        explicit Made(BTreeContainer& container) noexcept : owner(container) {}
        Made(const Made&) = delete;
        Made& operator=(const Made&) = delete;
        ~Made() {
            if (parts == 0) return;
            auto all = elements();
            if (parts == 3) ElementTraits::destroy(all, std::to_address(element));
            if (parts == 2) Traits::destroy(owner.allocator_of(), const_cast<K*>(&Held{element}.key()));
            ElementTraits::deallocate(all, element, 1);
        }
        Allocator elements() const noexcept { return Allocator(owner.tree_.allocator()); }
        template <class Key, class MakeValue>
        void make(Key&& key, MakeValue&& value) {
            auto all = elements();
            element = ElementTraits::allocate(all, 1);
            parts = 1;
            auto* const place = std::to_address(element);
            if constexpr (is_map) {
                Traits::construct(owner.allocator_of(), const_cast<K*>(std::addressof(place->first)), std::forward<Key>(key));
                parts = 2;
                value(std::addressof(place->second));
            } else {
                Traits::construct(owner.allocator_of(), place, std::forward<Key>(key));
            }
            parts = 3;
        }
        BTreeContainer& owner;
        typename Held::Pointer element = nullptr;
        int parts = 0;  ///< what there is: memory, a key, all of it
    };
    /// `enter(make)` puts an element of the tree's into it.
    template <class Key, class MakeValue, class Enter>
    auto enter_element(Key&& key, MakeValue&& value, Enter&& enter) {
        if constexpr (IsApart) {
            Made made(*this);
            const auto result = enter([&](Leaf& leaf, std::uint32_t slot) {
                made.make(std::forward<Key>(key), value);
                tree_.make_element(leaf, slot, Held{made.element}, no_value());
            });
            made.parts = 0;
            return result;
        } else {
            return enter([&](Leaf& leaf, std::uint32_t slot) { tree_.make_element(leaf, slot, std::forward<Key>(key), value); });
        }
    }
    /// Keeps an element in its tree while a node has it, too.
    struct Kept {
        node_type* node;
        ~Kept() {
            if (node != nullptr) node->forget();
        }
    };
    typename Tree::Inserted insert_node(const Place* hint, const typename Held::Pointer& element, node_type& node) {
        TAIYEN_CHECK(node.get_allocator() == get_allocator());
        const Held held{element};
        const auto make = [&](Leaf& leaf, std::uint32_t slot) { tree_.make_element(leaf, slot, held, no_value()); };
        const auto inserted = hint == nullptr ? tree_.insert(held.key(), make) : tree_.insert(*hint, held.key(), make);
        if (inserted.is_new) node.forget();
        return inserted;
    }
    Place place_of(const value_type& element) const {
        Place at = tree_.lower_bound(key_of(element));
        while (std::to_address(Tree::key_at(at).element) != std::addressof(element)) Tree::next(at);
        return at;
    }

    /// Inserts under a key of type K, or one that is looked up by itself and makes a K.
    template <class Key, class MakeValue>
    typename Tree::Inserted insert_key(const Place* hint, Key&& key, MakeValue&& value) {
        const auto& wanted = key;
        return enter_element(std::forward<Key>(key), value,
                             [&](const auto& make) { return hint == nullptr ? tree_.insert(wanted, make) : tree_.insert(*hint, wanted, make); });
    }
    template <class Key, class MakeValue>
    iterator insert_hinted(const_iterator hint, Key&& key, MakeValue&& value) {
        return iterator(insert_key(&hint.at_, std::forward<Key>(key), value).at);
    }
    template <class T>
    typename Tree::Inserted insert_element(const Place* hint, T&& element) {
        using Plain = std::remove_cvref_t<T>;
        if constexpr (!is_map) {
            if constexpr (std::is_same_v<Plain, K>) {
                return insert_key(hint, std::forward<T>(element), no_value());
            } else {
                K key(std::forward<T>(element));
                return insert_key(hint, std::move(key), no_value());
            }
        } else if constexpr (requires {
                                 requires std::is_same_v<std::remove_cvref_t<decltype(element.first)>, K>;
                                 element.second;
                             }) {
            return insert_key(hint, std::get<0>(std::forward<T>(element)), make_value(std::get<1>(std::forward<T>(element))));
        } else if constexpr (requires {
                                 element.first;
                                 element.second;
                             }) {
            K key(std::get<0>(std::forward<T>(element)));
            return insert_key(hint, std::move(key), make_value(std::get<1>(std::forward<T>(element))));
        } else {
            std::pair<K, V> made(std::forward<T>(element));
            return insert_key(hint, std::move(made.first), make_value(std::move(made.second)));
        }
    }
    template <class... A>
    typename Tree::Inserted emplace_element(const Place* hint, A&&... arguments) {
        if constexpr (sizeof...(A) == 1) {
            return insert_element(hint, std::forward<A>(arguments)...);
        } else if constexpr (!is_map) {
            K key(std::forward<A>(arguments)...);
            return insert_key(hint, std::move(key), no_value());
        } else if constexpr (sizeof...(A) == 0) {
            K key{};
            return insert_key(hint, std::move(key), make_value());
        } else if constexpr (sizeof...(A) == 2) {
            return emplace_two(hint, std::forward<A>(arguments)...);
        } else {
            return emplace_pieces(hint, std::forward<A>(arguments)...);
        }
    }
    template <class Key, class Value>
    typename Tree::Inserted emplace_two(const Place* hint, Key&& key, Value&& value) {
        if constexpr (std::is_same_v<std::remove_cvref_t<Key>, K>) {
            return insert_key(hint, std::forward<Key>(key), make_value(std::forward<Value>(value)));
        } else {
            K made(std::forward<Key>(key));
            return insert_key(hint, std::move(made), make_value(std::forward<Value>(value)));
        }
    }
    template <class... Ks, class... Vs>
    typename Tree::Inserted emplace_pieces(const Place* hint, std::piecewise_construct_t, std::tuple<Ks...> key, std::tuple<Vs...> value) {
        K made = std::make_from_tuple<K>(std::move(key));
        return insert_key(hint, std::move(made), [&](V* place) {
            std::apply([&](auto&... pieces) { Traits::construct(allocator_of(), place, std::forward<Vs>(pieces)...); }, value);
        });
    }

    template <class Q>
    bool has(const Q& key) const {
        const Place at = tree_.find(key);
        return at != tree_.end();
    }
    template <class Q>
    size_type count_of(const Q& key) const {
        if constexpr (IsUnique) {
            if constexpr (std::is_same_v<Q, K>) return has(key) ? 1 : 0;
        }
        if constexpr (Tree::is_ranked)
            return tree_.template count_before<true>(key) - tree_.template count_before<false>(key);
        else
            return Tree::distance(tree_.lower_bound(key), tree_.upper_bound(key));
    }
    template <class Q>
    size_type erase_all(const Q& key) {
        if constexpr (IsUnique && std::is_same_v<Q, K>) {
            const Place at = tree_.find(key);
            if (at == tree_.end()) return 0;
            tree_.erase(at);
            return 1;
        } else {
            const Place from = tree_.lower_bound(key);
            const size_type count = Tree::distance(from, tree_.upper_bound(key));
            if (count != 0) tree_.erase(from, count);
            return count;
        }
    }
    void append_all(const BTreeContainer& other) {
        for (auto at = other.tree_.begin(); at != other.tree_.end(); Tree::next(at)) {
            const std::uint8_t slot = at.leaf->order()[at.index];
            append_one(std::as_const(key_in(*at.leaf, slot)), std::as_const(value_in(*at.leaf, slot)));
        }
    }
    template <class Key, class Value>
    void append_one(Key&& key, [[maybe_unused]] Value&& value) {
        const auto append = [&](const auto& make) { return tree_.append(make); };
        if constexpr (is_map)
            enter_element(std::forward<Key>(key), make_value(std::forward<Value>(value)), append);
        else
            enter_element(std::forward<Key>(key), no_value(), append);
    }
    /// This one is empty.
    void take(BTreeContainer& other) {
        if (Traits::is_always_equal::value || tree_.allocator() == other.tree_.allocator()) {
            tree_.take(other.tree_);
            return;
        }
        // Should one throw, those that were moved before it have no order any more.
        const std::unique_ptr<BTreeContainer, Cleared> cleared(&other);
        for (auto at = other.tree_.begin(); at != other.tree_.end(); Tree::next(at)) {
            const std::uint8_t slot = at.leaf->order()[at.index];
            append_one(std::move(key_in(*at.leaf, slot)), std::move(value_in(*at.leaf, slot)));
        }
    }
    struct Cleared {
        void operator()(BTreeContainer* container) const noexcept { container->clear(); }
    };
    /// By one with an equal allocator.
    void replace_by(BTreeContainer& made) noexcept {
        clear();
        tree_.assign_compare(made.tree_.compare());
        tree_.take(made.tree_);
    }

    Tree tree_;
};

template <class K, class V, class C, class A, bool U, bool P>
bool operator==(const BTreeContainer<K, V, C, A, U, P>& a, const BTreeContainer<K, V, C, A, U, P>& b) {
    return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin());
}
template <class K, class V, class C, class A, bool U, bool P, class IsGone>
std::size_t erase_if(BTreeContainer<K, V, C, A, U, P>& container, IsGone is_gone) {
    return container.erase_if(std::move(is_gone));
}
/// What `a < b` of pairs would say, for elements that are pairs of references.
template <class K, class V, class C, class A, bool U, bool P>
auto operator<=>(const BTreeContainer<K, V, C, A, U, P>& a, const BTreeContainer<K, V, C, A, U, P>& b) {
    const auto order = []<class T>(const T& x, const T& y) {
        if constexpr (std::three_way_comparable<T>)
            return x <=> y;
        else
            return x < y ? std::weak_ordering::less : y < x ? std::weak_ordering::greater : std::weak_ordering::equivalent;
    };
    const auto element_order = [&](const auto& x, const auto& y) {
        if constexpr (std::is_same_v<V, Nothing>) {
            return order(x, y);
        } else {
            using Result = std::common_comparison_category_t<decltype(order(x.first, y.first)), decltype(order(x.second, y.second))>;
            if (const Result first = order(x.first, y.first); first != 0) return first;
            return Result(order(x.second, y.second));
        }
    };
    return std::lexicographical_compare_three_way(a.begin(), a.end(), b.begin(), b.end(), element_order);
}

/// The members of maps with unique keys.
template <class K, class V, class Compare, class Allocator, bool IsApart>
class UniqueMap : public BTreeContainer<K, V, Compare, Allocator, true, IsApart> {
    using Base = BTreeContainer<K, V, Compare, Allocator, true, IsApart>;

public:
    using mapped_type = V;
    using typename Base::const_iterator;
    using typename Base::iterator;

    /// Throws: std::out_of_range.
    V& at(const K& key) { return value_of(key); }
    const V& at(const K& key) const { return value_of(key); }
    template <class Q, class C = Compare, class = typename C::is_transparent>
    V& at(const Q& key) {
        return value_of(key);
    }
    template <class Q, class C = Compare, class = typename C::is_transparent>
    const V& at(const Q& key) const {
        return value_of(key);
    }
    V& operator[](const K& key) { return try_emplace(key).first->second; }
    V& operator[](K&& key) { return try_emplace(std::move(key)).first->second; }

    template <class... A>
    std::pair<iterator, bool> try_emplace(const K& key, A&&... arguments) {
        return this->returned(this->insert_key(nullptr, key, this->make_value(std::forward<A>(arguments)...)));
    }
    template <class... A>
    std::pair<iterator, bool> try_emplace(K&& key, A&&... arguments) {
        return this->returned(this->insert_key(nullptr, std::move(key), this->make_value(std::forward<A>(arguments)...)));
    }
    template <class... A>
    iterator try_emplace(const_iterator hint, const K& key, A&&... arguments) {
        return emplace_there(hint, key, std::forward<A>(arguments)...);
    }
    template <class... A>
    iterator try_emplace(const_iterator hint, K&& key, A&&... arguments) {
        return emplace_there(hint, std::move(key), std::forward<A>(arguments)...);
    }
    template <class M>
    std::pair<iterator, bool> insert_or_assign(const K& key, M&& value) {
        return put(try_emplace(key, std::forward<M>(value)), std::forward<M>(value));
    }
    template <class M>
    std::pair<iterator, bool> insert_or_assign(K&& key, M&& value) {
        return put(try_emplace(std::move(key), std::forward<M>(value)), std::forward<M>(value));
    }
    template <class M>
    iterator insert_or_assign(const_iterator, const K& key, M&& value) {
        return insert_or_assign(key, std::forward<M>(value)).first;
    }
    template <class M>
    iterator insert_or_assign(const_iterator, K&& key, M&& value) {
        return insert_or_assign(std::move(key), std::forward<M>(value)).first;
    }

protected:
    UniqueMap() = default;
    UniqueMap(const Compare& compare, const Allocator& allocator) : Base(compare, allocator) {}
    UniqueMap(const UniqueMap&) = default;
    UniqueMap(const UniqueMap& other, const Allocator& allocator) : Base(other, allocator) {}
    UniqueMap(UniqueMap&&) = default;
    UniqueMap(UniqueMap&& other, const Allocator& allocator) : Base(std::move(other), allocator) {}
    UniqueMap& operator=(const UniqueMap&) = default;
    UniqueMap& operator=(UniqueMap&&) = default;
    ~UniqueMap() = default;

private:
    template <class Q>
    V& value_of(const Q& key) const {
        const auto at = this->tree_.find(key);
        if (at == this->tree_.end()) throw_no_such_key();
        return this->value_in(*at.leaf, at.leaf->order()[at.index]);
    }
    template <class Key, class... A>
    iterator emplace_there(const_iterator hint, Key&& key, A&&... arguments) {
        return this->insert_hinted(hint, std::forward<Key>(key), this->make_value(std::forward<A>(arguments)...));
    }
    /// What was not made of the value is assigned it.
    template <class M>
    static std::pair<iterator, bool> put(std::pair<iterator, bool> inserted, M&& value) {
        if (!inserted.second) inserted.first->second = std::forward<M>(value);
        return inserted;
    }
};

}  // namespace taiyen::ordered
