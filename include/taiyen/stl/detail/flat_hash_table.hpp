#pragma once
/// The hash table behind flat_hash_map and flat_hash_set: elements in one array, found by a byte each (a "Swiss table": Kulukundis, "Designing a fast, efficient, cache-friendly hash table, step by step", CppCon 2017).
///
/// One block holds a control byte for each slot and, behind them, the slots. A control byte says that its slot is empty or that what it held was erased, or it is seven bits of the hash of what the slot holds.
/// Sixteen slots are a group, whose control bytes are compared at once. The hash names the first group of a search, which goes on to others until one has an empty slot.
/// (H1) Without a block there are no slots, and nothing else is pointed to. With one there are 4, 8, 16, … of them; control bytes of a group that belong to no slot are `beyond`.
/// (H2) No group between an element's first one and its own has an empty slot.
/// (H3) `free_`, the elements and the erased slots together are `seats`: a group with an empty slot is always there.
///
/// Exceptions: an insertion makes its element, and all that it needs, before it changes anything.
/// Everything that stores is a member of a template over the allocator: that keeps functions of instrumented programs apart from those of others.
/// Thread rule: external lock; concurrent reads are fine.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include <taiyen/base/detail/instrumented.hpp>
#include <taiyen/stl/hash.hpp>
#include <taiyen/stl/pointer_free.hpp>

namespace taiyen {
namespace stl {

/// Control bytes. Those of slots that hold something are not negative.
namespace control {
inline constexpr std::int8_t empty = -128;
inline constexpr std::int8_t erased = -2;
inline constexpr std::int8_t beyond = -1;  ///< there is no such slot
}  // namespace control

/// The control bytes of sixteen slots. Results have a bit for each.
struct ControlGroup {
    static constexpr std::size_t width = 16;

    static std::uint32_t equal(const std::int8_t* group, std::int8_t wanted) noexcept {
#if defined(__SSE2__)
        return signs(reinterpret_cast<Bytes>(load(group) == static_cast<char>(wanted)));
#else
        std::uint32_t bits = 0;
        for (std::size_t i = 0; i != width; ++i) bits |= static_cast<std::uint32_t>(group[i] == wanted) << i;
        return bits;
#endif
    }
    static std::uint32_t filled(const std::int8_t* group) noexcept {
#if defined(__SSE2__)
        return signs(load(group)) ^ 0xffffU;
#else
        std::uint32_t bits = 0;
        for (std::size_t i = 0; i != width; ++i) bits |= static_cast<std::uint32_t>(group[i] >= 0) << i;
        return bits;
#endif
    }
    /// The first slot from `at` on that holds something, or `end`.
    static const std::int8_t* next_filled(const std::int8_t* at, const std::int8_t* end) noexcept {
        while (at < end) {
            const std::size_t within = reinterpret_cast<std::uintptr_t>(at) % width;
            const std::uint32_t bits = filled(at - within) >> within;
            if (bits != 0) return at + std::countr_zero(bits);
            at += width - within;
        }
        return end;
    }

#if defined(__SSE2__)
private:
    using Bytes [[gnu::vector_size(width)]] = char;
    static Bytes load(const std::int8_t* group) noexcept {
        Bytes bytes;
        std::memcpy(&bytes, std::assume_aligned<width>(group), width);
        return bytes;
    }
    static std::uint32_t signs(Bytes bytes) noexcept { return static_cast<std::uint32_t>(__builtin_ia32_pmovmskb128(bytes)); }
#endif
};

/// What blocks are made of.
template <class Element>
struct alignas(std::max(ControlGroup::width, alignof(Element))) HashTableUnit {
    std::byte bytes[std::max(ControlGroup::width, alignof(Element))];
};

template <class K, class V>
struct HashTableElement {
    using type = std::pair<const K, V>;
};
template <class K>
struct HashTableElement<K, void> {
    using type = K;
};

}  // namespace stl

template <class Element>
inline constexpr bool is_pointer_free<stl::HashTableUnit<Element>> = is_pointer_free<Element>;

namespace stl {

/// `V` is void for sets.
template <class K, class V, class Hash, class Equal, class Allocator>
class FlatHashTable {
public:
    using Element = typename HashTableElement<K, V>::type;
    using Unit = HashTableUnit<Element>;
    using UnitAllocator = typename std::allocator_traits<Allocator>::template rebind_alloc<Unit>;
    using Traits = std::allocator_traits<UnitAllocator>;
    using Pointer = typename Traits::pointer;

    static constexpr std::size_t npos = ~std::size_t{0};
    static constexpr std::size_t slots_min = 4;
    static constexpr bool has_values = !std::is_void_v<V>;

    /// How many of so many slots may be in use.
    static constexpr std::size_t seats_of(std::size_t slots) noexcept { return slots < 8 ? slots - slots / 4 : slots - slots / 8; }
    /// The fewest slots with so many seats. Throws: std::bad_array_new_length.
    static std::size_t slots_for(std::size_t count) {
        if (count == 0) return 0;
        if (count > max_size()) throw std::bad_array_new_length();
        const std::size_t slots = std::max(slots_min, std::bit_ceil(count));
        return seats_of(slots) < count ? slots * 2 : slots;
    }
    static constexpr std::size_t max_size() noexcept {
        return static_cast<std::size_t>(std::numeric_limits<std::ptrdiff_t>::max()) / 4 / (sizeof(Element) + 1);
    }
    static constexpr std::size_t control_bytes(std::size_t slots) noexcept {
        constexpr std::size_t unit = sizeof(Unit);
        return (std::max(slots, ControlGroup::width) + unit - 1) / unit * unit;
    }
    static constexpr std::size_t units_of(std::size_t slots) noexcept {
        return (control_bytes(slots) + slots * sizeof(Element) + sizeof(Unit) - 1) / sizeof(Unit);
    }

    FlatHashTable() noexcept(std::is_nothrow_default_constructible_v<UnitAllocator> && std::is_nothrow_default_constructible_v<Hash> &&
                             std::is_nothrow_default_constructible_v<Equal>) = default;
    FlatHashTable(const Hash& hash, const Equal& equal, const UnitAllocator& allocator) : hash_(hash), equal_(equal), allocator_(allocator) {}
    FlatHashTable(FlatHashTable&& other) noexcept : hash_(other.hash_), equal_(other.equal_), allocator_(std::move(other.allocator_)) { take(other); }
    FlatHashTable(const FlatHashTable&) = delete;
    FlatHashTable& operator=(const FlatHashTable&) = delete;
    ~FlatHashTable() { release(); }

    const UnitAllocator& allocator() const noexcept { return allocator_; }
    void assign_allocator(const UnitAllocator& allocator) noexcept { allocator_ = allocator; }
    const Hash& hash() const noexcept { return hash_; }
    const Equal& equal() const noexcept { return equal_; }
    void assign_functions(const FlatHashTable& other) {
        if constexpr (!std::is_empty_v<Hash>) hash_ = other.hash_;
        if constexpr (!std::is_empty_v<Equal>) equal_ = other.equal_;
    }
    std::size_t size() const noexcept { return size_; }
    std::size_t slots() const noexcept { return slots_; }
    std::size_t free() const noexcept { return free_; }
    const Pointer& block() const noexcept { return block_; }

    const std::int8_t* controls() const noexcept { return View{block_, slots_}.controls(); }
    Element* element(std::size_t slot) const noexcept { return View{block_, slots_}.element(slot); }

    /// Takes everything over; this table has no block.
    void take(FlatHashTable& other) noexcept {
        block_ = other.block_;
        slots_ = other.slots_;
        size_ = other.size_;
        free_ = other.free_;
        other.forget();
    }
    void swap(FlatHashTable& other) noexcept {
        using std::swap;
        if constexpr (Traits::propagate_on_container_swap::value) swap(allocator_, other.allocator_);
        if constexpr (!std::is_empty_v<Hash>) swap(hash_, other.hash_);
        if constexpr (!std::is_empty_v<Equal>) swap(equal_, other.equal_);
        const Pointer block = block_;
        const std::size_t slots = slots_;
        const std::size_t size = size_;
        const std::size_t free = free_;
        take(other);
        other.block_ = block;
        other.slots_ = slots;
        other.size_ = size;
        other.free_ = free;
    }
    /// Keeps the block. Complexity: linear in slots.
    void clear() noexcept {
        if (slots_ == 0 || free_ == seats_of(slots_)) return;
        View{block_, slots_}.destroy(allocator_);
        View{block_, slots_}.reset();
        size_ = 0;
        free_ = seats_of(slots_);
    }
    /// Destroys everything, and gives the block back.
    void release() noexcept {
        if (slots_ == 0) return;
        View{block_, slots_}.destroy(allocator_);
        Traits::deallocate(allocator_, block_, units_of(slots_));
        forget();
    }

    /// The slot of that key, or npos. Complexity: constant; one cache line of control bytes and one of the element, mostly.
    template <class Q>
    std::size_t find(const Q& key) const {
        return slots_ == 0 ? npos : find_hashed(key, hash_of(key));
    }
    struct Inserted {
        std::size_t slot;
        bool is_new;
    };
    /// `make(Element*)` makes the element there unless the key is there already. Throws: what `make`, hash and comparison do, HeapFull or std::bad_alloc; nothing has changed then, if moving elements doesn't throw or
    /// they can be copied.
    template <class Q, class Make>
    Inserted insert(const Q& key, Make&& make) {
        const std::uint64_t hash = hash_of(key);
        if (slots_ == 0) return {insert_elsewhere(hash, make), true};
        if (const std::size_t found = find_hashed(key, hash); found != npos) return {found, false};
        return {insert_new(hash, make), true};
    }
    /// Without a look whether its key is there.
    template <class Make>
    void append(const K& key, Make&& make) {
        const std::uint64_t hash = hash_of(key);
        if (slots_ == 0)
            insert_elsewhere(hash, make);
        else
            insert_new(hash, make);
    }
    void erase(std::size_t slot) noexcept {
        const View view{block_, slots_};
        Traits::destroy(allocator_, view.element(slot));
        std::int8_t* const group = view.controls() + slot / ControlGroup::width * ControlGroup::width;
        // No search ever went on from a group that has an empty slot.
        const bool is_last = ControlGroup::equal(group, control::empty) != 0;
        view.controls()[slot] = is_last ? control::empty : control::erased;
        if (is_last) ++free_;
        --size_;
    }
    /// At least so many slots, and seats for all elements; none at all if both are 0. Throws: HeapFull, std::bad_alloc, what copying and hashing throw; nothing has changed then.
    void rehash(std::size_t slots) {
        if (slots > max_size()) throw std::bad_array_new_length();
        const std::size_t wanted = std::max(slots_for(size_), slots == 0 ? 0 : std::max(slots_min, std::bit_ceil(slots)));
        if (wanted == 0) {
            release();
        } else if (wanted != slots_ || free_ + size_ != seats_of(slots_)) {
            Other other(*this, wanted);
            other.take_all();
        }
    }
    /// So that so many elements lie in it before it needs another block.
    void reserve(std::size_t count) {
        if (count > size_ + free_) rehash(slots_for(count));
    }

    /// Makes an element of a key and arguments for the mapped value.
    template <class Key, class... A>
    void make_element(Element* place, Key&& key, A&&... arguments) {
        if constexpr (has_values) {
            Traits::construct(allocator_, place, std::piecewise_construct, std::forward_as_tuple(std::forward<Key>(key)),
                              std::forward_as_tuple(std::forward<A>(arguments)...));
        } else {
            Traits::construct(allocator_, place, std::forward<Key>(key));
        }
    }
    /// The same of an element that lies elsewhere and is given up, or is to stay.
    void move_element(Element* place, Element& from) {
        if constexpr (has_values)
            make_element(place, const_cast<K&&>(from.first), std::move(from.second));
        else
            make_element(place, std::move(from));
    }
    void copy_element(Element* place, const Element& from) {
        if constexpr (has_values)
            make_element(place, from.first, from.second);
        else
            make_element(place, from);
    }
    static const K& key_of(const Element& element) noexcept {
        if constexpr (has_values)
            return element.first;
        else
            return element;
    }

    /// (H1) to (H3), and every element is found. For tests.
    bool is_sound() const {
        if (slots_ == 0) return block_ == nullptr && size_ == 0 && free_ == 0;
        if (!std::has_single_bit(slots_) || slots_ < slots_min) return false;
        std::size_t erased = 0;
        std::size_t filled = 0;
        for (std::size_t i = 0; i != std::max(slots_, ControlGroup::width); ++i) {
            const std::int8_t byte = controls()[i];
            if ((i >= slots_) != (byte == control::beyond)) return false;
            if (byte == control::erased) ++erased;
            if (byte < 0) continue;
            ++filled;
            if (find(key_of(*element(i))) != i) return false;
        }
        return filled == size_ && size_ + erased + free_ == seats_of(slots_);
    }

private:
    /// A block.
    struct View {
        const Pointer& block;
        std::size_t slots;

        std::int8_t* controls() const noexcept { return reinterpret_cast<std::int8_t*>(std::to_address(block)); }
        Element* element(std::size_t slot) const noexcept {
            return reinterpret_cast<Element*>(reinterpret_cast<std::byte*>(std::to_address(block)) + control_bytes(slots)) + slot;
        }
        void reset() const noexcept {
            std::memset(controls(), control::empty, std::max(slots, ControlGroup::width));
            if (slots < ControlGroup::width) std::memset(controls() + slots, control::beyond, ControlGroup::width - slots);
        }
        void destroy(UnitAllocator& allocator) const noexcept {
            for_each([&](std::size_t slot) { Traits::destroy(allocator, element(slot)); });
        }
        /// The first vacant slot on the way of the hash.
        std::size_t vacant(std::uint64_t hash) const noexcept {
            const std::uint32_t real = slots < ControlGroup::width ? (1U << slots) - 1 : 0xffffU;
            for (Search search(hash, slots);; search.next()) {
                const std::uint32_t bits = ~ControlGroup::filled(controls() + search.first()) & real;
                if (bits != 0) return search.first() + static_cast<std::size_t>(std::countr_zero(bits));
            }
        }
        template <class F>
        void for_each(F&& visit) const {
            const std::int8_t* const from = controls();
            const std::int8_t* const end = from + slots;
            for (const std::int8_t* at = ControlGroup::next_filled(from, end); at != end; at = ControlGroup::next_filled(at + 1, end))
                visit(static_cast<std::size_t>(at - from));
        }
    };

    /// The groups at which a hash is looked for, by their first slots: each once, by triangular numbers (Knuth, "The Art of Computer Programming", volume 3, section 6.4, exercise 20).
    class Search {
    public:
        Search(std::uint64_t hash, std::size_t slots) noexcept
            : last_(std::max(slots / ControlGroup::width, std::size_t{1}) - 1), group_(static_cast<std::size_t>(hash >> 7U) & last_) {}
        std::size_t first() const noexcept { return group_ * ControlGroup::width; }
        void next() noexcept { group_ = (group_ + ++step_) & last_; }

    private:
        std::size_t last_;
        std::size_t group_;
        std::size_t step_ = 0;
    };

    static constexpr bool hash_is_noexcept = std::is_nothrow_invocable_v<const Hash&, const K&>;
    static constexpr bool is_noexcept_moved = [] {
        if constexpr (has_values)
            return std::is_nothrow_move_constructible_v<K> && std::is_nothrow_move_constructible_v<V>;
        else
            return std::is_nothrow_move_constructible_v<K>;
    }();
    /// Where the hash may throw, all slots are found before the first element is moved: each new slot keeps the number of the old one till then.
    static constexpr bool is_planned = is_noexcept_moved && !hash_is_noexcept && sizeof(Element) >= sizeof(std::size_t);
    static constexpr bool is_copied = (!is_noexcept_moved || (!hash_is_noexcept && !is_planned)) && std::is_copy_constructible_v<Element>;

    /// Another block for the table, until it is the table's; then it is the one before.
    class Other {
    public:
        /// Throws: HeapFull, std::bad_alloc.
        Other(FlatHashTable& table, std::size_t slots)
            : table_(table), block_(Traits::allocate(table.allocator_, units_of(slots))), slots_(slots), free_(seats_of(slots)) {
            view().reset();
        }
        Other(const Other&) = delete;
        Other& operator=(const Other&) = delete;
        ~Other() {
            if (is_plan_) {
                if (made_ != npos) Traits::destroy(table_.allocator_, view().element(made_));
            } else if (slots_ != 0) {
                view().destroy(table_.allocator_);
            }
            if (slots_ != 0) Traits::deallocate(table_.allocator_, block_, units_of(slots_));
        }
        /// One that comes beside those of the table.
        template <class Make>
        std::size_t make(std::uint64_t hash, Make&& make) {
            const std::size_t slot = view().vacant(hash);
            make(view().element(slot));
            fill(slot, hash);
            return made_ = slot;
        }
        /// Moves the elements here, and the block to the table.
        void take_all() {
            const View from{table_.block_, table_.slots_};
            is_plan_ = is_planned;
            if (table_.slots_ != 0) {
                from.for_each([&](std::size_t slot) {
                    const std::uint64_t hash = table_.hash_of(key_of(*from.element(slot)));
                    const std::size_t to = view().vacant(hash);
                    if constexpr (is_planned)
                        std::memcpy(static_cast<void*>(view().element(to)), &slot, sizeof slot);
                    else if constexpr (is_copied)
                        table_.copy_element(view().element(to), *from.element(slot));
                    else
                        table_.move_element(view().element(to), *from.element(slot));
                    fill(to, hash);
                });
            }
            if constexpr (is_planned) {
                view().for_each([&](std::size_t to) {
                    if (to == made_) return;
                    std::size_t slot = 0;
                    std::memcpy(&slot, static_cast<const void*>(view().element(to)), sizeof slot);
                    table_.move_element(view().element(to), *from.element(slot));
                });
                is_plan_ = false;
            }
            const Pointer block = table_.block_;
            const std::size_t slots = table_.slots_;
            table_.size_ += made_ == npos ? 0 : 1;
            table_.block_ = block_;
            table_.slots_ = slots_;
            table_.free_ = free_;
            block_ = block;
            slots_ = slots;
        }

    private:
        View view() const noexcept { return {block_, slots_}; }
        void fill(std::size_t slot, std::uint64_t hash) noexcept {
            view().controls()[slot] = tag_of(hash);
            --free_;
        }

        FlatHashTable& table_;
        Pointer block_;
        std::size_t slots_;
        std::size_t free_;
        std::size_t made_ = npos;
        bool is_plan_ = false;  ///< slots hold numbers, but for the one that was made
    };

    /// Hashes whose bits are all as good as random say so (`is_avalanching`, as Boost's tables ask); others are mixed.
    template <class Q>
    std::uint64_t hash_of(const Q& key) const {
        if constexpr (requires { typename Hash::is_avalanching; })
            return hash_(key);
        else
            return hash_word(hash_(key));
    }
    static std::int8_t tag_of(std::uint64_t hash) noexcept { return static_cast<std::int8_t>(hash & 0x7fU); }

    template <class Q>
    std::size_t find_hashed(const Q& key, std::uint64_t hash) const {
        const View view{block_, slots_};
        for (Search search(hash, slots_);; search.next()) {
            const std::int8_t* const group = view.controls() + search.first();
            // The element lies on one of these pages: what it takes to get there begins before its slot is known.
            __builtin_prefetch(view.element(search.first() + ControlGroup::width / 4));
            __builtin_prefetch(view.element(search.first() + ControlGroup::width * 3 / 4));
            for (std::uint32_t bits = ControlGroup::equal(group, tag_of(hash)); bits != 0; bits &= bits - 1) {
                const std::size_t slot = search.first() + static_cast<std::size_t>(std::countr_zero(bits));
                if (equal_(key_of(*view.element(slot)), key)) [[likely]]
                    return slot;
            }
            if (ControlGroup::equal(group, control::empty) != 0) [[likely]]
                return npos;
        }
    }
    template <class Make>
    std::size_t insert_new(std::uint64_t hash, Make& make) {
        const View view{block_, slots_};
        const std::size_t slot = view.vacant(hash);
        const bool was_empty = view.controls()[slot] == control::empty;
        if (was_empty && free_ == 0) return insert_elsewhere(hash, make);
        make(view.element(slot));
        view.controls()[slot] = tag_of(hash);
        if (was_empty) --free_;
        ++size_;
        return slot;
    }
    /// Into another block: before the others are moved there, since its arguments may lie among them. One as large will do if enough was erased.
    template <class Make>
    std::size_t insert_elsewhere(std::uint64_t hash, Make& make) {
        const std::size_t erased = slots_ == 0 ? 0 : seats_of(slots_) - size_ - free_;
        Other other(*this, slots_ == 0 ? slots_min : erased * 32 > slots_ * 3 ? slots_ : slots_ * 2);
        const std::size_t slot = other.make(hash, make);
        other.take_all();
        return slot;
    }
    void forget() noexcept {
        block_ = nullptr;
        slots_ = size_ = free_ = 0;
    }

    [[no_unique_address]] Hash hash_{};
    [[no_unique_address]] Equal equal_{};
    UnitAllocator allocator_{};
    Pointer block_ = nullptr;
    std::size_t slots_ = 0;
    std::size_t size_ = 0;
    std::size_t free_ = 0;  ///< empty slots that may be filled before another block is needed
};

}  // namespace stl
}  // namespace taiyen
