#pragma once
/// What leads to an element of a B+ tree: iterators, the pairs of references that they give, and the nodes that elements are taken out in.
///
/// Thread rule: as the container's.

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include <taiyen/ordered/detail/btree_nodes.hpp>

namespace taiyen::ordered {

/// An element of a map: what `*iterator` gives. A pair of references, which converts to a pair of values.
template <class K, class V>
struct ElementReference : std::pair<const K&, V&> {
    using std::pair<const K&, V&>::pair;
};

template <class Tree, class K, class V, bool IsConst>
class Iterator {
    static constexpr bool is_map = !std::is_same_v<V, Nothing>;
    using Element = std::conditional_t<is_map, std::pair<const K, V>, K>;
    using ApartReference = std::conditional_t<is_map && !IsConst, Element&, const Element&>;
    using Mapped = std::conditional_t<IsConst, const V, V>;
    using Place = typename Tree::Place;

public:
    using iterator_category = std::bidirectional_iterator_tag;
    using iterator_concept = std::bidirectional_iterator_tag;
    using difference_type = std::ptrdiff_t;
    using value_type = Element;
    using reference = std::conditional_t<Tree::is_apart, ApartReference, std::conditional_t<is_map, ElementReference<K, Mapped>, const K&>>;

    /// What `->` gives for a pair of references.
    struct Arrow {
        reference element;
        reference* operator->() noexcept { return &element; }
    };
    using pointer = std::conditional_t<Tree::has_values, Arrow, std::remove_reference_t<reference>*>;

    Iterator() noexcept = default;
    /// An iterator becomes a const_iterator.
    template <bool Other>
        requires(IsConst && !Other)
    Iterator(const Iterator<Tree, K, V, Other>& other) noexcept : at_(other.at_) {}  // NOLINT(google-explicit-constructor)

    reference operator*() const noexcept {
        if constexpr (Tree::has_values) {
            const std::uint8_t slot = at_.leaf->order()[at_.index];
            return reference(at_.leaf->keys()[slot], at_.leaf->values()[slot]);
        } else if constexpr (Tree::is_apart) {
            return *std::to_address(Tree::key_at(at_).element);
        } else {
            return Tree::key_at(at_);
        }
    }
    pointer operator->() const noexcept {
        if constexpr (Tree::has_values)
            return {**this};
        else
            return &**this;
    }
    Iterator& operator++() noexcept {
        Tree::next(at_);
        return *this;
    }
    Iterator operator++(int) noexcept {
        const Iterator before = *this;
        ++*this;
        return before;
    }
    Iterator& operator--() noexcept {
        Tree::previous(at_);
        return *this;
    }
    Iterator operator--(int) noexcept {
        const Iterator before = *this;
        --*this;
        return before;
    }
    template <bool Other>
    bool operator==(const Iterator<Tree, K, V, Other>& other) const noexcept {
        return at_ == other.at_;
    }

private:
    template <class, class, class, bool>
    friend class Iterator;
    template <class, class, class, class, bool, bool>
    friend class BTreeContainer;
    explicit Iterator(const Place& at) noexcept : at_(at) {}

    Place at_;
};

/// An element that was taken out of an ordered_map or its like: owns it, and the memory.
template <class K, class V, class Allocator>
class NodeHandle {
    using Traits = std::allocator_traits<Allocator>;
    using Pointer = typename Traits::pointer;
    static constexpr bool is_map = !std::is_same_v<V, Nothing>;

public:
    using allocator_type = Allocator;
    using key_type = K;
    using mapped_type = V;
    using value_type = typename Traits::value_type;

    NodeHandle() noexcept = default;
    NodeHandle(NodeHandle&& other) noexcept : element_(other.element_), allocator_(std::move(other.allocator_)) { other.forget(); }
    NodeHandle& operator=(NodeHandle&& other) noexcept {
        if (this == &other) return *this;
        drop();
        element_ = other.element_;
        if (other.allocator_) allocator_.emplace(*other.allocator_);
        other.forget();
        return *this;
    }
    ~NodeHandle() { drop(); }

    [[nodiscard]] bool empty() const noexcept { return element_ == nullptr; }
    explicit operator bool() const noexcept { return element_ != nullptr; }
    allocator_type get_allocator() const { return *allocator_; }
    /// May be assigned to.
    K& key() const
        requires is_map
    {
        return const_cast<K&>(element_->first);
    }
    V& mapped() const
        requires is_map
    {
        return element_->second;
    }
    K& value() const
        requires(!is_map)
    {
        return *element_;
    }
    void swap(NodeHandle& other) noexcept {
        NodeHandle taken(std::move(*this));
        *this = std::move(other);
        other = std::move(taken);
    }
    friend void swap(NodeHandle& a, NodeHandle& b) noexcept { a.swap(b); }

private:
    template <class, class, class, class, bool, bool>
    friend class BTreeContainer;
    NodeHandle(const Pointer& element, const Allocator& allocator) : element_(element), allocator_(allocator) {}
    void forget() noexcept {
        element_ = nullptr;
        allocator_.reset();
    }
    void drop() noexcept {
        if (element_ != nullptr) {
            Traits::destroy(*allocator_, std::to_address(element_));
            Traits::deallocate(*allocator_, element_, 1);
        }
        forget();
    }

    Pointer element_ = nullptr;
    std::optional<Allocator> allocator_;
};

}  // namespace taiyen::ordered

namespace std {

// Pairs of references and the pairs that they are made of: what algorithms of std::ranges ask for.
template <class K, class V, template <class> class Q1, template <class> class Q2>
struct basic_common_reference<taiyen::ordered::ElementReference<K, V>, pair<const K, remove_const_t<V>>, Q1, Q2> {
    using type = pair<const K&, const V&>;
};
template <class K, class V, template <class> class Q1, template <class> class Q2>
struct basic_common_reference<pair<const K, remove_const_t<V>>, taiyen::ordered::ElementReference<K, V>, Q1, Q2> {
    using type = pair<const K&, const V&>;
};

}  // namespace std
