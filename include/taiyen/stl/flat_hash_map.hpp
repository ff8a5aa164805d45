#pragma once
/// flat_hash_map and flat_hash_set: hash tables whose elements lie in one array (stl/flat_hash_table.hpp). They find twice as fast as unordered_map and unordered_set.
///
/// They have the interface of std::unordered_map and std::unordered_set, but for nodes (`extract`), buckets and `max_load_factor`, which is fixed, and the differences that follow from the array:
/// - Insertions and `rehash` may move elements: they invalidate iterators, pointers and references of the container. Erasures and assignments invalidate those of what is erased only.
/// - `begin()` and iteration pass slots that hold nothing: linear in `bucket_count()`.
/// - `clear()` and erasures keep the array; `rehash(0)` gives back what isn't needed.
///
/// Empty ones point to nothing. All memory comes from the allocator, so in a persistent heap they are saved, undone, rolled back and found again like any other container.
///
/// Exceptions: inserting an element and `rehash` either happen or change nothing, if moving elements doesn't throw or they can be copied. So do erasures, copies and assignments of containers.
/// Complexity: look-up, insertion and erasure constant, but for the insertion that needs a larger array, which is linear.
/// Thread rule: as the standard containers: concurrent reads are fine.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

#include <taiyen/base/detail/instrumented.hpp>
#include <taiyen/ordered/btree_map.hpp>
#include <taiyen/stl/detail/flat_hash_table.hpp>
#include <taiyen/stl/swap.hpp>

namespace taiyen {

namespace stl {

template <class Element, bool IsConst>
class FlatHashIterator {
public:
    using iterator_category = std::forward_iterator_tag;
    using difference_type = std::ptrdiff_t;
    using value_type = Element;
    using reference = std::conditional_t<IsConst, const Element&, Element&>;
    using pointer = std::conditional_t<IsConst, const Element*, Element*>;

    FlatHashIterator() noexcept = default;
    /// An iterator becomes a const_iterator.
    template <bool Other>
        requires(IsConst && !Other)
    FlatHashIterator(const FlatHashIterator<Element, Other>& other) noexcept  // NOLINT(google-explicit-constructor)
        : element_(other.element_), control_(other.control_), end_(other.end_) {}

    reference operator*() const noexcept { return *element_; }
    pointer operator->() const noexcept { return element_; }
    FlatHashIterator& operator++() noexcept {
        const std::int8_t* const next = ControlGroup::next_filled(control_ + 1, end_);
        element_ = next == end_ ? nullptr : element_ + (next - control_);
        control_ = next;
        return *this;
    }
    FlatHashIterator operator++(int) noexcept {
        const FlatHashIterator before = *this;
        ++*this;
        return before;
    }
    template <bool Other>
    bool operator==(const FlatHashIterator<Element, Other>& other) const noexcept {
        return element_ == other.element_;
    }

private:
    template <class, bool>
    friend class FlatHashIterator;
    template <class, class, class, class, class>
    friend class FlatHashContainer;
    FlatHashIterator(Element* element, const std::int8_t* control, const std::int8_t* end) noexcept
        : element_(element), control_(control), end_(end) {}

    Element* element_ = nullptr;  ///< null: the end
    const std::int8_t* control_ = nullptr;
    const std::int8_t* end_ = nullptr;
};

/// What both have in common. `V` is void for sets.
template <class K, class V, class Hash, class Equal, class Allocator>
class FlatHashContainer {
protected:
    using Table = FlatHashTable<K, V, Hash, Equal, Allocator>;
    static constexpr bool is_map = Table::has_values;
    static constexpr bool is_transparent = requires {
        typename Hash::is_transparent;
        typename Equal::is_transparent;
    };

public:
    using key_type = K;
    using value_type = typename Table::Element;
    using hasher = Hash;
    using key_equal = Equal;
    using allocator_type = Allocator;
    using size_type = std::size_t;
    using difference_type = std::ptrdiff_t;
    using const_iterator = FlatHashIterator<value_type, true>;
    using iterator = std::conditional_t<is_map, FlatHashIterator<value_type, false>, const_iterator>;
    using reference = typename iterator::reference;
    using const_reference = typename const_iterator::reference;
    using pointer = typename iterator::pointer;
    using const_pointer = typename const_iterator::pointer;

    /// What this says of bytes in a heap: another number, another layout.
    static constexpr std::uint64_t layout_version = 1;

    static_assert(std::is_same_v<typename std::allocator_traits<Allocator>::value_type, value_type>,
                  "taiyen: the allocator's value_type is the container's: std::pair<const Key, Value>, or Key");

    allocator_type get_allocator() const noexcept { return allocator_type(table_.allocator()); }
    hasher hash_function() const { return table_.hash(); }
    key_equal key_eq() const { return table_.equal(); }

    iterator begin() noexcept { return first<iterator>(); }
    iterator end() noexcept { return {}; }
    const_iterator begin() const noexcept { return first<const_iterator>(); }
    const_iterator end() const noexcept { return {}; }
    const_iterator cbegin() const noexcept { return begin(); }
    const_iterator cend() const noexcept { return end(); }

    [[nodiscard]] bool empty() const noexcept { return table_.size() == 0; }
    size_type size() const noexcept { return table_.size(); }
    size_type max_size() const noexcept { return Table::max_size(); }
    /// Slots for elements; no more than 7 of 8 are used.
    size_type bucket_count() const noexcept { return table_.slots(); }
    float load_factor() const noexcept { return empty() ? 0 : static_cast<float>(size()) / static_cast<float>(bucket_count()); }
    float max_load_factor() const noexcept { return .875F; }
    /// Changes nothing.
    void max_load_factor(float /*wanted*/) noexcept {}
    /// At least so many slots; of 0 no more than the elements need.
    void rehash(size_type slots) { table_.rehash(slots); }
    /// So many elements lie in it before an insertion moves any.
    void reserve(size_type count) { table_.reserve(count); }
    void clear() noexcept { table_.clear(); }

    // Look-up: by keys, and where hash and comparison are transparent by what they take.
    iterator find(const K& key) { return at_slot<iterator>(table_.find(key)); }
    const_iterator find(const K& key) const { return at_slot<const_iterator>(table_.find(key)); }
    bool contains(const K& key) const { return table_.find(key) != Table::npos; }
    size_type count(const K& key) const { return contains(key) ? 1 : 0; }
    std::pair<iterator, iterator> equal_range(const K& key) { return range_of(find(key)); }
    std::pair<const_iterator, const_iterator> equal_range(const K& key) const { return range_of(find(key)); }
    template <class Q>
        requires is_transparent
    iterator find(const Q& key) {
        return at_slot<iterator>(table_.find(key));
    }
    template <class Q>
        requires is_transparent
    const_iterator find(const Q& key) const {
        return at_slot<const_iterator>(table_.find(key));
    }
    template <class Q>
        requires is_transparent
    bool contains(const Q& key) const {
        return table_.find(key) != Table::npos;
    }
    template <class Q>
        requires is_transparent
    size_type count(const Q& key) const {
        return contains(key) ? 1 : 0;
    }
    template <class Q>
        requires is_transparent
    std::pair<iterator, iterator> equal_range(const Q& key) {
        return range_of(find(key));
    }
    template <class Q>
        requires is_transparent
    std::pair<const_iterator, const_iterator> equal_range(const Q& key) const {
        return range_of(find(key));
    }

    // Erasure. The other elements stay where they are.
    iterator erase(const_iterator at) {
        table_.erase(slot_of(at));
        ++at;
        return iterator_at(at);
    }
    iterator erase(iterator at)
        requires is_map
    {
        return erase(const_iterator(at));
    }
    iterator erase(const_iterator from, const_iterator to) {
        while (from != to) from = erase(from);
        return iterator_at(to);
    }
    size_type erase(const K& key) { return erase_key(key); }
    template <class Q>
        requires(is_transparent && !std::is_convertible_v<Q &&, iterator> && !std::is_convertible_v<Q &&, const_iterator>)
    size_type erase(Q&& key) {
        return erase_key(key);
    }

    // Insertion.
    std::pair<iterator, bool> insert(const value_type& element) { return insert_element(element); }
    std::pair<iterator, bool> insert(value_type&& element) { return insert_element(std::move(element)); }
    template <class P>
        requires(is_map && std::is_constructible_v<value_type, P &&>)
    std::pair<iterator, bool> insert(P&& element) {
        return insert_element(std::forward<P>(element));
    }
    iterator insert(const_iterator /*hint*/, const value_type& element) { return insert_element(element).first; }
    iterator insert(const_iterator /*hint*/, value_type&& element) { return insert_element(std::move(element)).first; }
    template <class P>
        requires(is_map && std::is_constructible_v<value_type, P &&>)
    iterator insert(const_iterator /*hint*/, P&& element) {
        return insert_element(std::forward<P>(element)).first;
    }
    template <std::input_iterator It>
    void insert(It from, It to) {
        for (; from != to; ++from) insert_element(*from);
    }
    void insert(std::initializer_list<value_type> elements) { insert(elements.begin(), elements.end()); }
    template <class... A>
    std::pair<iterator, bool> emplace(A&&... arguments) {
        return emplace_element(std::forward<A>(arguments)...);
    }
    template <class... A>
    iterator emplace_hint(const_iterator /*hint*/, A&&... arguments) {
        return emplace_element(std::forward<A>(arguments)...).first;
    }
    /// Moves the elements of another container here whose keys aren't here yet; the others stay there.
    template <class H2, class E2>
    void merge(FlatHashContainer<K, V, H2, E2, Allocator>& other) {
        if (static_cast<const void*>(this) == &other) return;
        for (auto at = other.begin(); at != other.end();) {
            value_type& element = const_cast<value_type&>(*at);
            const bool is_new = table_.insert(Table::key_of(element), [&](value_type* place) { table_.move_element(place, element); }).is_new;
            if (is_new)
                at = other.erase(at);
            else
                ++at;
        }
    }
    template <class H2, class E2>
    void merge(FlatHashContainer<K, V, H2, E2, Allocator>&& other) {
        merge(other);
    }

    /// Whether its table is as it should be. For tests.
    bool is_sound() const { return table_.is_sound(); }
    /// For what moves containers.
    const Table& table() const noexcept { return table_; }

protected:
    template <class, class, class, class, class>
    friend class FlatHashContainer;
    using UnitAllocator = typename Table::UnitAllocator;
    using Traits = typename Table::Traits;

    FlatHashContainer() = default;
    FlatHashContainer(size_type slots, const Hash& hash, const Equal& equal, const Allocator& allocator)
        : table_(hash, equal, UnitAllocator(allocator)) {
        table_.rehash(slots);
    }
    FlatHashContainer(const FlatHashContainer& other)
        : table_(other.table_.hash(), other.table_.equal(), Traits::select_on_container_copy_construction(other.table_.allocator())) {
        append_copies(other);
    }
    FlatHashContainer(const FlatHashContainer& other, const Allocator& allocator)
        : table_(other.table_.hash(), other.table_.equal(), UnitAllocator(allocator)) {
        append_copies(other);
    }
    FlatHashContainer(FlatHashContainer&& other) noexcept = default;
    FlatHashContainer(FlatHashContainer&& other, const Allocator& allocator)
        : table_(other.table_.hash(), other.table_.equal(), UnitAllocator(allocator)) {
        take(other);
    }
    FlatHashContainer& operator=(const FlatHashContainer& other) {
        if (this == &other) return *this;
        if constexpr (Traits::propagate_on_container_copy_assignment::value) {
            if (table_.allocator() != other.table_.allocator()) table_.release();
            table_.assign_allocator(other.table_.allocator());
        }
        FlatHashContainer copy(other, get_allocator());
        replace_by(copy);
        return *this;
    }
    /// Between different homes elements are moved one by one.
    FlatHashContainer& operator=(FlatHashContainer&& other) noexcept(Traits::propagate_on_container_move_assignment::value ||
                                                                     Traits::is_always_equal::value) {
        if (this == &other) return *this;
        table_.release();
        if constexpr (Traits::propagate_on_container_move_assignment::value) table_.assign_allocator(other.table_.allocator());
        table_.assign_functions(other.table_);
        take(other);
        return *this;
    }
    ~FlatHashContainer() = default;
    void assign(std::initializer_list<value_type> elements) {
        FlatHashContainer made(0, table_.hash(), table_.equal(), get_allocator());
        made.insert(elements);
        replace_by(made);
    }
    void swap(FlatHashContainer& other) noexcept { table_.swap(other.table_); }

    template <class I>
    I at_slot(size_type slot) const noexcept {
        return slot == Table::npos ? I() : I(table_.element(slot), table_.controls() + slot, table_.controls() + table_.slots());
    }
    /// Inserts under a key of type K, or one that is looked up by itself and makes a K.
    template <class Key, class... A>
    std::pair<iterator, bool> insert_key(Key&& key, A&&... value) {
        const auto& wanted = key;
        const auto inserted =
            table_.insert(wanted, [&](value_type* place) { table_.make_element(place, std::forward<Key>(key), std::forward<A>(value)...); });
        return {at_slot<iterator>(inserted.slot), inserted.is_new};
    }

private:
    template <class I>
    I first() const noexcept {
        if (empty()) return {};
        const std::int8_t* const from = table_.controls();
        return at_slot<I>(static_cast<size_type>(ControlGroup::next_filled(from, from + table_.slots()) - from));
    }
    size_type slot_of(const_iterator at) const noexcept { return static_cast<size_type>(at.control_ - table_.controls()); }
    static iterator iterator_at(const_iterator at) noexcept { return iterator(at.element_, at.control_, at.end_); }
    template <class I>
    static std::pair<I, I> range_of(I at) noexcept {
        I behind = at;
        if (at != I()) ++behind;
        return {at, behind};
    }
    template <class Q>
    size_type erase_key(const Q& key) {
        const size_type slot = table_.find(key);
        if (slot == Table::npos) return 0;
        table_.erase(slot);
        return 1;
    }
    template <class T>
    std::pair<iterator, bool> insert_element(T&& element) {
        using Plain = std::remove_cvref_t<T>;
        if constexpr (!is_map) {
            if constexpr (std::is_same_v<Plain, K>)
                return insert_key(std::forward<T>(element));
            else
                return insert_key(K(std::forward<T>(element)));
        } else if constexpr (requires {
                                 requires std::is_same_v<std::remove_cvref_t<decltype(element.first)>, K>;
                                 element.second;
                             }) {
            return insert_key(std::get<0>(std::forward<T>(element)), std::get<1>(std::forward<T>(element)));
        } else if constexpr (requires {
                                 element.first;
                                 element.second;
                             }) {
            return insert_key(K(std::get<0>(std::forward<T>(element))), std::get<1>(std::forward<T>(element)));
        } else {
            std::pair<K, V> made(std::forward<T>(element));
            return insert_key(std::move(made.first), std::move(made.second));
        }
    }
    template <class... A>
    std::pair<iterator, bool> emplace_element(A&&... arguments) {
        if constexpr (sizeof...(A) == 1)
            return insert_element(std::forward<A>(arguments)...);
        else if constexpr (!is_map)
            return insert_key(K(std::forward<A>(arguments)...));
        else if constexpr (sizeof...(A) == 0)
            return insert_key(K{});
        else if constexpr (sizeof...(A) == 2)
            return emplace_two(std::forward<A>(arguments)...);
        else
            return emplace_pieces(std::forward<A>(arguments)...);
    }
    template <class Key, class Value>
    std::pair<iterator, bool> emplace_two(Key&& key, Value&& value) {
        if constexpr (std::is_same_v<std::remove_cvref_t<Key>, K>)
            return insert_key(std::forward<Key>(key), std::forward<Value>(value));
        else
            return insert_key(K(std::forward<Key>(key)), std::forward<Value>(value));
    }
    template <class... Ks, class... Vs>
    std::pair<iterator, bool> emplace_pieces(std::piecewise_construct_t, std::tuple<Ks...> key, std::tuple<Vs...> value) {
        return std::apply([&](auto&... pieces) { return insert_key(std::make_from_tuple<K>(std::move(key)), std::forward<Vs>(pieces)...); }, value);
    }
    void append_copies(const FlatHashContainer& other) {
        table_.reserve(other.size());
        for (const value_type& element : other)
            table_.append(Table::key_of(element), [&](value_type* place) { table_.copy_element(place, element); });
    }
    /// This one has no elements.
    void take(FlatHashContainer& other) {
        if (Traits::is_always_equal::value || table_.allocator() == other.table_.allocator()) {
            table_.release();
            table_.take(other.table_);
            return;
        }
        // Should one throw, those that were moved before it have lost their keys.
        const std::unique_ptr<FlatHashContainer, Cleared> cleared(&other);
        table_.reserve(other.size());
        for (const value_type& element : other)
            table_.append(Table::key_of(element), [&](value_type* place) { table_.move_element(place, const_cast<value_type&>(element)); });
    }
    struct Cleared {
        void operator()(FlatHashContainer* container) const noexcept { container->clear(); }
    };
    /// By one with an equal allocator.
    void replace_by(FlatHashContainer& made) noexcept {
        table_.release();
        table_.assign_functions(made.table_);
        table_.take(made.table_);
    }

    Table table_;
};

template <class K, class V, class H, class E, class A>
bool operator==(const FlatHashContainer<K, V, H, E, A>& a, const FlatHashContainer<K, V, H, E, A>& b) {
    if (a.size() != b.size()) return false;
    for (const auto& element : a) {
        const auto found = b.find(FlatHashTable<K, V, H, E, A>::key_of(element));
        if (found == b.end() || !(*found == element)) return false;
    }
    return true;
}
/// Erases what `is_gone(element)` says; returns how many. Complexity: linear.
template <class K, class V, class H, class E, class A, class IsGone>
std::size_t erase_if(FlatHashContainer<K, V, H, E, A>& container, IsGone is_gone) {
    const std::size_t before = container.size();
    for (auto at = container.begin(); at != container.end();)
        if (is_gone(*at))
            at = container.erase(at);
        else
            ++at;
    return before - container.size();
}

}  // namespace stl

// The constructors of one whose base has them by parts.
#define TAIYEN_FLAT_HASH_CONSTRUCTORS(Name)                                                                                                         \
    Name() = default;                                                                                                                               \
    explicit Name(std::size_t slots, const Hash& hash = Hash(), const Equal& equal = Equal(), const Allocator& allocator = Allocator())             \
        : Base(slots, hash, equal, allocator) {}                                                                                                    \
    Name(std::size_t slots, const Allocator& allocator) : Base(slots, Hash(), Equal(), allocator) {}                                                \
    Name(std::size_t slots, const Hash& hash, const Allocator& allocator) : Base(slots, hash, Equal(), allocator) {}                                \
    explicit Name(const Allocator& allocator) : Base(0, Hash(), Equal(), allocator) {}                                                              \
    template <std::input_iterator It>                                                                                                               \
    Name(It from, It to, std::size_t slots = 0, const Hash& hash = Hash(), const Equal& equal = Equal(), const Allocator& allocator = Allocator())  \
        : Base(slots, hash, equal, allocator) {                                                                                                     \
        this->insert(from, to);                                                                                                                     \
    }                                                                                                                                               \
    template <std::input_iterator It>                                                                                                               \
    Name(It from, It to, const Allocator& allocator) : Base(0, Hash(), Equal(), allocator) {                                                        \
        this->insert(from, to);                                                                                                                     \
    }                                                                                                                                               \
    Name(std::initializer_list<typename Base::value_type> elements, std::size_t slots = 0, const Hash& hash = Hash(), const Equal& equal = Equal(), \
         const Allocator& allocator = Allocator())                                                                                                  \
        : Base(slots, hash, equal, allocator) {                                                                                                     \
        this->insert(elements);                                                                                                                     \
    }                                                                                                                                               \
    Name(std::initializer_list<typename Base::value_type> elements, const Allocator& allocator) : Base(0, Hash(), Equal(), allocator) {             \
        this->insert(elements);                                                                                                                     \
    }                                                                                                                                               \
    Name(const Name&) = default;                                                                                                                    \
    Name(const Name& other, const Allocator& allocator) : Base(other, allocator) {}                                                                 \
    Name(Name&&) = default;                                                                                                                         \
    Name(Name&& other, const Allocator& allocator) : Base(std::move(other), allocator) {}                                                           \
    Name& operator=(const Name&) = default;                                                                                                         \
    Name& operator=(Name&&) = default;                                                                                                              \
    Name& operator=(std::initializer_list<typename Base::value_type> elements) {                                                                    \
        Base::assign(elements);                                                                                                                     \
        return *this;                                                                                                                               \
    }                                                                                                                                               \
    ~Name() = default;                                                                                                                              \
    void swap(Name& other) noexcept { Base::swap(other); }                                                                                          \
    friend void swap(Name& a, Name& b) { stl::swap_contents(a, b); }

/// A map of unique keys in no order.
template <class K, class V, class Hash = hash<K>, class Equal = std::equal_to<>, class Allocator = persistent_allocator<std::pair<const K, V>>>
class flat_hash_map : public stl::FlatHashContainer<K, V, Hash, Equal, Allocator> {
    using Base = stl::FlatHashContainer<K, V, Hash, Equal, Allocator>;

public:
    using mapped_type = V;
    using typename Base::const_iterator;
    using typename Base::iterator;
    TAIYEN_FLAT_HASH_CONSTRUCTORS(flat_hash_map)

    /// Throws: std::out_of_range.
    V& at(const K& key) { return value_of(key); }
    const V& at(const K& key) const { return value_of(key); }
    template <class Q>
        requires Base::is_transparent
    V& at(const Q& key) {
        return value_of(key);
    }
    template <class Q>
        requires Base::is_transparent
    const V& at(const Q& key) const {
        return value_of(key);
    }
    V& operator[](const K& key) { return try_emplace(key).first->second; }
    V& operator[](K&& key) { return try_emplace(std::move(key)).first->second; }

    template <class... A>
    std::pair<iterator, bool> try_emplace(const K& key, A&&... arguments) {
        return this->insert_key(key, std::forward<A>(arguments)...);
    }
    template <class... A>
    std::pair<iterator, bool> try_emplace(K&& key, A&&... arguments) {
        return this->insert_key(std::move(key), std::forward<A>(arguments)...);
    }
    template <class... A>
    iterator try_emplace(const_iterator /*hint*/, const K& key, A&&... arguments) {
        return try_emplace(key, std::forward<A>(arguments)...).first;
    }
    template <class... A>
    iterator try_emplace(const_iterator /*hint*/, K&& key, A&&... arguments) {
        return try_emplace(std::move(key), std::forward<A>(arguments)...).first;
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
    iterator insert_or_assign(const_iterator /*hint*/, const K& key, M&& value) {
        return insert_or_assign(key, std::forward<M>(value)).first;
    }

private:
    template <class Q>
    V& value_of(const Q& key) const {
        const std::size_t slot = this->table().find(key);
        if (slot == Base::Table::npos) ordered::throw_no_such_key();
        return this->table().element(slot)->second;
    }
    /// What was not made of the value is assigned it.
    template <class M>
    static std::pair<iterator, bool> put(std::pair<iterator, bool> inserted, M&& value) {
        if (!inserted.second) inserted.first->second = std::forward<M>(value);
        return inserted;
    }
};

/// A set of unique keys in no order.
template <class K, class Hash = hash<K>, class Equal = std::equal_to<>, class Allocator = persistent_allocator<K>>
class flat_hash_set : public stl::FlatHashContainer<K, void, Hash, Equal, Allocator> {
    using Base = stl::FlatHashContainer<K, void, Hash, Equal, Allocator>;

public:
    TAIYEN_FLAT_HASH_CONSTRUCTORS(flat_hash_set)
};

#undef TAIYEN_FLAT_HASH_CONSTRUCTORS

}  // namespace taiyen
